//! What came of recent frames: counters, refusals, bytes.

use super::Culler;
use crate::cull::{FrameCounts, Refusal};
use wgpu::Device;

impl Culler {
    /// What the device refused since the last call.
    pub fn take_refusals(&mut self) -> Vec<Refusal> {
        let mut refusals = self.store.take_refusals();
        refusals.append(&mut self.runner.take_refusals());
        refusals.append(&mut self.far_first.take_refusals());
        refusals.append(&mut self.occluder.take_refusals());
        refusals
    }

    /// The newest counters since the last call: a few frames old, never waited for. Polling the
    /// device is up to the caller.
    pub fn take_counts(&mut self, device: &Device) -> Option<FrameCounts> {
        let mut counts = FrameCounts::default();
        self.swap_counts(device, &mut counts).then_some(counts)
    }

    /// Same as [`Self::take_counts`], but swaps them with older ones, whose memory the next ones
    /// use. Returns whether there are any.
    pub fn swap_counts(&mut self, device: &Device, counts: &mut FrameCounts) -> bool {
        self.learn(device);
        self.runner.swap_counts(counts)
    }

    /// Gives `take` the newest counters of the late lists since the last call: one per view, of any
    /// frame. It may swap them with older ones, whose memory the next ones use.
    pub fn take_late_counts(&mut self, device: &Device, take: impl FnMut(&mut FrameCounts)) {
        self.occluder.take_counts(device, self.frame.now, take);
    }

    /// Bytes uploaded since the last call: instances, channels and tables.
    pub fn take_uploaded(&mut self) -> u64 {
        let late = self.occluder.take_uploaded();
        let sorted = self.far_first.take_uploaded();
        let tables = self.tables.take_uploaded();
        self.store.take_uploaded() + self.runner.take_uploaded() + tables + sorted + late
    }

    pub(super) fn learn(&mut self, device: &Device) {
        if let Some(counts) = self.runner.learn(device, self.frame.now) {
            self.choice.learn(counts);
        }
    }
}
