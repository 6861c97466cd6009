//! Rays and pointers meet single instances, and Bevy's own rays no longer meet a set's mesh.

use bevy::{
    asset::RenderAssetUsages,
    camera::{NormalizedRenderTarget, RenderTarget, visibility::VisibilityRange},
    ecs::system::RunSystemOnce,
    mesh::MeshCompressionArgs,
    picking::{
        backend::{HitData, PointerHits},
        events::{Pointer, PointerClick},
        mesh_picking::{
            MeshPickingPlugin,
            ray_cast::{MeshRayCast, MeshRayCastSettings, RayCastVisibility, RayMeshHit},
        },
        pointer::{Location, PointerButton, PointerId, PointerLocation},
        prelude::Pickable,
    },
    prelude::*,
    render::{RenderPlugin, settings::WgpuSettings},
    window::{ExitCondition, PrimaryWindow},
    winit::WinitPlugin,
};
use bevy_gpu_culling::prelude::*;
use glam::camera::rh::{proj::directx::perspective_infinite_reverse, view::look_at_mat4};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// An app without a renderer: rays need none.
fn app() -> App {
    let mut app = App::new();
    let plugins = DefaultPlugins
        .set(WindowPlugin {
            primary_window: None,
            exit_condition: ExitCondition::DontExit,
            ..default()
        })
        .set(RenderPlugin {
            render_creation: WgpuSettings {
                backends: None,
                ..default()
            }
            .into(),
            ..default()
        })
        .disable::<WinitPlugin>()
        .disable::<bevy::log::LogPlugin>();
    app.add_plugins((
        plugins,
        MeshPickingPlugin,
        GpuCullingPlugin::default(),
        InstancePickingPlugin,
    ));
    app.finish();
    app.cleanup();
    app
}

fn add<A: Asset>(app: &mut App, asset: impl Into<A>) -> Handle<A> {
    app.world_mut()
        .resource_mut::<Assets<A>>()
        .add(asset.into())
}

/// Ray casts look at what is visible at all: without a renderer, no view sees anything.
fn settings() -> MeshRayCastSettings<'static> {
    MeshRayCastSettings::default()
        .with_visibility(RayCastVisibility::Visible)
        .never_early_exit()
}

fn instance_hits(app: &mut App, ray: Ray3d) -> Vec<(Entity, InstanceHit)> {
    let cast = move |mut rays: InstanceRayCast| rays.cast_ray(ray, &settings());
    app.world_mut().run_system_once(cast).unwrap()
}

fn mesh_hits(app: &mut App, ray: Ray3d) -> Vec<(Entity, RayMeshHit)> {
    let cast = move |mut rays: MeshRayCast| rays.cast_ray(ray, &settings()).to_vec();
    app.world_mut().run_system_once(cast).unwrap()
}

fn random(rng: &mut ChaCha8Rng, size: f32) -> Vec3 {
    Vec3::from_array(core::array::from_fn(|_| rng.random_range(-size..size)))
}

fn random_ray(rng: &mut ChaCha8Rng) -> Ray3d {
    let origin = random(rng, 30.0);
    let direction = Dir3::new(random(rng, 8.0) - origin).unwrap();
    Ray3d::new(origin, direction)
}

/// Bevy's ray cast at one entity per instance gives the same hits.
#[test]
fn instances_are_met_as_entities_are() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let instances: Vec<_> = (0..300)
        .map(|_| {
            let turn = Quat::from_rotation_y(rng.random_range(0.0..6.0));
            let scale = Vec3::from_array([(); 3].map(|()| rng.random_range(0.2..2.5)));
            Transform::from_translation(random(&mut rng, 10.0))
                .with_rotation(turn)
                .with_scale(scale)
        })
        .collect();
    let of_set = Transform::from_xyz(1.0, 2.0, -3.0)
        .with_rotation(Quat::from_rotation_x(0.4))
        .with_scale(Vec3::new(1.0, 1.5, 0.7));
    let set = InstanceSet::from_transforms(instances.iter().copied()).unwrap();
    let packed: Vec<_> = set.iter().collect();

    let mut ours = app();
    let mesh = add::<Mesh>(&mut ours, Cone::new(0.5, 1.4));
    let set = add::<InstanceSet>(&mut ours, set);
    let entity = ours
        .world_mut()
        .spawn((Mesh3d(mesh), GpuInstances(set), of_set))
        .id();
    ours.update();

    let mut bevys = app();
    let mesh = add::<Mesh>(&mut bevys, Cone::new(0.5, 1.4));
    let parent = bevys
        .world_mut()
        .spawn((of_set, Visibility::default()))
        .id();
    // Decoded, because a set's rotations are quantized.
    let spawned = packed.iter().map(|instance| {
        let place = Transform {
            translation: instance.translation,
            rotation: instance.rotation,
            scale: instance.scale,
        };
        (Mesh3d(mesh.clone()), place, ChildOf(parent))
    });
    let spawned: Vec<_> = spawned.collect();
    let entities = spawned
        .into_iter()
        .map(|bundle| bevys.world_mut().spawn(bundle).id());
    let entities: Vec<_> = entities.collect();
    // Bounds come in the first frame, visibility in the second.
    bevys.update();
    bevys.update();

    let mut met = 0;
    for _ in 0..300 {
        let ray = random_ray(&mut rng);
        let got = instance_hits(&mut ours, ray);
        let expected = mesh_hits(&mut bevys, ray);
        let Some((nearest, expected)) = expected.first() else {
            assert!(got.is_empty(), "{ray:?}: {got:?}");
            continue;
        };
        met += 1;
        let [(hit_entity, hit)] = &got[..] else {
            panic!("{ray:?} meets {nearest}, and {got:?}");
        };
        assert_eq!(*hit_entity, entity);
        assert!(
            (hit.distance - expected.distance).abs() < 1e-3,
            "{hit:?} {expected:?}"
        );
        assert!(
            hit.point.distance(expected.point) < 1e-3,
            "{hit:?} {expected:?}"
        );
        assert!(
            hit.normal.distance(expected.normal) < 1e-2,
            "{hit:?} {expected:?}"
        );
        assert_eq!(hit.triangle_index, expected.triangle_index);
        assert_eq!(entities[hit.instance as usize], *nearest);
    }
    assert!(met > 60, "{met} of 300 rays meet something");
}

/// The same rays meet a compressed mesh at the same places, within a step of 16 bits.
#[test]
fn a_compressed_mesh_is_met_as_the_plain_one() {
    let plain = Mesh::from(Torus::new(0.3, 0.9));
    let small = plain.clone();
    let small = small.compressed_mesh(&MeshCompressionArgs::regular());
    let small = small.map_err(|(_, errors)| errors).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let places: Vec<_> = (0..300).map(|_| random(&mut rng, 10.0)).collect();
    let mut apps = [plain, small].map(|mesh| {
        let mut app = app();
        let set = InstanceSet::from_transforms(places.iter().copied()).unwrap();
        let set = add::<InstanceSet>(&mut app, set);
        let mesh = Mesh3d(add::<Mesh>(&mut app, mesh));
        app.world_mut().spawn((mesh, GpuInstances(set)));
        app.update();
        app
    });
    let mut met = 0;
    for _ in 0..300 {
        let ray = random_ray(&mut rng);
        let [of_plain, of_small] = apps.each_mut().map(|app| instance_hits(app, ray));
        // A ray may pass an edge by less than a step.
        let ([(_, plain)], [(_, small)]) = (&of_plain[..], &of_small[..]) else {
            assert!(
                of_plain.len() + of_small.len() < 2,
                "{of_plain:?} {of_small:?}"
            );
            continue;
        };
        met += 1;
        assert_eq!(plain.instance, small.instance);
        assert!(
            (plain.distance - small.distance).abs() < 1e-3,
            "{plain:?} {small:?}"
        );
        assert!(
            plain.normal.distance(small.normal) < 1e-2,
            "{plain:?} {small:?}"
        );
        let uvs = plain.uv.zip(small.uv);
        assert!(uvs.is_some_and(|(plain, small)| plain.distance(small) < 1e-3));
    }
    assert!(met > 60, "{met} of 300 rays meet something");
}

/// Spawns boxes at these places along the x axis.
fn spawn_boxes(app: &mut App, places: impl IntoIterator<Item = f32>) -> Entity {
    let mesh = add::<Mesh>(app, Cuboid::from_length(1.0));
    let places = places.into_iter().map(|x| Vec3::X * x);
    let set = InstanceSet::from_transforms(places).unwrap();
    let set = add::<InstanceSet>(app, set);
    let entity = app.world_mut().spawn((Mesh3d(mesh), GpuInstances(set)));
    let entity = entity.id();
    // Bounds come in the first frame, visibility in the second.
    app.update();
    app.update();
    entity
}

/// A ray along -z at this x.
fn ray_at(x: f32) -> Ray3d {
    Ray3d::new(Vec3::new(x, 0.0, 10.0), Dir3::NEG_Z)
}

#[test]
fn edits_are_met_at_once() {
    let mut app = app();
    let mesh = add::<Mesh>(&mut app, Cuboid::from_length(1.0));
    let places = (0..100).map(|i| (Vec3::X * i as f32 * 3.0, i));
    let set = InstanceSet::from_tagged(places).unwrap();
    let set = add::<InstanceSet>(&mut app, set);
    let entity = app
        .world_mut()
        .spawn((Mesh3d(mesh), GpuInstances(set.clone())))
        .id();
    app.update();
    let mut at = |x: f32, edit: &dyn Fn(&mut InstanceSet)| {
        let mut sets = app.world_mut().resource_mut::<Assets<InstanceSet>>();
        edit(&mut sets.get_mut(&set).unwrap());
        let hits = instance_hits(&mut app, ray_at(x));
        assert!(hits.iter().all(|hit| hit.0 == entity) && hits.len() <= 1);
        hits.first().map(|(_, hit)| (hit.instance, hit.tag))
    };
    assert_eq!(at(30.0, &|_| ()), Some((10, 10)));
    assert_eq!(at(30.0, &|set| set.hide(10).unwrap()), None);
    assert_eq!(at(30.0, &|set| set.show(10).unwrap()), Some((10, 10)));
    let moved = at(30.0, &|set| set.set(10, Vec3::X * -7.0).unwrap());
    assert_eq!(moved, None);
    assert_eq!(at(-7.0, &|_| ()), Some((10, 10)));
    let last = at(297.0, &|set| assert_eq!(set.swap_remove(4), Ok(Some(99))));
    assert_eq!(last, Some((4, 99)));
    let replaced = at(1.0, &|set| {
        *set = InstanceSet::from_transforms([Vec3::X]).unwrap();
    });
    assert_eq!(replaced, Some((0, 0)));

    // A flat instance has no inverse, but a face.
    let flat = at(50.0, &|set| {
        let flat = Transform::from_xyz(50.0, 0.0, 0.0).with_scale(Vec3::new(2.0, 1.0, 0.0));
        *set = InstanceSet::from_transforms([flat]).unwrap();
    });
    assert_eq!(flat, Some((0, 0)));
    at(1.0, &|set| {
        *set = InstanceSet::from_transforms([Vec3::X]).unwrap();
    });

    // A mesh without a triangle list is met at its sphere.
    let strip = Mesh::new(
        bevy::mesh::PrimitiveTopology::TriangleStrip,
        RenderAssetUsages::default(),
    )
    .with_inserted_attribute(
        Mesh::ATTRIBUTE_POSITION,
        vec![Vec3::NEG_ONE, Vec3::ONE, Vec3::X],
    );
    let strip = add::<Mesh>(&mut app, strip);
    app.world_mut().entity_mut(entity).insert(Mesh3d(strip));
    app.update();
    let hits = instance_hits(&mut app, ray_at(1.0));
    assert_eq!(hits[0].1.triangle_index, None);
    assert!((hits[0].1.normal - Vec3::Z).length() < 0.01, "{hits:?}");
}

#[test]
fn bevys_rays_meet_no_mesh_at_the_sets_origin() {
    let mut app = app();
    let entity = spawn_boxes(&mut app, [-5.0, 5.0]);
    let through_the_middle = ray_at(0.0);
    assert!(mesh_hits(&mut app, through_the_middle).is_empty());
    assert!(instance_hits(&mut app, through_the_middle).is_empty());

    // Without the set, the entity is an ordinary mesh.
    app.world_mut().entity_mut(entity).remove::<GpuInstances>();
    app.update();
    app.update();
    assert_eq!(mesh_hits(&mut app, through_the_middle).len(), 1);
}

/// What a pointer in the middle of a camera reports.
fn pointed(app: &mut App) -> Vec<(Entity, InstanceHit)> {
    app.world_mut()
        .resource_mut::<Messages<PointerHits>>()
        .clear();
    app.update();
    let messages = app.world().resource::<Messages<PointerHits>>();
    let hits = messages.iter_current_update_messages();
    let picks = hits.flat_map(|hits| hits.picks.clone());
    let instances = picks.filter_map(|(entity, data)| {
        let hit = data.extra_as::<InstanceHit>()?.clone();
        assert_eq!((data.depth, data.position), (hit.distance, Some(hit.point)));
        Some((entity, hit))
    });
    instances.collect()
}

#[test]
fn a_pointer_is_over_an_instance() {
    let mut app = app();
    // Bevy's pointers are in no camera without a primary window, whatever the camera's target.
    app.world_mut().spawn((Window::default(), PrimaryWindow));
    app.world_mut()
        .resource_mut::<InstancePickingSettings>()
        .ray_cast_visibility = RayCastVisibility::Visible;
    let image = Image::new_target_texture(
        200,
        100,
        bevy::render::render_resource::TextureFormat::Rgba8UnormSrgb,
        None,
    );
    let image = add::<Image>(&mut app, image);
    let target = RenderTarget::Image(image.clone().into());
    app.world_mut().spawn((
        Camera3d::default(),
        target,
        Transform::from_xyz(6.0, 0.0, 20.0),
    ));
    app.world_mut().spawn((
        PointerId::Custom(bevy::asset::uuid::Uuid::from_u128(1)),
        PointerLocation::new(Location {
            target: NormalizedRenderTarget::Image(image.into()),
            position: Vec2::new(100.0, 50.0),
        }),
    ));
    let entity = spawn_boxes(&mut app, (0..10).map(|i| i as f32 * 3.0));
    let hits = pointed(&mut app);
    assert_eq!(hits.len(), 1, "{hits:?}");
    assert_eq!((hits[0].0, hits[0].1.instance), (entity, 2));
    // The instances are 20 units away from the camera, and more.
    for (end, expected) in [(20.5, 1), (19.5, 0)] {
        app.world_mut()
            .entity_mut(entity)
            .insert(range([0.0; 2], [end; 2]));
        assert_eq!(pointed(&mut app).len(), expected, "{end}");
    }
    app.world_mut()
        .entity_mut(entity)
        .remove::<InstanceVisibilityRange>();
    assert!(
        (hits[0].1.distance - 19.4).abs() < 0.2,
        "from the near plane: {hits:?}"
    );

    app.world_mut().entity_mut(entity).insert(Pickable::IGNORE);
    assert!(pointed(&mut app).is_empty());
    app.world_mut().entity_mut(entity).remove::<Pickable>();
    assert_eq!(pointed(&mut app).len(), 1);
    app.world_mut()
        .resource_mut::<InstancePickingSettings>()
        .require_markers = true;
    assert!(pointed(&mut app).is_empty());
}

fn indexed(app: &mut App) -> usize {
    let count = |rays: InstanceRayCast| rays.indexed_sets();
    app.world_mut().run_system_once(count).unwrap()
}

/// Work is counted in indices, not in time.
#[test]
fn only_sets_that_a_ray_enters_are_indexed() {
    let mut app = app();
    let mesh = add::<Mesh>(&mut app, Cuboid::from_length(1.0));
    let mut handles = Vec::new();
    for i in 0..100 {
        let places = (0..50).map(|k| Vec3::new(0.0, k as f32, 0.0));
        let set = add::<InstanceSet>(&mut app, InstanceSet::from_transforms(places).unwrap());
        handles.push(set.clone());
        let place = Transform::from_xyz(i as f32 * 4.0, 0.0, 0.0);
        let set = (Mesh3d(mesh.clone()), GpuInstances(set), place);
        app.world_mut().spawn(set);
    }
    app.update();
    app.update();
    assert!(instance_hits(&mut app, ray_at(2.0)).is_empty());
    assert_eq!(indexed(&mut app), 0);
    assert_eq!(instance_hits(&mut app, ray_at(40.0)).len(), 1);
    assert_eq!(indexed(&mut app), 1);

    // An edit is met in its frame, also outside the box of the frame before.
    let mut sets = app.world_mut().resource_mut::<Assets<InstanceSet>>();
    let moved = Vec3::new(2.0, 0.0, 0.0);
    sets.get_mut(&handles[20]).unwrap().set(7, moved).unwrap();
    let hits = instance_hits(&mut app, ray_at(82.0));
    assert_eq!(
        hits.iter().map(|hit| hit.1.instance).collect::<Vec<_>>(),
        [7]
    );
    assert_eq!(indexed(&mut app), 2);

    // Nothing is kept of a set that rays no longer meet.
    let mut sets = app.world_mut().resource_mut::<Assets<InstanceSet>>();
    sets.get_mut(&handles[20]).unwrap().hide(3).unwrap();
    drop(sets.get_mut_untracked(&handles[20]).unwrap().release());
    sets.remove(&handles[10]);
    assert!(instance_hits(&mut app, ray_at(82.0)).is_empty());
    app.update();
    assert_eq!(indexed(&mut app), 0);
}

fn range(start: [f32; 2], end: [f32; 2]) -> InstanceVisibilityRange {
    InstanceVisibilityRange(VisibilityRange {
        start_margin: start[0]..start[1],
        end_margin: end[0]..end[1],
        use_aabb: false,
    })
}

/// The entities that a ray along +x from the origin meets, with their instances.
fn along_x(app: &mut App, eye: Option<Vec3>) -> Vec<(Entity, u32)> {
    let ray = Ray3d::new(Vec3::ZERO, Dir3::X);
    let cast = move |mut rays: InstanceRayCast| rays.cast_ray_seen_from(eye, ray, &settings());
    let hits = app.world_mut().run_system_once(cast).unwrap();
    hits.iter()
        .map(|(entity, hit)| (*entity, hit.instance))
        .collect()
}

#[test]
fn rays_meet_what_the_range_draws() {
    let mut app = app();
    let near = spawn_boxes(&mut app, [5.0, 20.0, 52.4, 52.6, 300.0]);
    let instances = app.world().get::<GpuInstances>(near).unwrap().clone();
    let mesh = app.world().get::<Mesh3d>(near).unwrap().clone();
    let far = app.world_mut().spawn((mesh, instances)).id();
    let mut insert = |entity: Entity, range: InstanceVisibilityRange| {
        app.world_mut().entity_mut(entity).insert(range);
    };
    // Both halves are drawn between 50 and 55; one is more than half there.
    insert(near, range([10.0, 10.0], [50.0, 55.0]));
    insert(far, range([50.0, 55.0], [200.0, 250.0]));
    app.update();
    app.update();
    let origin = Some(Vec3::ZERO);
    assert_eq!(along_x(&mut app, origin), [(near, 1), (far, 3)]);
    let hits = instance_hits(&mut app, Ray3d::new(Vec3::ZERO, Dir3::X));
    let hits: Vec<_> = hits
        .iter()
        .map(|(entity, hit)| (*entity, hit.instance))
        .collect();
    assert_eq!(hits, [(near, 1), (far, 3)], "from the origin of the ray");
    // From elsewhere, other instances are in the ranges.
    assert_eq!(
        along_x(&mut app, Some(Vec3::X * -20.0)),
        [(near, 0), (far, 2)]
    );
    assert_eq!(along_x(&mut app, Some(Vec3::X * 1e6)), []);
    // Without an eye, all are.
    assert_eq!(along_x(&mut app, None), [(near, 0), (far, 0)]);
    // A range that is not valid is ignored, as when drawing.
    app.world_mut()
        .entity_mut(near)
        .insert(range([3.0, 1.0], [f32::NAN, 0.0]));
    app.world_mut()
        .entity_mut(far)
        .remove::<InstanceVisibilityRange>();
    assert_eq!(along_x(&mut app, origin), [(near, 0), (far, 0)]);
}

#[test]
fn a_culling_radius_does_not_change_what_is_met() {
    let mut app = app();
    let entity = spawn_boxes(&mut app, [0.0, 10.0]);
    let edge = ray_at(10.4);
    let expected = instance_hits(&mut app, edge);
    assert_eq!(expected[0].1.instance, 1);
    for radius in [0.0, 0.1, 50.0] {
        let mut entity = app.world_mut().entity_mut(entity);
        entity.insert(CullingRadius(radius));
        app.update();
        assert_eq!(instance_hits(&mut app, edge), expected, "{radius}");
    }
    // The mesh may change, and have an offset.
    let large = add::<Mesh>(&mut app, Cuboid::from_length(3.0));
    app.world_mut()
        .entity_mut(entity)
        .insert((Mesh3d(large), CullingRadius(0.0)));
    app.update();
    assert_eq!(instance_hits(&mut app, ray_at(11.4))[0].1.instance, 1);
    let offset = InstanceOffset::from(Transform::from_xyz(4.0, 0.0, 0.0));
    app.world_mut().entity_mut(entity).insert(offset);
    app.update();
    assert_eq!(instance_hits(&mut app, ray_at(15.4))[0].1.instance, 1);
    assert!(instance_hits(&mut app, ray_at(11.4)).is_empty());
}

#[test]
fn a_released_set_is_not_met_and_does_not_panic() {
    let mut app = app();
    let entity = spawn_boxes(&mut app, (0..100).map(|i| i as f32 * 3.0));
    let handle = app.world().get::<GpuInstances>(entity).unwrap().0.clone();
    assert_eq!(instance_hits(&mut app, ray_at(30.0)).len(), 1);
    let mut sets = app.world_mut().resource_mut::<Assets<InstanceSet>>();
    sets.get_mut(&handle).unwrap().hide(0).unwrap();
    drop(sets.get_mut(&handle).unwrap().release());
    assert!(instance_hits(&mut app, ray_at(30.0)).is_empty());
    let mut sets = app.world_mut().resource_mut::<Assets<InstanceSet>>();
    sets.get_mut(&handle).unwrap().truncate(50);
    assert!(instance_hits(&mut app, ray_at(30.0)).is_empty());
}

/// The documented handler of a click.
fn remove_on_click(
    click: On<PointerClick>,
    entities: Query<&GpuInstances>,
    mut sets: ResMut<Assets<InstanceSet>>,
) {
    if let Some(hit) = click.hit.extra_as::<InstanceHit>()
        && let Ok(instances) = entities.get(click.entity)
        && let Some(mut set) = sets.get_mut(&instances.0)
        && let Some(index) = hit.index_in(&set)
        && let Err(error) = set.swap_remove(index)
    {
        error!("the instance stays: {error}");
    }
}

/// Two pointers meet two instances, then both click.
fn two_clicks(app: &mut App, entity: Entity, places: [f32; 2]) {
    let hits = places.map(|x| instance_hits(app, ray_at(x))[0].1.clone());
    for (pointer, hit) in (1..).zip(hits) {
        let camera = Entity::PLACEHOLDER;
        let id = PointerId::Custom(bevy::asset::uuid::Uuid::from_u128(pointer));
        let target = NormalizedRenderTarget::None {
            width: 1,
            height: 1,
        };
        let position = Vec2::ZERO;
        let hit = HitData::new_with_extra(camera, hit.distance, None, None, hit);
        let location = Location { target, position };
        let click = PointerClick {
            entity,
            pointer: Pointer::new(id, location),
            button: PointerButton::Primary,
            hit,
            duration: Default::default(),
            count: 1,
        };
        app.world_mut().trigger(click);
    }
}

#[test]
fn two_pointers_that_click_in_a_frame_remove_what_they_met() {
    for has_ids in [true, false] {
        let mut app = app();
        let entity = spawn_boxes(&mut app, (0..100).map(|i| i as f32 * 3.0));
        app.world_mut().entity_mut(entity).observe(remove_on_click);
        let handle = app.world().get::<GpuInstances>(entity).unwrap().0.clone();
        if has_ids {
            let mut sets = app.world_mut().resource_mut::<Assets<InstanceSet>>();
            sets.get_mut(&handle).unwrap().enable_ids();
        }
        // The last one takes the place of instance 3, and is removed from there.
        two_clicks(&mut app, entity, [9.0, 297.0]);
        let places = |app: &App| -> Vec<f32> {
            let sets = app.world().resource::<Assets<InstanceSet>>();
            let set = sets.get(&handle).unwrap();
            let mut places: Vec<_> = set.iter().map(|at| at.translation.x).collect();
            places.sort_by(f32::total_cmp);
            places
        };
        let without = |gone: &[i32]| -> Vec<f32> {
            let kept = (0..100).filter(|i| !gone.contains(i));
            kept.map(|i| i as f32 * 3.0).collect()
        };
        // Without ids, the second click is about an index that names nothing by now.
        let gone: &[i32] = if has_ids { &[3, 99] } else { &[3] };
        assert_eq!(places(&app), without(gone), "ids: {has_ids}");

        // The same instance twice is removed once.
        two_clicks(&mut app, entity, [30.0, 30.0]);
        assert_eq!(places(&app), without(&[gone, &[10]].concat()));
    }
}

/// The instances in a region, by their culling spheres in the world.
fn in_region(app: &mut App, region: &InstanceRegion) -> Vec<(Entity, Vec<u32>)> {
    let region = region.clone();
    let look = move |mut query: InstanceQuery, sets: Res<Assets<InstanceSet>>| {
        query.in_region(&region, &sets)
    };
    app.world_mut().run_system_once(look).unwrap()
}

#[test]
fn regions_of_the_world_find_instances() {
    let mut app = app();
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let mesh: Handle<Mesh> = add(&mut app, Sphere::new(0.5));
    let places = (0..3000)
        .map(|_| Vec3::from_array(core::array::from_fn(|_| rng.random_range(-20.0f32..20.0))));
    let set = InstanceSet::from_transforms(places.collect::<Vec<_>>()).unwrap();
    let handle: Handle<InstanceSet> = add(&mut app, set.clone());
    let even = Transform::from_xyz(3.0, -2.0, 1.0)
        .with_rotation(Quat::from_rotation_y(0.7))
        .with_scale(Vec3::splat(1.5));
    let odd = even.with_scale(Vec3::new(0.5, 1.0, 2.0));
    let [plain, stretched, hidden] = [even, odd, even].map(|at| {
        let parts = (Mesh3d(mesh.clone()), GpuInstances(handle.clone()), at);
        app.world_mut().spawn(parts).id()
    });
    app.world_mut()
        .entity_mut(hidden)
        .insert(Visibility::Hidden);
    for _ in 0..3 {
        app.update();
    }
    let view = look_at_mat4(Vec3::new(0.0, 5.0, 40.0), Vec3::ZERO, Vec3::Y);
    let lens = perspective_infinite_reverse(0.8, 1.5, 0.1);
    let regions = [
        InstanceRegion::Sphere {
            center: Vec3::new(5.0, 0.0, 4.0),
            radius: 9.0,
        },
        InstanceRegion::Box {
            min: Vec3::new(-4.0, -9.0, 0.0),
            max: Vec3::new(12.0, 3.0, 8.0),
        },
        InstanceRegion::seen(lens * view, Vec2::new(-0.4, -0.3), Vec2::new(0.2, 0.5)),
    ];
    for region in &regions {
        let found = in_region(&mut app, region);
        let entities: Vec<_> = found.iter().map(|(entity, _)| *entity).collect();
        assert_eq!(entities, [plain, stretched], "{region:?}");
        for (entity, instances) in found {
            let place = if entity == plain { even } else { odd };
            // How far an instance's origin lies inside, in the world; below 0 outside.
            let depth = |at: u32| {
                let at = place.transform_point(set.get(at).unwrap().translation);
                match region {
                    InstanceRegion::Sphere { center, radius } => radius - at.distance(*center),
                    InstanceRegion::Box { min, max } => (at - min).min(max - at).min_element(),
                    InstanceRegion::Planes(planes) => planes
                        .iter()
                        .map(|plane| plane.dot(at.extend(1.0)) / plane.truncate().length())
                        .fold(f32::INFINITY, f32::min),
                }
            };
            let radius = 0.51 * place.scale.max_element();
            for at in 0..3000 {
                let is_found = instances.binary_search(&at).is_ok();
                // What is inside, and nothing that is further outside than a sphere reaches.
                if depth(at) > 0.001 {
                    assert!(is_found, "{at} in {region:?}");
                }
                if depth(at) < -radius {
                    assert!(!is_found, "{at} is {} outside {region:?}", -depth(at));
                }
            }
            assert!((10..1500).contains(&instances.len()), "{}", instances.len());
        }
    }
    // Edits are found, hidden instances are not.
    let all = InstanceRegion::Planes(Vec::new());
    assert_eq!(in_region(&mut app, &all)[0].1.len(), 3000);
    let mut sets = app.world_mut().resource_mut::<Assets<InstanceSet>>();
    sets.get_mut(&handle).unwrap().hide(17).unwrap();
    let found = in_region(&mut app, &all);
    assert!(found[0].1.len() == 2999 && !found[0].1.contains(&17));
}
