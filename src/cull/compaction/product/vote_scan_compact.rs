//! Visibility bits and the blocks' counts; prefixes of the counts, if they are many; ids in
//! instance order.
//!
//! Kernels: `shaders/cull/vote.wesl`, `shaders/cull/scan.wesl`, `shaders/cull/compact.wesl`.

use super::{
    Arena, Bind, COMPACT, Dispatch, INPUTS, ORDER, ORDER_RINGS, Pass, RECALL, Resource, SCAN,
    Stage, Strategy, kernels,
};

pub(in crate::cull::compaction) const STRATEGY: Strategy = Strategy {
    is_ordered: true,
    needs_subgroups: false,
    arena: Arena::Dense,
    passes: &[
        ORDER_RINGS,
        ORDER,
        VOTE,
        VOTE_BLOCK_PER_SUBGROUP,
        RECALL,
        SCAN,
        COMPACT,
    ],
    // A bit is written and read.
    traffic: |instances| instances / 4,
};

const VOTE: Pass = Pass {
    stage: Stage::Vote,
    name: "vote",
    source: |sources| kernels::VOTE.source(sources),
    entry: "vote",
    binds: &[
        INPUTS,
        &[
            Bind::write(Resource::Words),
            Bind::write(Resource::Counts),
            Bind::write(Resource::Lists),
        ],
    ],
    dispatch: Dispatch::SharedBlocks,
};

/// Runs instead of `VOTE` if that is faster.
const VOTE_BLOCK_PER_SUBGROUP: Pass = Pass {
    stage: Stage::Vote,
    name: "vote_block_per_subgroup",
    source: |sources| kernels::VOTE_BLOCK_PER_SUBGROUP.source(sources),
    entry: "vote_block_per_subgroup",
    dispatch: Dispatch::BlockPerSubgroup,
    ..VOTE
};
