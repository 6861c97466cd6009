//! What a set cannot have is refused or ignored, and the app goes on.

use super::{box_mesh, eye, red, red_boxes};
use crate::scene::{How, Stage, field};
use bevy::{
    asset::uuid_handle,
    mesh::{VertexAttributeValues, skinning::SkinnedMesh},
    pbr::Lightmap,
    prelude::*,
    reflect::TypePath,
    render::render_resource::AsBindGroup,
    shader::ShaderRef,
};
use bevy_gpu_culling::prelude::*;

/// A shader that does not exist.
const NOT_LOADED: Handle<Shader> = uuid_handle!("7f0f4f6e-4df0-4c43-9a7c-6a7c1f7f0b01");

/// A material with its own vertex shader.
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug, Default)]
struct OwnVertexStage {}

impl Material for OwnVertexStage {
    fn vertex_shader() -> ShaderRef {
        NOT_LOADED.into()
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
    let mesh = stage.mesh(box_mesh());
    let own = MeshMaterial3d(stage.add(OwnVertexStage {}));
    stage.spawn_set(&field(100, false), (mesh, own), Transform::IDENTITY);
    assert_nothing_drawn(&mut stage);
}

#[test]
fn a_skinned_set_draws_nothing() {
    let mut stage = Stage::new(How::Set(None));
    let set = red_boxes(&mut stage, &field(100, false), Transform::IDENTITY);
    stage.entity(set).insert(SkinnedMesh::default());
    assert_nothing_drawn(&mut stage);
}

/// Bevy's pipelines bind joints if the mesh has them, whatever components the entity has.
#[test]
fn a_mesh_with_joints_draws_nothing() {
    let mut stage = Stage::new(How::Set(None));
    let count = Mesh::from(box_mesh()).count_vertices();
    let joints = VertexAttributeValues::Uint16x4(vec![[0; 4]; count]);
    let mesh = Mesh::from(box_mesh())
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
    let mesh = Mesh::from(box_mesh());
    let uvs = mesh.attribute(Mesh::ATTRIBUTE_UV_0).unwrap().clone();
    let mesh = stage.mesh(mesh.with_inserted_attribute(Mesh::ATTRIBUTE_UV_1, uvs));
    let red = stage.standard(red());
    let image = stage.add(Image::default());
    let set = stage.spawn_set(&field(100, false), (mesh, red), Transform::IDENTITY);
    stage.entity(set).insert(Lightmap { image, ..default() });
    assert_nothing_drawn(&mut stage);
    stage.assert_runs("a lightmap");
    // Without it, the set is drawn, by pipelines that bind none.
    stage.entity(set).remove::<Lightmap>();
    let report = stage.report();
    assert!(report.cameras().1 > 0, "{report:?}");
    stage.assert_runs("no lightmap");
}

/// A radius that cannot cull is ignored: every tier and compaction keeps the same instances as
/// without it.
#[test]
fn a_radius_that_is_no_radius_is_ignored() {
    let mut counts = Vec::new();
    for tier in CullingTier::ALL {
        let mut stage = Stage::new(How::Set(Some(tier)));
        let bad = [f32::INFINITY, f32::NAN, -1.0, 3e38].map(Some);
        for radius in [None].into_iter().chain(bad) {
            stage.clear();
            // The last block is not full.
            let set = red_boxes(&mut stage, &field(1100, false), Transform::IDENTITY);
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
