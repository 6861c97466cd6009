//! Sets whose instances the GPU writes, and where the instances of sets were in the frame before.

use crate::{
    cull::{
        Channels, CullError, Culler, CullingTier, Residency, SetId,
        layout::{BLOCK, Bound, BoundJob},
        pages::Room,
        previous::{Copy, copies},
        readback::read_buffer,
        residents::Set,
        sets::checked,
    },
    instance::{PackedInstance, PackedQuat},
};
use core::{num::NonZeroU64, ops::Range};
use wgpu::{BindGroup, BindingResource, Buffer, BufferBinding, CommandEncoder, Device, Queue};

/// Room that the GPU writes into.
pub(super) struct WrittenRoom {
    /// Instances that it may write.
    capacity: u32,
    /// Bounds of blocks are made each frame; else every instance is tested.
    classify: bool,
    /// Live instances of the frame before: those beyond have not been anywhere yet.
    kept: u32,
    /// Jobs and bind groups of the bounds, and the pages' generation that they were made for.
    bounds: Option<(u64, Vec<(BoundJob, BindGroup)>)>,
}

/// A run of a written set: whole buffers, written from their start.
#[derive(Clone, Debug)]
pub struct WrittenRegion {
    /// The instances, 16 bytes each.
    pub instances: Buffer,
    /// Scales, if the set has them.
    pub scales: Option<Buffer>,
    /// Tags, if the set has them.
    pub tags: Option<Buffer>,
    /// Index in the set of the first instance.
    pub first: u32,
    /// Instances that may be written.
    pub capacity: u32,
}

impl WrittenRegion {
    /// What a compute pass binds: the instances that may be written, and nothing behind them.
    #[must_use]
    pub fn instances_binding(&self) -> BindingResource<'_> {
        self.binding(&self.instances, 16)
    }

    /// The scales, 4 bytes each.
    #[must_use]
    pub fn scales_binding(&self) -> Option<BindingResource<'_>> {
        self.scales.as_ref().map(|buffer| self.binding(buffer, 4))
    }

    /// The tags, 4 bytes each.
    #[must_use]
    pub fn tags_binding(&self) -> Option<BindingResource<'_>> {
        self.tags.as_ref().map(|buffer| self.binding(buffer, 4))
    }

    fn binding<'a>(&self, buffer: &'a Buffer, stride: u64) -> BindingResource<'a> {
        BindingResource::Buffer(BufferBinding {
            buffer,
            offset: 0,
            size: NonZeroU64::new(u64::from(self.capacity) * stride),
        })
    }
}

/// An instance that no view sees: its position is not a number.
const HIDDEN: PackedInstance = PackedInstance {
    position: [f32::NAN; 3],
    rotation: PackedQuat::IDENTITY,
};

impl Culler {
    /// Room for a set of `capacity` instances that the GPU writes, of which the first `live` are culled. All are
    /// hidden until they are written. With `classify`, the bounds of its blocks are made in each frame that
    /// reads them, else every instance is tested.
    ///
    /// # Errors
    /// [`CullError::WrittenOnCpu`] on the tier `Cpu`; [`CullError::Gpu`], when the device has no room. The set is then not
    /// resident.
    pub fn reserve_written(
        &mut self,
        (device, queue): (&Device, &Queue),
        id: SetId,
        (capacity, live): (u32, u32),
        channels: Channels,
        classify: bool,
    ) -> Result<Residency, CullError> {
        if self.tier() == CullingTier::Cpu {
            self.remove_set(id);
            return Err(CullError::WrittenOnCpu(id.0));
        }
        let room = Room {
            previous: channels.previous,
            own: true,
        };
        let live = live.min(capacity);
        if let Some(set) = self.sets.get(id)
            && let Some(written) = self.written.get(&id)
            && set.room == room
            && set.channels == channels
            && (written.capacity, written.classify) == (capacity, classify)
        {
            self.sets.resize(id, live, channels);
            return Ok(Residency::Kept);
        }
        self.remove_set(id);
        let regions = self
            .pages
            .allocate(device, (id, capacity), room, channels)?;
        let added = self.pages.add_channels(device, &regions, channels);
        if let Err(error) = added.and_then(|()| self.pages.prove(queue, &regions)) {
            self.pages.release(&regions, room);
            return Err(error);
        }
        // A megabyte at a time.
        let hidden = vec![HIDDEN; (1 << 16).min(capacity as usize)];
        for region in &regions {
            let Some(page) = self.pages.page(region.page) else {
                continue;
            };
            let instances = region.capacity as usize * if room.previous { 2 } else { 1 };
            for first in (0..instances).step_by(hidden.len().max(1)) {
                let len = hidden.len().min(instances - first);
                let offset = (first * size_of::<PackedInstance>()) as u64;
                queue.write_buffer(
                    &page.instances,
                    offset,
                    bytemuck::cast_slice(&hidden[..len]),
                );
            }
            if !classify {
                let unknown = Bound {
                    radius: f32::MAX,
                    max_scale: 1.0,
                    // Nor is anything known of their words.
                    loose: 1,
                    ..Bound::default()
                };
                let blocks = (region.capacity / BLOCK) as usize;
                queue.write_buffer(
                    &page.bounds,
                    0,
                    bytemuck::cast_slice(&vec![unknown; blocks]),
                );
            }
        }
        let written = WrittenRoom {
            capacity,
            classify,
            kept: 0,
            bounds: None,
        };
        let set = Set::new(live, channels, (regions, room));
        self.sets.insert(id, set);
        self.written.insert(id, written);
        Ok(Residency::Moved)
    }

    /// The buffers of a set that the GPU writes, in order: one, or several where one binding does not hold it. None
    /// for other sets. They stay the same until [`Self::reserve_written`] says [`Residency::Moved`].
    #[must_use]
    pub fn written_regions(&self, id: SetId) -> Vec<WrittenRegion> {
        let Some((set, written)) = self.sets.get(id).zip(self.written.get(&id)) else {
            return Vec::new();
        };
        let mut first = 0u32;
        let region = |region: &crate::cull::Region| {
            let page = self.pages.page(region.page)?;
            let at = first;
            // Behind the last region, nobody reads it.
            first = first.wrapping_add(region.capacity);
            Some(WrittenRegion {
                instances: page.instances.clone(),
                scales: page.scales.clone().filter(|_| set.channels.scale),
                tags: page.tags.clone().filter(|_| set.channels.tag),
                first: at,
                capacity: region.capacity.min(written.capacity - at),
            })
        };
        set.regions.iter().filter_map(region).collect()
    }

    /// Notes that instances in `ranges` are about to change: what they are now is kept as the frame before. To be
    /// called between [`Self::reserve_set`] and the uploads, with what changed in the frame before; with nothing where
    /// the set was moved, as it takes along what it was. Does nothing without [`Channels::previous`].
    ///
    /// # Errors
    /// [`CullError::UnknownSet`].
    pub fn keep_previous(
        &mut self,
        (device, queue): (&Device, &Queue),
        id: SetId,
        ranges: impl IntoIterator<Item = Range<usize>>,
    ) -> Result<(), CullError> {
        let set = self.sets.get(id).ok_or(CullError::UnknownSet(id.0))?;
        if set.channels.previous {
            let pages = &self.pages;
            let kept = ranges
                .into_iter()
                .flat_map(|range| copies(pages, set, range))
                .collect();
            self.submit_copies((device, queue), kept);
        }
        Ok(())
    }

    /// Writes where instances were in the frame before, from `first` on: for those that were nowhere.
    ///
    /// # Errors
    /// As [`Self::upload`].
    pub fn upload_previous(
        &mut self,
        queue: &Queue,
        id: SetId,
        first: usize,
        (instances, scales): (&[PackedInstance], Option<&[f32]>),
    ) -> Result<(), CullError> {
        let set = checked(&self.sets, id, first, instances.len())?;
        if set.channels.previous {
            let data = (instances, scales);
            self.pages.prove(queue, &set.regions)?;
            self.pages.write_previous(queue, &set.regions, first, data);
        }
        Ok(())
    }

    /// Before anything is written in the frame: what the GPU wrote in the one before is kept, and so is what sets
    /// that were moved have left behind.
    pub(super) fn keep_before_writes(&mut self, device: &Device, queue: &Queue) {
        let mut all = Vec::new();
        for (id, written) in &mut self.written {
            if let Some(set) = self.sets.get(*id)
                && set.channels.previous
            {
                written.kept = written.kept.min(set.len);
                let range = 0..written.kept as usize;
                all.extend(copies(&self.pages, set, range));
            }
        }
        self.submit_copies((device, queue), all);
    }

    /// Submits copies, behind those of sets that were moved.
    fn submit_copies(&mut self, (device, queue): (&Device, &Queue), copies: Vec<Copy>) {
        let mut all = core::mem::take(&mut self.previous.moves);
        all.extend(copies);
        if !all.is_empty() {
            let mut encoder = device.create_command_encoder(&Default::default());
            let recorded = self.previous.record(device, &mut encoder, &all);
            let is_refused = recorded.is_err();
            self.refusals.note(recorded);
            if is_refused {
                // In the next frame again; what has moved is drawn with the motion of before until then.
                self.previous.moves = all;
                return;
            }
            queue.submit([encoder.finish()]);
        }
        for set in self.previous.retired.drain(..) {
            self.pages.release(&set.regions, set.room);
        }
    }

    /// Whether [`Self::record_written`] has anything to do.
    #[must_use]
    pub fn has_written_sets(&self) -> bool {
        !self.written.is_empty()
    }

    /// Records what must happen between the GPU's writes and the stages: bounds of the blocks that the stages read,
    /// and the first place of instances that were nowhere before. [`Self::record`] does it.
    pub fn record_written(
        &mut self,
        (device, queue): (&Device, &Queue),
        encoder: &mut CommandEncoder,
    ) {
        let mut fresh = Vec::new();
        let reads_bounds = self.reads_bounds();
        let generation = self.pages.generation;
        for (id, written) in &mut self.written {
            let Some(set) = self.sets.get(*id) else {
                continue;
            };
            if set.channels.previous && written.kept < set.len {
                let range = written.kept as usize..set.len as usize;
                fresh.extend(copies(&self.pages, set, range));
            }
            written.kept = set.len;
            if let Some(bounds) = &self.bounds
                && written.classify
                && reads_bounds
            {
                let live = bound_jobs(set);
                let known = written.bounds.as_ref().is_some_and(|(made_for, known)| {
                    *made_for == generation
                        && known
                            .iter()
                            .map(|(job, _)| *job)
                            .eq(live.iter().map(|(_, job)| *job))
                });
                if !known {
                    let bind = |(page, job): (usize, BoundJob)| {
                        let page = self.pages.page(page)?;
                        let scales = page.scales.as_ref().unwrap_or(&self.no_channel);
                        let buffers = [&page.instances, scales, &page.bounds];
                        let made = bounds.bind((device, queue), buffers, &[job]);
                        let group = made
                            .map_err(|error| self.refusals.note::<()>(Err(error)))
                            .ok()?
                            .pop()?;
                        Some((job, group))
                    };
                    let bound = live.into_iter().filter_map(bind).collect();
                    written.bounds = Some((generation, bound));
                }
            }
        }
        let recorded = self.previous.record(device, encoder, &fresh);
        self.refusals.note(recorded);
        if let Some(bounds) = self.bounds.as_ref().filter(|_| reads_bounds) {
            let mut jobs = Vec::new();
            let written = self.written.values();
            for (_, made) in written
                .filter(|written| written.classify)
                .filter_map(|written| written.bounds.as_ref())
            {
                jobs.extend(made);
            }
            if !jobs.is_empty() {
                let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                    label: Some("gpu_culling bound"),
                    timestamp_writes: None,
                });
                bounds.record(&mut pass, jobs.iter().map(|(job, group)| (job, group)));
            }
        }
    }

    /// Reads the live instances of a set and their scales (empty without the channel), and waits: for tests and
    /// verification.
    ///
    /// # Errors
    /// [`CullError::UnknownSet`], [`CullError::Readback`].
    pub fn read_instances(
        &self,
        (device, queue): (&Device, &Queue),
        id: SetId,
    ) -> Result<(Vec<PackedInstance>, Vec<f32>), CullError> {
        let set = self.sets.get(id).ok_or(CullError::UnknownSet(id.0))?;
        let (mut instances, mut scales) = (Vec::new(), Vec::new());
        for (region, at, part) in super::pages::runs(&set.regions, 0..set.len as usize) {
            let Some(page) = self.pages.page(region.page) else {
                continue;
            };
            let offset = at as u64;
            let read: Vec<PackedInstance> =
                read_buffer(device, queue, &page.instances, offset * 16, part.len())?;
            instances.extend(read);
            if let Some(buffer) = page.scales.as_ref().filter(|_| set.channels.scale) {
                let read: Vec<f32> = read_buffer(device, queue, buffer, offset * 4, part.len())?;
                scales.extend(read);
            }
        }
        Ok((instances, scales))
    }
}

/// Page and job of each region of a written set with live instances.
fn bound_jobs(set: &Set) -> Vec<(usize, BoundJob)> {
    super::pages::runs(&set.regions, 0..set.len as usize)
        .map(|(region, at, part)| {
            let job = BoundJob {
                first_block: at as u32 / BLOCK,
                block_count: (part.len() as u32).div_ceil(BLOCK),
                end: at as u32 + part.len() as u32,
                has_scale: u32::from(set.channels.scale),
            };
            (region.page, job)
        })
        .collect()
}
