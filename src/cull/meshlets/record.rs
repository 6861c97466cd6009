//! The passes of the meshlet stages, in order.

use super::{
    batch::MeshletBatch,
    culler::MeshletCuller,
    kernels::MeshletStage,
    layout::result_offset,
    pipelines::BatchWork,
    readback::{LateCounters, Meanings, RowMeaning},
};
use crate::cull::{BatchKey, Culler, Follower, PassRecorder};
use core::ops::Range;
use std::collections::HashMap;
use wgpu::{Buffer, CommandEncoder, ComputePass, Device};

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
        let keys = self.keys.iter();
        let keys = keys.filter(|(batch, _)| batches.contains(batch));
        let batches = keys.filter_map(|(_, key)| self.batches.get(key));
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
        let (copies, meanings) = results(&self.keys, (&self.batches, &self.meanings), &batches);
        if let Some(view) = meanings.first().and_then(|(key, _)| key.visible_in) {
            let late = self.late.entry(view).or_insert_with(LateCounters::new);
            late.last_used = self.frame;
            let copies = copies.into_iter();
            let note = |known: &mut Meanings| *known = meanings;
            late.readback
                .record(device, encoder, self.frame, copies, note);
        }
    }
}

/// What is copied of some batches of the culler, each buffer with its number of bytes, and what it
/// means.
fn results<'a>(
    keys: &[(usize, BatchKey)],
    (batches, meanings): (
        &'a HashMap<BatchKey, MeshletBatch>,
        &HashMap<BatchKey, Vec<RowMeaning>>,
    ),
    wanted: &Range<usize>,
) -> (Vec<(&'a Buffer, u64)>, Meanings) {
    let keys = keys.iter().filter(|(batch, _)| wanted.contains(batch));
    let found = keys.filter_map(|(_, key)| {
        let (batch, rows) = (batches.get(key)?, meanings.get(key)?);
        let copy = (batch.results(), result_offset(rows.len() as u32));
        Some((copy, (*key, rows.clone())))
    });
    found.unzip()
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
        let (copies, meanings) = results(&self.keys, (&self.batches, &self.meanings), &batches);
        let copies = copies.into_iter();
        let note = |known: &mut Meanings| *known = meanings;
        self.readback
            .record(device, encoder, self.frame, copies, note);
    }
}
