//! Sets that the GPU writes, and the previous frame's instances of all sets.

use super::{
    InstanceStore, Residency,
    fill::Filler,
    previous::{PendingCopy, copies},
    region::{Region, RegionLayout, SetId},
    residents::Set,
    upload::checked,
    written_room::{NotedWrites, WrittenRegion, WrittenRoom, WrittenSize},
};
use crate::{
    cull::{
        CullError,
        gpu::Gpu,
        layout::{BLOCK, BOUND_IS_LOOSE, Bound},
        refusal::Missing,
    },
    instance::{PackedInstance, PackedQuat, ScaleKind},
};
use core::ops::Range;
use wgpu::{CommandEncoder, Queue};

/// An instance that no view keeps: its position is not a number.
const HIDDEN: PackedInstance = PackedInstance {
    position: [f32::NAN; 3],
    rotation: PackedQuat::IDENTITY,
};

impl InstanceStore {
    /// Makes room for a set that the GPU writes. All its instances are hidden until they are
    /// written.
    ///
    /// # Errors
    /// [`CullError::WrittenOnCpu`] on the `Cpu` tier; [`CullError::Gpu`] if the device is out of
    /// memory. The set is then not resident.
    pub fn reserve_written(
        &mut self,
        gpu: Gpu<'_>,
        id: SetId,
        size: WrittenSize,
    ) -> Result<Residency, CullError> {
        let WrittenSize {
            capacity,
            active,
            channels,
            classify,
            noted,
        } = size;
        if self.is_on_cpu {
            self.remove_set(id);
            return Err(CullError::WrittenOnCpu(id.0));
        }
        let layout = RegionLayout {
            keeps_previous: channels.previous,
            is_private: true,
        };
        let active = active.min(capacity);
        if let Some(set) = self.sets.get(id)
            && let Some(written) = self.written.get_mut(&id)
            && set.layout == layout
            && set.channels == channels
            && (written.capacity, written.is_classified) == (capacity, classify)
            && written.noted.is_some() == noted
        {
            if let Some(noted) = &mut written.noted
                && set.len != active
            {
                // The last block has more or fewer instances than before.
                noted.add(set.len.min(active).saturating_sub(1)..set.len.max(active));
            }
            self.sets.resize(id, active, channels);
            return Ok(Residency::Kept);
        }
        self.remove_set(id);
        let regions = self
            .pages
            .allocate(gpu.device, id, capacity, layout, channels)?;
        let added = self.pages.add_channels(gpu.device, &regions, channels);
        if let Err(error) = added.and_then(|()| self.pages.prove(gpu.queue, &regions)) {
            self.pages.release(&regions, layout);
            return Err(error);
        }
        if let Err(error) = self.hide_places(gpu, &regions, layout, classify) {
            self.pages.release(&regions, layout);
            return Err(error);
        }
        let written = WrittenRoom {
            capacity,
            is_classified: classify,
            noted: noted.then(|| {
                let mut all = NotedWrites::default();
                all.add(0..capacity);
                all
            }),
            previous_len: 0,
            is_tested: false,
            bounds: None,
        };
        let set = Set::new(active, channels, regions, layout);
        self.sets.insert(id, set);
        self.written.insert(id, written);
        Ok(Residency::Moved)
    }

    /// Hides all places of written regions. If their bounds are not computed (`classify`), no block
    /// is ever rejected or accepted as a whole.
    fn hide_places(
        &mut self,
        gpu: Gpu<'_>,
        regions: &[Region],
        layout: RegionLayout,
        classify: bool,
    ) -> Result<(), CullError> {
        let places = |region: &Region| u64::from(region.capacity) * u64::from(layout.factor());
        let max = regions.iter().map(places).max().unwrap_or(0);
        let hidden = Filler::new(gpu, HIDDEN, max)?;
        let unknown = Bound {
            radius: f32::MAX,
            // Above every scale, and its square is finite.
            max_scale: 1e18,
            // The bounds of its words are unknown too.
            halves: BOUND_IS_LOOSE,
            gaps: u32::MAX,
            ..Bound::default()
        };
        let bounds = match classify {
            true => None,
            false => Some(Filler::new(gpu, unknown, max.div_ceil(u64::from(BLOCK)))?),
        };
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        for region in regions {
            let Some(page) = self.pages.page(region.page) else {
                continue;
            };
            hidden.record(&mut encoder, &page.instances, places(region));
            if let Some(bounds) = &bounds {
                let blocks = u64::from(region.capacity / BLOCK);
                bounds.record(&mut encoder, &page.bounds, blocks);
            }
        }
        gpu.queue.submit([encoder.finish()]);
        self.uploaded += hidden.bytes() + bounds.map_or(0, |bounds| bounds.bytes());
        Ok(())
    }

    /// Notes which instances of a set the GPU writes in the frame, before it is recorded. Only sets
    /// with [`WrittenSize::noted`] need it.
    pub fn note_written(&mut self, id: SetId, range: Range<u32>) {
        if let Some(WrittenRoom {
            capacity,
            noted: Some(noted),
            ..
        }) = self.written.get_mut(&id)
        {
            noted.add(range.start.min(*capacity)..range.end.min(*capacity));
        }
    }

    /// Notes which written sets this frame tests. For the others, nothing is computed or copied.
    pub(in crate::cull) fn note_tested(&mut self, tested: impl Iterator<Item = SetId>) {
        if self.written.is_empty() {
            return;
        }
        for written in self.written.values_mut() {
            written.is_tested = false;
        }
        for set in tested {
            if let Some(written) = self.written.get_mut(&set) {
                written.is_tested = true;
            }
        }
    }

    /// The buffers of a set that the GPU writes, in order: one, or several if one binding does not
    /// hold the set. Empty for other sets. They stay valid until [`Self::reserve_written`] returns
    /// [`Residency::Moved`].
    #[must_use]
    pub fn written_regions(&self, id: SetId) -> Vec<WrittenRegion> {
        let Some((set, written)) = self.sets.get(id).zip(self.written.get(&id)) else {
            return Vec::new();
        };
        let mut first = 0u32;
        let region = |region: &Region| {
            let page = self.pages.page(region.page)?;
            let at = first;
            // Nothing reads this value after the last region.
            first = first.wrapping_add(region.capacity);
            Some(WrittenRegion {
                instances: page.instances.clone(),
                scales: (page.scales.clone()).filter(|_| set.channels.scale != ScaleKind::One),
                scale_floats: set.channels.scale.floats() as u32,
                data: (page.data.clone()).filter(|_| set.channels.data_words > 0),
                data_words: set.channels.data_words,
                first: at,
                capacity: region.capacity.min(written.capacity - at),
            })
        };
        set.regions.iter().filter_map(region).collect()
    }

    /// Keeps the instances in `ranges` as the previous ones, before they change. Call it between
    /// [`Self::reserve_set`] and the uploads, with the ranges that the previous frame changed; or
    /// with no ranges if the set moved, because a moved set takes its previous instances along. If
    /// it got another [`ScaleKind`], call [`Self::upload_previous`] for all instances instead.
    /// Does nothing without [`Channels::previous`](crate::cull::Channels::previous).
    ///
    /// # Errors
    /// [`CullError::UnknownSet`].
    pub fn keep_previous(
        &mut self,
        gpu: Gpu<'_>,
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
            self.submit_copies(gpu, kept);
        }
        Ok(())
    }

    /// Writes previous instances from `first` on: for instances that had no place before.
    ///
    /// # Errors
    /// Same as [`Self::upload`].
    pub fn upload_previous(
        &mut self,
        queue: &Queue,
        id: SetId,
        first: usize,
        (instances, scales): (&[PackedInstance], (ScaleKind, &[f32])),
    ) -> Result<(), CullError> {
        let range = first..first.saturating_add(instances.len());
        let set = checked(&self.sets, id, core::iter::once(range))?;
        if set.channels.previous {
            let data = (instances, scales);
            self.pages.prove(queue, &set.regions)?;
            self.pages.write_previous(queue, &set.regions, first, data);
        }
        Ok(())
    }

    /// Keeps what the GPU wrote in the previous frame, and the instances of moved sets. Call it
    /// before anything is written in the frame.
    pub(in crate::cull) fn keep_before_writes(&mut self, gpu: Gpu<'_>) {
        let mut all = Vec::new();
        for (id, written) in &mut self.written {
            if let Some(set) = self.sets.get(*id)
                && set.channels.previous
                && written.is_tested
            {
                written.previous_len = written.previous_len.min(set.len);
                let range = 0..written.previous_len as usize;
                all.extend(copies(&self.pages, set, range));
            }
        }
        self.submit_copies(gpu, all);
    }

    /// Submits copies, after the copies of moved sets.
    fn submit_copies(&mut self, gpu: Gpu<'_>, copies: Vec<PendingCopy>) {
        let mut all = core::mem::take(&mut self.previous.moves);
        all.extend(copies);
        if !all.is_empty() {
            let mut encoder = gpu.device.create_command_encoder(&Default::default());
            let recorded = self.previous.record(gpu.device, &mut encoder, &all);
            let is_refused = recorded.is_err();
            self.refusals.note_error(recorded, Missing::PreviousPlaces);
            if is_refused {
                // Try again in the next frame. Until then, moved sets are drawn with their old
                // motion.
                self.previous.moves = all;
                return;
            }
            gpu.queue.submit([encoder.finish()]);
        }
        for set in self.previous.retired.drain(..) {
            self.pages.release(&set.regions, set.layout);
        }
    }

    /// Whether the GPU writes some set.
    pub(in crate::cull) fn has_written(&self) -> bool {
        !self.written.is_empty()
    }

    /// Records what must happen between the GPU's writes and the stages: computes the bounds of
    /// written blocks if the stages read them (`reads_bounds`), and sets the first previous place
    /// of new instances.
    pub(in crate::cull) fn record_written(
        &mut self,
        gpu: Gpu<'_>,
        encoder: &mut CommandEncoder,
        reads_bounds: bool,
    ) {
        let mut new_places = Vec::new();
        for (id, written) in &mut self.written {
            if let Some(set) = self.sets.get(*id) {
                let is_drawn = written.is_tested && set.channels.previous;
                if is_drawn && written.previous_len < set.len {
                    let range = written.previous_len as usize..set.len as usize;
                    new_places.extend(copies(&self.pages, set, range));
                }
                written.previous_len = set.len;
            }
        }
        let recorded = self.previous.record(gpu.device, encoder, &new_places);
        self.refusals.note_error(recorded, Missing::PreviousPlaces);
        if reads_bounds {
            self.record_written_bounds(gpu, encoder);
        }
    }
}
