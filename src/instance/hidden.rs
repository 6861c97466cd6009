//! Hidden instances: the GPU sees a position that is not a number, and the place is kept here.

use std::collections::BTreeMap;
use std::ops::Range;

use super::PackedInstance;

/// The x coordinates of hidden instances, by index. In the packed array their x is NaN, which no
/// view keeps.
#[derive(Clone, Default)]
pub(super) struct Hidden {
    x: BTreeMap<u32, f32>,
}

impl Hidden {
    pub(super) fn is_empty(&self) -> bool {
        self.x.is_empty()
    }

    /// The x coordinate of an instance, if it is hidden.
    pub(super) fn x(&self, at: usize) -> Option<f32> {
        self.x.get(&(at as u32)).copied()
    }

    /// The indices, in increasing order.
    pub(super) fn indices(&self) -> impl Iterator<Item = u32> {
        self.x.keys().copied()
    }

    /// Hides an instance. Returns false if it was hidden.
    pub(super) fn hide(&mut self, at: usize, instance: &mut PackedInstance) -> bool {
        if self.x.contains_key(&(at as u32)) {
            return false;
        }
        self.x.insert(at as u32, instance.position[0]);
        instance.position[0] = f32::NAN;
        true
    }

    /// Shows an instance. Returns false if it was not hidden.
    pub(super) fn show(&mut self, at: usize, instance: &mut PackedInstance) -> bool {
        let Some(x) = self.x.remove(&(at as u32)) else {
            return false;
        };
        instance.position[0] = x;
        true
    }

    /// Shows all, and returns their indices.
    pub(super) fn show_all(&mut self, instances: &mut [PackedInstance]) -> Vec<u32> {
        let hidden = core::mem::take(&mut self.x);
        for (&at, &x) in &hidden {
            instances[at as usize].position[0] = x;
        }
        hidden.into_keys().collect()
    }

    /// Follows [`Vec::truncate`].
    pub(super) fn truncate(&mut self, len: usize) {
        self.x.split_off(&(len as u32));
    }

    /// Follows [`Vec::swap_remove`] of one of `len` instances.
    pub(super) fn swap_remove(&mut self, at: usize, len: usize) {
        self.x.remove(&(at as u32));
        if let Some(x) = self.x.remove(&(len as u32 - 1)) {
            self.x.insert(at as u32, x);
        }
    }

    /// Follows a [`Vec::splice`] that puts `added` instances in the place of `range`; none of them
    /// is hidden. Returns what was hidden in `range`.
    pub(super) fn splice(&mut self, range: Range<usize>, added: usize) -> Self {
        if self.x.is_empty() {
            return Self::default();
        }
        let (start, end) = (range.start as u32, range.end as u32);
        let mut gone = self.x.split_off(&start);
        let behind = gone.split_off(&end);
        let new_end = start + added as u32;
        let behind = behind.into_iter().map(|(at, x)| (at - end + new_end, x));
        self.x.extend(behind);
        let gone = gone.into_iter().map(|(at, x)| (at - start, x));
        Self { x: gone.collect() }
    }

    /// Follows [`Vec::retain`]: `new_index` is `None` for instances that are removed.
    pub(super) fn retain(&mut self, new_index: impl Fn(usize) -> Option<u32>) {
        let old = core::mem::take(&mut self.x);
        let kept = old.into_iter();
        let kept = kept.filter_map(|(at, x)| Some((new_index(at as usize)?, x)));
        self.x = kept.collect();
    }
}
