//! What a draw's vertex stage needs to know of its entity: Bevy's `MeshUniform`, and where the set lies.

use crate::cull::{growing_size, guarded};
use bevy::{
    ecs::system::SystemParamItem,
    log::warn_once,
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
use bytemuck::bytes_of;

/// Bytes from one slot to the next: the strictest alignment of a dynamic offset.
pub(super) const SLOT_STRIDE: u64 = 256;
/// Bytes of a `MeshUniform`.
pub(super) const UNIFORM_BYTES: u64 = 176;
/// Bytes of a slot: a `MeshUniform`, and 16 of ours.
pub(super) const SLOT_BYTES: u64 = 192;

/// [`SlotInfo::flags`]: the set has scales.
pub(super) const DRAW_HAS_SCALE: u32 = 1;
/// [`SlotInfo::flags`]: the set has tags.
pub(super) const DRAW_HAS_TAG: u32 = 2;

/// The end of `DrawSlot` in `shaders/draw/instance.wgsl`, after the bytes of the `MeshUniform`.
#[derive(Clone, Copy, Default, PartialEq, ShaderType)]
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
    /// Those of the frame, and of the last one.
    slots: Vec<Slot>,
    before: Vec<Slot>,
    /// What the GPU gets of them. Bytes of a slot stay where they are from frame to frame.
    bytes: Vec<u8>,
    /// Bytes are not those that the GPU has.
    changed: bool,
    pub buffer: Option<Buffer>,
    /// Changes when the buffer is replaced.
    pub generation: u64,
    /// Where each entity was, once one is not at the place that it had in the last frame.
    moved: Option<MainEntityHashMap<[Vec4; 3]>>,
}

/// What a slot was made from.
#[derive(Clone, Copy)]
struct Slot {
    entity: MainEntity,
    /// `None` where Bevy builds mesh uniforms on the CPU: there is nothing less than the uniform to compare.
    input: Option<MeshInputUniform>,
    info: SlotInfo,
    /// Where the entity is, for motion vectors.
    now: [Vec4; 3],
    /// It was there in the frame before.
    rests: bool,
}

impl Slot {
    /// Whether the slot of the next frame is the same, but for what it says of the set.
    fn stays(&self, entity: MainEntity, data: &MeshData) -> bool {
        let (Some(own), MeshData::Input(input)) = (&self.input, data) else {
            return false;
        };
        self.rests && self.entity == entity && bytes_of(own) == bytes_of(input)
    }
}

impl DrawSlots {
    /// Starts a frame.
    pub fn clear(&mut self) {
        core::mem::swap(&mut self.before, &mut self.slots);
        self.slots.clear();
        self.moved = None;
    }

    /// Where the entity of the next slot was in the last frame.
    fn was_at(&mut self, entity: MainEntity) -> Option<[Vec4; 3]> {
        match self.before.get(self.slots.len()) {
            Some(before) if before.entity == entity => Some(before.now),
            _ => {
                let all = || self.before.iter().map(|slot| (slot.entity, slot.now));
                self.moved
                    .get_or_insert_with(|| all().collect())
                    .get(&entity)
                    .copied()
            }
        }
    }

    /// Where the next slot will be, in bytes.
    pub fn len(&self) -> u32 {
        self.slots.len() as u32 * SLOT_STRIDE as u32
    }

    /// Adds the next `count` slots as they were in the last frame, those of an entity whose set is as it was; false, and none is
    /// added, where the entity is not.
    pub fn keep(&mut self, count: u32, entity: MainEntity, data: &MeshData) -> bool {
        let first = self.slots.len();
        let Some(kept) = self.before.get(first..first + count as usize) else {
            return false;
        };
        let all = kept.iter().all(|slot| slot.stays(entity, data));
        if all {
            self.slots.extend_from_slice(kept);
        }
        all
    }

    /// Adds a slot.
    pub fn push(&mut self, entity: MainEntity, data: &MeshData, info: SlotInfo) {
        if let Some(before) = self.before.get(self.slots.len())
            && before.stays(entity, data)
            && before.info == info
        {
            self.slots.push(*before);
            return;
        }
        let mut uniform = data.uniform();
        let now = uniform.world_from_local;
        uniform.previous_world_from_local = self.was_at(entity).unwrap_or(now);
        let rests = uniform.previous_world_from_local == now;
        let mut made = [0; SLOT_BYTES as usize];
        write(&uniform, &mut made);
        write(&info, &mut made[176..]);
        let place = self.len() as usize..(self.len() + SLOT_STRIDE as u32) as usize;
        if self.bytes.len() < place.end {
            self.bytes.resize(place.end, 0);
            self.changed = true;
        }
        let slot = &mut self.bytes[place][..SLOT_BYTES as usize];
        if *slot != made {
            slot.copy_from_slice(&made);
            self.changed = true;
        }
        self.slots.push(Slot {
            entity,
            input: data.input(),
            info,
            now,
            rests,
        });
    }

    /// All slots of the frame are there: whether the GPU has others.
    fn finish(&mut self) -> bool {
        self.bytes.truncate(self.len() as usize);
        self.changed
    }

    /// Uploads the slots if they differ from the last frame's.
    pub fn upload(&mut self, device: &RenderDevice, queue: &RenderQueue) {
        let changed = self.finish();
        let bytes = self.bytes.len() as u64;
        let fits = self
            .buffer
            .as_ref()
            .is_some_and(|buffer| buffer.size() >= bytes);
        if bytes == 0 || (fits && !changed) {
            return;
        }
        if !fits {
            self.generation += 1;
            self.buffer = None;
            let size = growing_size(bytes, &device.limits());
            let made = guarded(device.wgpu_device(), "gpu_culling slots", || {
                device.create_buffer(&BufferDescriptor {
                    label: Some("gpu_culling slots"),
                    size,
                    usage: BufferUsages::STORAGE | BufferUsages::COPY_DST,
                    mapped_at_creation: false,
                })
            });
            match made {
                Ok(buffer) => self.buffer = Some(buffer),
                Err(error) => {
                    warn_once!("no GpuInstances are drawn until there are fewer: {error}");
                }
            }
        }
        if let Some(buffer) = &self.buffer {
            queue.write_buffer(buffer, 0, &self.bytes);
        }
        self.changed = false;
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

/// What Bevy knows of a mesh entity, as far as it has prepared it.
pub(super) enum MeshData {
    /// Where Bevy builds mesh uniforms on the GPU: what it builds them from, without what changes though nothing has.
    Input(MeshInputUniform),
    /// Where Bevy builds them on the CPU.
    Uniform(Box<MeshUniform>),
}

impl MeshData {
    fn input(&self) -> Option<MeshInputUniform> {
        match self {
            Self::Input(input) => Some(*input),
            Self::Uniform(_) => None,
        }
    }

    /// The entity's `MeshUniform`, as if it had been in its place in the last frame.
    fn uniform(&self) -> MeshUniform {
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
        }
    }
}

impl MeshUniforms<'_, '_, '_> {
    /// The entity's data; `None` while Bevy has not prepared its mesh.
    pub fn get(&self, entity: MainEntity, instance: &RenderMeshQueueData<'_>) -> Option<MeshData> {
        if matches!(self.instances, RenderMeshInstances::CpuBuilding(_)) {
            return MeshPipeline::get_batch_data(self.cpu, (Entity::PLACEHOLDER, entity))
                .map(|(uniform, _)| MeshData::Uniform(Box::new(uniform)));
        }
        let index = instance.current_uniform_index;
        let input = self.inputs?.current_input_buffer.get(index.0)?;
        Some(MeshData::Input(MeshInputUniform {
            timestamp: 0,
            previous_input_index: 0,
            ..input
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The test `layout` compares the WGSL with the same offsets.
    #[test]
    fn a_slot_is_a_mesh_uniform_and_sixteen_bytes() {
        assert_eq!(MeshUniform::min_size().get(), 176);
        assert_eq!(176 + SlotInfo::min_size().get(), SLOT_BYTES);
        let offsets = [0, 1, 2, 3].map(|field| SlotInfo::METADATA.offset(field));
        assert_eq!(offsets, [0, 4, 8, 12]);
    }

    /// What an entity has in a frame: which it is, where it is, regions of its set, where they begin.
    type Frame = Vec<(u32, i8, u32, u32)>;

    fn entity(index: u32) -> MainEntity {
        Entity::from_raw_u32(index)
            .unwrap_or(Entity::PLACEHOLDER)
            .into()
    }

    fn data(at: i8) -> MeshData {
        let at = Affine3::from_scale_rotation_translation(
            Vec3::splat(2.0),
            Quat::from_rotation_y(f32::from(at)),
            Vec3::X * f32::from(at),
        );
        MeshData::Input(MeshInputUniform {
            world_from_local: at.to_transpose(),
            ..Default::default()
        })
    }

    fn info(first: u32, region: u32) -> SlotInfo {
        SlotInfo {
            region_first: first * 100 + region,
            ..Default::default()
        }
    }

    /// The slots of a frame, nothing of which is that of the frame before but where entities were.
    fn made_anew(frame: &Frame, before: &Frame) -> Vec<u8> {
        let mut slots = DrawSlots::default();
        for (index, at, regions, first) in frame {
            let was = before.iter().find(|was| was.0 == *index);
            for region in 0..*regions {
                let was = was.filter(|was| was.2 > 0).map_or(*at, |was| was.1);
                let mut uniform = data(*at).uniform();
                uniform.previous_world_from_local = data(was).uniform().world_from_local;
                let mut slot = vec![0; SLOT_STRIDE as usize];
                write(&uniform, &mut slot[..176]);
                write(&info(*first, region), &mut slot[176..192]);
                slots.bytes.extend(slot);
            }
        }
        slots.bytes
    }

    fn frames() -> impl Strategy<Value = Vec<Frame>> {
        let set = (0i8..2, 0u32..3, 0u32..2);
        let frame = prop::collection::vec((any::<bool>(), set), 0..4).prop_map(|sets| {
            let sets = (0..).zip(sets);
            let present = sets.filter(|(_, (present, _))| *present);
            present
                .map(|(index, (_, (at, regions, first)))| (index, at, regions, first))
                .collect::<Frame>()
        });
        // Most frames are like the one before.
        let frame = prop_oneof![3 => Just(None), 2 => frame.prop_map(Some)];
        prop::collection::vec((frame, any::<bool>()), 1..12).prop_map(|frames| {
            let mut all: Vec<Frame> = Vec::new();
            for (frame, turned) in frames {
                let mut frame = frame.unwrap_or_else(|| all.last().cloned().unwrap_or_default());
                if turned {
                    frame.reverse();
                }
                all.push(frame);
            }
            all
        })
    }

    proptest! {
        #[test]
        fn kept_slots_are_those_made_anew(frames in frames(), keeps in any::<bool>()) {
            let mut slots = DrawSlots::default();
            let mut before = Frame::new();
            // What the GPU has.
            let mut uploaded = Vec::new();
            for frame in frames {
                slots.clear();
                for (index, at, regions, first) in &frame {
                    let (entity, data) = (entity(*index), data(*at));
                    let stays = before.iter().any(|was| (was.0, was.2, was.3) == (*index, *regions, *first));
                    if keeps && stays && slots.keep(*regions, entity, &data) {
                        continue;
                    }
                    for region in 0..*regions {
                        slots.push(entity, &data, info(*first, region));
                    }
                }
                if slots.finish() {
                    uploaded.clone_from(&slots.bytes);
                    slots.changed = false;
                }
                let wanted = made_anew(&frame, &before);
                prop_assert_eq!(&slots.bytes, &wanted);
                prop_assert!(uploaded.starts_with(&wanted));
                before = frame;
            }
        }
    }
}
