//! The meshlet stages, which follow a culler's stages: what they hold, and the frame's plan.

use super::{
    batch::{BatchCapacities, Inputs, MeshletBatch, max_cells},
    expansion::MeshletExpansion,
    items::Items,
    kernels::{Form, MeshletStage},
    layout::{CELL_WORDS, ITEM_MESHLETS, MESHLET_TILE, MeshletRow},
    options::MeshletOptions,
    pipelines::Pipelines,
    readback::{LateCounters, Meanings, MeshletCounts},
    request::MeshletRequest,
    tables::{MeshletMeshId, Tables},
};
use crate::{
    cull::{
        BatchKey, CullError, CullFrame, Culler, CullingTier, DrawPart, DrawSource, Gpu,
        gpu::{limits::binding_limit, on_demand::RetryTimer, staging::StagingRing},
        layout::DrawCommand,
        policy::KEEP_FRAMES,
    },
    meshlet::Meshlet,
};
use std::collections::HashMap;
use wgpu::Device;

/// Largest number of cells, so that ids and tests can be counted in 32 bits.
const MAX_CELLS: u64 = 1 << 24;

/// Tests the meshlets of the survivors of a [`Culler`].
pub struct MeshletCuller {
    pub(super) pipelines: Pipelines,
    /// The expansions other than the division.
    pub(super) items: Items,
    pub(super) options: MeshletOptions,
    pub(super) limits: BatchCapacities,
    pub(super) max_draws: u64,
    pub(super) tables: Tables,
    pub(super) batches: HashMap<BatchKey, MeshletBatch>,
    /// The current frame's batches: the index of the culler's batch, and its key.
    pub(super) keys: Vec<(usize, BatchKey)>,
    /// Index of the meshlet row, by index of the batch and index of the row in the batch.
    pub(super) lookup: HashMap<(usize, u32), u32>,
    pub(super) readback: StagingRing<Meanings>,
    /// The newest counters, unless somebody has taken them.
    pub(super) counts: MeshletCounts,
    pub(super) has_counts: bool,
    /// Counters of the late lists, by view.
    pub(super) late: HashMap<u64, LateCounters>,
    /// Number of the culler's batches before the batches of late lists.
    pub(super) first_late: usize,
    pub(super) frame: u64,
    uploaded: u64,
    /// Batches that the device refused.
    pub(super) refused: HashMap<BatchKey, RetryTimer>,
    errors: Vec<CullError>,
}

impl MeshletCuller {
    /// Meshlet stages for a culler's tier; `None` on [`CullingTier::Cpu`], which draws survivors
    /// whole.
    ///
    /// # Errors
    /// [`CullError::Pipeline`] if a kernel does not build.
    pub fn new(
        device: &Device,
        tier: CullingTier,
        options: MeshletOptions,
    ) -> Result<Option<Self>, CullError> {
        Self::edited(device, tier, options, |_, source| source)
    }

    /// Meshlet stages whose kernels are changed by `edit`: a test breaks them on purpose.
    ///
    /// # Errors
    /// Same as [`Self::new`].
    #[cfg(feature = "testing")]
    pub fn with_sources(
        device: &Device,
        tier: CullingTier,
        options: MeshletOptions,
        edit: impl Fn(MeshletStage, String) -> String + Send + Sync + 'static,
    ) -> Result<Option<Self>, CullError> {
        Self::edited(device, tier, options, edit)
    }

    fn edited(
        device: &Device,
        tier: CullingTier,
        options: MeshletOptions,
        edit: impl Fn(MeshletStage, String) -> String + Send + Sync + 'static,
    ) -> Result<Option<Self>, CullError> {
        if tier == CullingTier::Cpu {
            return Ok(None);
        }
        let binding = binding_limit(&device.limits());
        let cells = (binding / (u64::from(CELL_WORDS) * 4)).min(MAX_CELLS) as u32;
        let items = Items::new(tier, options, Box::new(edit));
        Ok(Some(Self {
            pipelines: Pipelines::build(device, tier, &options, items.edit())?,
            items,
            limits: BatchCapacities {
                cells: cells - 1,
                survivors: (binding / 4).min(u64::from(u32::MAX)) as u32,
            },
            max_draws: (binding / size_of::<DrawCommand>() as u64).min(u64::from(u32::MAX)),
            options,
            tables: Tables::new(device, binding),
            batches: HashMap::new(),
            keys: Vec::new(),
            lookup: HashMap::new(),
            readback: StagingRing::new("gpu_culling meshlet counters"),
            counts: MeshletCounts::default(),
            has_counts: false,
            late: HashMap::new(),
            first_late: 0,
            frame: 0,
            uploaded: 0,
            refused: HashMap::new(),
            errors: Vec::new(),
        }))
    }

    /// Adds a mesh, or replaces it: the meshlets of each of its levels of detail, the full mesh
    /// first. All levels lie in one index buffer, in which meshlets count their indices from the
    /// full mesh's first.
    ///
    /// # Errors
    /// [`CullError::TooManyMeshlets`].
    pub fn insert_mesh(
        &mut self,
        id: MeshletMeshId,
        levels: &[&[Meshlet]],
    ) -> Result<(), CullError> {
        self.tables.insert(id, levels)
    }

    /// Removes a mesh.
    pub fn remove_mesh(&mut self, id: MeshletMeshId) {
        self.tables.remove(id);
    }

    /// Size of all buffers on the GPU, in bytes.
    #[must_use]
    pub fn gpu_bytes(&self) -> u64 {
        self.tables.buffer().size() + self.batches.values().map(MeshletBatch::bytes).sum::<u64>()
    }

    /// Number of bytes uploaded since the last call.
    pub fn take_uploaded(&mut self) -> u64 {
        core::mem::take(&mut self.uploaded)
    }

    // ---- the frame

    /// Plans the frame after the culler has prepared it: the survivors of `requests` are drawn by
    /// meshlets. Ignores requests whose mesh is not known or has no indices.
    pub fn prepare(
        &mut self,
        gpu: Gpu<'_>,
        culler: &Culler,
        frame: &CullFrame,
        requests: &[MeshletRequest],
    ) {
        self.frame = culler.frame_number();
        self.first_late = culler.early_batch_count();
        self.learn();
        self.keys.clear();
        self.lookup.clear();
        match self.tables.upload(gpu, self.frame) {
            Ok(bytes) => self.uploaded += bytes,
            Err(error) => self.errors.push(error),
        }
        for batch in self.batches.values_mut() {
            batch.row_table.clear();
            batch.meanings.clear();
        }
        for request in requests {
            self.add_request(gpu.device, culler, frame, request);
        }
        for index in 0..self.keys.len() {
            let (batch, key) = self.keys[index];
            self.prepare_batch(gpu, culler, batch, key);
        }
        self.keys.retain(|(_, key)| self.batches.contains_key(key));
        let now = self.frame;
        self.batches
            .retain(|_, batch| batch.last_used + KEEP_FRAMES >= now);
        self.late
            .retain(|_, late| late.last_used + KEEP_FRAMES >= now);
    }

    fn prepare_batch(&mut self, gpu: Gpu<'_>, culler: &Culler, index: usize, key: BatchKey) {
        let (Some(batch), Some([survivors, instances, scales, _]), Some(version)) = (
            self.batches.get_mut(&key),
            culler.batch_buffers(index),
            culler.batch_version(index),
        ) else {
            return;
        };
        let part = DrawPart {
            batch: index,
            ..DrawPart::default()
        };
        let Some(DrawSource::Indirect(args)) = culler.draw_source(&part) else {
            return;
        };
        batch.last_used = self.frame;
        let cells = max_cells(&batch.row_table);
        let groups = |row: &MeshletRow| {
            let tiles = row.chunk.instance_count.div_ceil(MESHLET_TILE);
            u64::from(tiles) * u64::from(row.meshlet_count.div_ceil(ITEM_MESHLETS))
        };
        batch.max_items = batch.row_table.iter().map(groups).sum();
        let max_survivors = cells.saturating_mul(u64::from(MESHLET_TILE));
        let start = |asked: u32, max: u64, limit: u32| {
            let room = u64::from(asked).min(max).min(u64::from(limit));
            room.max(1) as u32
        };
        let first = BatchCapacities {
            cells: start(self.options.cell_capacity, cells, self.limits.cells),
            survivors: start(
                self.options.survivor_capacity,
                max_survivors,
                self.limits.survivors,
            ),
        };
        batch.capacities.cells = batch.capacities.cells.max(first.cells);
        batch.capacities.survivors = batch.capacities.survivors.max(first.survivors);
        let inputs = Inputs {
            batch_args: args.buffer,
            survivors,
            instances,
            scales,
            meshlets: self.tables.buffer(),
            pyramid: culler.batch_pyramid(index),
            version: (version, self.tables.version),
        };
        let is_late = inputs.pyramid.is_some();
        self.items.ready(gpu.device, is_late, self.frame);
        let kernels = self.items.kernels(is_late);
        let expanded = batch.prepare_items(gpu, kernels, &inputs);
        let form = match (&batch.items, is_late) {
            (Some(_), _) => Form::Items,
            (None, true) => Form::LateDivision,
            (None, false) => Form::Division,
        };
        let edit = self.items.edit();
        let form = match self.pipelines.ready(gpu.device, form, self.frame, edit) {
            Ok(true) => form,
            other => {
                self.errors.extend(other.err());
                batch.items = None;
                Form::Division
            }
        };
        let prepared = batch.prepare(gpu, &self.pipelines, kernels, form, &inputs);
        if let Err(error) = expanded {
            self.items.note("\"division\"", &error.to_string());
        }
        match prepared {
            Ok(bytes) => {
                self.uploaded += bytes;
                self.refused.remove(&key);
            }
            Err(error) => self.refuse(key, error),
        }
    }

    /// Notes that the device refused a batch: its survivors are drawn whole until it is tried
    /// again.
    pub(super) fn refuse(&mut self, key: BatchKey, error: CullError) {
        self.batches.remove(&key);
        let retry = RetryTimer::start(self.frame);
        if self.refused.insert(key, retry).is_none() {
            self.errors.push(error);
        }
    }

    /// Whether the device refused a batch, and is not to be asked for it yet.
    pub(super) fn is_refused(&self, key: BatchKey) -> bool {
        let retry = self.refused.get(&key);
        retry.is_some_and(|retry| retry.waits(self.frame))
    }

    /// Errors of the device since the last call. The sets that they concern are drawn whole.
    pub fn take_errors(&mut self) -> Vec<CullError> {
        core::mem::take(&mut self.errors)
    }

    /// How survivors are expanded from the next frame on ([`MeshletOptions::expansion`]).
    pub fn set_expansion(&mut self, expansion: MeshletExpansion) {
        self.items.set(expansion);
    }

    /// How survivors are to be expanded.
    #[cfg(feature = "bevy")]
    pub(crate) fn asked_expansion(&self) -> MeshletExpansion {
        self.items.way()
    }

    /// How survivors of the current frame are expanded; never [`MeshletExpansion::Auto`]. If pages
    /// differ, the one that is not the division. `None` without meshlets to test.
    #[must_use]
    pub fn expansion(&self) -> Option<MeshletExpansion> {
        let batches = self.keys.iter().map(|(_, key)| self.batches.get(key));
        let mut expansions = batches.flatten().map(|batch| match &batch.items {
            Some(items) => MeshletExpansion::By(items.expansion()),
            None => MeshletExpansion::Division,
        });
        let first = expansions.next()?;
        Some(expansions.fold(first, MeshletExpansion::max))
    }

    /// Lines for the log since the last call: which expansion is used instead of the one that was
    /// asked for, and why.
    pub fn take_notes(&mut self) -> Vec<String> {
        self.items.take_notes()
    }

    /// Ends a frame. Call this after its commands were submitted.
    pub fn finish(&mut self) {
        self.readback.after_submit();
        for late in self.late.values_mut() {
            late.readback.after_submit();
        }
    }
}
