//! What a set cannot have is refused or ignored, and the app goes on.

use super::{box_mesh, eye, red, red_boxes};
use crate::{
    log::Log,
    scene::{How, Stage, field},
};
use bevy::{
    asset::{RenderAssetUsages, uuid_handle},
    mesh::{VertexAttributeValues, skinning::SkinnedMesh},
    pbr::Lightmap,
    prelude::*,
    reflect::TypePath,
    render::{
        render_resource::AsBindGroup, renderer::RenderDevice, settings::WgpuSettings,
        storage::ShaderBuffer,
    },
    shader::ShaderRef,
};
use bevy_gpu_culling::prelude::*;
use image::RgbaImage;

/// A vertex shader for single meshes, in all passes.
const FOREIGN: Handle<Shader> = uuid_handle!("7f0f4f6e-4df0-4c43-9a7c-6a7c1f7f0b01");
const FOREIGN_SOURCE: &str = "
import bevy_pbr::render::{mesh_functions, view_transformations::position_world_to_clip};
@if(PREPASS_PIPELINE)
import bevy_pbr::prepass::io::{Vertex, VertexOutput, decompress_vertex};
@else
import bevy_pbr::render::forward_io::{Vertex, VertexOutput, decompress_vertex};
@vertex
fn vertex(in: Vertex) -> VertexOutput {
    var out: VertexOutput;
    let vertex = decompress_vertex(in, in.instance_index);
    out.world_position = mesh_functions::mesh_position_local_to_world(
        mesh_functions::get_world_from_local(in.instance_index), vec4(vertex.position, 1.0));
    out.position = position_world_to_clip(out.world_position.xyz);
    return out;
}
";

/// The same for instances.
const INSTANCED: Handle<Shader> = uuid_handle!("7f0f4f6e-4df0-4c43-9a7c-6a7c1f7f0b02");
const INSTANCED_SOURCE: &str = "
import bevy_gpu_culling::draw_instance::{SET, load, position_to_world};
import bevy_pbr::render::view_transformations::position_world_to_clip;
@if(PREPASS_PIPELINE)
import bevy_pbr::prepass::io::{Vertex, VertexOutput, decompress_vertex};
@else
import bevy_pbr::render::forward_io::{Vertex, VertexOutput, decompress_vertex};
@vertex
fn vertex(in: Vertex) -> VertexOutput {
    var out: VertexOutput;
    let vertex = decompress_vertex(in, SET);
    out.world_position = position_to_world(load(in.instance_index), vertex.position);
    out.position = position_world_to_clip(out.world_position.xyz);
    return out;
}
";

/// A material with its own vertex shader for single meshes.
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug, Default)]
struct OwnVertexStage {}

impl Material for OwnVertexStage {
    fn vertex_shader() -> ShaderRef {
        FOREIGN.into()
    }
}

/// A material whose vertex shader reads instances, except in the prepass.
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug, Default)]
struct MixedStages {}

impl Material for MixedStages {
    fn vertex_shader() -> ShaderRef {
        INSTANCED.into()
    }
    fn prepass_vertex_shader() -> ShaderRef {
        FOREIGN.into()
    }
}

/// A material with storage buffers that its vertex stage sees.
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug, Default)]
struct Crowded {
    #[storage(0, read_only)]
    first: Handle<ShaderBuffer>,
    #[storage(1, read_only)]
    second: Handle<ShaderBuffer>,
    #[storage(2, read_only)]
    third: Handle<ShaderBuffer>,
}

impl Material for Crowded {}

/// A stage with the materials and their shaders.
fn stage(tier: Option<CullingTier>, settings: WgpuSettings) -> Stage {
    Stage::on(How::Set(tier), settings, |app| {
        app.add_plugins((
            MaterialPlugin::<OwnVertexStage>::default(),
            MaterialPlugin::<MixedStages>::default(),
            MaterialPlugin::<Crowded>::default(),
        ));
        let mut shaders = app.world_mut().resource_mut::<Assets<Shader>>();
        for (handle, source, path) in [
            (FOREIGN, FOREIGN_SOURCE, "foreign.wesl"),
            (INSTANCED, INSTANCED_SOURCE, "instanced.wesl"),
        ] {
            let shader = Shader::from_wesl(source, path);
            shaders.insert(handle.id(), shader).unwrap();
        }
    })
}

/// Spawns a set of boxes with a material.
fn boxes_with(stage: &mut Stage, material: impl Material) -> Entity {
    let mesh = stage.mesh(box_mesh());
    let material = MeshMaterial3d(stage.add(material));
    stage.spawn_set(&field(100, false), (mesh, material), Transform::IDENTITY)
}

/// Spawns a set that is drawn, lights, and a camera.
fn see_others(stage: &mut Stage) {
    red_boxes(stage, &field(40, false), Transform::from_xyz(0.2, 0.5, 1.0));
    stage.lights(false);
    stage.camera(eye(), ());
}

/// Panics unless the picture shows another set and nothing of this one. Returns the picture.
fn assert_not_drawn(stage: &mut Stage, set: Entity) -> RgbaImage {
    see_others(stage);
    let picture = stage.picture();
    stage.entity(set).insert(Visibility::Hidden);
    let others = stage.picture();
    stage.entity(set).insert(Visibility::Inherited);
    let colors: std::collections::HashSet<_> = others.pixels().collect();
    assert!(colors.len() > 50, "the other set is not drawn");
    assert!(picture == others, "something was drawn");
    picture
}

/// Panics if the picture still is what the camera saw without the set.
fn assert_drawn(stage: &mut Stage, without: &RgbaImage) {
    let differ = stage.picture();
    let differ = differ
        .pixels()
        .zip(without.pixels())
        .filter(|(a, b)| a != b);
    assert!(differ.count() > 500, "nothing more is drawn");
}

#[test]
fn a_vertex_stage_for_meshes_is_refused_where_nobody_writes_its_uniforms() {
    let log = Log::start();
    let mut stage = stage(Some(CullingTier::Cpu), default());
    let set = boxes_with(&mut stage, OwnVertexStage {});
    let without = assert_not_drawn(&mut stage, set);
    log.assert_once(&["ERROR", "the tier \"cpu\" writes no MeshUniforms"]);
    // Other tiers write them.
    let mut settings = stage.app.world_mut().resource_mut::<GpuCullingSettings>();
    settings.tier = None;
    assert_drawn(&mut stage, &without);
}

/// Bevy reads no imports in it, so its pipelines fail.
#[test]
fn a_shader_of_wgsl_that_imports_our_modules_is_named() {
    for (import, is_named) in [
        ("#import bevy_gpu_culling::{draw_instance}", true),
        ("#import bevy_gpu_culling::tint::color_of_tag", true),
        ("// As in bevy_gpu_culling::tint.", false),
    ] {
        let log = Log::start();
        let mut stage = stage(None, default());
        let _shader = stage.add(Shader::from_wgsl(format!("{import}\n"), "old.wgsl"));
        stage.update(2);
        let line = ["ERROR", "the shader old.wgsl imports", "rename it to .wesl"];
        let text = log.text();
        assert_eq!(text.contains(line[1]), is_named, "{text}");
        if is_named {
            log.assert_once(&line);
        }
    }
}

#[test]
fn a_material_of_which_only_some_vertex_stages_read_instances_is_refused() {
    let log = Log::start();
    let mut stage = stage(None, default());
    let set = boxes_with(&mut stage, MixedStages {});
    let without = assert_not_drawn(&mut stage, set);
    log.assert_once(&["ERROR", "some of its vertex shaders", "some do not"]);
    // Now all of them do.
    let mut shaders = stage.app.world_mut().resource_mut::<Assets<Shader>>();
    let shader = Shader::from_wesl(INSTANCED_SOURCE, "foreign.wesl");
    shaders.insert(FOREIGN.id(), shader).unwrap();
    assert_drawn(&mut stage, &without);
}

#[test]
fn a_material_with_more_storage_buffers_than_a_vertex_stage_binds_is_refused() {
    let log = Log::start();
    let draw = |settings| {
        let mut stage = stage(None, settings);
        let numbers = ShaderBuffer::new(vec![0u32; 16], RenderAssetUsages::default());
        let crowded = Crowded {
            first: stage.add(numbers.clone()),
            second: stage.add(numbers.clone()),
            third: stage.add(numbers),
        };
        let set = boxes_with(&mut stage, crowded);
        (stage, set)
    };
    let (mut enough, _) = draw(default());
    let mut limits = enough.app.world().resource::<RenderDevice>().limits();
    // As many as a set needs with Bevy's own material, which has two if it is bindless.
    limits.max_storage_buffers_per_shader_stage = 9;
    let (mut few, set) = draw(WgpuSettings {
        constrained_limits: Some(limits),
        ..default()
    });
    let without = assert_not_drawn(&mut few, set);
    log.assert_once(&["ERROR", "its storage buffers and the ones of GpuInstances"]);
    see_others(&mut enough);
    assert_drawn(&mut enough, &without);
}

#[test]
fn a_skinned_set_draws_nothing() {
    let mut stage = Stage::new(How::Set(None));
    let set = red_boxes(&mut stage, &field(100, false), Transform::IDENTITY);
    stage.entity(set).insert(SkinnedMesh::default());
    let without = assert_not_drawn(&mut stage, set);
    stage.entity(set).remove::<SkinnedMesh>();
    assert_drawn(&mut stage, &without);
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
    let set = stage.spawn_set(&field(100, false), (mesh, red), Transform::IDENTITY);
    let without = assert_not_drawn(&mut stage, set);
    stage.assert_runs("joints");
    let mesh = stage.mesh(box_mesh());
    stage.entity(set).insert(Mesh3d(mesh));
    assert_drawn(&mut stage, &without);
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
    let without = assert_not_drawn(&mut stage, set);
    stage.assert_runs("a lightmap");
    // Without it, the set is drawn, by pipelines that bind none.
    stage.entity(set).remove::<Lightmap>();
    assert_drawn(&mut stage, &without);
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
