//! The passes of the meshlet stages, in order.

use super::{
    batch::MeshletBatch,
    culler::MeshletCuller,
    kernels::MeshletStage,
    layout::result_offset,
    pipelines::BatchWork,
    readback::{LateCounters, Meanings},
};
use crate::cull::{BatchKey, Culler, Follower, PassRecorder, gpu::staging::StagingRing};
use core::ops::Range;
use std::collections::HashMap;
use wgpu::{CommandEncoder, ComputePass, Device};

/// The label of the compute pass of late lists, and the name of its time span.
const LATE_SPAN: &str = "gpu_culling/meshlet_late";

impl MeshletCuller {
    /// Whether the frame has meshlets to test.
    #[must_use]
    pub fn has_gpu_work(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Whether some of these batches of the culler have meshlets to test.
    fn has_work_in(&self, batches: &Range<usize>) -> bool {
        let mut keys = self.keys.iter();
        keys.any(|(batch, _)| batches.contains(batch))
    }

    /// Records one stage of some batches of the culler, in the order of [`MeshletStage::ALL`].
    fn record_stage(
        &self,
        stage: MeshletStage,
        batches: &Range<usize>,
        pass: &mut ComputePass<'_>,
    ) {
        let batches = batches_in(&self.keys, &self.batches, batches).map(|(_, batch)| batch);
        let expanded = || batches.clone().filter_map(|batch| batch.items.as_ref());
        let work = batches.clone().map(|batch| BatchWork {
            rows: batch.row_table.len() as u32,
            max_items: batch.max_items,
            bind_groups: batch.bind_groups(),
        });
        self.pipelines.record(stage, work, pass);
        match stage {
            MeshletStage::Expand => expanded().for_each(|batch| batch.record_sources(pass)),
            MeshletStage::Vote => expanded().for_each(|batch| batch.record_items(pass)),
            _ => {}
        }
    }

    /// Records the stages of the late lists of view `view` of the frame, after the culler has
    /// recorded them ([`Culler::record_late`]): a compute pass.
    pub fn record_late(
        &mut self,
        culler: &Culler,
        device: &Device,
        encoder: &mut CommandEncoder,
        view: u32,
        passes: &mut dyn PassRecorder,
    ) {
        let batches = culler.late_batches(view);
        if !self.has_work_in(&batches) {
            return;
        }
        passes.pass(encoder, LATE_SPAN, &mut |pass| {
            for stage in MeshletStage::ALL {
                self.record_stage(stage, &batches, pass);
            }
        });
        let found = batches_in(&self.keys, &self.batches, &batches);
        let first = found.clone().next();
        if let Some(view) = first.and_then(|(key, _)| key.visible_in) {
            let late = self.late.entry(view).or_insert_with(LateCounters::new);
            late.last_used = self.frame;
            copy_results(&mut late.readback, device, encoder, self.frame, found);
        }
    }
}

/// The batches of the culler with these indices that have meshlets to test, and their names.
fn batches_in<'a>(
    keys: &'a [(usize, BatchKey)],
    batches: &'a HashMap<BatchKey, MeshletBatch>,
    wanted: &'a Range<usize>,
) -> impl Iterator<Item = (BatchKey, &'a MeshletBatch)> + Clone {
    let keys = keys.iter();
    let keys = keys.filter(move |(batch, _)| wanted.contains(batch));
    keys.filter_map(move |(_, key)| Some((*key, batches.get(key)?)))
}

/// Copies the results of some batches, and keeps what they mean in the memory of what earlier ones
/// meant.
fn copy_results<'a>(
    readback: &mut StagingRing<Meanings>,
    device: &Device,
    encoder: &mut CommandEncoder,
    frame: u64,
    batches: impl Iterator<Item = (BatchKey, &'a MeshletBatch)> + Clone,
) {
    let copies = batches.clone().map(|(_, batch)| {
        let rows = batch.meanings.len() as u32;
        (batch.results(), result_offset(rows))
    });
    readback.record(device, encoder, frame, copies, |kept| {
        let mut count = 0;
        for (key, batch) in batches {
            if kept.len() == count {
                kept.push((key, Vec::new()));
            }
            let (known, meanings) = &mut kept[count];
            *known = key;
            meanings.clone_from(&batch.meanings);
            count += 1;
        }
        kept.truncate(count);
    });
}

impl Follower for MeshletCuller {
    fn has_work(&self) -> bool {
        self.has_work_in(&(0..self.first_late))
    }

    fn record(
        &mut self,
        _: &Culler,
        device: &Device,
        encoder: &mut CommandEncoder,
        passes: &mut dyn PassRecorder,
    ) {
        let batches = 0..self.first_late;
        for stage in MeshletStage::ALL {
            passes.pass(encoder, stage.span(), &mut |pass| {
                self.record_stage(stage, &batches, pass);
            });
        }
        let found = batches_in(&self.keys, &self.batches, &batches);
        copy_results(&mut self.readback, device, encoder, self.frame, found);
    }
}
