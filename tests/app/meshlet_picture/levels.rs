//! Levels of detail: a set by meshlets looks like the same set with each level as a plain mesh.

use super::{eyes, keep, red, spawn, torus};
use crate::{
    log::Log,
    scene::{How, Stage, Stages, assert_same_picture, field},
};
use bevy::{
    prelude::*,
    render::{
        renderer::RenderDevice,
        settings::{WgpuLimits, WgpuSettings},
    },
};
use bevy_gpu_culling::{meshlet::MeshletMesh, prelude::*, render::MeshletReport};

/// The greatest error in cameras. It is so small that the pictures have most levels.
const PIXELS: f32 = 0.1;

pub fn leveled() -> MeshletMesh {
    let settings = MeshletSettings {
        lods: Some(LodSettings::default()),
        ..default()
    };
    MeshletMesh::from_mesh(&torus(), &settings).unwrap()
}

/// How a set is drawn.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// By meshlets with levels.
    Meshlets,
    /// Plain meshes, one per level.
    Plain,
    /// The full mesh alone.
    Full,
}

/// Spawns a set with a ground that shows its shadows.
fn furnish(stage: &mut Stage, form: Form, eye: Transform) -> Entity {
    let at = Transform::from_xyz(0.0, 1.0, 0.0).with_scale(Vec3::new(1.0, 0.9, 1.0));
    let material = stage.standard(red());
    let set = GpuInstances(stage.add(field(120, true)));
    let meshlets = leveled();
    let entity = match form {
        Form::Meshlets => {
            let mesh = MeshletMesh3d(stage.add(meshlets));
            stage.spawn((mesh, material, set, at))
        }
        Form::Plain | Form::Full => {
            let mesh = Mesh3d(stage.mesh(meshlets.to_mesh().unwrap()));
            let entity = stage.spawn((mesh, material, set, at));
            let mut levels = Vec::new();
            for (number, level) in meshlets.levels().iter().enumerate().skip(1) {
                let mesh = stage.mesh(meshlets.level_to_mesh(number).unwrap());
                levels.push(InstanceLod::new(mesh, level.error));
            }
            if form == Form::Plain {
                stage.entity(entity).insert(InstanceLods {
                    levels,
                    ..default()
                });
            }
            entity
        }
    };
    let ground = stage.mesh(Plane3d::new(Vec3::Y, Vec2::splat(12.0)));
    let gray = stage.standard(StandardMaterial::from(Color::srgb(0.5, 0.5, 0.55)));
    stage.spawn((Mesh3d(ground), gray, Transform::from_xyz(0.0, -2.5, 0.0)));
    stage.lights(true);
    stage.camera(eye, ());
    entity
}

fn with_pixels(stage: &mut Stage, pixels: f32) {
    let mut settings = stage.app.world_mut().resource_mut::<GpuCullingSettings>();
    settings.lod_pixels = pixels;
    settings.shadow_lod_pixels = pixels * 2.0;
}

/// The view of the camera: instances and triangles per level.
fn camera_levels(report: &CullingReport) -> Vec<(u64, u64)> {
    let mut views = report.views.iter();
    let camera = views.find(|view| view.name == "camera").unwrap();
    let levels = camera.levels.iter();
    levels
        .map(|level| (level.visible, level.triangles))
        .collect()
}

#[test]
fn each_instance_looks_like_the_mesh_of_its_level() {
    let stages = Stages::new(&Stage::new);
    for (name, eye) in eyes().into_iter().take(2) {
        let draw = |tier, form| {
            stages.with(How::Set(tier), |stage| {
                furnish(stage, form, eye);
                with_pixels(stage, PIXELS);
                let drawn = stage.picture_and_report();
                stage.verify();
                drawn
            })
        };
        let (plain, expected) = draw(None, Form::Plain);
        assert_eq!(expected.meshlets, MeshletReport::default());
        let seen = camera_levels(&expected);
        let used = seen.iter().filter(|(visible, _)| *visible > 4).count();
        assert!(seen.len() == 6 && used >= 3, "{seen:?}");
        for tier in [
            CullingTier::Subgroup,
            CullingTier::Workgroup,
            CullingTier::Cpu,
        ] {
            let (parts, report) = draw(Some(tier), Form::Meshlets);
            let name = format!("levels-{name}-{tier}");
            keep(&name, &parts);
            assert_same_picture(&name, &parts, &plain);
            assert_eq!(camera_levels(&report), seen, "{name}");
            let triangles: u64 = seen.iter().map(|(_, triangles)| triangles).sum();
            if tier == CullingTier::Cpu {
                assert_eq!(report.meshlets, MeshletReport::default());
                continue;
            }
            assert_eq!(report.meshlets.whole_triangles, triangles, "{name}");
            assert!(report.shadow_meshlets.culled_by_cone > 0, "{report:?}");
            let drawn = report.meshlets;
            assert!(drawn.culled_by_cone > 0, "{drawn:?}");
            let is_inside = eye == eyes()[1].1;
            assert_eq!(drawn.culled_by_frustum > 0, is_inside, "{drawn:?}");
            assert!(drawn.triangles < drawn.whole_triangles, "{drawn:?}");
        }
    }
}

/// Each way to expand survivors draws the same picture and counts the same, also if it changes at
/// run time. Without levels, the division stays.
#[test]
fn every_expansion_draws_what_the_division_draws() {
    use MeshletExpansion::{Auto, By, Division};
    let ways = [
        (Division, Division),
        (Auto, Division),
        (By(Expansion::OneBucket), By(Expansion::OneBucket)),
        (By(Expansion::Po2Buckets), By(Expansion::Po2Buckets)),
    ];
    for tier in [CullingTier::Subgroup, CullingTier::Workgroup] {
        let mut stage = Stage::new(How::Set(Some(tier)));
        furnish(&mut stage, Form::Meshlets, eyes()[1].1);
        with_pixels(&mut stage, PIXELS);
        let mut division = None;
        for (way, used) in &ways {
            let mut settings = stage.app.world_mut().resource_mut::<GpuCullingSettings>();
            settings.expansion = *way;
            let (picture, report) = stage.picture_and_report();
            stage.verify();
            let name = format!("expansion-{way}-{tier}");
            keep(&name, &picture);
            assert_eq!(report.expansion, Some(*used), "{name}");
            assert!(report.meshlets.drawn > 0 && report.shadow_meshlets.drawn > 0);
            let counts = (report.meshlets, report.shadow_meshlets);
            let (expected, by_division) = division.get_or_insert((picture.clone(), counts));
            assert_eq!(counts, *by_division, "{name}");
            assert!(picture == *expected, "{name} is another picture");
        }
    }
    // Without levels, and without meshlets.
    let stages = Stages::new(&Stage::new);
    let expansion = stages.with(How::Set(None), |stage| {
        let material = stage.standard(red());
        spawn(stage, true, &field(60, false), &torus(), material);
        stage.camera(eyes()[1].1, ());
        stage.picture_and_report().1.expansion
    });
    assert_eq!(expansion, Some(Division));
    let expansion = stages.with(How::Set(None), |stage| {
        furnish(stage, Form::Plain, eyes()[1].1);
        stage.picture_and_report().1.expansion
    });
    assert_eq!(expansion, None);
}

/// A device with eight storage buffers per stage divides. The log says so if an expansion was
/// asked for.
#[test]
fn a_device_with_few_buffers_divides_and_says_so() {
    let log = Log::start();
    let full = Stage::new(How::Set(None));
    let limits = full.app.world().resource::<RenderDevice>().limits();
    let draw = |expansion| {
        let settings = WgpuSettings {
            constrained_limits: Some(WgpuLimits {
                max_storage_buffers_per_shader_stage: 8,
                ..limits.clone()
            }),
            ..default()
        };
        let mut stage = Stage::on(How::Set(None), settings, |_| ());
        furnish(&mut stage, Form::Meshlets, eyes()[1].1);
        with_pixels(&mut stage, PIXELS);
        let mut settings = stage.app.world_mut().resource_mut::<GpuCullingSettings>();
        settings.expansion = expansion;
        let (picture, report) = stage.picture_and_report();
        assert_eq!(report.expansion, Some(MeshletExpansion::Division));
        assert!(report.meshlets.drawn > 0);
        picture
    };
    let division = draw(MeshletExpansion::Auto);
    // Bindless materials have too many buffers for such a device, and say so.
    let of_expansion = || {
        let mut lines = log.lines();
        lines.retain(|line| line.contains("expansion"));
        lines
    };
    assert!(of_expansion().is_empty(), "{:?}", of_expansion());
    let parts = draw(MeshletExpansion::By(Expansion::Po2Buckets));
    log.assert_once(&[
        "expansion",
        "\"po2-buckets\"",
        "needs 9",
        "has 8",
        "\"division\"",
    ]);
    assert_eq!(of_expansion().len(), 1);
    assert!(parts == division);
}

/// With an allowed error of 0, and with one mesh uniform per survivor.
#[test]
fn what_has_no_levels_is_drawn_in_full() {
    let eye = eyes()[1].1;
    let stages = Stages::new(&Stage::new);
    let draw = |form, change: fn(&mut Stage, Entity)| {
        stages.with(How::Set(None), |stage| {
            let entity = furnish(stage, form, eye);
            change(stage, entity);
            stage.picture_and_report()
        })
    };
    type Change = fn(&mut Stage, Entity);
    let no_error: Change = |stage, _| with_pixels(stage, 0.0);
    let uniforms: Change = |stage, entity| {
        stage.entity(entity).insert(InstanceMeshUniforms);
    };
    for (name, change) in [("no-error", no_error), ("uniforms", uniforms)] {
        let (full, _) = draw(Form::Full, change);
        let (parts, report) = draw(Form::Meshlets, change);
        keep(&format!("levels-{name}"), &parts);
        assert_same_picture(name, &parts, &full);
        let levels = camera_levels(&report);
        let coarser: u64 = levels.iter().skip(1).map(|level| level.0).sum();
        assert_eq!(coarser, 0, "{name}: {levels:?}");
    }
}

/// Sets that are not drawn by meshlets have the levels of their mesh all the same.
#[test]
fn sets_that_are_drawn_whole_have_the_levels() {
    let eye = eyes()[0].1;
    let stages = Stages::new(&Stage::new);
    let draw = |form| {
        stages.with(How::Set(None), |stage| {
            let entity = furnish(stage, form, eye);
            stage.entity(entity).insert(CullingRadius(0.8));
            with_pixels(stage, PIXELS);
            stage.picture_and_report()
        })
    };
    let (plain, expected) = draw(Form::Plain);
    let (parts, report) = draw(Form::Meshlets);
    keep("levels-radius", &parts);
    assert_same_picture("radius", &parts, &plain);
    assert_eq!(report.meshlets, MeshletReport::default());
    assert_eq!(camera_levels(&report), camera_levels(&expected));
    assert!(camera_levels(&report).len() == 6);
}

/// Bevy draws an entity without a set, and all indices of its mesh: that mesh is the full one. It
/// follows when the entity gets a set or loses it, or loses its meshlets.
#[test]
fn an_entity_without_a_set_is_the_full_mesh() {
    let eye = Transform::from_xyz(0.6, 0.7, 1.0).looking_at(Vec3::ZERO, Vec3::Y);
    let run = |by_meshlets: bool| {
        let mut stage = Stage::new(How::Set(None));
        let meshlets = leveled();
        let material = stage.standard(red());
        let entity = if by_meshlets {
            let mesh = MeshletMesh3d(stage.add(meshlets));
            stage.spawn((mesh, material))
        } else {
            let mesh = Mesh3d(stage.mesh(meshlets.to_mesh().unwrap()));
            stage.spawn((mesh, material))
        };
        stage.lights(false);
        stage.camera(eye, ());
        with_pixels(&mut stage, 0.0);
        let alone = stage.picture();
        let set = GpuInstances(stage.add(field(40, false)));
        stage.entity(entity).insert(set);
        let set = stage.picture();
        let handle = stage.app.world().get::<GpuInstances>(entity).cloned();
        stage.entity(entity).remove::<GpuInstances>();
        let again = stage.picture();
        // The mesh stays, and the set is drawn whole.
        stage.entity(entity).insert(handle.unwrap());
        stage.update(2);
        stage.entity(entity).remove::<MeshletMesh3d>();
        let plain = stage.picture();
        stage.entity(entity).remove::<GpuInstances>();
        [alone, set, again, plain, stage.picture()]
    };
    let expected = run(false);
    let names = [
        "alone",
        "with-a-set",
        "alone-again",
        "without-meshlets",
        "without-both",
    ];
    for ((name, whole), parts) in names.iter().zip(&expected).zip(run(true)) {
        keep(&format!("levels-{name}"), &parts);
        assert_same_picture(name, &parts, whole);
    }
}
