//! What a draw's vertex stage needs to know of its entity: Bevy's `MeshUniform`, and where the set lies.

use bevy::{
    ecs::system::SystemParamItem,
    math::{Affine3, Affine3Ext, Vec4},
    pbr::{MeshInputUniform, MeshPipeline, MeshUniform, RenderMeshInstances, RenderMeshQueueData},
    prelude::*,
    render::{
        batching::{GetBatchData, gpu_preprocessing::BatchedInstanceBuffers},
        render_resource::{
            Buffer, BufferDescriptor, BufferUsages, ShaderType,
            encase::{StorageBuffer, internal::WriteInto},
        },
        renderer::{RenderDevice, RenderQueue},
        sync_world::{MainEntity, MainEntityHashMap},
    },
};

/// Bytes from one slot to the next: the strictest alignment of a dynamic offset.
pub(super) const SLOT_STRIDE: u64 = 256;
/// Bytes of a slot: a `MeshUniform` of 176, and 16 of ours.
pub(super) const SLOT_BYTES: u64 = 192;

/// [`SlotInfo::flags`]: the set has scales.
pub(super) const DRAW_HAS_SCALE: u32 = 1;
/// [`SlotInfo::flags`]: the set has tags.
pub(super) const DRAW_HAS_TAG: u32 = 2;

/// The end of `DrawSlot` in `shaders/draw_instance.wgsl`, after the bytes of the `MeshUniform`.
#[derive(Clone, Copy, Default, ShaderType)]
pub(super) struct SlotInfo {
    pub flags: u32,
    pub region_first: u32,
    pub set_first: u32,
    /// How far behind an instance lies where it was in the frame before; 0 where that is not kept.
    pub previous_offset: u32,
}

/// The slots of a frame, one for each set's region.
#[derive(Resource, Default)]
pub(super) struct DrawSlots {
    bytes: Vec<u8>,
    written: Vec<u8>,
    pub buffer: Option<Buffer>,
    /// Changes when the buffer is replaced.
    pub generation: u64,
    /// Where each entity is, and was last frame, for motion vectors.
    current: Vec<(MainEntity, [Vec4; 3])>,
    previous: Vec<(MainEntity, [Vec4; 3])>,
    /// Where each entity was, once one is not at the place that it had in the last frame.
    moved: Option<MainEntityHashMap<[Vec4; 3]>>,
}

impl DrawSlots {
    /// Starts a frame.
    pub fn clear(&mut self) {
        self.bytes.clear();
        core::mem::swap(&mut self.previous, &mut self.current);
        self.current.clear();
        self.moved = None;
    }

    /// Where the entity of the next slot was in the last frame.
    fn was_at(&mut self, entity: MainEntity) -> Option<[Vec4; 3]> {
        match self.previous.get(self.current.len()) {
            Some((same, was)) if *same == entity => Some(*was),
            _ => {
                let previous = || self.previous.iter().copied().collect();
                self.moved
                    .get_or_insert_with(previous)
                    .get(&entity)
                    .copied()
            }
        }
    }

    /// Where the next slot will be, in bytes.
    pub fn len(&self) -> u32 {
        self.bytes.len() as u32
    }

    /// Adds a slot.
    pub fn push(&mut self, entity: MainEntity, mut uniform: MeshUniform, info: SlotInfo) {
        let now = uniform.world_from_local;
        uniform.previous_world_from_local = self.was_at(entity).unwrap_or(now);
        self.current.push((entity, now));
        let offset = self.bytes.len();
        self.bytes.resize(offset + SLOT_STRIDE as usize, 0);
        let slot = &mut self.bytes[offset..offset + SLOT_BYTES as usize];
        write(&uniform, slot);
        write(&info, &mut slot[176..]);
    }

    /// Uploads the slots if they differ from the last frame's.
    pub fn upload(&mut self, device: &RenderDevice, queue: &RenderQueue) {
        let bytes = self.bytes.len() as u64;
        let fits = self
            .buffer
            .as_ref()
            .is_some_and(|buffer| buffer.size() >= bytes);
        if bytes == 0 || (fits && self.bytes == self.written) {
            return;
        }
        if !fits {
            self.generation += 1;
            self.buffer = Some(device.create_buffer(&BufferDescriptor {
                label: Some("gpu_culling slots"),
                size: bytes.next_power_of_two(),
                usage: BufferUsages::STORAGE | BufferUsages::COPY_DST,
                mapped_at_creation: false,
            }));
        }
        if let Some(buffer) = &self.buffer {
            queue.write_buffer(buffer, 0, &self.bytes);
        }
        self.written.clone_from(&self.bytes);
    }
}

fn write<T: ShaderType + WriteInto>(value: &T, into: &mut [u8]) {
    // The slice is as long as the value by construction; a short one would leave the slot's end zero.
    if let Err(error) = StorageBuffer::new(into).write(value) {
        error!("a draw slot could not be written: {error}");
    }
}

/// Bevy's own data of a mesh entity, whichever way Bevy builds its mesh uniforms.
pub(super) struct MeshUniforms<'a, 'w: 'a, 's: 'a> {
    /// Where Bevy builds them on the GPU.
    pub inputs: Option<&'a BatchedInstanceBuffers<MeshUniform, MeshInputUniform>>,
    pub instances: &'a RenderMeshInstances,
    /// Where Bevy builds them on the CPU.
    pub cpu: &'a SystemParamItem<'w, 's, <MeshPipeline as GetBatchData>::Param>,
}

impl MeshUniforms<'_, '_, '_> {
    /// The entity's `MeshUniform`; `None` while Bevy has not prepared its mesh.
    pub fn get(
        &self,
        entity: MainEntity,
        instance: &RenderMeshQueueData<'_>,
    ) -> Option<MeshUniform> {
        if matches!(self.instances, RenderMeshInstances::CpuBuilding(_)) {
            return MeshPipeline::get_batch_data(self.cpu, (Entity::PLACEHOLDER, entity))
                .map(|(uniform, _)| uniform);
        }
        let index = instance.current_uniform_index;
        let input = self.inputs?.current_input_buffer.get(index.0)?;
        let (a, b) = Affine3::from_transpose(input.world_from_local).inverse_transpose_3x3();
        Some(MeshUniform {
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
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test `layout` compares the WGSL with the same offsets.
    #[test]
    fn a_slot_is_a_mesh_uniform_and_sixteen_bytes() {
        assert_eq!(MeshUniform::min_size().get(), 176);
        assert_eq!(176 + SlotInfo::min_size().get(), SLOT_BYTES);
        let offsets = [0, 1, 2, 3].map(|field| SlotInfo::METADATA.offset(field));
        assert_eq!(offsets, [0, 4, 8, 12]);
    }
}
