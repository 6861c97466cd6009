//! A set looks like the same scene of Bevy's own entities, and goes on doing so when things change.
#![cfg(feature = "bevy")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod scene;

use bevy::{
    camera::visibility::RenderLayers,
    pbr::{ExtendedMaterial, MaterialExtension},
    prelude::*,
    reflect::TypePath,
    render::render_resource::AsBindGroup,
    shader::ShaderRef,
};
use bevy_gpu_culling::prelude::*;
use image::RgbaImage;
use scene::{How, Stage, assert_same_picture, field};

const EYE: Transform = Transform::from_xyz(0.0, 3.0, 7.0);

fn eye() -> Transform {
    EYE.looking_at(Vec3::new(0.5, 0.0, 0.0), Vec3::Y)
}

fn red() -> StandardMaterial {
    StandardMaterial {
        base_color: Color::srgb(0.9, 0.3, 0.2),
        perceptual_roughness: 0.4,
        ..default()
    }
}

/// The picture of the same scene drawn by a set on a tier, and by entities.
fn both(tier: Option<CullingTier>, build: impl Fn(&mut Stage)) -> (RgbaImage, RgbaImage) {
    let draw = |how| {
        let mut stage = Stage::new(how);
        build(&mut stage);
        stage.picture()
    };
    (draw(How::Set(tier)), draw(How::Entities))
}

fn moved() -> Transform {
    Transform::from_xyz(0.5, -0.3, -1.0)
        .with_rotation(Quat::from_rotation_y(0.3))
        .with_scale(Vec3::new(1.1, 0.8, 1.2))
}

#[test]
fn a_lit_set_looks_like_entities_on_every_tier() {
    let build = |stage: &mut Stage| {
        let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
        let material = stage.standard(red());
        stage.spawn_set(&field(1500, true), (mesh, material), moved());
        stage.lights(false);
        stage.camera(eye(), ());
    };
    let (first, entities) = both(None, build);
    assert_same_picture("lit", &first, &entities);
    for tier in [CullingTier::Workgroup, CullingTier::Cpu] {
        let mut stage = Stage::new(How::Set(Some(tier)));
        build(&mut stage);
        assert_same_picture(&format!("lit-{tier}"), &stage.picture(), &entities);
        assert_eq!(stage.verify().0, 1);
        assert_eq!(stage.report().tier, Some(tier));
    }
}

#[test]
fn shadows_are_cast_and_received_and_every_light_view_is_verified() {
    let build = |stage: &mut Stage| {
        let mesh = stage.mesh(Sphere::new(0.3).mesh().ico(2).unwrap());
        let material = stage.standard(red());
        stage.spawn_set(
            &field(400, false),
            (mesh, material),
            Transform::from_xyz(0.0, 2.0, 0.0),
        );
        let ground = stage.mesh(Plane3d::new(Vec3::Y, Vec2::splat(12.0)));
        let grey = stage.standard(StandardMaterial::from(Color::srgb(0.5, 0.5, 0.55)));
        stage.spawn((Mesh3d(ground), grey, Transform::from_xyz(0.0, -2.5, 0.0)));
        stage.lights(true);
        stage.camera(eye(), ());
    };
    let (set, entities) = both(None, build);
    assert_same_picture("shadows", &set, &entities);
    let mut stage = Stage::new(How::Set(None));
    build(&mut stage);
    stage.update(4);
    let (views, survivors) = stage.verify();
    assert!(views > 5, "camera, cascades and cube faces: {views}");
    assert!(survivors > 400);
    let report = stage.report();
    assert_eq!(report.instances, 400);
    assert!(
        report.shadows().1 > 0 && report.cameras().0 == 400,
        "{report:?}"
    );
}

#[derive(Asset, TypePath, AsBindGroup, Clone, Debug)]
struct Stripes {
    #[uniform(0)]
    colour: LinearRgba,
}

const STRIPES: &str = "
#import bevy_pbr::forward_io::VertexOutput
@group(#{MATERIAL_BIND_GROUP}) @binding(0) var<uniform> colour: vec4<f32>;
@fragment
fn fragment(in: VertexOutput) -> @location(0) vec4<f32> {
    let stripe = step(0.5, fract(in.world_position.y * 2.0));
    return vec4(colour.rgb * (0.4 + 0.6 * stripe) * (0.5 + 0.5 * in.world_normal.y), 1.0);
}";

const STRIPES_SHADER: Handle<Shader> =
    bevy::asset::uuid_handle!("7f0f4f6e-4df0-4c43-9a7c-6a7c1f7f0b01");

impl Material for Stripes {
    fn fragment_shader() -> ShaderRef {
        STRIPES_SHADER.into()
    }
}

#[test]
fn a_custom_material_looks_the_same() {
    let draw = |how| {
        let mut stage = Stage::with(how, |app| {
            app.add_plugins(MaterialPlugin::<Stripes>::default());
            let shader = Shader::from_wgsl(STRIPES, "stripes.wgsl");
            app.world_mut()
                .resource_mut::<Assets<Shader>>()
                .insert(STRIPES_SHADER.id(), shader)
                .unwrap();
        });
        let mesh = stage.mesh(Torus::new(0.15, 0.4));
        let material = stage.add(Stripes {
            colour: LinearRgba::rgb(0.2, 0.8, 0.9),
        });
        stage.spawn_set(
            &field(300, false),
            (mesh, MeshMaterial3d(material)),
            moved(),
        );
        stage.camera(eye(), ());
        stage.picture()
    };
    assert_same_picture("custom", &draw(How::Set(None)), &draw(How::Entities));
}

#[derive(Asset, TypePath, AsBindGroup, Clone, Debug, Default)]
struct Nothing {
    #[uniform(100)]
    unused: Vec4,
}

impl MaterialExtension for Nothing {}

#[test]
fn an_extended_material_looks_the_same() {
    let draw = |how| {
        type Extended = ExtendedMaterial<StandardMaterial, Nothing>;
        let mut stage = Stage::with(how, |app| {
            app.add_plugins(MaterialPlugin::<Extended>::default());
        });
        let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
        let material = stage.add(Extended {
            base: red(),
            extension: Nothing::default(),
        });
        stage.spawn_set(&field(300, true), (mesh, MeshMaterial3d(material)), moved());
        stage.lights(false);
        stage.camera(eye(), ());
        stage.picture()
    };
    assert_same_picture("extended", &draw(How::Set(None)), &draw(How::Entities));
}

/// Steps through changes at run time, and compares after each.
#[test]
fn changes_at_run_time_are_drawn() {
    let run = |how| {
        let mut stage = Stage::new(how);
        let cube = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
        let cone = stage.mesh(Cone::new(0.3, 0.6));
        let materials = [red(), StandardMaterial::from(Color::srgb(0.2, 0.5, 0.9))]
            .map(|material| stage.add(material));
        let sets = [field(500, false), field(700, true)];
        stage.lights(false);
        stage.camera(eye(), ());
        let material = |index: usize| MeshMaterial3d(materials[index].clone());
        let mut first = stage.spawn_set(&sets[0], (cube.clone(), material(0)), Transform::IDENTITY);
        let mut pictures = vec![("start", stage.picture())];

        let world = stage.app.world_mut();
        world.get_mut::<Transform>(first).unwrap().rotate_y(0.5);
        pictures.push(("moved", stage.picture()));

        stage.entity(first).insert(Visibility::Hidden);
        stage.spawn_set(
            &field(40, false),
            (cone.clone(), material(1)),
            Transform::IDENTITY,
        );
        pictures.push(("hidden", stage.picture()));

        // An entity's handles are changed on the set and, one by one, on the entities that stand for it.
        if how == How::Entities {
            stage.entity(first).despawn();
            let at = Transform::from_rotation(Quat::from_rotation_y(0.5));
            first = stage.spawn_set(&sets[1], (cone.clone(), material(1)), at);
        } else {
            let handle = stage.add(sets[1].clone());
            let mut entity = stage.entity(first);
            entity.insert((
                Visibility::Inherited,
                GpuInstances(handle),
                Mesh3d(cone.clone()),
                material(1),
            ));
        }
        pictures.push(("other set, mesh and material", stage.picture()));

        let mut assets = stage
            .app
            .world_mut()
            .resource_mut::<Assets<StandardMaterial>>();
        assets.get_mut(&materials[1]).unwrap().base_color = Color::srgb(0.9, 0.9, 0.1);
        pictures.push(("edited material", stage.picture()));

        let grown = [
            Transform::from_xyz(0.0, 1.0, 5.0),
            Transform::from_xyz(1.0, 1.0, 4.5),
        ];
        if how == How::Entities {
            for transform in grown {
                stage.spawn((Mesh3d(cone.clone()), material(1), transform, ChildOf(first)));
            }
        } else {
            let handle = stage
                .app
                .world()
                .get::<GpuInstances>(first)
                .unwrap()
                .0
                .clone();
            let mut assets = stage.app.world_mut().resource_mut::<Assets<InstanceSet>>();
            assets.get_mut(&handle).unwrap().extend(grown).unwrap();
        }
        pictures.push(("pushed", stage.picture()));

        stage.entity(first).despawn();
        pictures.push(("despawned", stage.picture()));
        stage.spawn_set(
            &sets[0],
            (cube, material(0)),
            Transform::from_xyz(0.0, 0.5, 0.0),
        );
        pictures.push(("respawned", stage.picture()));
        if how != How::Entities {
            stage.verify();
        }
        pictures
    };
    for ((name, set), (_, entities)) in run(How::Set(None)).into_iter().zip(run(How::Entities)) {
        assert_same_picture(&name.replace(' ', "-"), &set, &entities);
    }
}

#[test]
fn render_layers_choose_the_camera() {
    let draw = |how| {
        let mut stage = Stage::new(how);
        let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
        let material = stage.standard(red());
        stage.lights(false);
        for layer in [0, 1] {
            let at = Transform::from_xyz(layer as f32, 0.0, 0.0);
            let set = stage.spawn_set(&field(150, false), (mesh.clone(), material.clone()), at);
            let children = stage
                .app
                .world()
                .get::<Children>(set)
                .map(|children| children.to_vec())
                .unwrap_or_default();
            for entity in children.into_iter().chain([set]) {
                stage.entity(entity).insert(RenderLayers::layer(layer));
            }
        }
        stage.camera(eye(), RenderLayers::layer(1));
        // Lights light what shares a layer with them.
        let world = stage.app.world_mut();
        let lights: Vec<_> = world
            .query_filtered::<Entity, Or<(With<DirectionalLight>, With<PointLight>)>>()
            .iter(world)
            .collect();
        for light in lights {
            world
                .entity_mut(light)
                .insert(RenderLayers::from_layers(&[0, 1]));
        }
        let picture = stage.picture();
        if how != How::Entities {
            assert_eq!(stage.verify().0, 1, "one set in the one camera");
        }
        picture
    };
    assert_same_picture("layers", &draw(How::Set(None)), &draw(How::Entities));
}

#[test]
fn an_entity_that_loses_its_set_is_an_ordinary_mesh_again() {
    let draw = |how| {
        let mut stage = Stage::new(how);
        let mesh = stage.mesh(Cuboid::new(2.0, 1.0, 2.0));
        let material = stage.standard(red());
        stage.lights(false);
        stage.camera(eye(), ());
        if how == How::Entities {
            stage.spawn((Mesh3d(mesh), material));
        } else {
            let set = stage.spawn_set(&field(50, false), (mesh, material), Transform::IDENTITY);
            stage.update(3);
            stage.entity(set).remove::<GpuInstances>();
        }
        stage.picture()
    };
    assert_same_picture("ordinary", &draw(How::Set(None)), &draw(How::Entities));
}

#[test]
fn a_frozen_camera_draws_what_it_kept() {
    let mut stage = Stage::new(How::Set(None));
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let material = stage.standard(red());
    stage.spawn_set(&field(2000, false), (mesh, material), Transform::IDENTITY);
    let camera = stage.camera(eye(), ());
    let kept = stage.report().cameras();
    assert!(kept.1 > 0 && kept.1 < 2000, "{kept:?}");
    stage.entity(camera).insert(FreezeCulling::default());
    stage.update(1);
    let away = Transform::from_xyz(0.0, 20.0, 40.0).looking_at(Vec3::ZERO, Vec3::Y);
    stage.entity(camera).insert(away);
    assert_eq!(stage.report().cameras(), kept);
    stage.entity(camera).remove::<FreezeCulling>();
    assert!(stage.report().cameras().1 > kept.1);
}

#[test]
fn a_static_scene_uploads_nothing_and_an_empty_one_runs_no_pass() {
    let mut stage = Stage::new(How::Set(None));
    stage.camera(eye(), ());
    assert_eq!(stage.report().views.len(), 0);
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let material = stage.standard(red());
    let set = stage.spawn_set(&field(5000, false), (mesh, material), Transform::IDENTITY);
    let report = stage.report();
    assert_eq!((report.uploaded_bytes, report.instances), (0, 5000));
    // One changed instance uploads its granule, not the set.
    let handle = stage
        .app
        .world()
        .get::<GpuInstances>(set)
        .unwrap()
        .0
        .clone();
    let mut assets = stage.app.world_mut().resource_mut::<Assets<InstanceSet>>();
    assets
        .get_mut(&handle)
        .unwrap()
        .set(3000, Transform::from_xyz(0.0, 1.0, 2.0))
        .unwrap();
    stage.update(1);
    stage.update(1);
    let uploaded = stage.app.world().resource::<CullingReport>().uploaded_bytes;
    assert!(
        uploaded > 0 && uploaded <= 16 * InstanceSet::CHANGE_GRANULE as u64,
        "{uploaded}"
    );
    stage.verify();
}

#[test]
fn compactions_change_at_run_time() {
    let mut stage = Stage::new(How::Set(None));
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let material = stage.standard(red());
    stage.lights(false);
    stage.camera(eye(), ());
    stage.spawn_set(&field(3000, true), (mesh, material), Transform::IDENTITY);
    let first = stage.picture();
    for &compaction in Compaction::ALL {
        stage
            .app
            .world_mut()
            .resource_mut::<GpuCullingSettings>()
            .compaction = compaction;
        assert_same_picture(&format!("switched-{compaction}"), &stage.picture(), &first);
        stage.verify();
        assert_eq!(stage.report().compaction, compaction);
    }
}

#[test]
fn tiers_change_at_run_time() {
    let mut stage = Stage::new(How::Set(None));
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let material = stage.standard(red());
    stage.lights(false);
    stage.camera(eye(), ());
    stage.spawn_set(&field(1000, true), (mesh, material), Transform::IDENTITY);
    let first = stage.picture();
    for tier in CullingTier::ALL {
        stage
            .app
            .world_mut()
            .resource_mut::<GpuCullingSettings>()
            .tier = Some(tier);
        assert_same_picture(&format!("switched-{tier}"), &stage.picture(), &first);
        stage.verify();
    }
}

/// A material that moves vertices in a vertex shader of its own.
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug, Default)]
struct OwnVertexStage {}

impl Material for OwnVertexStage {
    fn vertex_shader() -> ShaderRef {
        STRIPES_SHADER.into()
    }
}

fn assert_nothing_drawn(stage: &mut Stage) {
    stage.camera(eye(), ());
    let picture = stage.picture();
    assert!(
        picture
            .pixels()
            .all(|pixel| pixel == picture.get_pixel(0, 0)),
        "something was drawn"
    );
}

#[test]
fn a_vertex_stage_for_meshes_is_refused_where_nobody_writes_its_uniforms() {
    let mut stage = Stage::with(How::Set(Some(CullingTier::Cpu)), |app| {
        app.add_plugins(MaterialPlugin::<OwnVertexStage>::default());
    });
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let own = MeshMaterial3d(stage.add(OwnVertexStage {}));
    stage.spawn_set(&field(100, false), (mesh, own), Transform::IDENTITY);
    assert_nothing_drawn(&mut stage);
}

#[test]
fn a_skinned_set_draws_nothing() {
    let mut stage = Stage::new(How::Set(None));
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let red = stage.standard(red());
    let set = stage.spawn_set(&field(100, false), (mesh, red), Transform::IDENTITY);
    stage
        .entity(set)
        .insert(bevy::mesh::skinning::SkinnedMesh::default());
    assert_nothing_drawn(&mut stage);
}

/// Bevy's pipelines bind joints where the mesh has them, whatever components the entity has.
#[test]
fn a_mesh_with_joints_draws_nothing() {
    let mut stage = Stage::new(How::Set(None));
    let count = Mesh::from(Cuboid::new(0.5, 0.4, 0.6)).count_vertices();
    let joints = bevy::mesh::VertexAttributeValues::Uint16x4(vec![[0; 4]; count]);
    let mesh = Mesh::from(Cuboid::new(0.5, 0.4, 0.6))
        .with_inserted_attribute(Mesh::ATTRIBUTE_JOINT_INDEX, joints)
        .with_inserted_attribute(
            Mesh::ATTRIBUTE_JOINT_WEIGHT,
            vec![[1.0, 0.0, 0.0, 0.0]; count],
        );
    let (mesh, red) = (stage.mesh(mesh), stage.standard(red()));
    stage.spawn_set(&field(100, false), (mesh, red), Transform::IDENTITY);
    assert_nothing_drawn(&mut stage);
    stage.assert_runs("joints");
}

#[test]
fn a_lightmapped_set_draws_nothing() {
    let mut stage = Stage::new(How::Set(None));
    let mesh = Mesh::from(Cuboid::new(0.5, 0.4, 0.6));
    let uvs = mesh.attribute(Mesh::ATTRIBUTE_UV_0).unwrap().clone();
    let mesh = stage.mesh(mesh.with_inserted_attribute(Mesh::ATTRIBUTE_UV_1, uvs));
    let red = stage.standard(red());
    let image = stage.add(Image::default());
    let set = stage.spawn_set(&field(100, false), (mesh, red), Transform::IDENTITY);
    stage
        .entity(set)
        .insert(bevy::pbr::Lightmap { image, ..default() });
    assert_nothing_drawn(&mut stage);
    stage.assert_runs("a lightmap");
    // Without it, the set is drawn, by pipelines that bind none.
    stage.entity(set).remove::<bevy::pbr::Lightmap>();
    let report = stage.report();
    assert!(report.cameras().1 > 0, "{report:?}");
    stage.assert_runs("no lightmap");
}

/// The box of the set must go with it: it is where the instances were.
#[test]
fn a_far_set_that_is_removed_leaves_no_box() {
    let draw = |how| {
        let mut stage = Stage::new(how);
        let mesh = stage.mesh(Cuboid::new(2.0, 1.0, 2.0));
        let material = stage.standard(red());
        stage.lights(false);
        stage.camera(eye(), ());
        if how == How::Entities {
            stage.spawn((Mesh3d(mesh), material));
        } else {
            let far = [Vec3::new(1000.0, 0.0, 0.0), Vec3::new(1001.0, 0.0, 0.0)];
            let far = InstanceSet::from_transforms(far).unwrap();
            let set = stage.spawn_set(&far, (mesh, material), Transform::IDENTITY);
            stage.update(3);
            stage.entity(set).remove::<GpuInstances>();
        }
        stage.picture()
    };
    assert_same_picture("no-box", &draw(How::Set(None)), &draw(How::Entities));
}

#[test]
fn a_camera_that_is_frozen_again_stays_frozen() {
    let mut stage = Stage::new(How::Set(None));
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let material = stage.standard(red());
    stage.spawn_set(&field(2000, false), (mesh, material), Transform::IDENTITY);
    let camera = stage.camera(eye(), ());
    stage.entity(camera).insert(FreezeCulling::default());
    let kept = stage.report().cameras();
    stage.entity(camera).insert(FreezeCulling::default());
    stage.update(1);
    let away = Transform::from_xyz(0.0, 20.0, 40.0).looking_at(Vec3::ZERO, Vec3::Y);
    stage.entity(camera).insert(away);
    assert_eq!(stage.report().cameras(), kept);
    assert!(kept.1 > 0 && kept.1 < 2000, "{kept:?}");
}

/// A radius that cannot cull is ignored: every tier and compaction keeps the same instances as without it.
#[test]
fn a_radius_that_is_no_radius_is_ignored() {
    let mut counts = Vec::new();
    for tier in CullingTier::ALL {
        let mut stage = Stage::new(How::Set(Some(tier)));
        let bad = [f32::INFINITY, f32::NAN, -1.0, 3e38].map(Some);
        for radius in [None].into_iter().chain(bad) {
            stage.clear();
            let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
            let material = stage.standard(red());
            // The last block is not full.
            let set = stage.spawn_set(&field(1100, false), (mesh, material), Transform::IDENTITY);
            if let Some(radius) = radius {
                stage.entity(set).insert(CullingRadius(radius));
            }
            stage.camera(eye(), ());
            counts.push((radius, tier, stage.report().cameras()));
        }
    }
    let first = counts[0].2;
    assert!(first.1 > 0 && first.1 < 1100, "{first:?}");
    assert!(
        counts.iter().all(|(.., count)| *count == first),
        "{counts:?}"
    );
}

/// Counters come back some frames late: they belong to the views of their frame. Every fourth frame's are read back, so
/// the view goes at each place between two readbacks.
#[test]
fn counters_stay_with_their_views() {
    let mut stage = Stage::new(How::Set(None));
    let of = |report: &CullingReport, entity: Entity| {
        let view = report.views.iter().find(|view| view.entity.id() == entity);
        view.map(|view| view.visible)
    };
    for more_frames in 0..4 {
        for goes_first in [false, true] {
            stage.clear();
            let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
            let material = stage.standard(red());
            stage.spawn_set(&field(1000, false), (mesh, material), Transform::IDENTITY);
            let few =
                Transform::from_xyz(0.0, 0.0, 8.0).looking_to(Vec3::new(0.9, 0.0, -0.4), Vec3::Y);
            let all = Transform::from_xyz(0.0, 0.0, 60.0).looking_at(Vec3::ZERO, Vec3::Y);
            let first = stage.camera(few, ());
            let order = Camera {
                order: 1,
                ..default()
            };
            let second = stage.camera(all, order);
            let report = stage.report();
            let few = of(&report, first).unwrap();
            assert!(few < 500, "{report:?}");
            assert_eq!(of(&report, second), Some(1000));
            stage.update(more_frames);
            let (goes, stays, count) = match goes_first {
                true => (first, second, 1000),
                false => (second, first, few),
            };
            stage.entity(goes).despawn();
            for _ in 0..6 {
                stage.update(1);
                let report = stage.app.world().resource::<CullingReport>();
                assert_eq!(of(report, stays), Some(count), "{more_frames} {goes_first}");
            }
            assert_eq!(stage.report().views.len(), 1);
        }
    }
}

/// A set's box moves in the frame in which its instances do, or the set is culled as a whole for a frame.
#[test]
fn a_set_that_leaves_its_box_is_drawn_in_the_same_frame() {
    let mut stage = Stage::new(How::Set(None));
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let material = stage.standard(red());
    let near = field(300, false);
    let far = |at: f32| {
        let moved = move |instance: InstanceTransform| instance.translation + Vec3::X * at;
        near.iter().map(moved).collect::<Vec<_>>()
    };
    let away = InstanceSet::from_transforms(far(-1000.0)).unwrap();
    let set = stage.spawn_set(&away, (mesh, material), Transform::IDENTITY);
    stage.camera(eye(), ());
    let empty = stage.picture();
    let handle = stage
        .app
        .world()
        .get::<GpuInstances>(set)
        .unwrap()
        .0
        .clone();
    let mut sets = stage.app.world_mut().resource_mut::<Assets<InstanceSet>>();
    sets.get_mut(&handle)
        .unwrap()
        .splice(0..300, far(0.0))
        .unwrap();
    let now = stage.picture_now();
    assert_same_picture("left-its-box", &now, &stage.picture());
    assert_ne!(now, empty);
}

/// The order that makes it so, which the schedule's executor could else choose the other way round.
#[test]
fn bounds_are_updated_after_asset_events() {
    use bevy::{asset::AssetEventSystems, ecs::schedule::Schedules};
    let builds = |before: bool| {
        let mut stage = Stage::with(How::Set(None), |app| {
            let set = GpuCullingSystems::UpdateBounds;
            match before {
                true => app.configure_sets(PostUpdate, set.before(AssetEventSystems)),
                false => app.configure_sets(PostUpdate, set.after(AssetEventSystems)),
            };
        });
        let world = stage.app.world_mut();
        let mut schedule = world
            .resource_mut::<Schedules>()
            .remove(PostUpdate)
            .unwrap();
        schedule.initialize(world).is_ok()
    };
    assert!(builds(false));
    assert!(!builds(true), "the other order is possible");
}

#[test]
fn the_diagnostics_have_counters_and_stage_times() {
    use bevy::diagnostic::DiagnosticsStore;
    use bevy_gpu_culling::diagnostics;
    let mut stage = Stage::with(How::Set(None), |app| {
        app.add_plugins(bevy::render::diagnostic::RenderDiagnosticsPlugin);
    });
    let compaction = Compaction::Classify;
    stage
        .app
        .world_mut()
        .resource_mut::<GpuCullingSettings>()
        .compaction = compaction;
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let material = stage.standard(red());
    stage.spawn_set(&field(3000, false), (mesh, material), Transform::IDENTITY);
    stage.camera(eye(), ());
    let report = stage.report();
    let store = stage.app.world().resource::<DiagnosticsStore>();
    let value = |path| {
        store
            .get(&path)
            .and_then(bevy::diagnostic::Diagnostic::value)
            .unwrap()
    };
    let (tested, visible) = report.cameras();
    assert_eq!(value(diagnostics::INSTANCES), 3000.0);
    assert_eq!(value(diagnostics::VISIBLE), visible as f64);
    assert_eq!(value(diagnostics::CULLED), (tested - visible) as f64);
    assert_eq!(value(diagnostics::VIEWS), 1.0);
    assert!(value(diagnostics::GPU_BYTES) > 3000.0 * 16.0);
    for (name, path) in diagnostics::STAGE_GPU {
        let is_its_own = compaction.stages().any(|stage| stage.name() == name);
        assert_eq!(store.get(&path).is_some(), is_its_own, "time of {name}");
    }
}
