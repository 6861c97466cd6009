//! Hidden instances: the GPU sees a position that is not a number, and the place is kept here.

use std::ops::Range;

use super::PackedInstance;

/// Number of instances per page.
const PAGE: usize = 1024;
const WORDS: usize = PAGE / 64;

/// The x coordinates of hidden instances, by index. In the packed array their x is NaN, which no
/// view keeps.
///
/// Pages with hidden instances have one bit per instance, and the coordinates of the hidden ones in
/// the order of their indices.
#[derive(Clone, Default)]
pub(super) struct Hidden {
    pages: Vec<Option<Box<Page>>>,
    len: usize,
}

#[derive(Clone, Default)]
struct Page {
    bits: [u64; WORDS],
    x: Vec<f32>,
}

impl Page {
    /// Whether an instance is hidden, and how many before it are.
    fn find(&self, at: usize) -> (bool, usize) {
        let (word, bit) = (at / 64, at % 64);
        let before = self.bits[..word].iter().map(|word| word.count_ones());
        let below = (self.bits[word] & ((1 << bit) - 1)).count_ones();
        let is_hidden = self.bits[word] >> bit & 1 == 1;
        (is_hidden, (before.sum::<u32>() + below) as usize)
    }

    /// The instances, with their coordinates.
    fn iter(&self) -> impl Iterator<Item = (usize, f32)> + '_ {
        let places = (0..PAGE).filter(|at| self.bits[at / 64] >> (at % 64) & 1 == 1);
        places.zip(self.x.iter().copied())
    }
}

impl Hidden {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The x coordinate of an instance, if it is hidden.
    pub(super) fn x(&self, at: usize) -> Option<f32> {
        let page = self.pages.get(at / PAGE)?.as_ref()?;
        let (is_hidden, place) = page.find(at % PAGE);
        is_hidden.then(|| page.x[place])
    }

    /// The indices, in increasing order.
    pub(super) fn indices(&self) -> impl Iterator<Item = u32> + '_ {
        self.iter(0).map(|(at, _)| at as u32)
    }

    /// The indices in a range, in increasing order.
    pub(super) fn within(&self, range: Range<usize>) -> impl Iterator<Item = u32> + '_ {
        let from = self.iter(range.start).map(|(at, _)| at);
        from.take_while(move |at| *at < range.end)
            .map(|at| at as u32)
    }

    /// Hides an instance. Returns false if it was hidden.
    pub(super) fn hide(&mut self, at: usize, instance: &mut PackedInstance) -> bool {
        let is_new = self.insert(at, instance.position[0]);
        if is_new {
            instance.position[0] = f32::NAN;
        }
        is_new
    }

    /// Shows an instance. Returns false if it was not hidden.
    pub(super) fn show(&mut self, at: usize, instance: &mut PackedInstance) -> bool {
        let Some(x) = self.remove(at) else {
            return false;
        };
        instance.position[0] = x;
        true
    }

    /// Shows all, and returns their indices.
    pub(super) fn show_all(&mut self, instances: &mut [PackedInstance]) -> Vec<u32> {
        let hidden = core::mem::take(self);
        let shown = hidden.iter(0).map(|(at, x)| {
            instances[at].position[0] = x;
            at as u32
        });
        shown.collect()
    }

    /// Follows [`Vec::truncate`].
    pub(super) fn truncate(&mut self, len: usize) {
        drop(self.split_off(len));
    }

    /// Follows [`Vec::swap_remove`] of one of `len` instances.
    pub(super) fn swap_remove(&mut self, at: usize, len: usize) {
        self.remove(at);
        if let Some(x) = self.remove(len - 1) {
            self.insert(at, x);
        }
    }

    /// Follows a [`Vec::splice`] that puts `added` instances in the place of `range`; none of them
    /// is hidden. Returns what was hidden in `range`.
    pub(super) fn splice(&mut self, range: Range<usize>, added: usize) -> Self {
        let mut gone = Self::default();
        for (at, x) in self.split_off(range.start) {
            if at < range.end {
                gone.insert(at - range.start, x);
            } else {
                self.insert(at - range.len() + added, x);
            }
        }
        gone
    }

    /// Follows [`Vec::retain`]: `new_index` is `None` for instances that are removed.
    pub(super) fn retain(&mut self, new_index: impl Fn(usize) -> Option<u32>) {
        for (at, x) in core::mem::take(self).iter(0) {
            if let Some(at) = new_index(at) {
                self.insert(at as usize, x);
            }
        }
    }

    /// The hidden instances from `first` on, with their coordinates.
    fn iter(&self, first: usize) -> impl Iterator<Item = (usize, f32)> + '_ {
        let pages = self.pages.iter().enumerate().skip(first / PAGE);
        let places = pages.filter_map(|(page, hidden)| Some((page * PAGE, hidden.as_ref()?)));
        places
            .flat_map(|(start, page)| page.iter().map(move |(at, x)| (start + at, x)))
            .filter(move |(at, _)| *at >= first)
    }

    /// Removes all from `first` on, and returns them.
    fn split_off(&mut self, first: usize) -> Vec<(usize, f32)> {
        let gone: Vec<_> = self.iter(first).collect();
        for (at, _) in &gone {
            // A page that begins behind `first` goes as a whole.
            if at / PAGE == first / PAGE {
                self.remove(*at);
            }
        }
        self.pages.truncate(first / PAGE + 1);
        let left = self.pages.iter().flatten().map(|page| page.x.len());
        self.len = left.sum();
        gone
    }

    /// Returns false if it was there.
    fn insert(&mut self, at: usize, x: f32) -> bool {
        if self.pages.len() <= at / PAGE {
            self.pages.resize(at / PAGE + 1, None);
        }
        let page = self.pages[at / PAGE].get_or_insert_default();
        let at = at % PAGE;
        let (is_hidden, place) = page.find(at);
        if !is_hidden {
            page.bits[at / 64] |= 1 << (at % 64);
            page.x.insert(place, x);
            self.len += 1;
        }
        !is_hidden
    }

    fn remove(&mut self, at: usize) -> Option<f32> {
        let hidden = self.pages.get_mut(at / PAGE)?;
        let page = hidden.as_mut()?;
        let at = at % PAGE;
        let (is_hidden, place) = page.find(at);
        if !is_hidden {
            return None;
        }
        let x = page.x.remove(place);
        page.bits[at / 64] &= !(1 << (at % 64));
        self.len -= 1;
        if page.x.is_empty() {
            *hidden = None;
        }
        Some(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_many_instances_take_a_few_bytes_each() {
        const COUNT: usize = 100_000;
        let mut hidden = Hidden::default();
        let mut instance = PackedInstance::default();
        for at in (0..COUNT).step_by(2).rev() {
            instance.position[0] = at as f32;
            assert!(hidden.hide(at, &mut instance));
        }
        let pages = hidden.pages.iter().flatten();
        let bytes = pages.map(|page| size_of::<Page>() + 4 * page.x.capacity());
        let bytes = bytes.sum::<usize>() + 8 * hidden.pages.capacity();
        assert!(bytes < 12 * COUNT / 2, "{bytes}");
        assert_eq!((hidden.x(70), hidden.x(71)), (Some(70.0), None));
        hidden.truncate(2048);
        assert_eq!((hidden.len, hidden.indices().count()), (1024, 1024));
        hidden.truncate(0);
        assert!(hidden.is_empty());
    }
}
