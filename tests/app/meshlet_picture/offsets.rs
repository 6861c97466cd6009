//! Offsets between mesh and instance: meshlets are tested at the places that it gives them.

use super::{Pair, colored, eyes, levels::leveled, red, sheet, spawn, torus};
use crate::scene::{How, Stage, assert_same_picture, field, field_of};
use bevy::prelude::*;
use bevy_gpu_culling::prelude::*;

#[test]
fn meshlets_behind_an_offset_look_like_the_whole_mesh() {
    let turn = Quat::from_euler(EulerRot::XYZ, 0.5, -0.8, 1.1);
    let (_, inside) = eyes()[1];
    let offsets = [
        ("mirrored", Vec3::new(-1.0, 1.0, 1.0)),
        ("stretched", Vec3::new(1.5, 0.8, -1.1)),
    ];
    let mut pair = Pair::new(How::Set(None));
    for (name, scale) in offsets {
        let offset = Transform::from_xyz(0.5, 1.2, -0.4)
            .with_rotation(turn)
            .with_scale(scale);
        let (report, _) = pair.compare(&format!("offset-{name}"), |stage, by_meshlets| {
            for (mesh, count) in [(torus(), 50), (sheet(), 30)] {
                let material = colored(stage);
                let set = spawn(
                    stage,
                    by_meshlets,
                    &field_of(count, ScaleKind::NonUniform),
                    &mesh,
                    material,
                );
                stage.entity(set).insert(InstanceOffset::from(offset));
            }
            stage.camera(inside, ());
        });
        // Stretching in three ways widens cones.
        assert!(report.culled_by_cone * 20 > report.tested, "{report:?}");
        assert!(report.culled_by_frustum > 0, "{report:?}");
    }
}

/// The errors of a mesh's own levels are stretched, also after the offset has changed.
#[test]
fn levels_of_meshlets_behind_an_offset_are_as_of_larger_instances() {
    let (_, eye) = eyes()[0];
    let draw = |instances: f32, offsets: &[f32]| {
        let mut stage = Stage::new(How::Set(None));
        let mesh = MeshletMesh3d(stage.add(leveled()));
        let red = stage.standard(red());
        let smaller = field(120, true);
        let larger = smaller.iter().map(|mut instance| {
            instance.scale *= instances;
            instance
        });
        let set = InstanceSet::from_transforms(larger).unwrap();
        let set = GpuInstances(stage.add(set));
        let entity = stage.spawn((mesh, red, set));
        stage.lights(false);
        stage.camera(eye, ());
        stage
            .app
            .world_mut()
            .resource_mut::<GpuCullingSettings>()
            .lod_pixels = 0.1;
        for offset in offsets {
            let offset = Transform::from_scale(Vec3::splat(*offset));
            stage.entity(entity).insert(InstanceOffset::from(offset));
            stage.update(3);
        }
        let picture = stage.picture();
        stage.verify();
        let report = stage.report();
        let levels = report.views.iter().flat_map(|view| &view.levels);
        let levels: Vec<_> = levels.map(|level| level.visible).collect();
        (picture, levels, report.meshlets.drawn)
    };
    let (expected, levels, drawn) = draw(1.8, &[]);
    assert!(drawn > 100 && levels.iter().filter(|level| **level > 4).count() >= 3);
    let (offset, seen, _) = draw(1.0, &[0.4, 1.8]);
    assert_same_picture("offset-meshlet-levels", &offset, &expected);
    assert_eq!(seen, levels);
}
