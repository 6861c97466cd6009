//! The passes of the meshlet stages, in order.

use super::{
    batch::MeshletBatch,
    culler::MeshletCuller,
    layout::result_offset,
    pipelines::{BatchWork, MeshletStage},
};
use crate::cull::{Culler, Follower, PassRecorder};
use wgpu::{CommandEncoder, ComputePass, Device};

impl MeshletCuller {
    /// Whether the frame has meshlets to test.
    #[must_use]
    pub fn has_gpu_work(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Records one stage of all batches, in the order of [`MeshletStage::ALL`].
    fn record_stage(&self, stage: MeshletStage, pass: &mut ComputePass<'_>) {
        let batches = self
            .keys
            .iter()
            .filter_map(|(_, key)| self.batches.get(key));
        let expanded = || batches.clone().filter_map(|batch| batch.items.as_ref());
        let work = |batch: &'_ MeshletBatch, bind_groups| BatchWork {
            rows: batch.row_table.len() as u32,
            most_items: batch.most_items,
            is_divided: batch.items.is_none(),
            bind_groups,
        };
        let all = batches
            .clone()
            .map(|batch| work(batch, batch.bind_groups()));
        let by_items = batches
            .clone()
            .filter_map(|batch| Some(work(batch, &batch.items.as_ref()?.bind_groups)));
        let items = self.items.built().map(|kernels| &kernels.pipelines);
        // The scan counts bits before its second step adds up.
        if let (MeshletStage::Scan, Some(items)) = (stage, items) {
            items.record(stage, by_items.clone(), pass);
        }
        self.pipelines.record(stage, all, pass);
        match (stage, items) {
            (MeshletStage::Expand, Some(items)) => {
                items.record(stage, by_items, pass);
                expanded().for_each(|batch| batch.record_sources(pass));
            }
            (MeshletStage::Vote, Some(_)) => expanded().for_each(|batch| batch.record_items(pass)),
            _ => {}
        }
    }

    /// Records the copy of the counters.
    fn record_readback(&mut self, device: &Device, encoder: &mut CommandEncoder) {
        let mut copies = Vec::new();
        let mut meaning = Vec::new();
        for (_, key) in &self.keys {
            if let (Some(batch), Some(rows)) = (self.batches.get(key), self.meanings.get(key)) {
                copies.push((batch.results(), result_offset(rows.len() as u32)));
                meaning.push((*key, rows.clone()));
            }
        }
        self.readback
            .record(device, encoder, self.frame, &copies, meaning);
    }
}

impl Follower for MeshletCuller {
    fn has_work(&self) -> bool {
        self.has_gpu_work()
    }

    fn record(
        &mut self,
        _: &Culler,
        device: &Device,
        encoder: &mut CommandEncoder,
        passes: &mut dyn PassRecorder,
    ) {
        for stage in MeshletStage::ALL {
            passes.pass(encoder, stage.span(), &mut |pass| {
                self.record_stage(stage, pass);
            });
        }
        self.record_readback(device, encoder);
    }
}
