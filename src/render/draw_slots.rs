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

use super::{
    entity_uniforms::EntityUniform,
    lods::SlotFade,
    mesh_metadata::{CompressedMeshes, MetadataBuffer},
    offset::SlotOffset,
};
use crate::cull::{ChangedBytes, CullError, DrawList, guarded};
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
use core::ops::Range;

/// Distance of slots, and of selectors, in bytes.
pub(super) const SLOT_STRIDE: u64 = 512;
/// Size of a `MeshUniform` in bytes.
pub(super) const UNIFORM_BYTES: u64 = 176;
/// Place of a [`SlotOffset`] in a slot, in bytes.
const OFFSET_BEGIN: u64 = 256;
/// Size of a slot in bytes, without padding: a `MeshUniform`, a [`SlotInfo`] and a [`SlotOffset`].
pub(super) const SLOT_BYTES: u64 = 400;
/// Number of blocks that a [`SlotTable`] describes.
pub(super) const BLOCKS_OF_TABLE: u32 = 1148;
/// Bytes before the blocks of a selector: mask, first slot, and padding.
const SELECTOR_HEAD: usize = 16;
/// Place of the slots in a window, in bytes (`DrawSlots` in `shaders/draw/instance.wesl`).
const WINDOW_SLOTS: u64 = 9 * SLOT_STRIDE;
/// Least number of slots that the buffer has room for.
const FEWEST_SLOTS: u64 = 16;

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
    /// The slots of the frame.
    slots: Vec<Slot>,
    /// The slots of the previous frame.
    before: Vec<Slot>,
    /// The slots as the GPU gets them. A slot that stays the same keeps its bytes.
    bytes: Vec<u8>,
    /// The bytes that the GPU does not have.
    changed: ChangedBytes,
    /// Tables that find the slots of many sets, and whether the GPU lacks them.
    tables: Vec<SlotTable>,
    has_new_tables: bool,
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
    /// Bumped when a buffer is replaced.
    pub generation: u64,
    /// Transforms and offsets of the previous frame by entity. Made when an entity's slot is not at
    /// the place that it had in the previous frame.
    moved: Option<MainEntityHashMap<(Rows, Option<Affine3>)>>,
}

/// The slot of each block of a page, for what is drawn of several sets at once. A slot is 0 if no
/// such set has the block.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct SlotTable {
    slots: Vec<u32>,
    /// Whether a set has the block.
    is_taken: Vec<bool>,
}

impl Default for SlotTable {
    fn default() -> Self {
        Self {
            slots: vec![0; BLOCKS_OF_TABLE as usize],
            is_taken: vec![false; BLOCKS_OF_TABLE as usize],
        }
    }
}

impl SlotTable {
    /// Gives blocks their slot. Returns whether none of them had one: a set that is drawn with
    /// several slots keeps the first.
    pub fn put(&mut self, blocks: Range<u32>, slot: u32) -> bool {
        let blocks = blocks.start as usize..blocks.end as usize;
        let Some(is_taken) = self.is_taken.get_mut(blocks.clone()) else {
            return false;
        };
        if is_taken.contains(&true) {
            return false;
        }
        is_taken.fill(true);
        self.slots[blocks].fill(slot);
        true
    }
}

/// Numbers of slots and of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Room {
    slots: u64,
    tables: u64,
}

impl Room {
    /// Byte offset of a table in the buffer of slots.
    fn table(self, table: u64) -> u64 {
        self.slots * SLOT_STRIDE + table * WINDOW_SLOTS
    }

    /// Byte offset of the slots: a selector and a table fit before them.
    fn first_slot(self) -> u64 {
        self.table(self.tables) + WINDOW_SLOTS
    }

    /// Size of a window in bytes: from the first selector to the last slot.
    fn window(self) -> u64 {
        self.first_slot() + self.slots * SLOT_STRIDE
    }

    /// Size of the buffer of slots in bytes: the window of the last table fits.
    fn bytes(self) -> u64 {
        self.table(self.tables) + self.window()
    }

    /// The place of slot 0 among the slots of a window that begins at a byte offset. It may lie
    /// before them: a sum in 32 bits wraps.
    fn first_in(self, window: u64) -> u32 {
        let slots = (window + WINDOW_SLOTS).cast_signed();
        ((self.first_slot().cast_signed() - slots) / SLOT_STRIDE as i64) as u32
    }

    /// The selectors of all slots, in words. A selector has a mask of 0: each instance has the slot
    /// of the first block.
    fn selectors(self) -> Vec<u32> {
        let mut words = vec![0u32; (self.slots * SLOT_STRIDE / 4) as usize];
        let each = words.chunks_exact_mut(SLOT_STRIDE as usize / 4);
        for (slot, selector) in (0..).zip(each) {
            selector[1] = self.first_in(u64::from(slot) * SLOT_STRIDE);
            selector[SELECTOR_HEAD / 4] = slot;
        }
        words
    }

    /// A table as a selector, in words.
    fn selector_of(self, index: u64, table: &SlotTable) -> Vec<u32> {
        let mut words = vec![u32::MAX, self.first_in(self.table(index)), 0, 0];
        words.extend_from_slice(&table.slots);
        words
    }
}

/// The buffers of the slots.
struct Buffers {
    room: Room,
    /// Selectors, and behind them the slots.
    slots: Buffer,
    uniforms: Buffer,
}

impl Buffers {
    /// Makes the buffers.
    ///
    /// # Errors
    /// [`CullError::Gpu`].
    fn new(device: &RenderDevice, room: Room) -> Result<Self, CullError> {
        let buffer = |label, size| {
            device.create_buffer(&BufferDescriptor {
                label: Some(label),
                size,
                usage: BufferUsages::STORAGE | BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        };
        guarded(device.wgpu_device(), "gpu_culling slots", || Self {
            room,
            slots: buffer("gpu_culling slots", room.bytes()),
            uniforms: buffer("gpu_culling mesh uniforms", room.slots * UNIFORM_BYTES),
        })
    }
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

    /// Index of the next slot.
    pub fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Byte offset at which a draw of a slot binds the buffer of slots.
    pub fn selector_of(slot: u32) -> u32 {
        slot * SLOT_STRIDE as u32
    }

    /// Adds the next `count` slots as the previous frame had them. Its caller knows
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
            && before.stays(entity, data, offset)
            && before.info == info
        {
            self.slots.push(*before);
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
        let mut made = [0; SLOT_STRIDE as usize];
        write(&uniform, &mut made);
        write(&info, &mut made[UNIFORM_BYTES as usize..]);
        if let Some(offset) = offset {
            let before = offset_was.unwrap_or(Affine3::IDENTITY);
            let offset = SlotOffset::new(offset, before);
            write(&offset, &mut made[OFFSET_BEGIN as usize..]);
        }
        let index = self.slots.len();
        put(&mut self.bytes, &mut self.changed, index, &made);
        let uniform = &made[..UNIFORM_BYTES as usize];
        put(
            &mut self.uniforms,
            &mut self.changed_uniforms,
            index,
            uniform,
        );
        self.slots.push(Slot {
            entity,
            input: data.input(),
            info,
            transform,
            offset,
            rests,
        });
    }

    /// Ends the frame's slots.
    fn finish(&mut self) {
        self.bytes.truncate(self.slots.len() * SLOT_STRIDE as usize);
        self.uniforms
            .truncate(self.slots.len() * UNIFORM_BYTES as usize);
    }

    /// Number of bytes uploaded since the last call.
    pub fn take_uploaded(&mut self) -> u64 {
        core::mem::take(&mut self.uploaded)
    }

    /// What draws bind; `None` before the first upload, and if the device refused a buffer.
    pub fn buffers(&self) -> Option<SlotBuffers<'_>> {
        let buffers = self.buffers.as_ref()?;
        Some(SlotBuffers {
            slots: &buffers.slots,
            window: buffers.room.window(),
            first_slot: buffers.room.first_slot(),
            uniforms: &buffers.uniforms,
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
        let needed = (self.slots.len() as u64, self.tables.len() as u64);
        let room = self.buffers.as_ref().map(|buffers| buffers.room);
        let fits = room.is_some_and(|room| room.slots >= needed.0 && room.tables >= needed.1);
        if needed.0 == 0 || fits && self.changed.is_empty() && !self.has_new_tables {
            return;
        }
        if !fits {
            self.generation += 1;
            self.buffers = None;
            let room = Room {
                slots: needed.0.next_power_of_two().max(FEWEST_SLOTS),
                tables: needed.1.next_power_of_two(),
            };
            match Buffers::new(device, room) {
                Ok(buffers) => {
                    let selectors = room.selectors();
                    let selectors = bytemuck::cast_slice(&selectors);
                    queue.write_buffer(&buffers.slots, 0, selectors);
                    self.uploaded += selectors.len() as u64;
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
            self.has_new_tables = true;
        }
        let Some(buffers) = &self.buffers else {
            return;
        };
        let at = (&*buffers.slots, buffers.room.first_slot());
        self.uploaded += self.changed.write_at(queue, at, &self.bytes);
        let at = (&*buffers.uniforms, 0);
        self.uploaded += self.changed_uniforms.write_at(queue, at, &self.uniforms);
        if core::mem::take(&mut self.has_new_tables) {
            for (index, table) in (0..).zip(&self.tables) {
                let words = buffers.room.selector_of(index, table);
                let words = bytemuck::cast_slice(&words);
                queue.write_buffer(&buffers.slots, buffers.room.table(index), words);
                self.uploaded += words.len() as u64;
            }
        }
    }

    /// Replaces the tables.
    pub fn set_tables(&mut self, tables: &[SlotTable]) {
        if self.tables != tables {
            self.tables = tables.to_vec();
            self.has_new_tables = true;
        }
    }

    /// Byte offset at which a draw of a table binds the buffer of slots.
    pub fn table_selector(&self, table: u32) -> u32 {
        let buffers = self.buffers.as_ref();
        buffers.map_or(0, |buffers| buffers.room.table(table.into()) as u32)
    }
}

/// Puts the bytes of an element at its place in `all`, and notes whether that changed.
fn put(all: &mut Vec<u8>, changed: &mut ChangedBytes, index: usize, made: &[u8]) {
    let place = index * made.len()..(index + 1) * made.len();
    let is_new = all.len() < place.end;
    if is_new {
        all.resize(place.end, 0);
    }
    let held = &mut all[place.clone()];
    if is_new || *held != *made {
        held.copy_from_slice(made);
        changed.add(place);
    }
}

fn write<T: ShaderType + WriteInto>(value: &T, into: &mut [u8]) {
    // The slice is as long as the value.
    if let Err(error) = StorageBuffer::new(into).write(value) {
        error!("a draw slot could not be written: {error}");
    }
}

#[cfg(test)]
mod tests;
