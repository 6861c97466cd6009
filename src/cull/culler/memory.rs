//! What the engine holds on the GPU, buffer by buffer.

use super::Culler;
use std::collections::BTreeMap;

impl Culler {
    /// Size of each kind of buffer, in bytes, by label. `docs/internals/memory.md` explains them.
    #[must_use]
    pub fn memory(&self) -> BTreeMap<&'static str, u64> {
        let mut bytes = BTreeMap::new();
        for (label, size) in self.sizes() {
            *bytes.entry(label).or_default() += size;
        }
        bytes
    }

    /// Bytes that the engine holds on the GPU: the sum of [`Self::memory`].
    #[must_use]
    pub fn gpu_bytes(&self) -> u64 {
        self.sizes().map(|(_, size)| size).sum()
    }

    /// Label and size in bytes of each buffer.
    fn sizes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let sizes = self.store.sizes().chain(self.runner.sizes());
        sizes
            .chain([self.tables.size()])
            .chain(self.far_first.sizes())
            .chain(self.occluder.sizes())
    }

    /// Number of ids that the survivor arenas hold, 4 bytes each.
    #[must_use]
    pub fn survivor_capacity(&self) -> u64 {
        self.runner.survivor_capacity()
    }
}
