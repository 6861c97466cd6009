//! What an expansion of a batch must have room for: no item may be lost, because nothing is read
//! back before the draw.

use crate::cull::{
    CullError, Expansion,
    layout::expand::EXPAND_MAX_ITEMS,
    layout::meshlets::{MESHLET_TILE, MeshletRow},
};

/// An expansion, and upper bounds for the survivors of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Needs {
    pub expansion: Expansion,
    /// Largest number of survivors.
    pub sources: u32,
    /// Largest number of entries of a list.
    pub entries: u32,
    /// Largest number of meshlets of a survivor.
    max: u32,
}

impl Needs {
    /// Of the survivors of `rows`, of which the arena holds `places` at most. Only rows that fit
    /// into `cells` cells are expanded: each survivor has a bit in the cells of its meshlets.
    pub fn of(expansion: Expansion, rows: &[MeshletRow], cells: u32, places: u64) -> Self {
        let instances = |row: &MeshletRow| u64::from(row.chunk.instance_count);
        let entries = |row: &MeshletRow| u64::from(expansion.list_entries(row.meshlet_count));
        // Less than 2^32, as cells are at most 2^24.
        let bits = u64::from(cells) * u64::from(MESHLET_TILE);
        let sources: u64 = rows.iter().map(instances).sum();
        let all_entries: u64 = rows.iter().map(|row| instances(row) * entries(row)).sum();
        Self {
            expansion,
            sources: sources.min(bits).min(places) as u32,
            entries: all_entries.min(bits) as u32,
            max: rows.iter().map(|row| row.meshlet_count).max().unwrap_or(0),
        }
    }

    /// # Errors
    /// [`CullError::TooManyThreads`] if the expansion might refuse the survivors: it would then
    /// draw none.
    pub fn check(&self) -> Result<(), CullError> {
        let threads = u64::from(self.sources) * u64::from(self.max);
        if self.expansion.is_fixed() && threads > u64::from(EXPAND_MAX_ITEMS) {
            return Err(CullError::TooManyThreads {
                sources: self.sources,
                max: self.max,
                limit: EXPAND_MAX_ITEMS,
            });
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "study"))]
mod tests {
    use super::*;
    use crate::cull::layout::Chunk;

    fn row(instances: u32, meshlets: u32) -> MeshletRow {
        MeshletRow {
            chunk: Chunk {
                instance_count: instances,
                ..Chunk::default()
            },
            meshlet_count: meshlets,
            ..MeshletRow::default()
        }
    }

    #[test]
    fn needs_are_what_all_survivors_would_need_and_at_most_what_fits() {
        let rows = [row(1000, 300), row(0, 7), row(10, 1)];
        let (large, small) = (1 << 24, 5);
        for (expansion, entries) in [
            (Expansion::ItemList, 300_010),
            (Expansion::WorkgroupItems, 3010),
            (Expansion::OneBucket, 0),
        ] {
            let needs = Needs::of(expansion, &rows, large, 1 << 30);
            assert_eq!((needs.sources, needs.entries), (1010, entries));
            // 640 bits of 5 cells.
            let needs = Needs::of(expansion, &rows, small, 1 << 30);
            assert_eq!((needs.sources, needs.entries), (640, entries.min(640)));
            assert_eq!(Needs::of(expansion, &rows, large, 77).sources, 77);
        }
        assert_eq!(Needs::of(Expansion::FixedMax, &[], large, 9).sources, 0);
    }

    #[test]
    fn too_many_threads_are_refused_by_fixed_max_alone() {
        let cells = 1 << 24;
        // 2^31 sources, one of which may have two or three meshlets.
        let rows = |max| [row(u32::MAX, 1), row(1, max)];
        for (max, refused) in [(1, false), (2, true)] {
            let of = |expansion| Needs::of(expansion, &rows(max), cells, u64::MAX);
            let needs = of(Expansion::FixedMax);
            assert_eq!(needs.sources, 1 << 31);
            assert_eq!(needs.check().is_err(), refused, "{max}");
            assert_eq!(of(Expansion::OneBucket).check(), Ok(()));
            // What was refused to one is tried with another.
            assert_ne!(of(Expansion::OneBucket), needs);
        }
    }
}
