//! The draw slots: what a draw's vertex stage reads of its entity.
//!
//! A slot is Bevy's `MeshUniform`, the place of the set's region, and the set's
//! [`InstanceOffset`](super::offset::InstanceOffset). The mesh uniforms are there once more, one
//! after the other, as Bevy's shader functions read them.
//!
//! A draw binds a window of the buffer of slots. It begins with the selector of the draw, which
//! says which instance has which slot:
//!
//! ```text
//! selectors                       slots                       room
//! | 0 | 1 | 2 | ... | (reserved)  | 0 | 1 | 2 | ...           | as for selectors |
//!     |<----------------- window of a draw of slot 1 ----------------->|
//! ```

mod bytes;
mod claim;
mod follow;
mod info;
mod room;
mod slot;

pub(super) use info::{
    DRAW_DATA_WORDS, DRAW_HAS_OFFSET, DRAW_HAS_SCALE, DRAW_HAS_WIND, DRAW_IS_THINNED,
    DRAW_NON_UNIFORM_SCALE, DRAW_RANGE_OF_CENTERS, OcclusionColor, SlotInfo,
};
pub(super) use room::{GRANULES_OF_TABLE, SLOT_BYTES, SLOT_STRIDE, SlotTable, UNIFORM_BYTES};

use super::{
    animation::{AnimationClock, PoseTable, PoseTexture},
    entity_uniforms::EntityUniform,
    mesh_metadata::{CompressedMeshes, MetadataBuffer},
    offset::SlotOffset,
};
use crate::cull::ChangedBytes;
use bevy::{
    log::warn_once,
    math::Affine3,
    pbr::MeshFlags,
    platform::collections::HashMap,
    prelude::*,
    render::{
        render_resource::{Buffer, TextureView},
        renderer::{RenderDevice, RenderQueue},
        sync_world::{MainEntity, MainEntityHashMap},
    },
};
use bytes::{place_of, put, write};
use core::ops::Range;
use room::{Buffers, SlotCapacity};
use slot::{Rows, Slot};

/// Place of a [`SlotOffset`] in a slot, in bytes.
const OFFSET_BEGIN: u64 = 304;
/// Fewer slots than this are kept, whether or not views see their sets.
const MANY_SLOTS: usize = 4096;
/// More slots than this are kept only if the sets that are drawn need as large a buffer: a binding
/// of 128 MiB holds twice as many.
const MAX_UNSEEN: usize = 1 << 15;

/// The slots of a frame: one per entity and region of its set; of a set that fades, one more per
/// level of detail. If occlusion is colored, all three times ([`OcclusionColor`]).
#[derive(Resource, Default)]
pub(super) struct DrawSlots {
    /// The slots, also of sets that no view sees at present: a set that is seen again has the same.
    slots: Vec<Slot>,
    /// The slots of each set, by its place in the list of sets.
    of_sets: Vec<Range<u32>>,
    /// Names the list of sets.
    listed_in: Option<u64>,
    /// Number of slots that no set has any more.
    holes: usize,
    /// The first of as many slots as the key, that a set that went had: another may have them.
    free: HashMap<u32, Vec<u32>>,
    /// Number of slots of the sets that the frame draws.
    used: usize,
    /// The same of the previous frame.
    used_before: usize,
    /// The same of recent frames, at most: a camera may pause for a frame.
    max_used: usize,
    /// Whether the frame has dropped all slots.
    has_started_again: bool,
    /// Number of frames so far.
    pub frame: u64,
    /// Slots whose bytes the frame has changed.
    dirty: Vec<u32>,
    /// The slots as the GPU gets them. A slot that stays the same keeps its bytes.
    bytes: Vec<u8>,
    /// The bytes that the GPU does not have.
    changed: ChangedBytes,
    /// Tables that find the slots of many sets.
    tables: Vec<SlotTable>,
    /// Indices of the tables that the GPU lacks.
    new_tables: Vec<usize>,
    /// The mesh uniforms of the slots, one after the other.
    uniforms: Vec<u8>,
    /// The bytes of `uniforms` that the GPU does not have.
    changed_uniforms: ChangedBytes,
    /// Number of bytes uploaded since [`Self::take_uploaded`].
    uploaded: u64,
    /// `None` before the first upload, and if the device refused them.
    buffers: Option<Buffers>,
    /// What compressed meshes are decoded with.
    metadata: MetadataBuffer,
    /// What vertices with joints are moved by.
    poses: PoseTexture,
    /// Bumped when a buffer is replaced.
    pub generation: u64,
    /// Transforms and offsets of the previous frame, of entities that have lost the slots that they
    /// had then.
    was_at: MainEntityHashMap<(Rows, Option<Affine3>)>,
}

/// The buffers that draws bind.
#[derive(Clone, Copy)]
pub(super) struct SlotBuffers<'a> {
    /// Bound at the dynamic offset of a [selector](DrawSlots::selector_of).
    pub slots: &'a Buffer,
    /// Size of a window of `slots` in bytes.
    pub window: u64,
    /// Byte offset of the first slot in `slots`.
    pub first_slot: u64,
    /// A `MeshUniform` per slot.
    pub uniforms: &'a Buffer,
    /// A `MeshMetadata` per row ([`mesh_metadata`](super::mesh_metadata)).
    pub metadata: &'a Buffer,
    /// The poses of all animations.
    pub poses: &'a TextureView,
}

impl DrawSlots {
    /// Starts a frame with the list of sets that `listed_in` names.
    pub fn start_frame(&mut self, listed_in: u64) {
        self.frame += 1;
        self.was_at.clear();
        let before = self.max_used - self.max_used / 64;
        self.used_before = core::mem::take(&mut self.used);
        self.max_used = before.max(self.used_before);
        let has_holes = self.holes > self.slots.len() / 2;
        // Of a large world, views see other sets from time to time.
        let is_mostly_unseen = self.slots.len() > kept_slots(self.max_used);
        self.has_started_again = self.listed_in != Some(listed_in) || has_holes || is_mostly_unseen;
        if self.has_started_again {
            let slots = core::mem::take(&mut self.slots);
            for slot in slots {
                self.note_lost(&slot);
            }
            self.of_sets.clear();
            self.free.clear();
            self.holes = 0;
            self.listed_in = Some(listed_in);
        }
    }

    /// Notes the place of an entity in the previous frame.
    fn note_lost(&mut self, slot: &Slot) {
        if slot.frame + 1 == self.frame {
            self.was_at
                .insert(slot.entity, (slot.transform, slot.offset));
        }
    }

    /// Byte offset at which a draw of a slot binds the buffer of slots.
    pub fn selector_of(slot: u32) -> u32 {
        slot * SLOT_STRIDE as u32
    }

    /// The slots of the set at a place.
    fn slots_of(&mut self, place: usize) -> &mut [Slot] {
        let own = self.of_sets.get(place).cloned().unwrap_or_default();
        let own = own.start as usize..own.end as usize;
        self.slots.get_mut(own).unwrap_or_default()
    }

    /// Keeps the `count` slots of the set at a place as they are. Its caller knows that the set has
    /// not changed. If the entity has, this returns false.
    pub fn keep(
        &mut self,
        place: usize,
        count: u32,
        entity: MainEntity,
        data: &EntityUniform,
        offset: Option<Affine3>,
    ) -> bool {
        self.keep_if(place, count, |slot| slot.stays(entity, data, offset))
    }

    /// Keeps the `count` slots of the set at a place, whose entity is as it was in the previous
    /// frame. Returns false if that did not draw it, or drew it at another place than the frame
    /// before.
    pub fn keep_as_before(&mut self, place: usize, count: u32) -> bool {
        let now = self.frame;
        self.keep_if(place, count, |slot| slot.rests && slot.frame + 1 == now)
    }

    fn keep_if(&mut self, place: usize, count: u32, stays: impl Fn(&Slot) -> bool) -> bool {
        let now = self.frame;
        let kept = self.slots_of(place);
        let all = kept.len() == count as usize && kept.iter().all(stays);
        if all {
            for slot in kept {
                slot.frame = now;
            }
            self.used += count as usize;
        }
        all
    }

    /// Fills a slot.
    pub fn fill(
        &mut self,
        index: u32,
        entity: MainEntity,
        data: &EntityUniform,
        info: SlotInfo,
        offset: Option<Affine3>,
    ) {
        let Some(slot) = self.slots.get_mut(index as usize) else {
            return;
        };
        if slot.stays(entity, data, offset) && slot.info == info {
            slot.frame = self.frame;
            return;
        }
        let before = match slot.entity == entity {
            // This frame has filled it before: all requests are made again after some were kept.
            true if slot.frame == self.frame => Some(slot.was_at),
            true if slot.frame + 1 == self.frame => Some((slot.transform, slot.offset)),
            _ => self.was_at.get(&entity).copied(),
        };
        let mut uniform = data.uniform();
        let transform = uniform.world_from_local;
        let (was_at, offset_was) = before.unwrap_or((transform, offset));
        uniform.previous_world_from_local = was_at;
        let rests = was_at == transform && offset_was == offset;
        if offset.is_some_and(|offset| offset.matrix3.determinant() < 0.0) {
            uniform.flags ^= MeshFlags::SIGN_DETERMINANT_MODEL_3X3.bits();
        }
        let mut made = [0; SLOT_STRIDE as usize];
        write(&uniform, &mut made);
        write(&info, &mut made[UNIFORM_BYTES as usize..]);
        if let Some(offset) = offset {
            let before = offset_was.unwrap_or(Affine3::IDENTITY);
            let offset = SlotOffset::new(offset, before);
            write(&offset, &mut made[OFFSET_BEGIN as usize..]);
        }
        *slot = Slot {
            entity,
            frame: self.frame,
            input: data.input(),
            info,
            transform,
            offset,
            was_at: (was_at, offset_was),
            rests,
        };
        let uniform = &made[..UNIFORM_BYTES as usize];
        let is_new = put(&mut self.bytes, index, &made);
        if put(&mut self.uniforms, index, uniform) || is_new {
            self.dirty.push(index);
        }
    }

    /// Ends the frame's slots.
    fn finish(&mut self) {
        self.dirty.sort_unstable();
        for index in self.dirty.drain(..) {
            self.changed.add(place_of::<SLOT_STRIDE>(index));
            self.changed_uniforms.add(place_of::<UNIFORM_BYTES>(index));
        }
        self.bytes.truncate(self.slots.len() * SLOT_STRIDE as usize);
        self.uniforms
            .truncate(self.slots.len() * UNIFORM_BYTES as usize);
    }

    /// Number of bytes uploaded since the last call.
    pub fn take_uploaded(&mut self) -> u64 {
        core::mem::take(&mut self.uploaded)
    }

    /// Bytes that the buffers hold on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        let own = (self.buffers.iter()).flat_map(|own| [&own.slots, &own.uniforms]);
        let all = own.chain(&self.metadata.buffer);
        all.map(|buffer| buffer.size()).sum::<u64>() + self.poses.bytes()
    }

    /// What draws bind; `None` before the first upload, and if the device refused a buffer.
    pub fn buffers(&self) -> Option<SlotBuffers<'_>> {
        let buffers = self.buffers.as_ref()?;
        Some(SlotBuffers {
            slots: &buffers.slots,
            window: buffers.capacity.window(),
            first_slot: buffers.capacity.first_slot(),
            uniforms: &buffers.uniforms,
            metadata: self.metadata.buffer.as_ref()?,
            poses: self.poses.view()?,
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

    /// Uploads the poses, if some changed, and the frame's clock.
    pub fn upload_poses(
        &mut self,
        table: &PoseTable,
        clock: AnimationClock,
        device: &RenderDevice,
        queue: &RenderQueue,
    ) {
        let is_new = (self.poses).upload(table, clock, self.frame, device, queue);
        self.generation += u64::from(is_new);
    }

    /// Uploads the slots that changed.
    pub fn upload(&mut self, device: &RenderDevice, queue: &RenderQueue) {
        self.finish();
        let (slots, tables) = (self.slots.len() as u64, self.tables.len() as u64);
        let capacity = self.buffers.as_ref().map(|buffers| buffers.capacity);
        let fits = capacity.is_some_and(|capacity| capacity.holds(slots, tables));
        if slots == 0 || fits && self.changed.is_empty() && self.new_tables.is_empty() {
            return;
        }
        if !fits {
            self.generation += 1;
            self.buffers = None;
            match Buffers::new(device, SlotCapacity::with(slots, tables)) {
                Ok(buffers) => {
                    self.uploaded += buffers.write(queue, 0, &buffers.capacity.selectors());
                    self.buffers = Some(buffers);
                }
                Err(error) => {
                    warn_once!("no GpuInstances are drawn until there are fewer: {error}");
                }
            }
            self.changed.clear();
            self.changed.add(0..self.bytes.len());
            self.changed_uniforms.clear();
            self.changed_uniforms.add(0..self.uniforms.len());
            self.new_tables.clear();
            self.new_tables.extend(0..self.tables.len());
        }
        let Some(buffers) = &self.buffers else {
            return;
        };
        let first = buffers.capacity.first_slot();
        self.uploaded += (self.changed).write_at(queue, &buffers.slots, first, &self.bytes);
        self.uploaded += (self.changed_uniforms).write(queue, &buffers.uniforms, &self.uniforms);
        for index in self.new_tables.drain(..) {
            let (place, table) = (index as u64, &self.tables[index]);
            let words = buffers.capacity.selector_of(place, table);
            self.uploaded += buffers.write(queue, buffers.capacity.table(place), &words);
        }
    }

    /// Replaces the tables.
    pub fn set_tables(&mut self, tables: &[SlotTable]) {
        self.tables.resize_with(tables.len(), SlotTable::default);
        self.new_tables.retain(|index| *index < tables.len());
        for (index, (known, table)) in self.tables.iter_mut().zip(tables).enumerate() {
            if known != table {
                known.clone_from(table);
                self.new_tables.push(index);
            }
        }
    }

    /// Byte offset at which a draw of a table binds the buffer of slots.
    pub fn table_selector(&self, table: u32) -> u32 {
        let buffers = self.buffers.as_ref();
        buffers.map_or(0, |buffers| buffers.capacity.table(table.into()) as u32)
    }
}

/// Number of slots that are kept if the sets that are drawn have `used`.
fn kept_slots(used: usize) -> usize {
    let several = (8 * used).min(MAX_UNSEEN.max(used.next_power_of_two()));
    several.max(MANY_SLOTS)
}

#[cfg(test)]
mod tests;
