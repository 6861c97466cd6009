//! What the engine holds on the GPU, buffer by buffer.

use crate::cull::Culler;
use std::collections::BTreeMap;

impl Culler {
    /// Bytes of each kind of buffer, by the buffers' label. The table in `docs/internals/memory.md` explains them.
    #[must_use]
    pub fn memory(&self) -> BTreeMap<&'static str, u64> {
        let mut bytes = BTreeMap::new();
        let batches = self.batches.values().flat_map(|batch| batch.sizes());
        let counters = self.readback.bytes();
        let others = [
            ("gpu_culling no channel", self.no_channel.size()),
            ("gpu_culling counters", counters),
            ("gpu_culling previous", self.previous.bytes()),
        ];
        let pipelines = self.pipelines.iter().map(|pipelines| pipelines.size());
        let all = self
            .pages
            .sizes()
            .chain(batches)
            .chain(pipelines)
            .chain(others);
        for (label, size) in all {
            *bytes.entry(label).or_default() += size;
        }
        bytes
    }

    /// Bytes that the engine holds on the GPU: the sum of [`Self::memory`].
    #[must_use]
    pub fn gpu_bytes(&self) -> u64 {
        let batches = self.batches.values().flat_map(|batch| batch.sizes());
        let pipelines = self.pipelines.iter().map(|pipelines| pipelines.size());
        let named = self.pages.sizes().chain(batches).chain(pipelines);
        let named: u64 = named.map(|(_, size)| size).sum();
        named + self.no_channel.size() + self.readback.bytes() + self.previous.bytes()
    }

    /// Ids that the survivor arenas hold, all together; 4 bytes each.
    #[must_use]
    pub fn survivor_capacity(&self) -> u64 {
        let held = self.batches.values().map(|batch| batch.survivors().size());
        held.sum::<u64>() / 4
    }
}
