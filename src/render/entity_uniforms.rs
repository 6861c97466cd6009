//! Bevy's `MeshUniform`s of mesh entities, whether Bevy builds them on the GPU or on the CPU.

use bevy::{
    ecs::system::SystemParamItem,
    math::{Affine3, Affine3Ext},
    pbr::{MeshInputUniform, MeshPipeline, MeshUniform, RenderMeshInstances, RenderMeshQueueData},
    prelude::*,
    render::{
        batching::{GetBatchData, gpu_preprocessing::BatchedInstanceBuffers},
        sync_world::MainEntity,
    },
};

/// Bevy's data of all mesh entities, whether Bevy builds mesh uniforms on the GPU or on the CPU.
pub(super) struct EntityUniforms<'a, 'w: 'a, 's: 'a> {
    /// The inputs from which the GPU builds them.
    pub inputs: Option<&'a BatchedInstanceBuffers<MeshUniform, MeshInputUniform>>,
    pub instances: &'a RenderMeshInstances,
    /// What the CPU builds them from.
    pub cpu: &'a SystemParamItem<'w, 's, <MeshPipeline as GetBatchData>::Param>,
}

/// Bevy's data of a mesh entity.
pub(super) enum EntityUniform {
    /// The input from which the GPU builds the uniform, without the fields that change in frames
    /// in which the entity does not.
    Input(MeshInputUniform),
    /// The uniform that the CPU has built.
    Uniform(Box<MeshUniform>),
}

impl EntityUniform {
    /// The input, if there is one.
    pub fn input(&self) -> Option<MeshInputUniform> {
        match self {
            Self::Input(input) => Some(*input),
            Self::Uniform(_) => None,
        }
    }

    /// The entity's `MeshUniform`, as if it had the same transform in the previous frame.
    pub fn uniform(&self) -> MeshUniform {
        let input = match self {
            Self::Input(input) => input,
            Self::Uniform(uniform) => return (**uniform).clone(),
        };
        let (a, b) = Affine3::from_transpose(input.world_from_local).inverse_transpose_3x3();
        MeshUniform {
            world_from_local: input.world_from_local,
            previous_world_from_local: input.world_from_local,
            local_from_world_transpose_a: a,
            local_from_world_transpose_b: b,
            flags: input.flags,
            lightmap_uv_rect: input.lightmap_uv_rect,
            first_vertex_index: input.first_vertex_index,
            current_skin_index: input.current_skin_index,
            material_and_lightmap_bind_group_slot: input.material_and_lightmap_bind_group_slot,
            tag: input.tag,
            morph_descriptor_index: input.morph_descriptor_index,
            metadata_index: input.metadata_index,
        }
    }
}

impl EntityUniforms<'_, '_, '_> {
    /// The entity's data; `None` until Bevy has prepared its mesh.
    pub fn get(
        &self,
        entity: MainEntity,
        instance: &RenderMeshQueueData<'_>,
    ) -> Option<EntityUniform> {
        if matches!(self.instances, RenderMeshInstances::CpuBuilding(_)) {
            return MeshPipeline::get_batch_data(self.cpu, (Entity::PLACEHOLDER, entity))
                .map(|(uniform, _)| EntityUniform::Uniform(Box::new(uniform)));
        }
        let index = instance.current_uniform_index;
        let input = self.inputs?.current_input_buffer.get(index.0)?;
        Some(EntityUniform::Input(MeshInputUniform {
            timestamp: 0,
            previous_input_index: 0,
            ..input
        }))
    }
}
