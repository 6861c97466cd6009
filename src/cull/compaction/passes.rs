//! What a strategy is: a list of passes, each with a kernel, its bindings and its workgroups.

use crate::cull::{
    Stage,
    gpu::{
        binding::{self, Access},
        limits::dispatch_2d,
    },
    layout::{
        BLOCK_THREADS, BLOCK_WORDS, BLOCKS_PER_WORKGROUP, CLASSIFY_THREADS, COUNTS_PER_WORKGROUP,
        MAX_TILES, RINGS,
    },
    plan::BatchPlan,
    policy::{LIST_WORKGROUPS, MIN_LIST_WORKGROUPS},
    shaders::Sources,
};

/// What a compaction is made of.
pub(crate) struct Strategy {
    /// Whether the survivors of a row are in a defined order.
    pub is_ordered: bool,
    /// Whether it needs ballots: the tier `Subgroup`.
    pub needs_subgroups: bool,
    /// The division of the arena.
    pub arena: Arena,
    /// The passes, in the order in which they run.
    pub passes: &'static [Pass],
    /// Bytes that the strategy itself moves per number of instances and one view, besides reading
    /// the instances and writing the ids.
    pub traffic: fn(u64) -> u64,
}

/// How the arena of survivors is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arena {
    /// Row after row without gaps: as large as the number of survivors.
    Dense,
    /// One region per row with room for all its instances.
    #[cfg(feature = "study")]
    Regions,
}

/// One kernel of a strategy.
pub(crate) struct Pass {
    /// The stage in whose time it is counted.
    pub stage: Stage,
    /// Label, and name in errors.
    pub name: &'static str,
    /// The WGSL.
    pub source: fn(&Sources) -> String,
    /// Entry point.
    pub entry: &'static str,
    /// Bindings of group 0, in lists that passes share.
    pub binds: &'static [&'static [Bind]],
    /// Workgroups. A pass without workgroups is left out.
    pub dispatch: Dispatch,
}

impl Pass {
    /// Whether the pass is built, given whether all subgroups have 32 lanes.
    pub fn runs_with(&self, subgroups_of_32: bool) -> bool {
        let is_per_subgroup =
            [Dispatch::BlockPerSubgroup, Dispatch::CrossedPerSubgroup].contains(&self.dispatch);
        subgroups_of_32 || !is_per_subgroup
    }

    pub fn binds(&self) -> impl Iterator<Item = Bind> {
        self.binds.iter().copied().flatten().copied()
    }
}

/// A binding of a pass. The number of a buffer is the same in every kernel.
pub(crate) type Bind = binding::Bind<Resource>;

impl Bind {
    pub const fn uniform(resource: Resource) -> Self {
        Self::new(resource, Access::Uniform)
    }

    pub const fn read(resource: Resource) -> Self {
        Self::new(resource, Access::Read)
    }

    pub const fn write(resource: Resource) -> Self {
        Self::new(resource, Access::Write)
    }

    const fn new(resource: Resource, access: Access) -> Self {
        Self::at(resource as u32, resource, access)
    }
}

/// What every kernel that tests instances reads (`shaders/shared/visibility.wesl`).
pub(crate) const INPUTS: &[Bind] = &[
    Bind::uniform(Resource::Batch),
    Bind::read(Resource::Chunks),
    Bind::read(Resource::ChunkViews),
    Bind::read(Resource::Instances),
    Bind::read(Resource::Scales),
];

/// A buffer of a batch, and its `@binding` in every kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// The batch's sizes.
    Batch = 0,
    /// Chunks.
    Chunks = 1,
    /// Views of the chunks.
    ChunkViews = 2,
    /// The page's instances.
    Instances = 3,
    /// The page's scales, or something else that is never read.
    Scales = 4,
    /// The bounds of the page's blocks.
    Bounds = 5,
    /// Visibility words.
    Words = 6,
    /// Survivors per block and row.
    Counts = 7,
    /// The lists of crossed blocks and of occupied cells (`shaders/cull/lists.wesl`).
    Lists = 8,
    /// Totals of the tiles, and the ranks (`shaders/cull/lists.wesl`).
    Ranks = 9,
    /// The arena.
    Survivors = 10,
    /// Totals and commands.
    Args = 11,
    /// Units per tile of `order` and ring.
    Rings = 12,
    /// Statuses of the strips; behind them, the ranks.
    LookBack = 13,
    /// One counter per row.
    #[cfg(feature = "study")]
    RowCounts = 14,
    /// One u32 per instance and row: what the last step wrote, or what no step has read.
    #[cfg(feature = "study")]
    Front = 15,
    /// As many: what the next step writes. Each step of [`Dispatch::Doubling`] swaps the two.
    #[cfg(feature = "study")]
    Back = 16,
    /// The reach of a step of [`Dispatch::Doubling`].
    #[cfg(feature = "study")]
    Step = 17,
    /// The depth of a view, level after level (`shaders/occlusion/footprint.wesl`).
    Pyramid = 18,
    /// Its levels.
    PyramidShape = 19,
    /// The rows that may be hidden.
    Occlusion = 20,
    /// The records of what views have seen (`shaders/occlusion/history.wesl`).
    History = 21,
}

/// Number of buffers that strategies own.
const SCRATCH_LEN: usize = if cfg!(feature = "study") { 9 } else { 6 };

/// Words of the lists before their entries.
const LISTS_HEAD: u64 = 4;

impl Resource {
    /// Buffers that strategies own; the batch has the others in any case.
    pub const SCRATCH: [Self; SCRATCH_LEN] = [
        Self::Words,
        Self::Counts,
        Self::Ranks,
        Self::Rings,
        Self::Lists,
        Self::LookBack,
        #[cfg(feature = "study")]
        Self::RowCounts,
        #[cfg(feature = "study")]
        Self::Front,
        #[cfg(feature = "study")]
        Self::Back,
    ];

    /// Bytes of a buffer of [`Self::SCRATCH`], for the tables of `plan`.
    pub fn scratch_bytes(self, plan: &BatchPlan) -> u64 {
        let counts = u64::from(plan.batch.count_len);
        let ranks = u64::from(plan.batch.rank_count());
        4 * match self {
            Self::Words => counts * u64::from(BLOCK_WORDS),
            // `scan` reads four at a time: buffers end with a multiple of 256 bytes.
            Self::Counts => counts,
            // A closing rank.
            Self::Ranks => u64::from(MAX_TILES) + 2 * (ranks + 1),
            Self::Rings if !plan.has_rings => 0,
            Self::Rings => u64::from(plan.batch.order_tile_count) * u64::from(RINGS),
            Self::Lists if plan.batch.is_scanned == 0 => {
                let cells = plan.batch.block_count.max(plan.batch.occluded_cells);
                LISTS_HEAD + 2 * u64::from(cells)
            }
            Self::Lists => LISTS_HEAD + 2 * ranks,
            Self::LookBack => {
                let statuses = u64::from(plan.batch.strip_count);
                3 + u64::from(2 + BLOCK_WORDS)
                    * statuses.max(ranks.div_ceil(u64::from(BLOCK_WORDS)))
            }
            #[cfg(feature = "study")]
            Self::RowCounts => u64::from(plan.batch.row_count),
            #[cfg(feature = "study")]
            Self::Front | Self::Back => counts * u64::from(crate::cull::layout::BLOCK),
            _ => 0,
        }
    }
}

/// Workgroups of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dispatch {
    /// One for each block of each chunk.
    #[cfg(feature = "study")]
    Blocks,
    /// One for each block of each chunk, unless each subgroup takes a block.
    SharedBlocks,
    /// One for [`BLOCKS_PER_WORKGROUP`] blocks, if each subgroup takes a block.
    BlockPerSubgroup,
    /// One for each tile of units of each row, if rows are near first and some row has several
    /// tiles.
    OrderRings,
    /// One for each tile of units of each row, if rows are near first.
    OrderTiles,
    /// A thread for each block of each chunk.
    BlockThreads,
    /// As many as fill a large GPU. They stride over the list of crossed blocks, unless each
    /// subgroup takes a block.
    SharedCrossed,
    /// The same if each subgroup takes a block.
    CrossedPerSubgroup,
    /// One for [`COUNTS_PER_WORKGROUP`] counts. If counts are many, as many as fill a large GPU;
    /// they stride over the occupied ones.
    Counts,
    /// One for each strip, unless rows are near first.
    Strips,
    /// One for each strip, if rows are near first.
    NearFirstStrips,
    /// One for each tile of counts; none if counts are few.
    Tiles,
    /// A thread for each row, 64 in a workgroup.
    #[cfg(feature = "study")]
    Rows,
    /// One for [`COUNTS_PER_WORKGROUP`] cells: blocks of rows that may be hidden.
    Cells,
    /// As many as fill a large GPU. They stride over the list of cells with candidates.
    ListedCells,
    /// A thread for each vote, once for each doubling of the reach until it covers all votes.
    #[cfg(feature = "study")]
    Doubling,
}

/// Limits of the device for dispatches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DispatchLimits {
    /// Workgroups in one dimension.
    pub workgroups: u32,
    /// Every subgroup has 32 lanes, and kernels may know it.
    pub subgroups_of_32: bool,
    /// Batches whose dispatches run concurrently.
    pub batches: u32,
}

impl DispatchLimits {
    /// Workgroups over a list for up to `max` of them: batches share the GPU.
    fn over_list(self, max: u32) -> u32 {
        let share = LIST_WORKGROUPS / self.batches.max(1);
        max.min(share.max(MIN_LIST_WORKGROUPS))
    }
}

impl Dispatch {
    /// Workgroups in x and y on a device with `limits`.
    pub fn workgroups(self, plan: &BatchPlan, limits: DispatchLimits) -> (u32, u32) {
        let limit = limits.workgroups;
        let has_block_per_subgroup = limits.subgroups_of_32 && plan.block_per_subgroup;
        let has_crossed_per_subgroup = limits.subgroups_of_32 && plan.crossed_block_per_subgroup;
        match self {
            #[cfg(feature = "study")]
            Self::Blocks => plan.block_dispatch(),
            Self::SharedBlocks if has_block_per_subgroup => (0, 0),
            Self::SharedBlocks => plan.block_dispatch(),
            Self::BlockPerSubgroup if has_block_per_subgroup => {
                dispatch_2d(plan.batch.block_count.div_ceil(BLOCKS_PER_WORKGROUP), limit)
            }
            Self::BlockPerSubgroup => (0, 0),
            Self::OrderRings if !plan.has_rings => (0, 0),
            Self::OrderRings | Self::OrderTiles if plan.batch.is_near_first == 0 => (0, 0),
            Self::OrderRings | Self::OrderTiles => dispatch_2d(plan.batch.order_tile_count, limit),
            Self::BlockThreads => (plan.batch.block_count.div_ceil(CLASSIFY_THREADS), 1),
            Self::SharedCrossed if has_crossed_per_subgroup => (0, 0),
            Self::CrossedPerSubgroup if !has_crossed_per_subgroup => (0, 0),
            Self::SharedCrossed | Self::CrossedPerSubgroup => {
                (limits.over_list(plan.batch.block_count), 1)
            }
            Self::Counts if plan.batch.is_scanned == 0 => {
                (plan.batch.count_len.div_ceil(COUNTS_PER_WORKGROUP), 1)
            }
            // A thread per word of a unit, or 32 threads per block.
            Self::Counts if plan.batch.unit_words < BLOCK_WORDS => (
                limits.over_list(
                    (plan.batch.rank_count() * plan.batch.unit_words).div_ceil(BLOCK_THREADS),
                ),
                1,
            ),
            Self::Counts => (
                limits.over_list(plan.batch.count_len.div_ceil(COUNTS_PER_WORKGROUP)),
                1,
            ),
            Self::Strips if plan.batch.is_near_first != 0 => (0, 0),
            Self::NearFirstStrips if plan.batch.is_near_first == 0 => (0, 0),
            Self::Strips | Self::NearFirstStrips => dispatch_2d(plan.batch.strip_count, limit),
            Self::Tiles if plan.batch.is_scanned == 0 => (0, 0),
            Self::Tiles => (plan.tile_count(), 1),
            #[cfg(feature = "study")]
            Self::Rows => (plan.batch.row_count.div_ceil(64), 1),
            Self::Cells | Self::ListedCells if plan.batch.occluded_cells == 0 => (0, 0),
            Self::Cells => dispatch_2d(
                plan.batch.occluded_cells.div_ceil(COUNTS_PER_WORKGROUP),
                limit,
            ),
            Self::ListedCells => (limits.over_list(plan.batch.occluded_cells), 1),
            #[cfg(feature = "study")]
            Self::Doubling => {
                let groups = plan.batch.count_len * (crate::cull::layout::BLOCK / BLOCK_THREADS);
                let width = plan.batch.dispatch_width.max(groups.div_ceil(limit)).max(1);
                (width, groups.div_ceil(width))
            }
        }
    }
}

#[cfg(test)]
mod tests;
