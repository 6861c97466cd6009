//! Bevy's wireframes on a set.

use super::build::{self, eye, members, moved};
use crate::scene::{How, Stage, different_pixels, field_of};
use bevy::{
    pbr::wireframe::{Wireframe, WireframeColor, WireframePlugin},
    prelude::*,
    render::{renderer::RenderDevice, settings::WgpuFeatures},
};
use bevy_gpu_culling::instance::ScaleKind;
use bevy_gpu_culling::prelude::*;

fn wired(how: How) -> Stage {
    let mut stage = Stage::with(how, |app| {
        app.add_plugins(WireframePlugin::default());
    });
    stage.update(1);
    stage
}

fn can_draw_lines(stage: &Stage) -> bool {
    let device = stage.app.world().resource::<RenderDevice>();
    let needed = WgpuFeatures::POLYGON_MODE_LINE | WgpuFeatures::IMMEDIATES;
    device.features().contains(needed)
}

fn spawn(stage: &mut Stage, material: impl Component + Clone) -> Entity {
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let set = stage.spawn_set(
        &field_of(250, ScaleKind::NonUniform),
        (mesh, material),
        moved(),
    );
    build::sun(stage);
    stage.camera(eye(), ());
    set
}

fn wire(stage: &mut Stage, set: Entity) {
    let color = Color::srgb(0.1, 1.0, 0.3);
    for entity in members(stage, set) {
        let mut entity = stage.entity(entity);
        entity.insert((Wireframe, WireframeColor { color }));
    }
}

#[test]
fn a_wireframe_goes_around_each_instance() {
    let draw = |how| {
        let mut stage = wired(how);
        if !can_draw_lines(&stage) {
            return None;
        }
        let gray = stage.standard(StandardMaterial::from(Color::srgb(0.5, 0.5, 0.5)));
        let set = spawn(&mut stage, gray);
        let plain = stage.picture();
        wire(&mut stage, set);
        let lines = stage.picture();
        for entity in members(&stage, set) {
            let mut entity = stage.entity(entity);
            entity.remove::<(Wireframe, WireframeColor)>();
        }
        Some([plain, lines, stage.picture()])
    };
    let (Some(set), Some(entities)) = (draw(How::Set(None)), draw(How::Entities)) else {
        println!("skipped: the adapter cannot draw lines");
        return;
    };
    let names = ["before", "wireframe", "without-again"];
    let mut failures = Vec::new();
    for (name, (set, entities)) in names.iter().zip(set.iter().zip(&entities)) {
        let result = different_pixels(&format!("wireframe-{name}"), set, entities);
        println!("{name}: {result:?}");
        failures.extend(result.err());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(different_pixels("wireframe-self", &set[1], &set[0]).is_err());
}

/// The tier `Cpu` writes no uniforms, so the wireframe is left out. The set's mesh is not drawn in
/// its place.
#[test]
fn a_wireframe_that_cannot_be_drawn_is_left_out() {
    let mut stage = wired(How::Set(Some(CullingTier::Cpu)));
    let gray = stage.standard(StandardMaterial::from(Color::srgb(0.5, 0.5, 0.5)));
    let set = spawn(&mut stage, gray);
    let plain = stage.picture();
    wire(&mut stage, set);
    let result = different_pixels("wireframe-cpu", &stage.picture(), &plain);
    assert_eq!(result.map(|found| found.share), Ok(0.0));
}
