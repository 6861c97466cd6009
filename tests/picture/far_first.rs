//! Blended sets are sorted far first in each camera, as Bevy sorts its entities.

use super::{eye, moved};
use crate::scene::{How, Stage, Stages, assert_same_picture, different_pixels, field};
use bevy::{diagnostic::DiagnosticsStore, prelude::*, render::diagnostic::RenderDiagnosticsPlugin};
use bevy_gpu_culling::{diagnostics, prelude::*};
use image::RgbaImage;

/// What differs among the scenes.
#[derive(Clone, Copy)]
struct Look {
    /// Where the box lies in the mesh.
    center: Vec3,
    eye: Transform,
    is_orthographic: bool,
}

fn looks() -> [(&'static str, Look); 3] {
    let look = Look {
        center: Vec3::ZERO,
        eye: eye(),
        is_orthographic: false,
    };
    let behind = Transform::from_xyz(2.0, 4.0, -8.0).looking_at(Vec3::ZERO, Vec3::Y);
    [
        ("blended", look),
        (
            "blended-off-center",
            Look {
                center: Vec3::new(0.8, -0.5, 1.1),
                ..look
            },
        ),
        (
            "blended-orthographic",
            Look {
                center: Vec3::new(0.0, 1.5, 0.0),
                eye: behind,
                is_orthographic: true,
            },
        ),
    ]
}

/// Glass boxes, each side of another color, in an order that no camera has.
fn build(stage: &mut Stage, look: Look, more: impl Bundle) -> Entity {
    let mesh = Mesh::from(Cuboid::new(0.6, 0.5, 0.7));
    let sides = mesh.count_vertices() as u32 / 4;
    let colors: Vec<_> = (0..sides * 4)
        .map(|vertex| {
            let hue = (vertex / 4) as f32 * 360.0 / sides as f32;
            LinearRgba::from(Color::hsl(hue, 0.9, 0.5)).to_f32_array()
        })
        .collect();
    let mesh = mesh
        .with_inserted_attribute(Mesh::ATTRIBUTE_COLOR, colors)
        .translated_by(look.center);
    let mesh = stage.mesh(mesh);
    let material = stage.standard(StandardMaterial {
        base_color: Color::srgba(1.0, 1.0, 1.0, 0.6),
        alpha_mode: AlphaMode::Blend,
        unlit: true,
        ..default()
    });
    let set = stage.spawn_set(&field(300, true), (mesh, material), moved());
    stage.entity(set).insert(more);
    let camera = stage.camera(look.eye, ());
    if look.is_orthographic {
        stage
            .entity(camera)
            .insert(Projection::from(OrthographicProjection {
                scale: 0.05,
                ..OrthographicProjection::default_3d()
            }));
    }
    set
}

type Tier = Option<CullingTier>;

fn draw(stages: &Stages, look: Look, tier: Tier, more: impl Bundle) -> RgbaImage {
    stages.with(How::Set(tier), |stage| {
        build(stage, look, more);
        let picture = stage.picture();
        let (views, survivors) = stage.verify();
        assert!(views == 1 && survivors > 30, "{survivors} survivors");
        picture
    })
}

#[test]
fn a_blended_set_in_any_order_looks_like_bevys_entities() {
    let stages = Stages::new(&Stage::new);
    let mut bevys = Stage::of_sorted_entities(|_| ());
    for (name, look) in looks() {
        let tiers = [None, Some(CullingTier::Workgroup), Some(CullingTier::Cpu)];
        let sets = tiers.map(|tier| draw(&stages, look, tier, ()));
        bevys.clear();
        build(&mut bevys, look, ());
        assert_same_picture(name, &sets[0], &bevys.picture());
        for other in &sets[1..] {
            assert_same_picture(&format!("{name}-tiers"), other, &sets[0]);
        }
    }
}

#[test]
fn what_follows_the_sort_keeps_its_order() {
    let stages = Stages::new(&Stage::new);
    for (name, look) in looks() {
        let instances = draw(&stages, look, None, ());
        let uniforms = draw(&stages, look, None, InstanceMeshUniforms);
        assert_same_picture(&format!("{name}-uniforms"), &uniforms, &instances);
    }
}

#[test]
fn a_blended_set_keeps_its_order_if_it_asks_for_it() {
    let stages = Stages::new(&Stage::new);
    let (_, look) = looks()[0];
    let sorted = draw(&stages, look, None, ());
    let in_set_order = draw(&stages, look, None, NoInstanceSorting);
    assert!(different_pixels("blended-set-order", &in_set_order, &sorted).is_err());
}

#[test]
fn the_sort_has_its_own_time() {
    let time = |opts_out: bool| {
        let mut stage = Stage::with(How::Set(None), |app| {
            app.add_plugins(RenderDiagnosticsPlugin);
        });
        let (_, look) = looks()[0];
        let set = build(&mut stage, look, ());
        if opts_out {
            stage.entity(set).insert(NoInstanceSorting);
        }
        stage.report();
        let store = stage.app.world().resource::<DiagnosticsStore>();
        let mut stages = diagnostics::STAGE_GPU.into_iter();
        let (_, path) = stages.find(|(stage, _)| *stage == "far_first").unwrap();
        let time = store.get(&path);
        time.is_some_and(|time| time.value().is_some())
    };
    assert!(time(false) && !time(true));
}
