//! Ballots as votes, a scan by subgroup operations, one global `atomicAdd` per block.
//!
//! Kernels: `shaders/cull/vote.wesl`, `shaders/study/ballot_scan.wesl`,
//! `shaders/study/regions.wesl`.

use super::{
    ARGS_REGIONS, Arena, Bind, CLEAR_ROWS, Dispatch, Pass, Resource, Stage, Strategy, VOTE_WORDS,
    kernels,
};

pub(in crate::cull::compaction) const STRATEGY: Strategy = Strategy {
    is_ordered: false,
    needs_subgroups: true,
    arena: Arena::Regions,
    passes: &[VOTE_WORDS, CLEAR_ROWS, COMPACT, ARGS_REGIONS],
    // A bit is written and read.
    traffic: |instances| instances / 4,
};

const COMPACT: Pass = Pass {
    stage: Stage::Compact,
    name: "compact_ballot_scan",
    source: |sources| kernels::BALLOT_SCAN.source(sources),
    entry: "compact",
    binds: &[&[
        Bind::uniform(Resource::Batch),
        Bind::read(Resource::Chunks),
        Bind::read(Resource::Words),
        Bind::write(Resource::Survivors),
        Bind::write(Resource::RowCounts),
    ]],
    dispatch: Dispatch::Blocks,
};
