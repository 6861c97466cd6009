//! Sets in pages: names, channels, regions.

use crate::instance::ScaleKind;
use core::ops::Range;

/// Name of a set of instances. The caller chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId(pub u64);

/// Optional channels of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    /// A scale per instance, of one number or of one per axis.
    pub scale: ScaleKind,
    /// Words of data per instance, of which the first is its tag: 0 to 4.
    pub data_words: u32,
    /// The previous frame's data per instance, for motion vectors; takes twice the room. In each
    /// page, it lies [`Region::capacity`] instances behind the current data.
    pub previous: bool,
}

/// What the channels of all sets in a page have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChannelLayout {
    is_per_axis: bool,
    /// 1 without data, too: such sets share pages with those that have tags.
    data_words: u32,
}

impl Channels {
    pub(crate) fn layout(self) -> ChannelLayout {
        ChannelLayout {
            is_per_axis: self.scale == ScaleKind::NonUniform,
            data_words: self.data_words.max(1),
        }
    }
}

/// How a set's room is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RegionLayout {
    /// Whether each region has room of the same size behind it, for the previous frame.
    pub keeps_previous: bool,
    /// Whether the set has pages that no other set shares, and which stay until the set moves.
    pub is_private: bool,
}

impl RegionLayout {
    /// The room of a set that the CPU uploads.
    pub fn of(channels: Channels) -> Self {
        Self {
            keeps_previous: channels.previous,
            is_private: false,
        }
    }

    /// Number of places that a region takes per instance.
    pub fn factor(self) -> u32 {
        if self.keeps_previous { 2 } else { 1 }
    }
}

/// A run of a set's instances in one page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Index of the page.
    pub page: usize,
    /// First instance of the region, counted from the start of the page; a multiple of 128, or in a
    /// page that small sets do not share, of 1,024.
    pub first: u32,
    /// Index of the bounds of its first 1,024 instances, counted from the start of the page. The
    /// bounds of its next ones follow. A page has bounds per 128 places if small sets share it,
    /// otherwise per 1,024.
    pub first_bound: u32,
    /// Number of instances that fit; a multiple of the same number as `first`.
    pub capacity: u32,
}

/// The part of a range of a set that lies in one region.
pub(crate) struct Run<'a> {
    /// The region.
    pub region: &'a Region,
    /// First instance of the part, counted from the start of the page.
    pub at: usize,
    /// Range of the set's instances.
    pub part: Range<usize>,
}

/// Cuts `range` of a set at the borders of its regions.
pub(crate) fn runs(
    regions: &[Region],
    range: Range<usize>,
) -> impl Iterator<Item = Run<'_>> + Clone {
    let mut start = 0;
    regions.iter().filter_map(move |region| {
        let all = start..start + region.capacity as usize;
        start = all.end;
        let part = all.start.max(range.start)..all.end.min(range.end);
        let at = region.first as usize + part.start.saturating_sub(all.start);
        (part.start < part.end).then_some(Run { region, at, part })
    })
}

/// Cuts `data`, which starts at instance `first` of the set, at the borders of the set's regions.
/// Yields the region, the first instance counted from the start of its page, and the data.
pub(crate) fn split<'r, 'a, T>(
    regions: &'r [Region],
    first: usize,
    data: &'a [T],
) -> impl Iterator<Item = (&'r Region, usize, &'a [T])> + Clone + use<'r, 'a, T> {
    runs(regions, first..first + data.len()).map(move |Run { region, at, part }| {
        let part = part.start - first..part.end - first;
        (region, at, &data[part])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(page: usize, first: u32, capacity: u32) -> Region {
        Region {
            page,
            first,
            first_bound: first / 1024,
            capacity,
        }
    }

    #[test]
    fn an_upload_is_cut_at_the_borders_of_regions() {
        let regions = [region(4, 1024, 1024), region(2, 0, 2048)];
        let data: Vec<u32> = (0..1500).collect();
        let parts: Vec<_> = split(&regions, 1000, &data)
            .map(|(region, at, part)| (region.page, at, part.len(), part[0]))
            .collect();
        assert_eq!(parts, [(4, 2024, 24, 0), (2, 0, 1476, 24)]);
        assert_eq!(split(&regions, 0, &[] as &[u32]).count(), 0);
    }
}
