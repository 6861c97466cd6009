//! Rays and pointers meet single instances, and Bevy's own rays no longer meet a set's mesh.
#![cfg(feature = "picking")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use bevy::{
    asset::RenderAssetUsages,
    camera::{NormalizedRenderTarget, RenderTarget},
    ecs::system::RunSystemOnce,
    picking::{
        backend::PointerHits,
        mesh_picking::{
            MeshPickingPlugin,
            ray_cast::{MeshRayCast, MeshRayCastSettings, RayCastVisibility, RayMeshHit},
        },
        pointer::{Location, PointerId, PointerLocation},
        prelude::Pickable,
    },
    prelude::*,
    render::{RenderPlugin, settings::WgpuSettings},
    window::{ExitCondition, PrimaryWindow},
    winit::WinitPlugin,
};
use bevy_gpu_culling::prelude::*;
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
