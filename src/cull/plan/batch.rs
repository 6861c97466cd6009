//! The tables of one batch, and the sizes that follow from them.

use super::memory::emptied;
use crate::cull::{
    layout::{
        BLOCK_WORDS, Batch, Chunk, ChunkView, DrawCommand, MAX_STRIP_BLOCKS, ORDER_TILE,
        OcclusionRow, Projection, RowSource, SCAN_TILE, ViewSource,
    },
    policy::SINGLE_WORDS,
};

/// Tables of one batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchPlan {
    /// Index of the page whose instances the batch reads.
    pub page: usize,
    /// Sizes. The survivor capacity is set later, when the arena is allocated.
    pub batch: Batch,
    /// Chunks, in block order.
    pub chunks: Vec<Chunk>,
    /// Views of the chunks, chunk after chunk. The index in this table is a *row*. If rows share
    /// views, the planes here are empty: [`Self::row`] has them.
    pub chunk_views: Vec<ChunkView>,
    /// The source of each row, if the plan's rows share views; otherwise empty.
    pub sources: Vec<RowSource>,
    /// Index of the view of each row, if they are shared.
    pub views_of_rows: Vec<u32>,
    /// What the frame changed of the chunks and the sources.
    pub mends: MendedEntries,
    /// Which rows keep nothing at present; empty until one does.
    pub resting: Vec<bool>,
    /// The sibling commands ([`ChunkView::first_sibling`]), without their survivors. They come
    /// after the commands of the rows.
    pub siblings: Vec<DrawCommand>,
    /// The rows that may be hidden.
    pub occlusion: Vec<OcclusionRow>,
    /// Number of rows of each chunk in which an instance may survive at once: it is in one level of
    /// each view.
    pub lists: Vec<u32>,
    /// Number of survivors if everything were visible.
    pub max_survivors: u64,
    /// Number of rows of each chunk that do not rest.
    pub awake_rows: Vec<u32>,
    /// Number of survivors if everything were visible that rows that do not rest test, or more: if
    /// levels rest, each of the other rows may keep every instance.
    pub awake_survivors: u64,
    /// Whether some row is of a coarser level of detail.
    pub has_levels: bool,
    /// Whether each subgroup may vote on its own crossed blocks: there are more than
    /// [`PlanLimits::few_counts`](super::PlanLimits::few_counts) counts.
    pub crossed_block_per_subgroup: bool,
    /// Whether each subgroup may vote on its own blocks, crossed or not: each chunk has a single
    /// row, and there are `MANY_BLOCKS` times as many counts.
    pub block_per_subgroup: bool,
    /// Whether a row has more units than one workgroup of `order` sorts.
    pub has_rings: bool,
}

/// What a frame changed of a batch's tables. Two plans with the same tables are equal, however each
/// came to them.
#[derive(Clone, Debug, Default)]
pub struct MendedEntries {
    /// Whether all else is as in the frame before. Otherwise the tables are new.
    pub follow: bool,
    /// Indices of chunks. Some may come several times, here and in the other lists.
    pub chunks: Vec<u32>,
    /// Indices of rows with other sources.
    pub rows: Vec<u32>,
    /// Indices of rows that share other views.
    pub views: Vec<u32>,
}

impl PartialEq for MendedEntries {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl BatchPlan {
    /// A batch without anything, in the memory of this one.
    pub(super) fn emptied(self) -> Self {
        Self {
            chunks: emptied(self.chunks),
            chunk_views: emptied(self.chunk_views),
            sources: emptied(self.sources),
            views_of_rows: emptied(self.views_of_rows),
            mends: MendedEntries {
                follow: false,
                chunks: emptied(self.mends.chunks),
                rows: emptied(self.mends.rows),
                views: emptied(self.mends.views),
            },
            resting: emptied(self.resting),
            siblings: emptied(self.siblings),
            occlusion: emptied(self.occlusion),
            lists: emptied(self.lists),
            awake_rows: emptied(self.awake_rows),
            ..Self::default()
        }
    }

    /// Divides the rows into strips of `count_len / one_block` blocks, rounded up to a power of
    /// two. Such strips are small enough to fill all processors of a large GPU, and no smaller,
    /// because each strip looks back.
    pub(super) fn number_strips(&mut self, one_block: u32) {
        let blocks = (self.batch.count_len / one_block.max(1)).next_power_of_two();
        self.batch.strip_blocks = blocks.clamp(1, MAX_STRIP_BLOCKS);
        self.batch.strip_count = 0;
        for chunk in &mut self.chunks {
            chunk.first_strip = self.batch.strip_count;
            let each = chunk.block_count.div_ceil(self.batch.strip_blocks);
            self.batch.strip_count += each * chunk.row_count;
        }
    }

    /// Divides the rows into units, and into tiles of [`ORDER_TILE`] units, if some row is near
    /// first.
    pub(super) fn number_order_tiles(&mut self, fine_words: u32) {
        let near_first = |view: &ChunkView| view.planes.order.is_near_first != 0;
        let is_near_first = self.chunk_views.iter().any(near_first);
        self.batch.is_near_first = u32::from(is_near_first);
        let words = self.batch.count_len * BLOCK_WORDS;
        self.batch.unit_words = if is_near_first && words <= fine_words {
            let each = words.div_ceil(SINGLE_WORDS).next_power_of_two();
            each.min(BLOCK_WORDS)
        } else {
            BLOCK_WORDS
        };
        self.batch.order_tile_count = 0;
        self.has_rings = false;
        for chunk in &mut self.chunks {
            chunk.first_order_tile = self.batch.order_tile_count;
            let each = (chunk.block_count * self.batch.block_units()).div_ceil(ORDER_TILE);
            self.batch.order_tile_count += each * chunk.row_count;
            self.has_rings |= self.batch.is_near_first != 0 && each > 1;
        }
    }

    /// A row. `views` are the plan's, if its rows share them.
    #[must_use]
    pub fn row(&self, row: u32, views: &[ViewSource]) -> Option<ChunkView> {
        let at = row as usize;
        let own = self.chunk_views.get(at)?;
        let Some((view, source)) = self.views_of_rows.get(at).zip(self.sources.get(at)) else {
            return Some(*own);
        };
        let chunk = self.chunks.get(source.chunk as usize)?;
        let mut filled = source.fill(row, views.get(*view as usize)?, chunk);
        // The GPU has no use for the order of far-first rows: it sorts by jobs.
        if own.planes.order.is_far_first != 0 {
            filled.planes.order = own.planes.order;
        }
        Some(filled)
    }

    /// The projections that lie behind its rows that may be hidden: the plan's, if there are such
    /// rows.
    #[must_use]
    pub(in crate::cull) fn projections<'a>(&self, of_plan: &'a [Projection]) -> &'a [Projection] {
        match self.occlusion.is_empty() {
            true => &[],
            false => of_plan,
        }
    }

    /// Notes whether a row of a chunk keeps nothing at present.
    pub(super) fn set_resting(&mut self, chunk: u32, row: u32, rests: bool) {
        if self.resting.is_empty() && rests {
            self.resting = vec![false; self.chunk_views.len()];
        }
        if let Some(place) = self.resting.get_mut(row as usize)
            && core::mem::replace(place, rests) != rests
        {
            self.awake_survivors -= self.awake_survivors_of(chunk);
            let awake = &mut self.awake_rows[chunk as usize];
            *awake = if rests { *awake - 1 } else { *awake + 1 };
            self.awake_survivors += self.awake_survivors_of(chunk);
        }
    }

    /// The part of a chunk in [`Self::awake_survivors`].
    fn awake_survivors_of(&self, chunk: u32) -> u64 {
        let chunk = chunk as usize;
        let lists = self.lists[chunk].min(self.awake_rows[chunk]);
        u64::from(lists) * u64::from(self.chunks[chunk].instance_count)
    }

    /// Gives a chunk another number of instances.
    pub(super) fn resize_chunk(&mut self, chunk: u32, instances: u32) {
        self.awake_survivors -= self.awake_survivors_of(chunk);
        let lists = u64::from(self.lists[chunk as usize]);
        let count = &mut self.chunks[chunk as usize].instance_count;
        let before = core::mem::replace(count, instances);
        self.max_survivors -= u64::from(before) * lists;
        self.max_survivors += u64::from(instances) * lists;
        self.awake_survivors += self.awake_survivors_of(chunk);
    }

    /// Number of visibility words of all rows.
    #[must_use]
    pub fn word_len(&self) -> u64 {
        u64::from(self.batch.count_len) * u64::from(BLOCK_WORDS)
    }

    /// Number of tiles of ranks that `compact` adds up.
    #[must_use]
    pub fn tile_count(&self) -> u32 {
        self.batch.rank_count() / SCAN_TILE + 1
    }

    /// Numbers of workgroups of `vote` and `compact` in x and y, at most the limit of the plan in
    /// each dimension.
    #[must_use]
    pub fn block_dispatch(&self) -> (u32, u32) {
        (
            self.batch.dispatch_width,
            self.batch
                .block_count
                .div_ceil(self.batch.dispatch_width.max(1)),
        )
    }
}

/// What a plan that is built knows of its batches.
#[derive(Default)]
pub(super) struct OpenBatches {
    /// The last batch of each page.
    pub last: Vec<Option<usize>>,
    /// Batches of an earlier plan, whose memory is used again.
    pub spare: Vec<BatchPlan>,
}

impl OpenBatches {
    /// Notes the last batch of a page.
    pub fn set_last(&mut self, page: usize, batch: usize) {
        if self.last.len() <= page {
            self.last.resize(page + 1, None);
        }
        self.last[page] = Some(batch);
    }
}
