//! Votes of 32 bits, then one pass that scans a block in workgroup memory, places it with one
//! global `atomicAdd` and writes its ids.
//!
//! Kernels: `shaders/study/hillis_steele.wesl`, `shaders/study/workgroup_scan.wesl`,
//! `shaders/study/regions.wesl`.

use super::{
    ARGS_REGIONS, Arena, Bind, CLEAR_ROWS, Dispatch, Pass, Resource, Stage, Strategy, VOTE_FLAGS,
    kernels,
};

pub(in crate::cull::compaction) const STRATEGY: Strategy = Strategy {
    is_ordered: false,
    needs_subgroups: false,
    arena: Arena::Regions,
    passes: &[VOTE_FLAGS, CLEAR_ROWS, COMPACT, ARGS_REGIONS],
    // A vote is written and read.
    traffic: |instances| instances * 8,
};

const COMPACT: Pass = Pass {
    stage: Stage::Compact,
    name: "compact_workgroup_scan",
    source: |sources| kernels::WORKGROUP_SCAN.source(sources),
    entry: "compact",
    binds: &[&[
        Bind::uniform(Resource::Batch),
        Bind::read(Resource::Chunks),
        Bind::read(Resource::Front),
        Bind::write(Resource::Survivors),
        Bind::write(Resource::RowCounts),
    ]],
    dispatch: Dispatch::Blocks,
};
