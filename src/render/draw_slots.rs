//! The draw slots: what a draw's vertex stage reads of its entity.
//!
//! A slot is Bevy's `MeshUniform`, followed by the place of the set's region. A slot of a set with
//! an [`InstanceOffset`](super::offset::InstanceOffset) is twice as long, and ends with the offset.

use super::{
    entity_uniforms::EntityUniform,
    gpu::OFFSET_ALIGNMENT,
    lods::SlotFade,
    mesh_metadata::{CompressedMeshes, MetadataBuffer},
    offset::SlotOffset,
};
use crate::cull::{ChangedBytes, DrawList, growing_size, guarded};
use bevy::{
    log::warn_once,
    math::{Affine3, Vec4},
    pbr::{MeshFlags, MeshInputUniform},
    prelude::*,
    render::{
        render_resource::{
            Buffer, BufferDescriptor, BufferUsages, ShaderType,
            encase::{StorageBuffer, internal::WriteInto},
        },
        renderer::{RenderDevice, RenderQueue},
        sync_world::{MainEntity, MainEntityHashMap},
    },
};
use bytemuck::bytes_of;

/// Distance of slots in bytes. A slot with an offset takes two strides.
pub(super) const SLOT_STRIDE: u64 = OFFSET_ALIGNMENT;
/// Size of a `MeshUniform` in bytes.
pub(super) const UNIFORM_BYTES: u64 = 176;
/// Place of a [`SlotOffset`] in a slot, in bytes.
const OFFSET_BEGIN: u64 = SLOT_STRIDE;
/// Size of a slot as it is bound, in bytes: a `MeshUniform`, a [`SlotInfo`] and a [`SlotOffset`].
/// In place of the offset, a slot without one is followed by the next slot.
pub(super) const SLOT_BYTES: u64 = 400;

/// [`SlotInfo::flags`]: the set has scales.
pub(super) const DRAW_HAS_SCALE: u32 = 1;
/// [`SlotInfo::flags`]: the set's visibility range is of the centers of its instances' meshes.
pub(super) const DRAW_RANGE_OF_CENTERS: u32 = 4;
/// [`SlotInfo::flags`]: the set has an offset.
pub(super) const DRAW_HAS_OFFSET: u32 = 8;
/// [`SlotInfo::flags`], only with [`DRAW_HAS_SCALE`]: a scale is three numbers, one per axis of the
/// mesh.
pub(super) const DRAW_NON_UNIFORM_SCALE: u32 = 16;
/// [`SlotInfo::flags`]: the set is thinned out.
pub(super) const DRAW_IS_THINNED: u32 = 32;
/// [`SlotInfo::flags`]: the draw is colored as early.
pub(super) const DRAW_IS_EARLY: u32 = 64;
/// [`SlotInfo::flags`]: the draw is colored as late.
pub(super) const DRAW_IS_LATE: u32 = 128;
/// Position in [`SlotInfo::flags`] of the words of data per instance.
pub(super) const DRAW_DATA_WORDS: u32 = 8;

/// The color of a draw by its list, if occlusion is colored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OcclusionColor {
    /// Its own.
    None,
    Early,
    Late,
}

impl OcclusionColor {
    /// The copies of an entity's slots, in order.
    pub const ALL: [Self; 3] = [Self::None, Self::Early, Self::Late];

    /// The color of a list.
    pub fn of(list: DrawList) -> Self {
        match list {
            DrawList::Kept | DrawList::Visible => Self::None,
            DrawList::Early => Self::Early,
            DrawList::Late => Self::Late,
        }
    }

    /// Its bit in [`SlotInfo::flags`].
    pub fn flag(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Early => DRAW_IS_EARLY,
            Self::Late => DRAW_IS_LATE,
        }
    }
}

/// The part of `DrawSlot` in `shaders/draw/instance.wesl` behind the `MeshUniform`.
#[derive(Clone, Copy, Default, PartialEq, ShaderType)]
pub(super) struct SlotInfo {
    /// The `DRAW_*` constants above, and from bit [`DRAW_DATA_WORDS`] on the words of data.
    pub flags: u32,
    /// Index of the region's first instance in its page.
    pub region_first: u32,
    /// Index of the region's first instance in its set.
    pub set_first: u32,
    /// Distance, in instances, from an instance to its copy of the previous frame; 0 if the set
    /// keeps none.
    pub previous_offset: u32,
    /// How instances fade.
    pub fade: SlotFade,
    /// How they are thinned out ([`Thinning`](super::lods::Thinning)).
    pub thin: Vec4,
}

/// The slots of a frame: one per entity and region of its set; of a set that fades, one more per
/// level of detail. If occlusion is colored, all three times ([`OcclusionColor`]).
#[derive(Resource, Default)]
pub(super) struct DrawSlots {
    /// The slots of the frame, one per stride.
    slots: Vec<Slot>,
    /// The slots of the previous frame.
    before: Vec<Slot>,
    /// The slots as the GPU gets them. A slot that stays the same keeps its bytes.
    bytes: Vec<u8>,
    /// The bytes that the GPU does not have.
    changed: ChangedBytes,
    /// Number of bytes uploaded since [`Self::take_uploaded`].
    uploaded: u64,
    /// `None` before the first upload, and if the device refused it.
    buffer: Option<Buffer>,
    /// What compressed meshes are decoded with.
    metadata: MetadataBuffer,
    /// Bumped when a buffer is replaced.
    pub generation: u64,
    /// Transforms and offsets of the previous frame by entity. Made when an entity's slot is not at
    /// the place that it had in the previous frame.
    moved: Option<MainEntityHashMap<(Rows, Option<Affine3>)>>,
}

/// The buffers that draws bind at dynamic offsets.
#[derive(Clone, Copy)]
pub(super) struct SlotBuffers<'a> {
    pub slots: &'a Buffer,
    /// A `MeshMetadata` per row ([`mesh_metadata`](super::mesh_metadata)).
    pub metadata: &'a Buffer,
}

/// Rows of a transform.
type Rows = [Vec4; 3];

/// What a slot was made from.
#[derive(Clone, Copy)]
struct Slot {
    entity: MainEntity,
    /// `None` if Bevy builds mesh uniforms on the CPU: then only whole uniforms could be compared.
    input: Option<MeshInputUniform>,
    info: SlotInfo,
    /// Whether it is the second stride of a slot.
    is_second: bool,
    /// The entity's transform, for the motion vectors of the next frame.
    transform: Rows,
    /// The set's offset.
    offset: Option<Affine3>,
    /// Whether the previous frame had the same transform and offset.
    rests: bool,
}

impl Slot {
    /// Whether the slot of the next frame is the same, except for its [`SlotInfo`].
    fn stays(&self, entity: MainEntity, data: &EntityUniform, offset: Option<Affine3>) -> bool {
        let (Some(known), EntityUniform::Input(input)) = (&self.input, data) else {
            return false;
        };
        self.rests
            && self.entity == entity
            && self.offset == offset
            && bytes_of(known) == bytes_of(input)
    }
}

impl DrawSlots {
    /// Starts a frame.
    pub fn start_frame(&mut self) {
        core::mem::swap(&mut self.before, &mut self.slots);
        self.slots.clear();
        self.moved = None;
    }

    /// The previous frame's transform and offset of the entity of the next slot.
    fn was_at(&mut self, entity: MainEntity) -> Option<(Rows, Option<Affine3>)> {
        let place = |slot: &Slot| (slot.transform, slot.offset);
        match self.before.get(self.slots.len()) {
            Some(before) if before.entity == entity => Some(place(before)),
            _ => {
                let all = || self.before.iter().map(|slot| (slot.entity, place(slot)));
                self.moved
                    .get_or_insert_with(|| all().collect())
                    .get(&entity)
                    .copied()
            }
        }
    }

    /// Byte offset of the next slot.
    pub fn len(&self) -> u32 {
        self.slots.len() as u32 * SLOT_STRIDE as u32
    }

    /// Adds the slots of the next `count` strides as the previous frame had them. Its caller knows
    /// that the entity's set has not changed. If the entity has, this adds none and returns false.
    pub fn keep(
        &mut self,
        count: u32,
        entity: MainEntity,
        data: &EntityUniform,
        offset: Option<Affine3>,
    ) -> bool {
        let first = self.slots.len();
        let Some(kept) = self.before.get(first..first + count as usize) else {
            return false;
        };
        let all = kept.iter().all(|slot| slot.stays(entity, data, offset));
        if all {
            self.slots.extend_from_slice(kept);
        }
        all
    }

    /// Adds a slot.
    pub fn push(
        &mut self,
        entity: MainEntity,
        data: &EntityUniform,
        info: SlotInfo,
        offset: Option<Affine3>,
    ) {
        if let Some(before) = self.before.get(self.slots.len())
            && !before.is_second
            && before.stays(entity, data, offset)
            && before.info == info
        {
            let before = *before;
            self.push_strides(before);
            return;
        }
        let mut uniform = data.uniform();
        let transform = uniform.world_from_local;
        let (was_at, offset_was) = self.was_at(entity).unwrap_or((transform, offset));
        uniform.previous_world_from_local = was_at;
        let rests = was_at == transform && offset_was == offset;
        if offset.is_some_and(|offset| offset.matrix3.determinant() < 0.0) {
            uniform.flags ^= MeshFlags::SIGN_DETERMINANT_MODEL_3X3.bits();
        }
        let mut made = [0; 2 * SLOT_STRIDE as usize];
        write(&uniform, &mut made);
        write(&info, &mut made[UNIFORM_BYTES as usize..]);
        if let Some(offset) = offset {
            let before = offset_was.unwrap_or(Affine3::IDENTITY);
            let offset = SlotOffset::new(offset, before);
            write(&offset, &mut made[OFFSET_BEGIN as usize..]);
        }
        let made = &made[..slot_stride(offset.is_some()) as usize];
        let place = self.len() as usize..self.len() as usize + made.len();
        let is_new = self.bytes.len() < place.end;
        if is_new {
            self.bytes.resize(place.end, 0);
        }
        let slot = &mut self.bytes[place.clone()];
        if is_new || *slot != *made {
            slot.copy_from_slice(made);
            self.changed.add(place);
        }
        self.push_strides(Slot {
            entity,
            input: data.input(),
            info,
            is_second: false,
            transform,
            offset,
            rests,
        });
    }

    /// Notes the next slot, of one or two strides.
    fn push_strides(&mut self, slot: Slot) {
        self.slots.push(slot);
        if slot.offset.is_some() {
            self.slots.push(Slot {
                is_second: true,
                ..slot
            });
        }
    }

    /// Ends the frame's slots.
    fn finish(&mut self) {
        self.bytes.truncate(self.len() as usize);
    }

    /// Number of bytes uploaded since the last call.
    pub fn take_uploaded(&mut self) -> u64 {
        core::mem::take(&mut self.uploaded)
    }

    /// What draws bind; `None` before the first upload, and if the device refused a buffer.
    pub fn buffers(&self) -> Option<SlotBuffers<'_>> {
        Some(SlotBuffers {
            slots: self.buffer.as_ref()?,
            metadata: self.metadata.buffer.as_ref()?,
        })
    }

    /// Uploads the metadata of compressed meshes, if some changed.
    pub fn upload_metadata(
        &mut self,
        meshes: &Res<CompressedMeshes>,
        device: &RenderDevice,
        queue: &RenderQueue,
    ) {
        if self.metadata.buffer.is_some() && !meshes.is_changed() {
            return;
        }
        self.generation += u64::from(self.metadata.upload(meshes, device, queue));
    }

    /// Uploads the slots that changed.
    pub fn upload(&mut self, device: &RenderDevice, queue: &RenderQueue) {
        self.finish();
        // The last slot is bound as if it had an offset.
        let bytes = match self.bytes.len() as u64 {
            0 => 0,
            bytes => bytes + SLOT_STRIDE,
        };
        let fits = self
            .buffer
            .as_ref()
            .is_some_and(|buffer| buffer.size() >= bytes);
        if bytes == 0 || (fits && self.changed.is_empty()) {
            return;
        }
        if !fits {
            self.changed.clear();
            self.changed.add(0..self.bytes.len());
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
            self.uploaded += self.changed.write(queue, buffer, &self.bytes);
        }
    }
}

/// Distance in bytes of the slots of an entity.
pub(super) fn slot_stride(has_offset: bool) -> u32 {
    let strides = 1 + u32::from(has_offset);
    strides * SLOT_STRIDE as u32
}

fn write<T: ShaderType + WriteInto>(value: &T, into: &mut [u8]) {
    // The slice is as long as the value.
    if let Err(error) = StorageBuffer::new(into).write(value) {
        error!("a draw slot could not be written: {error}");
    }
}

#[cfg(test)]
mod tests;
