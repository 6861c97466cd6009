//! Bevy's material pipelines with our vertex stage: what a set's material specializes to.

use super::faces::{Drawing, DrawnFaces, PassKind, drawing_of};
use crate::{
    cull::shaders,
    render::{
        bindings::{set_layout, vertex_storage_buffers},
        culler::GpuCuller,
    },
};
use bevy::{
    asset::uuid_handle,
    material::{
        MaterialProperties,
        key::{ErasedMaterialPipelineKey, ErasedMeshPipelineKey},
        specialize::SpecializedMeshPipelineError,
    },
    mesh::{MeshVertexAttribute, MeshVertexBufferLayoutRef, VertexFormat},
    pbr::{
        DeferredVertexShader, MATERIAL_BIND_GROUP_INDEX, MaterialFragmentShader, MaterialPipeline,
        MaterialVertexShader, MeshPipelineKey, PrepassPipeline, PrepassPipelineSpecializer,
        PrepassVertexShader,
    },
    prelude::*,
    render::render_resource::{
        CachedRenderPipelineId, FragmentState, PipelineCache, RenderPipelineDescriptor,
        SpecializedMeshPipeline, SpecializedMeshPipelines,
    },
    shader::ShaderDefVal,
};
use core::cell::Cell;
use std::sync::Arc;

const INSTANCE_SHADER: Handle<Shader> = uuid_handle!("3b6f7a41-9f0e-4f55-8f5e-2a6c6f0e8a01");
const DRAW_INSTANCE_SHADER: Handle<Shader> = uuid_handle!("3b6f7a41-9f0e-4f55-8f5e-2a6c6f0e8a02");
const DRAW_MESH_SHADER: Handle<Shader> = uuid_handle!("3b6f7a41-9f0e-4f55-8f5e-2a6c6f0e8a03");
const DRAW_PREPASS_SHADER: Handle<Shader> = uuid_handle!("3b6f7a41-9f0e-4f55-8f5e-2a6c6f0e8a04");
const DRAW_FADE_SHADER: Handle<Shader> = uuid_handle!("3b6f7a41-9f0e-4f55-8f5e-2a6c6f0e8a05");
const FADE_DEPTH_SHADER: Handle<Shader> = uuid_handle!("3b6f7a41-9f0e-4f55-8f5e-2a6c6f0e8a06");
const THIN_SHADER: Handle<Shader> = uuid_handle!("3b6f7a41-9f0e-4f55-8f5e-2a6c6f0e8a0c");

/// Shader def of every stage of a set's pipelines: a material's shader can tell sets from meshes.
const SET_DEF: &str = "GPU_INSTANCES";

/// Our shaders.
#[derive(Resource, Clone)]
pub(in crate::render) struct DrawShaders {
    /// Vertex stage of the main passes.
    mesh: Handle<Shader>,
    /// Vertex stage of prepasses and shadow maps.
    prepass: Handle<Shader>,
    /// Fragment stage of prepasses that write nothing but depth, for sets that fade.
    fade_depth: Handle<Shader>,
}

impl DrawShaders {
    /// Registers the shaders. An instance is decoded by the engine's own source.
    pub fn load(app: &mut App) -> Self {
        let decode = format!(
            "#define_import_path bevy_gpu_culling::instance\n{}\n{}",
            shaders::INSTANCE,
            shaders::INSTANCE_PACK
        );
        let thin = format!(
            "#define_import_path bevy_gpu_culling::thin\n{}",
            shaders::THIN
        );
        let sources = [
            (&INSTANCE_SHADER, decode, "instance.wgsl"),
            (&THIN_SHADER, thin, "thin.wgsl"),
            (
                &DRAW_INSTANCE_SHADER,
                include_str!("../../../shaders/draw/instance.wgsl").to_owned(),
                "draw_instance.wgsl",
            ),
            (
                &DRAW_MESH_SHADER,
                include_str!("../../../shaders/draw/mesh.wgsl").to_owned(),
                "draw_mesh.wgsl",
            ),
            (
                &DRAW_PREPASS_SHADER,
                include_str!("../../../shaders/draw/prepass.wgsl").to_owned(),
                "draw_prepass.wgsl",
            ),
            (
                &DRAW_FADE_SHADER,
                include_str!("../../../shaders/draw/fade.wgsl").to_owned(),
                "draw_fade.wgsl",
            ),
            (
                &FADE_DEPTH_SHADER,
                include_str!("../../../shaders/draw/fade_depth.wgsl").to_owned(),
                "fade_depth.wgsl",
            ),
        ];
        if let Some(mut assets) = app.world_mut().get_resource_mut::<Assets<Shader>>() {
            for (handle, source, name) in sources {
                let shader = Shader::from_wgsl(source, format!("bevy_gpu_culling/shaders/{name}"));
                if let Err(error) = assets.insert(handle.id(), shader) {
                    error!("{name}: {error}");
                }
            }
        }
        Self {
            mesh: DRAW_MESH_SHADER,
            prepass: DRAW_PREPASS_SHADER,
            fade_depth: FADE_DEPTH_SHADER,
        }
    }
}

/// Pipelines of the main passes.
pub(in crate::render) type SetPipelines = SpecializedMeshPipelines<SetSpecializer>;
/// Pipelines of prepasses and shadow maps.
pub(in crate::render) type SetPrepassPipelines = SpecializedMeshPipelines<SetPrepassSpecializer>;

/// The main passes: as Bevy's `MaterialPipelineSpecializer`, with our vertex stage and bind group.
pub(in crate::render) struct SetSpecializer {
    pipeline: MaterialPipeline,
    properties: Arc<MaterialProperties>,
    shaders: DrawShaders,
    /// Number of storage buffers that a vertex stage may have.
    most_buffers: u32,
    /// The faces of a pipeline that was made; `None` if it was in the cache.
    made: Cell<Option<Drawing>>,
}

impl SpecializedMeshPipeline for SetSpecializer {
    type Key = ErasedMaterialPipelineKey;

    fn specialize(
        &self,
        key: Self::Key,
        layout: &MeshVertexBufferLayoutRef,
    ) -> Result<RenderPipelineDescriptor, SpecializedMeshPipelineError> {
        let mesh_key: MeshPipelineKey = key.mesh_key.downcast();
        let mut descriptor = self.pipeline.mesh_pipeline.specialize(mesh_key, layout)?;
        let group = ShaderDefVal::UInt(
            "MATERIAL_BIND_GROUP".into(),
            MATERIAL_BIND_GROUP_INDEX as u32,
        );
        descriptor.vertex.shader_defs.push(group.clone());
        descriptor.vertex.shader_defs.push(SET_DEF.into());
        descriptor.vertex.shader = self
            .properties
            .get_shader(MaterialVertexShader)
            .unwrap_or_else(|| self.shaders.mesh.clone());
        if let Some(fragment) = &mut descriptor.fragment {
            fragment.shader_defs.push(group);
            fragment.shader_defs.push(SET_DEF.into());
            if let Some(shader) = self.properties.get_shader(MaterialFragmentShader) {
                fragment.shader = shader;
            }
        }
        if let Some(material) = &self.properties.material_layout {
            descriptor
                .layout
                .insert(MATERIAL_BIND_GROUP_INDEX, material.clone());
        }
        if let Some(specialize) = self.properties.user_specialize {
            specialize(&self.pipeline, &mut descriptor, layout, key)?;
        }
        if self.properties.bindless {
            descriptor.vertex.shader_defs.push("BINDLESS".into());
            if let Some(fragment) = &mut descriptor.fragment {
                fragment.shader_defs.push("BINDLESS".into());
            }
        }
        descriptor.layout[2] = set_layout(&descriptor.layout[2]);
        check_storage_buffers(&descriptor, layout, self.most_buffers)?;
        self.made.set(Some(drawing_of(&descriptor)));
        Ok(descriptor)
    }
}

/// Checks that the vertex stage has no more storage buffers than the device binds. A mesh with
/// joints has more than others.
///
/// # Errors
/// A missing attribute whose name says what is wrong.
fn check_storage_buffers(
    descriptor: &RenderPipelineDescriptor,
    mesh: &MeshVertexBufferLayoutRef,
    most: u32,
) -> Result<(), SpecializedMeshPipelineError> {
    let buffers: u32 = descriptor.layout.iter().map(vertex_storage_buffers).sum();
    if buffers > most {
        // Bevy's error has no other kind than a missing attribute. No mesh has this one.
        mesh.0
            .get_layout(&[TOO_MANY_BUFFERS.at_shader_location(0)])?;
    }
    Ok(())
}

/// Bevy logs its name.
const TOO_MANY_BUFFERS: MeshVertexAttribute = MeshVertexAttribute::new(
    "(none: a GpuInstances pipeline has more storage buffers than this device binds in a vertex stage)",
    0x6770_755f_6375_6c6c,
    VertexFormat::Float32,
);

/// Prepasses and shadow maps: Bevy's own specializer, with our vertex stage and bind group.
pub(in crate::render) struct SetPrepassSpecializer {
    inner: PrepassPipelineSpecializer,
    shaders: DrawShaders,
    most_buffers: u32,
    /// As in [`SetSpecializer`].
    made: Cell<Option<Drawing>>,
}

impl SpecializedMeshPipeline for SetPrepassSpecializer {
    type Key = ErasedMaterialPipelineKey;

    fn specialize(
        &self,
        key: Self::Key,
        layout: &MeshVertexBufferLayoutRef,
    ) -> Result<RenderPipelineDescriptor, SpecializedMeshPipelineError> {
        let mesh_key: MeshPipelineKey = key.mesh_key.downcast();
        let mut descriptor = self.inner.specialize(key, layout)?;
        if mesh_key.contains(MeshPipelineKey::VISIBILITY_RANGE_DITHER) {
            fade_depth(&mut descriptor, &self.shaders.fade_depth);
        }
        // The material's own stages read instances: others were refused.
        let own = [
            self.inner.properties.get_shader(PrepassVertexShader),
            self.inner.properties.get_shader(DeferredVertexShader),
        ];
        if !own.contains(&Some(descriptor.vertex.shader.clone())) {
            descriptor.vertex.shader = self.shaders.prepass.clone();
        }
        descriptor.vertex.shader_defs.push(SET_DEF.into());
        if let Some(fragment) = &mut descriptor.fragment {
            fragment.shader_defs.push(SET_DEF.into());
        }
        descriptor.layout[2] = set_layout(&descriptor.layout[2]);
        check_storage_buffers(&descriptor, layout, self.most_buffers)?;
        self.made.set(Some(drawing_of(&descriptor)));
        Ok(descriptor)
    }
}

/// Lets a prepass that writes nothing but depth fade: Bevy's writes depth of pixels that the main
/// pass leaves out. The user's fragment stages stay.
fn fade_depth(descriptor: &mut RenderPipelineDescriptor, shader: &Handle<Shader>) {
    let Some(fragment) = &mut descriptor.fragment else {
        descriptor.fragment = Some(FragmentState {
            shader: shader.clone(),
            shader_defs: descriptor.vertex.shader_defs.clone(),
            ..default()
        });
        return;
    };
    let has_outputs = fragment.shader_defs.contains(&"PREPASS_FRAGMENT".into());
    let path = fragment.shader.path();
    let is_bevys = path.is_some_and(|path| path.path().ends_with(BEVYS_PREPASS_SHADER));
    if is_bevys && !has_outputs {
        fragment.shader = shader.clone();
        fragment.shader_defs.push("FADES_MASKED".into());
    }
}

/// The shader of [`StandardMaterial`]'s prepasses.
const BEVYS_PREPASS_SHADER: &str = "bevy_pbr/render/pbr_prepass.wgsl";

/// [`MaterialProperties::base_specialize`] of a set's material.
pub(in crate::render) fn specialize_set(
    world: &mut World,
    key: ErasedMaterialPipelineKey,
    layout: &MeshVertexBufferLayoutRef,
    properties: &Arc<MaterialProperties>,
) -> Result<CachedRenderPipelineId, SpecializedMeshPipelineError> {
    world.resource_scope(|world, mut pipelines: Mut<SetPipelines>| {
        let specializer = SetSpecializer {
            pipeline: world.resource::<MaterialPipeline>().clone(),
            properties: properties.clone(),
            shaders: world.resource::<DrawShaders>().clone(),
            most_buffers: world.resource::<GpuCuller>().vertex_buffers,
            made: Cell::default(),
        };
        let cache = world.resource::<PipelineCache>();
        let id = pipelines.specialize(cache, &specializer, key, layout)?;
        let mut faces = world.resource_mut::<DrawnFaces>();
        faces.note(properties, PassKind::Main, id, specializer.made.get());
        Ok(id)
    })
}

/// The key of pipelines whose instances fade.
fn fading(key: ErasedMaterialPipelineKey) -> ErasedMaterialPipelineKey {
    let mesh_key: MeshPipelineKey = key.mesh_key.downcast();
    let mesh_key = mesh_key | MeshPipelineKey::VISIBILITY_RANGE_DITHER;
    ErasedMaterialPipelineKey {
        mesh_key: ErasedMeshPipelineKey::new(mesh_key),
        ..key
    }
}

/// [`MaterialProperties::base_specialize`] of the material of a set that fades.
pub(in crate::render) fn specialize_fading_set(
    world: &mut World,
    key: ErasedMaterialPipelineKey,
    layout: &MeshVertexBufferLayoutRef,
    properties: &Arc<MaterialProperties>,
) -> Result<CachedRenderPipelineId, SpecializedMeshPipelineError> {
    specialize_set(world, fading(key), layout, properties)
}

/// [`MaterialProperties::prepass_specialize`] of the material of a set that fades.
pub(in crate::render) fn specialize_fading_set_prepass(
    world: &mut World,
    key: ErasedMaterialPipelineKey,
    layout: &MeshVertexBufferLayoutRef,
    properties: &Arc<MaterialProperties>,
) -> Result<CachedRenderPipelineId, SpecializedMeshPipelineError> {
    specialize_set_prepass(world, fading(key), layout, properties)
}

/// [`MaterialProperties::prepass_specialize`] of a set's material.
pub(in crate::render) fn specialize_set_prepass(
    world: &mut World,
    key: ErasedMaterialPipelineKey,
    layout: &MeshVertexBufferLayoutRef,
    properties: &Arc<MaterialProperties>,
) -> Result<CachedRenderPipelineId, SpecializedMeshPipelineError> {
    world.resource_scope(|world, mut pipelines: Mut<SetPrepassPipelines>| {
        let inner = PrepassPipelineSpecializer {
            pipeline: world.resource::<PrepassPipeline>().clone(),
            properties: properties.clone(),
        };
        let specializer = SetPrepassSpecializer {
            inner,
            shaders: world.resource::<DrawShaders>().clone(),
            most_buffers: world.resource::<GpuCuller>().vertex_buffers,
            made: Cell::default(),
        };
        let cache = world.resource::<PipelineCache>();
        let id = pipelines.specialize(cache, &specializer, key, layout)?;
        let mut faces = world.resource_mut::<DrawnFaces>();
        faces.note(properties, PassKind::Prepass, id, specializer.made.get());
        Ok(id)
    })
}
