//! Levels of detail: each instance looks like an entity with the mesh of its level.

use super::{eye, red};
use crate::scene::{How, SIZE, Stage, Stages, assert_same_picture, field, field_of};
use bevy::{
    diagnostic::{Diagnostic, DiagnosticsStore},
    mesh::{MeshCompressionArgs, VertexAttributeValues},
    prelude::*,
};
use bevy_gpu_culling::{diagnostics, prelude::*, render::ViewKind};
use core::f32::consts::FRAC_PI_4;
use image::RgbaImage;

/// Errors of the levels. They are far from the shapes' true ones, so that the levels differ.
const ERRORS: [f32; 2] = [0.02, 0.05];

/// Where the set stands.
fn place() -> Transform {
    Transform::from_xyz(0.5, -0.3, -1.0)
        .with_rotation(Quat::from_rotation_y(0.3))
        .with_scale(Vec3::splat(1.2))
}

/// The mesh with indices of 16 bits. Bevy keeps them in another buffer than indices of 32 bits.
fn short_indices(mut mesh: Mesh) -> Mesh {
    let short = |index| u16::try_from(index).unwrap();
    let indices = mesh.indices().unwrap().iter().map(short).collect();
    mesh.insert_indices(bevy::mesh::Indices::U16(indices));
    mesh
}

fn meshes(stage: &mut Stage) -> [Handle<Mesh>; 3] {
    [
        stage.mesh(short_indices(Sphere::new(0.3).into())),
        stage.mesh(Cuboid::new(0.4, 0.4, 0.4)),
        stage.mesh(
            Tetrahedron::default()
                .mesh()
                .build()
                .scaled_by(Vec3::splat(0.4)),
        ),
    ]
}

fn levels(meshes: &[Handle<Mesh>]) -> InstanceLods {
    let level = |(mesh, error): (&Handle<Mesh>, &f32)| InstanceLod::new(mesh.clone(), *error);
    InstanceLods {
        levels: meshes.iter().zip(&ERRORS).map(level).collect(),
        ..default()
    }
}

/// One mesh with the indices of all levels, and the levels as parts of it.
fn one_mesh(stage: &mut Stage) -> (Handle<Mesh>, InstanceLods) {
    let parts = meshes(stage);
    let all = stage.app.world().resource::<Assets<Mesh>>();
    let mut whole = all.get(&parts[0]).unwrap().clone();
    let mut ends = vec![whole.indices().unwrap().len() as u32];
    for part in &parts[1..] {
        whole.merge(all.get(part).unwrap()).unwrap();
        ends.push(whole.indices().unwrap().len() as u32);
    }
    let level = |at: usize| InstanceLod::new(ends[at]..ends[at + 1], ERRORS[at]);
    let levels = InstanceLods {
        levels: vec![level(0), level(1)],
        full: Some(0..ends[0]),
        ..default()
    };
    (stage.mesh(whole), levels)
}

/// The radius by which the sets are tested, around all meshes.
const RADIUS: f32 = 0.7;

/// The level of an instance, by the distance of its sphere and the height of the picture.
fn level_of(instance: &Transform) -> usize {
    let pixels = SIZE.y as f32 / 2.0 / (FRAC_PI_4 / 2.0).tan();
    let scale = instance.scale.max_element() * place().scale.x;
    let center = place().transform_point(instance.translation);
    let apart = center.distance(eye().translation) - RADIUS * scale;
    let seen = |error: &&f32| *error * scale * pixels / apart <= 1.0;
    ERRORS.iter().filter(seen).count()
}

fn furnish(stage: &mut Stage) {
    stage.lights(true);
    stage.camera(eye(), ());
    // Entities have one mesh for cameras and lights.
    if let Some(mut settings) = stage
        .app
        .world_mut()
        .get_resource_mut::<GpuCullingSettings>()
    {
        settings.shadow_lod_pixels = settings.lod_pixels;
    }
}

/// The meshes, compressed. Each has its box and ranges.
fn compressed_meshes(stage: &mut Stage) -> [Handle<Mesh>; 3] {
    meshes(stage).map(|mesh| {
        let meshes = stage.app.world().resource::<Assets<Mesh>>();
        let mesh = meshes.get(&mesh).unwrap().clone();
        let mesh = mesh.compressed_mesh(&MeshCompressionArgs::regular());
        stage.mesh(mesh.map_err(|(_, errors)| errors).unwrap())
    })
}

/// The picture of entities with the meshes of their levels.
fn picture_of_entities(
    set: &InstanceSet,
    meshes: fn(&mut Stage) -> [Handle<Mesh>; 3],
) -> RgbaImage {
    let mut bevys = Stage::new(How::Entities);
    let meshes = meshes(&mut bevys);
    let material = bevys.standard(red());
    let mut count = [0; 3];
    for instance in set.iter() {
        let transform = Transform::from(instance);
        let level = level_of(&transform);
        count[level] += 1;
        let mesh = Mesh3d(meshes[level].clone());
        bevys.spawn((mesh, material.clone(), place() * transform));
    }
    assert!(count.iter().all(|count| *count > 15), "{count:?}");
    furnish(&mut bevys);
    bevys.picture()
}

#[test]
fn levels_of_compressed_meshes_look_like_entities_with_them() {
    let set = field_of(400, ScaleKind::NonUniform);
    let expected = picture_of_entities(&set, compressed_meshes);
    for tier in [CullingTier::Subgroup, CullingTier::Cpu] {
        let mut stage = Stage::new(How::Set(Some(tier)));
        let [full, coarser @ ..] = compressed_meshes(&mut stage);
        let material = stage.standard(red());
        let entity = stage.spawn_set(&set, (full, material), place());
        stage
            .entity(entity)
            .insert((CullingRadius(RADIUS), levels(&coarser)));
        furnish(&mut stage);
        let name = format!("levels of compressed meshes on {tier}");
        assert_same_picture(&name, &stage.picture(), &expected);
        stage.verify();
    }
}

#[test]
fn instances_look_like_entities_with_the_mesh_of_their_level() {
    let set = field_of(400, ScaleKind::NonUniform);
    let expected = picture_of_entities(&set, meshes);
    let tiers = [
        CullingTier::Subgroup,
        CullingTier::Workgroup,
        CullingTier::Cpu,
    ];
    let stages = Stages::new(&Stage::new);
    let cases = tiers
        .into_iter()
        .flat_map(|tier| [(tier, false), (tier, true)]);
    let compare = |stage: &mut Stage, tier, in_one| {
        let (full, levels) = if in_one {
            one_mesh(stage)
        } else {
            let [full, coarser @ ..] = meshes(stage);
            (full, levels(&coarser))
        };
        let material = stage.standard(red());
        let entity = stage.spawn_set(&set, (full, material), place());
        stage.entity(entity).insert(CullingRadius(RADIUS));
        stage.entity(entity).insert(levels);
        furnish(stage);
        let (picture, report) = stage.picture_and_report();
        let name = format!("levels on {tier}, in one mesh: {in_one}");
        assert_same_picture(&name, &picture, &expected);
        let camera = report
            .views
            .iter()
            .find(|view| view.name == "camera")
            .unwrap();
        let kept: u64 = camera.levels.iter().map(|level| level.visible).sum();
        assert_eq!((camera.levels.len(), kept), (3, camera.visible));
        assert_eq!(camera.levels[1].triangles, camera.levels[1].visible * 12);
        assert_triangles(stage, &report);
        stage.verify();
    };
    for (tier, in_one) in cases {
        stages.with(How::Set(Some(tier)), |stage| compare(stage, tier, in_one));
    }
}

/// The diagnostics are the report's sums.
fn assert_triangles(stage: &Stage, report: &CullingReport) {
    let store = stage.app.world().resource::<DiagnosticsStore>();
    let value = |path| store.get(&path).and_then(Diagnostic::value).unwrap();
    let (mut cameras, mut shadows) = (0, 0);
    for view in &report.views {
        let sum = match view.kind {
            ViewKind::Camera => &mut cameras,
            _ => &mut shadows,
        };
        *sum += view.levels.iter().map(|level| level.triangles).sum::<u64>();
    }
    assert!(
        cameras > 0 && shadows > 0,
        "{cameras} and {shadows} triangles"
    );
    assert_eq!(value(diagnostics::TRIANGLES), cameras as f64);
    assert_eq!(value(diagnostics::SHADOW_TRIANGLES), shadows as f64);
}

/// Without levels, with an allowed error of 0, or with a mesh that no pipeline of the set draws,
/// all instances are drawn in full.
#[test]
fn what_has_no_levels_is_drawn_in_full() {
    let set = field(300, false);
    let stages = Stages::new(&Stage::new);
    let draw = |change: fn(&mut Stage, Entity, [Handle<Mesh>; 2])| {
        stages.with(How::Set(None), |stage| {
            let [full, coarser @ ..] = meshes(stage);
            let material = stage.standard(red());
            let entity = stage.spawn_set(&set, (full, material), place());
            stage.entity(entity).insert(CullingRadius(RADIUS));
            furnish(stage);
            change(stage, entity, coarser);
            stage.picture()
        })
    };
    let full = draw(|_, _, _| ());
    let no_error = draw(|stage, entity, coarser| {
        stage.entity(entity).insert(levels(&coarser));
        let world = stage.app.world_mut();
        world.resource_mut::<GpuCullingSettings>().lod_pixels = 0.0;
        world.resource_mut::<GpuCullingSettings>().shadow_lod_pixels = 0.0;
    });
    assert_same_picture("no error allowed", &no_error, &full);
    let unfit = draw(|stage, entity, _| {
        let mut mesh = Mesh::from(Cuboid::from_length(0.4));
        let count = mesh.count_vertices();
        let colors = VertexAttributeValues::Float32x4(vec![[1.0; 4]; count]);
        mesh.insert_attribute(Mesh::ATTRIBUTE_COLOR, colors);
        let unfit = [stage.mesh(mesh.clone()), stage.mesh(mesh)];
        stage.entity(entity).insert(levels(&unfit));
    });
    assert_same_picture("meshes with other attributes", &unfit, &full);
    let removed = draw(|stage, entity, coarser| {
        stage.entity(entity).insert(levels(&coarser));
        stage.update(4);
        stage.entity(entity).remove::<InstanceLods>();
    });
    assert_same_picture("levels removed", &removed, &full);
}

/// A level whose part of the mesh does not exist is left out: the level before is drawn. Of a full
/// level, the whole mesh is. Parts follow changes of the levels and of the mesh.
#[test]
fn parts_that_a_mesh_does_not_have_are_left_out() {
    let set = field(300, true);
    let draw = |change: fn(&mut InstanceLods)| {
        let mut stage = Stage::new(How::Set(None));
        let (mesh, mut levels) = one_mesh(&mut stage);
        change(&mut levels);
        let material = stage.standard(red());
        let entity = stage.spawn_set(&set, (mesh.clone(), material), place());
        stage.entity(entity).insert(levels);
        furnish(&mut stage);
        (stage.picture(), stage, entity, mesh)
    };
    let (all, mut stage, entity, mesh) = draw(|_| ());
    let (without_last, ..) = draw(|lods| drop(lods.levels.pop()));
    assert_ne!(all, without_last);
    let malformed: [fn(&mut InstanceLods); 4] = [
        |lods| lods.levels[1].mesh = (0..u32::MAX).into(),
        |lods| lods.levels[1].mesh = (0..4).into(),
        |lods| lods.levels[1].mesh = (9..9).into(),
        |lods| lods.levels[1].mesh = core::ops::Range { start: 9, end: 3 }.into(),
    ];
    let good = stage.entity(entity).get::<InstanceLods>().unwrap().clone();
    for (number, change) in malformed.into_iter().enumerate() {
        let mut lods = good.clone();
        change(&mut lods);
        stage.entity(entity).insert(lods);
        let name = format!("malformed part {number}");
        assert_same_picture(&name, &stage.picture(), &without_last);
    }
    stage.entity(entity).insert(good.clone());
    assert_same_picture("parts again", &stage.picture(), &all);

    // The mesh loses the last level's indices, and gets them back.
    let mut meshes = stage.app.world_mut().resource_mut::<Assets<Mesh>>();
    let whole = meshes.get(&mesh).unwrap().clone();
    let LodMesh::Indices(last) = &good.levels[1].mesh else {
        panic!("{good:?}");
    };
    let mut short = whole.clone();
    let indices = whole.indices().unwrap().iter();
    let indices = indices.take(last.start as usize).map(|index| index as u32);
    short.insert_indices(bevy::mesh::Indices::U32(indices.collect()));
    meshes.insert(&mesh, short).unwrap();
    assert_same_picture("a shorter mesh", &stage.picture(), &without_last);
    let mut meshes = stage.app.world_mut().resource_mut::<Assets<Mesh>>();
    meshes.insert(&mesh, whole).unwrap();
    assert_same_picture("the mesh again", &stage.picture(), &all);

    // Without indices, all levels are left out, and the whole mesh is drawn.
    let bare = |with_levels: bool| {
        let mut stage = Stage::new(How::Set(None));
        let (_, levels) = one_mesh(&mut stage);
        let mut mesh = Mesh::from(Cuboid::new(0.4, 0.3, 0.5));
        mesh.duplicate_vertices();
        let parts = (stage.mesh(mesh), stage.standard(red()));
        let entity = stage.spawn_set(&set, parts, place());
        if with_levels {
            stage.entity(entity).insert(levels);
        }
        furnish(&mut stage);
        stage.picture()
    };
    assert_same_picture("no indices", &bare(true), &bare(false));
}
