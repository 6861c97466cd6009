//! Changes at run time.

use super::{ball, colored, eyes, spawn, torus};
use crate::scene::{How, Stage, assert_same_picture, field, normals::add_normals};
use bevy::prelude::*;
use bevy_gpu_culling::{
    cull::CullingTier,
    meshlet::{MeshletMesh, MeshletSettings},
    prelude::*,
    render::MeshletReport,
};

/// Meshlets are added, replaced, frozen and removed. After each change, the picture equals the
/// picture of the whole mesh.
#[test]
fn changes_at_run_time_are_drawn() {
    let run = |by_meshlets: bool| {
        let mut stage = Stage::with(How::Set(None), add_normals);
        let camera = stage.camera(eyes()[1].1, ());
        let material = colored(&mut stage);
        let set = field(150, true);
        let entity = spawn(&mut stage, by_meshlets, &set, &torus(), material);
        let mut pictures = vec![("start", stage.picture())];
        let handle = stage.app.world().get::<MeshletMesh3d>(entity).cloned();
        // Another mesh in the same asset.
        if let Some(handle) = &handle {
            let other = MeshletMesh::from_mesh(&ball(), &MeshletSettings::default()).unwrap();
            let mut assets = stage.app.world_mut().resource_mut::<Assets<MeshletMesh>>();
            assets.insert(handle.id(), other).unwrap();
        } else {
            let other = stage.mesh(ball());
            stage.entity(entity).insert(Mesh3d(other));
        }
        let (picture, report) = stage.picture_and_report();
        let before = report.meshlets;
        pictures.push(("other mesh", picture));
        assert_eq!(before.tested > 0, by_meshlets);
        // Another tier uses other kernels and buffers.
        let mut settings = stage.app.world_mut().resource_mut::<GpuCullingSettings>();
        settings.tier = Some(CullingTier::Workgroup);
        let (picture, report) = stage.picture_and_report();
        pictures.push(("other tier", picture));
        assert_eq!(report.meshlets, before);
        // The frozen camera's survivors, seen from another place. Meshlets that faced away from the
        // old place are missing, so this picture is not compared.
        stage.entity(camera).insert(FreezeCulling::default());
        stage.update(2);
        let away = Transform::from_xyz(9.0, 6.0, -9.0).looking_at(Vec3::ZERO, Vec3::Y);
        stage.entity(camera).insert(away);
        assert_eq!(stage.report().meshlets, before);
        stage.entity(camera).remove::<FreezeCulling>();
        pictures.push(("thawed", stage.picture()));
        // Without the component, the mesh stays and is drawn whole.
        stage.entity(entity).remove::<MeshletMesh3d>();
        let (picture, report) = stage.picture_and_report();
        pictures.push(("without meshlets", picture));
        assert_eq!(report.meshlets, MeshletReport::default());
        stage.entity(entity).despawn();
        pictures
    };
    for ((name, whole), (_, parts)) in run(false).into_iter().zip(run(true)) {
        assert_same_picture(&name.replace(' ', "-"), &parts, &whole);
    }
}
