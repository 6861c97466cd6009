//! Bevy's material pipelines with our vertex stage: what a set's material specializes to.

use super::{
    faces::{Drawing, DrawnFaces, PassKind, drawing_of},
    modules::DrawShaders,
};
use crate::render::{
    bindings::{METADATA_DEF, set_layout, vertex_storage_buffers},
    culler::GpuCuller,
};
use bevy::{
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

/// Shader def of every stage of a set's pipelines: a material's shader can tell sets from meshes.
const SET_DEF: &str = "GPU_INSTANCES";

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
    max_buffers: u32,
    /// [`SetPass::made`].
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
        descriptor.vertex.shader = self
            .properties
            .get_shader(MaterialVertexShader)
            .unwrap_or_else(|| self.shaders.mesh.clone());
        if let Some(fragment) = &mut descriptor.fragment {
            fragment.shader_defs.push(group);
            if let Some(shader) = self.properties.get_shader(MaterialFragmentShader) {
                fragment.shader = shader;
            }
        }
        push_def(&mut descriptor, SET_DEF);
        push_def(&mut descriptor, METADATA_DEF);
        if let Some(material) = &self.properties.material_layout {
            descriptor
                .layout
                .insert(MATERIAL_BIND_GROUP_INDEX, material.clone());
        }
        if mesh_key.contains(MeshPipelineKey::OIT_ENABLED) && blends_without_order(&self.properties)
        {
            draw_without_order(&mut descriptor);
        }
        if self.properties.bindless {
            push_def(&mut descriptor, "BINDLESS");
        }
        if let Some(specialize) = self.properties.user_specialize {
            specialize(&self.pipeline, &mut descriptor, layout, key)?;
        }
        descriptor.layout[2] = set_layout(&descriptor.layout[2]);
        check_storage_buffers(&descriptor, layout, self.max_buffers)?;
        self.made.set(Some(drawing_of(&descriptor)));
        Ok(descriptor)
    }
}

/// Adds a shader def to all stages.
fn push_def(descriptor: &mut RenderPipelineDescriptor, def: &'static str) {
    descriptor.vertex.shader_defs.push(def.into());
    if let Some(fragment) = &mut descriptor.fragment {
        fragment.shader_defs.push(def.into());
    }
}

/// Whether a material is drawn by order-independent transparency in cameras that have it: as in
/// `MaterialPipelineSpecializer`.
fn blends_without_order(properties: &MaterialProperties) -> bool {
    let blends = matches!(
        properties.alpha_mode,
        AlphaMode::Blend | AlphaMode::Premultiplied | AlphaMode::Add
    );
    properties.oit_enabled && blends
}

/// Has the fragment stage file its colors for order-independent transparency.
fn draw_without_order(descriptor: &mut RenderPipelineDescriptor) {
    descriptor.label = Some("oit_mesh_pipeline".into());
    if let Some(fragment) = &mut descriptor.fragment {
        if let Some(Some(target)) = fragment.targets.first_mut() {
            target.blend = None;
        }
        fragment.shader_defs.push("MATERIAL_OIT_ENABLED".into());
    }
    if let Some(depth) = &mut descriptor.depth_stencil {
        depth.depth_write_enabled = Some(false);
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
    max: u32,
) -> Result<(), SpecializedMeshPipelineError> {
    let buffers: u32 = descriptor.layout.iter().map(vertex_storage_buffers).sum();
    if buffers > max {
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
    max_buffers: u32,
    /// [`SetPass::made`].
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
        push_def(&mut descriptor, SET_DEF);
        push_def(&mut descriptor, METADATA_DEF);
        descriptor.layout[2] = set_layout(&descriptor.layout[2]);
        check_storage_buffers(&descriptor, layout, self.max_buffers)?;
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
const BEVYS_PREPASS_SHADER: &str = "bevy_pbr/render/pbr_prepass.wesl";

/// A specializer of one kind of passes.
trait SetPass: SpecializedMeshPipeline<Key = ErasedMaterialPipelineKey> + 'static {
    const PASS: PassKind;

    fn new(world: &World, properties: &Arc<MaterialProperties>) -> Self;

    /// The faces of a pipeline that was made; `None` if it was in the cache.
    fn made(&self) -> Option<Drawing>;
}

impl SetPass for SetSpecializer {
    const PASS: PassKind = PassKind::Main;

    fn new(world: &World, properties: &Arc<MaterialProperties>) -> Self {
        Self {
            pipeline: world.resource::<MaterialPipeline>().clone(),
            properties: properties.clone(),
            shaders: world.resource::<DrawShaders>().clone(),
            max_buffers: world.resource::<GpuCuller>().vertex_buffers,
            made: Cell::default(),
        }
    }

    fn made(&self) -> Option<Drawing> {
        self.made.get()
    }
}

impl SetPass for SetPrepassSpecializer {
    const PASS: PassKind = PassKind::Prepass;

    fn new(world: &World, properties: &Arc<MaterialProperties>) -> Self {
        Self {
            inner: PrepassPipelineSpecializer {
                pipeline: world.resource::<PrepassPipeline>().clone(),
                properties: properties.clone(),
            },
            shaders: world.resource::<DrawShaders>().clone(),
            max_buffers: world.resource::<GpuCuller>().vertex_buffers,
            made: Cell::default(),
        }
    }

    fn made(&self) -> Option<Drawing> {
        self.made.get()
    }
}

/// The pipeline of a set's material, from the cache or new. Only a new one clones what it is made
/// from.
fn pipeline_of<S: SetPass>(
    world: &mut World,
    key: &ErasedMaterialPipelineKey,
    layout: &MeshVertexBufferLayoutRef,
    properties: &Arc<MaterialProperties>,
) -> Result<CachedRenderPipelineId, SpecializedMeshPipelineError> {
    let pipelines = world.resource::<SpecializedMeshPipelines<S>>();
    let (id, made) = match pipelines.get_pipeline(key, layout) {
        Some(id) => (id, None),
        None => {
            let specializer = S::new(world, properties);
            world.resource_scope(|world, mut pipelines: Mut<SpecializedMeshPipelines<S>>| {
                let cache = world.resource::<PipelineCache>();
                let id = pipelines.specialize(cache, &specializer, key.clone(), layout)?;
                Ok::<_, SpecializedMeshPipelineError>((id, specializer.made()))
            })?
        }
    };
    let mut faces = world.resource_mut::<DrawnFaces>();
    faces.note(properties, S::PASS, id, made);
    Ok(id)
}

/// [`MaterialProperties::base_specialize`] of a set's material.
pub(in crate::render) fn specialize_set(
    world: &mut World,
    key: ErasedMaterialPipelineKey,
    layout: &MeshVertexBufferLayoutRef,
    properties: &Arc<MaterialProperties>,
) -> Result<CachedRenderPipelineId, SpecializedMeshPipelineError> {
    pipeline_of::<SetSpecializer>(world, &key, layout, properties)
}

/// The key of pipelines whose instances fade.
fn fading(key: &ErasedMaterialPipelineKey) -> ErasedMaterialPipelineKey {
    let mesh_key: MeshPipelineKey = key.mesh_key.downcast();
    let mesh_key = mesh_key | MeshPipelineKey::VISIBILITY_RANGE_DITHER;
    ErasedMaterialPipelineKey {
        mesh_key: ErasedMeshPipelineKey::new(mesh_key),
        ..key.clone()
    }
}

/// [`MaterialProperties::base_specialize`] of the material of a set that fades.
pub(in crate::render) fn specialize_fading_set(
    world: &mut World,
    key: ErasedMaterialPipelineKey,
    layout: &MeshVertexBufferLayoutRef,
    properties: &Arc<MaterialProperties>,
) -> Result<CachedRenderPipelineId, SpecializedMeshPipelineError> {
    specialize_set(world, fading(&key), layout, properties)
}

/// [`MaterialProperties::prepass_specialize`] of the material of a set that fades.
pub(in crate::render) fn specialize_fading_set_prepass(
    world: &mut World,
    key: &ErasedMaterialPipelineKey,
    layout: &MeshVertexBufferLayoutRef,
    properties: &Arc<MaterialProperties>,
) -> Result<CachedRenderPipelineId, SpecializedMeshPipelineError> {
    specialize_set_prepass(world, &fading(key), layout, properties)
}

/// [`MaterialProperties::prepass_specialize`] of a set's material.
pub(in crate::render) fn specialize_set_prepass(
    world: &mut World,
    key: &ErasedMaterialPipelineKey,
    layout: &MeshVertexBufferLayoutRef,
    properties: &Arc<MaterialProperties>,
) -> Result<CachedRenderPipelineId, SpecializedMeshPipelineError> {
    pipeline_of::<SetPrepassSpecializer>(world, key, layout, properties)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy::shader::ShaderRef;

    /// With another path, fading masked sets would lose their depth prepass without an error.
    #[test]
    fn the_path_of_bevys_prepass_shader_is_known() {
        let ShaderRef::Path(path) = StandardMaterial::prepass_fragment_shader() else {
            panic!("StandardMaterial names its prepass shader by a handle now");
        };
        assert!(path.path().ends_with(BEVYS_PREPASS_SHADER), "{path}");
    }

    #[test]
    fn materials_that_blend_are_drawn_without_order_unless_they_refuse() {
        let with = |alpha_mode, oit_enabled| {
            blends_without_order(&MaterialProperties {
                alpha_mode,
                oit_enabled,
                ..MaterialProperties::default()
            })
        };
        for mode in [AlphaMode::Blend, AlphaMode::Premultiplied, AlphaMode::Add] {
            assert!(with(mode, true) && !with(mode, false), "{mode:?}");
        }
        for mode in [AlphaMode::Opaque, AlphaMode::Mask(0.5), AlphaMode::Multiply] {
            assert!(!with(mode, true), "{mode:?}");
        }
    }
}
