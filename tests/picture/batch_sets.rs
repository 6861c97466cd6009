//! Sets whose draws are joined look as if each were drawn on its own.

use super::{eye, red};
use crate::scene::{How, Stage, assert_same_picture, field};
use bevy::{
    camera::visibility::VisibilityRange,
    core_pipeline::{
        core_3d::Opaque3d,
        prepass::{DepthPrepass, MotionVectorPrepass, NormalPrepass},
    },
    light::{CascadeShadowConfigBuilder, DirectionalLightShadowMap, NotShadowCaster},
    math::Affine3A,
    pbr::{PreparedMaterial, Shadow},
    prelude::*,
    render::{
        RenderApp,
        erased_render_asset::ErasedRenderAssets,
        render_phase::{BinnedPhaseItem, ViewBinnedRenderPhases},
    },
};
use bevy_gpu_culling::prelude::*;
use core::f32::consts::TAU;

/// Number of meshes in the scene.
const MESHES: u32 = 12;

/// A mesh without two equal sides, other than all others.
fn mesh(number: u32) -> Cuboid {
    let side = |k: u32| 0.2 + 0.05 * ((number * 7 + k * 5) % 9) as f32;
    Cuboid::new(side(0), side(1), side(2))
}

/// A sun with shadows up to a distance.
pub fn sun(cascades: usize, maximum_distance: f32) -> impl Bundle {
    let cascades = CascadeShadowConfigBuilder {
        num_cascades: cascades,
        maximum_distance,
        ..default()
    };
    let sun = DirectionalLight {
        illuminance: 5_000.0,
        shadow_maps_enabled: true,
        ..default()
    };
    let at = Transform::from_xyz(4.0, 8.0, 3.0).looking_at(Vec3::ZERO, Vec3::Y);
    (sun, cascades.build(), at)
}

fn place(number: u32) -> Transform {
    let turn = number as f32 * 0.5;
    Transform::from_xyz(
        turn.sin() * 2.0,
        0.1 * number as f32 - 0.6,
        turn.cos() * 2.0,
    )
    .with_rotation(Quat::from_rotation_y(turn))
    .with_scale(Vec3::splat(0.5 + 0.05 * number as f32))
}

/// Sets of many meshes with two materials. Some cast no shadows, have an offset, or fade.
fn city(stage: &mut Stage) -> Vec<Entity> {
    stage
        .app
        .insert_resource(DirectionalLightShadowMap { size: 256 });
    let camera = stage.camera(eye(), ());
    stage
        .entity(camera)
        .insert((DepthPrepass, NormalPrepass, MotionVectorPrepass));
    stage.spawn(sun(2, 30.0));
    let blue = StandardMaterial {
        base_color: Color::srgb(0.2, 0.3, 0.9),
        ..red()
    };
    let materials = [red(), blue].map(|material| stage.standard(material));
    (0..MESHES)
        .map(|number| {
            let mesh = stage.mesh(mesh(number));
            let material = materials[number as usize % 2].clone();
            let set = field(20, number % 3 == 0);
            let entity = stage.spawn_set(&set, (mesh, material), place(number));
            if number % 4 == 1 {
                // Entities do not inherit it.
                let children = stage.app.world().get::<Children>(entity);
                let children: Vec<_> = children.into_iter().flatten().copied().collect();
                for entity in children.into_iter().chain([entity]) {
                    stage.entity(entity).insert(NotShadowCaster);
                }
            }
            entity
        })
        .collect()
}

#[test]
fn joined_sets_look_like_bevys_entities() {
    let draw = |how| {
        let mut stage = Stage::new(how);
        city(&mut stage);
        match how {
            How::Entities => (stage.picture(), 0),
            How::Set(_) => {
                let (picture, report) = stage.picture_and_report();
                (picture, report.draw_calls)
            }
        }
    };
    let (entities, _) = draw(How::Entities);
    for tier in [None, Some(CullingTier::Workgroup), Some(CullingTier::Cpu)] {
        let (sets, calls) = draw(How::Set(tier));
        assert_same_picture(&format!("batch_sets {tier:?}"), &sets, &entities);
        // In each pass: two materials, with and without shadows, and scales in a separate page.
        let is_joined = calls < 2 * MESHES;
        assert_eq!(is_joined, tier != Some(CullingTier::Cpu), "{calls} calls");
    }
}

/// Number of items in all of Bevy's phases for opaque meshes and shadows.
fn items_in_phases(stage: &Stage) -> usize {
    fn items<P: BinnedPhaseItem>(world: &World) -> usize {
        let phases = world.resource::<ViewBinnedRenderPhases<P>>().values();
        let bins = phases.flat_map(|phase| phase.unbatchable_meshes.values());
        bins.map(|bin| bin.entities.len()).sum()
    }
    let world = stage.app.sub_app(RenderApp).world();
    items::<Opaque3d>(world) + items::<Shadow>(world)
}

/// The number of draw calls, and of items in Bevy's phases, does not depend on the number of sets.
#[test]
fn more_sets_are_not_more_draw_calls() {
    let calls = |sets: u32| {
        let mut stage = Stage::new(How::Set(None));
        stage.camera(eye(), ());
        stage.spawn(sun(2, 30.0));
        let material = stage.standard(red());
        for number in 0..sets {
            let mesh = stage.mesh(mesh(number));
            let at = Transform::from_xyz(0.0, 0.01 * number as f32, 0.0);
            stage.spawn_set(&field(20, false), (mesh, material.clone()), at);
        }
        let calls = stage.picture_and_report().1.draw_calls;
        (calls, items_in_phases(&stage))
    };
    let few = calls(4);
    // A camera, and two cascades.
    assert_eq!(few, (3, 3));
    assert_eq!(calls(200), few);
}

/// A camera that turns, and its cascades, meet sets for the first time, while another set moves.
/// They join the others, and no other set is planned again.
#[test]
fn sets_that_are_seen_for_the_first_time_join_the_others() {
    const SETS: u32 = 96;
    let run = |how| {
        let mut stage = Stage::new(how);
        let camera = stage.camera(Transform::default(), ());
        stage
            .app
            .insert_resource(DirectionalLightShadowMap { size: 256 });
        // The cascades see more than the camera, but not all.
        stage.spawn(sun(2, 9.0));
        let blue = StandardMaterial {
            base_color: Color::srgb(0.2, 0.3, 0.9),
            ..red()
        };
        let materials = [red(), blue].map(|material| stage.standard(material));
        let mut moving = None;
        for number in 0..SETS {
            let mesh = stage.mesh(mesh(number));
            let turn = TAU * number as f32 / SETS as f32;
            let at = Transform::from_xyz(turn.sin() * 14.0, -0.5, turn.cos() * 14.0)
                .with_scale(Vec3::splat(0.3));
            let material = materials[number as usize % 2].clone();
            let set = stage.spawn_set(&field(20, number % 3 == 0), (mesh, material), at);
            moving = moving.or(Some((set, at)));
        }
        stage.settle();
        let mut seen = Vec::new();
        let steps = (0..6).map(|step| {
            let turn = Quat::from_rotation_y(step as f32 * TAU / 6.0);
            stage.entity(camera).insert(Transform::from_rotation(turn));
            if let Some((set, at)) = moving {
                let up = Vec3::Y * 0.1 * step as f32;
                let at = at.with_translation(at.translation + up);
                stage.entity(set).insert(at);
            }
            let mut made = (0, 0);
            if stage.how != How::Entities {
                for _ in 0..6 {
                    stage.update(1);
                    let work = stage.app.world().resource::<CullingReport>().work;
                    made = (made.0 + work.requests, made.1 + work.plans);
                }
            }
            let (picture, calls) = picture_and_calls(&mut stage);
            seen.push((made, calls));
            picture
        });
        let pictures: Vec<_> = steps.collect();
        if stage.how != How::Entities {
            stage.verify();
        }
        (pictures, seen)
    };
    let (entities, _) = run(How::Entities);
    let (sets, seen) = run(How::Set(None));
    for (step, (sets, entities)) in sets.iter().zip(&entities).enumerate() {
        assert_same_picture(&format!("batch_sets turn {step}"), sets, entities);
    }
    let made: u64 = seen.iter().map(|((requests, _), _)| requests).sum();
    assert!(made > 40, "{seen:?}");
    for ((_, plans), calls) in &seen {
        assert!(*plans == 0 && *calls == seen[0].1, "{seen:?}");
    }
}

/// The picture, and the draw calls of sets.
fn picture_and_calls(stage: &mut Stage) -> (image::RgbaImage, u32) {
    match stage.how {
        How::Entities => (stage.picture(), 0),
        How::Set(_) => {
            let (picture, report) = stage.picture_and_report();
            (picture, report.draw_calls)
        }
    }
}

/// Whether Bevy has put all materials into bind groups of several.
fn is_bindless(stage: &Stage) -> bool {
    let world = stage.app.sub_app(RenderApp).world();
    let mut materials = world
        .resource::<ErasedRenderAssets<PreparedMaterial>>()
        .iter();
    materials.all(|(_, material)| material.properties.bindless)
}

/// If the device has bindless materials, sets of many colors are drawn by as few draw calls as sets
/// of one. A material that changes keeps its place among them; one that is cut out does not.
#[test]
fn bindless_materials_are_drawn_together() {
    let draw = |how| {
        let mut stage = Stage::new(how);
        stage.camera(eye(), ());
        stage.spawn(sun(2, 30.0));
        let materials: Vec<_> = (0..MESHES)
            .map(|number| {
                let mesh = stage.mesh(mesh(number));
                let color = Color::hsl(30.0 * number as f32, 0.8, 0.5);
                let material = stage.standard(StandardMaterial {
                    base_color: color,
                    ..red()
                });
                let of_set = (mesh, material.clone());
                stage.spawn_set(&field(20, false), of_set, place(number));
                material
            })
            .collect();
        let first = picture_and_calls(&mut stage);
        let mut change = |number: usize, alpha_mode| {
            let world = stage.app.world_mut();
            let mut all = world.resource_mut::<Assets<StandardMaterial>>();
            let mut material = all.get_mut(&materials[number].0).expect("it was added");
            material.base_color = Color::srgb(0.9, 0.9, 0.2);
            material.alpha_mode = alpha_mode;
        };
        change(3, AlphaMode::Opaque);
        change(4, AlphaMode::Mask(0.5));
        let changed = picture_and_calls(&mut stage);
        (first, changed, is_bindless(&stage))
    };
    let (first, changed, bindless) = draw(How::Set(None));
    let entities = draw(How::Entities);
    assert_same_picture("batch_sets_colors", &first.0, &entities.0.0);
    assert_same_picture("batch_sets_colors_changed", &changed.0, &entities.1.0);
    // A camera, and two cascades.
    let expected = match bindless {
        true => (3, 6),
        false => (3 * MESHES, 3 * MESHES),
    };
    assert_eq!((first.1, changed.1), expected);
}

/// Of two joined sets one goes, whichever drew both.
#[test]
fn a_set_that_is_left_alone_is_drawn() {
    for gone in 0..2 {
        let draw = |how| {
            let mut stage = Stage::new(how);
            stage.camera(eye(), ());
            stage.spawn(sun(2, 30.0));
            let material = stage.standard(red());
            let all = [0, 1].map(|number| {
                let mesh = stage.mesh(mesh(number));
                stage.spawn_set(&field(20, false), (mesh, material.clone()), place(number))
            });
            let both = stage.picture();
            stage.entity(all[gone]).despawn();
            [both, stage.picture()]
        };
        let (sets, entities) = (draw(How::Set(None)), draw(How::Entities));
        for (name, (set, entity)) in ["both", "one"].iter().zip(sets.iter().zip(&entities)) {
            assert_same_picture(&format!("batch_sets {name} without {gone}"), set, entity);
        }
    }
}

/// Everything that a set may be without its draws being joined, among sets whose draws are.
#[test]
fn what_is_not_joined_is_drawn_among_joined_sets() {
    let draw = |how| {
        let mut stage = Stage::new(how);
        let all = city(&mut stage);
        let offset = InstanceOffset(Affine3A::from_scale(Vec3::new(-1.0, 1.2, 1.0)));
        let range = VisibilityRange::abrupt(0.0, 8.0);
        if how != How::Entities {
            let coarse = stage.mesh(Cuboid::new(0.3, 0.3, 0.3));
            let lods = InstanceLods {
                levels: vec![InstanceLod::new(coarse, 1e-6)],
                ..default()
            };
            stage.entity(all[1]).insert(lods);
            stage.entity(all[2]).insert(InstanceVisibilityRange(range));
            stage.entity(all[3]).insert(offset);
            stage.entity(all[4]).insert(InstanceMeshUniforms);
            stage.entity(all[5]).insert(NoInstanceSorting);
        }
        let first = stage.picture();
        // One moves, one goes, one gets another material, one casts a shadow again.
        let green = stage.standard(StandardMaterial {
            base_color: Color::srgb(0.2, 0.8, 0.3),
            ..red()
        });
        stage.entity(all[6]).insert(place(9));
        stage.entity(all[7]).despawn();
        stage.entity(all[8]).insert(green);
        stage.entity(all[9]).remove::<NotShadowCaster>();
        (first, stage.picture())
    };
    let joined = draw(How::Set(None));
    let alone = draw(How::Set(Some(CullingTier::Cpu)));
    assert_same_picture("batch_sets_first", &joined.0, &alone.0);
    assert_same_picture("batch_sets_changed", &joined.1, &alone.1);
}

/// A set at two places, and two meshes of one set at one place.
#[test]
fn sets_that_are_shared_are_drawn_at_each_place() {
    let draw = |how| {
        let mut stage = Stage::new(how);
        stage.camera(eye(), ());
        stage.spawn(sun(2, 30.0));
        let material = stage.standard(red());
        let set = stage.add(field(20, false));
        for number in 0..6 {
            let mesh = stage.mesh(mesh(number));
            let at = place(number / 2);
            stage.spawn((
                Mesh3d(mesh),
                material.clone(),
                GpuInstances(set.clone()),
                at,
            ));
        }
        for number in 6..9 {
            let mesh = stage.mesh(mesh(number));
            stage.spawn_set(&field(20, false), (mesh, material.clone()), place(number));
        }
        stage.picture()
    };
    let joined = draw(How::Set(None));
    let alone = draw(How::Set(Some(CullingTier::Cpu)));
    assert_same_picture("batch_sets_shared", &joined, &alone);
}
