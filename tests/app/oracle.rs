//! The picture oracle: what Bevy draws of one entity per instance, a set draws, too, in every pass,
//! light, material and camera. The survivors of every view must equal the CPU twin's.
//!
//! `docs/guide/compatibility.md` is generated from the same lists; `UPDATE_DOCS=1` rewrites it.

mod animation;
mod axes;
mod build;
mod changes;
mod data;
mod features;
mod growth;
mod materials;
mod motion;
mod oblique;
mod offsets;
mod painted;
mod pipelined;
mod table;
mod tinted;
mod tinted_shaders;
mod uniforms;
mod wind;
mod wireframe;
mod written;

use crate::scene::{Difference, How, Stage, different_pixels};
use axes::{COMBINATIONS, Combination, Light, Matter, Pass};
use bevy::{
    light::{DirectionalLightShadowMap, NotShadowCaster, ShadowFilteringMethod},
    pbr::ScreenSpaceTransmission,
    prelude::*,
};
use bevy_gpu_culling::{cull::Compaction, prelude::*};
use image::RgbaImage;
use pipelined::Pipelined;
use std::time::Instant;

/// A stage with all plugins and shaders that the oracle's scenes need.
fn stage(how: How) -> Stage {
    let mut stage = Stage::with(how, register);
    stage.update(1);
    stage
}

/// The same, with Bevy's entities in the right order.
fn stage_of_sorted_entities() -> Stage {
    let mut stage = Stage::of_sorted_entities(register);
    stage.update(1);
    stage
}

fn register(app: &mut App) {
    materials::register(app);
    written::register(app);
    app.add_plugins(InstanceTintPlugin);
    app.add_systems(Update, (build::drift, motion::swarm, offsets::spin));
}

#[test]
fn every_combination_looks_like_bevys_entities() {
    let start = Instant::now();
    let only = std::env::var("ORACLE").unwrap_or_default();
    let mut stages = [stage(How::Set(None)), stage(How::Entities)];
    let mut pipelined = Pipelined::default();
    let (mut failures, mut drawn) = (Vec::new(), 0);
    for (index, combination) in COMBINATIONS.iter().enumerate() {
        let name = combination.name();
        if !name.contains(&only) {
            continue;
        }
        if !stages[0].has_samples(combination.msaa.samples()) {
            println!("{name}: skipped, the adapter has no {:?}", combination.msaa);
            continue;
        }
        let begun = Instant::now();
        if matches!(combination.pass, Pass::Blend | Pass::BlendTransmission) {
            stages = [stage(How::Set(None)), stage_of_sorted_entities()];
        }
        // Three compactions share the combinations: one in one pass, which `Auto` chooses here, and
        // two in several passes.
        let compactions = [
            Compaction::Auto,
            Compaction::VoteScanCompact,
            Compaction::Classify,
        ];
        let compaction = compactions[index * compactions.len() / COMBINATIONS.len()];
        let world = stages[0].app.world_mut();
        let mut settings = world.resource_mut::<GpuCullingSettings>();
        if settings.compaction != compaction {
            settings.compaction = compaction;
        }
        let [set, bevy] = stages.each_mut().map(|stage| draw(stage, combination));
        let wrong = views_are_wrong(&mut stages[0], combination);
        drawn += 1;
        let result = different_pixels(&name, &set, &bevy);
        println!("{name}: {result:?}, {:.1?}", begun.elapsed());
        failures.extend(result.err());
        failures.extend(wrong.map(|wrong| format!("{name}: {wrong}")));
        failures.extend(pipelined.check(combination, &bevy));
    }
    println!("{drawn} combinations in {:.0?}", start.elapsed());
    assert!(
        drawn >= 24 && pipelined.drawn >= 6 || !only.is_empty(),
        "only {drawn} combinations were drawn, {} of them pipelined",
        pipelined.drawn
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn draw(stage: &mut Stage, combination: &Combination) -> RgbaImage {
    stage.clear();
    combination.build(stage);
    stage.picture()
}

/// An error if a combination has fewer views than its lights and cameras need, or no survivors.
/// `Stage::verify` compares each view with the twin.
fn views_are_wrong(stage: &mut Stage, combination: &Combination) -> Option<String> {
    let (views, survivors) = stage.verify();
    let min = combination.min_views();
    (views < min || survivors == 0)
        .then(|| format!("{views} views with {survivors} survivors, expected at least {min} views"))
}

/// The comparison can fail.
#[test]
fn a_moved_set_is_not_the_same_picture() {
    let mut stage = stage(How::Set(None));
    let combination = &COMBINATIONS[0];
    let first = draw(&mut stage, combination);
    assert!(different_pixels("self", &first, &first).is_ok());
    let world = stage.app.world_mut();
    let mut sets = world.query_filtered::<&mut Transform, With<GpuInstances>>();
    for mut place in sets.iter_mut(world) {
        place.translation.x += 0.05;
    }
    let moved = stage.picture();
    assert!(different_pixels("moved-on-purpose", &moved, &first).is_err());
}

/// Without `ScreenSpaceTransmission`, Bevy draws set and entities as opaque, and the rows of
/// transmission would compare that.
#[test]
fn the_scenes_of_transmission_transmit() {
    for pass in [Pass::Transmission, Pass::BlendTransmission] {
        let combination = COMBINATIONS.iter().find(|c| c.pass == pass).unwrap();
        let mut stage = stage(How::Entities);
        let through = draw(&mut stage, combination);
        let world = stage.app.world_mut();
        let mut cameras = world.query_filtered::<Entity, With<ScreenSpaceTransmission>>();
        let camera = cameras.single(world).unwrap();
        world.entity_mut(camera).remove::<ScreenSpaceTransmission>();
        let name = format!("{pass:?}-opaque");
        assert!(different_pixels(&name, &stage.picture(), &through).is_err());
    }
}

/// What is small is not lost in the tolerance: a distant instance of a few pixels, and a thin
/// shadow.
#[test]
fn a_missing_far_instance_and_a_missing_thin_shadow_are_other_pictures() {
    let mut stage = stage(How::Set(None));
    // In a smaller one the shadow is as thin as a texel.
    let map = DirectionalLightShadowMap { size: 1024 };
    stage.app.insert_resource(map);
    let first = COMBINATIONS.iter().find(|c| c.light == Light::Directional);
    first.unwrap().build(&mut stage);
    // Bevy's filter: one sample makes the shadow thinner than the tolerance on some adapters.
    let world = stage.app.world_mut();
    let mut cameras = world.query_filtered::<Entity, With<Camera3d>>();
    let camera = cameras.single(world).unwrap();
    let filter = ShadowFilteringMethod::default();
    stage.entity(camera).insert(filter);
    let (mesh, dark) = (stage.mesh(Cuboid::from_length(0.4)), Color::BLACK);
    let dark = stage.standard(StandardMaterial::from(dark));
    let one = |at: Transform| InstanceSet::from_transforms([at]).unwrap();
    let far = one(Transform::from_xyz(5.0, -2.5, -25.0));
    let far = stage.spawn_set(&far, (mesh.clone(), dark.clone()), Transform::IDENTITY);
    let pole = Transform::from_xyz(2.5, -2.4, -1.0).with_scale(Vec3::new(0.15, 3.0, 0.15));
    let pole = stage.spawn_set(&one(pole), (mesh, dark), Transform::IDENTITY);
    let whole = stage.picture();
    stage.entity(far).insert(Visibility::Hidden);
    let without_far = Difference::new(&stage.picture(), &whole);
    stage.entity(far).insert(Visibility::Inherited);
    stage.entity(pole).insert(NotShadowCaster);
    let without_shadow = Difference::new(&stage.picture(), &whole);
    let max = Difference::MAX;
    println!("{without_far:?}, {without_shadow:?}, at most {max:?}");
    for difference in [without_far, without_shadow] {
        assert!(!difference.is_within(&max), "{difference:?}");
        // The share alone does not tell.
        assert!(difference.share <= max.share, "{difference:?}");
    }
}

/// The plugin examines a material's shaders again when one of them is loaded.
#[test]
fn a_vertex_shader_that_comes_later_is_drawn() {
    let custom = |combination: &&Combination| combination.matter == Matter::CustomVertex;
    let combination = COMBINATIONS.iter().find(custom).unwrap();
    let expected = draw(&mut stage(How::Set(None)), combination);
    let mut late = stage(How::Set(None));
    let mut shaders = late.app.world_mut().resource_mut::<Assets<Shader>>();
    let shader = shaders.remove(&materials::SWOLLEN).unwrap();
    let before = draw(&mut late, combination);
    assert!(different_pixels("late-shader-before", &before, &expected).is_err());
    let mut shaders = late.app.world_mut().resource_mut::<Assets<Shader>>();
    shaders.insert(&materials::SWOLLEN, shader).unwrap();
    let result = different_pixels("late-shader", &late.picture(), &expected);
    assert!(result.is_ok(), "{result:?}");
}
