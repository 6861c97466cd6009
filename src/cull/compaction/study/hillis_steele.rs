//! Votes of 32 bits, a scan of log2(n) passes over global memory, compact: the naive start of the
//! ladder.
//!
//! Kernels: `shaders/study/hillis_steele.wesl`.

use super::{
    Arena, Bind, Dispatch, Pass, Resource, Stage, Strategy, VOTE_FLAGS, doubling::doublings,
    kernels,
};

pub(in crate::cull::compaction) const STRATEGY: Strategy = Strategy {
    is_ordered: true,
    needs_subgroups: false,
    arena: Arena::Dense,
    passes: &[VOTE_FLAGS, SCAN, COMPACT, ARGS],
    // A vote is written; each pass reads and writes a sum; compact reads one.
    traffic: |instances| instances * 8 * (1 + doublings(instances) as u64),
};

const SCAN: Pass = Pass {
    stage: Stage::Scan,
    name: "scan_hillis_steele",
    source: |sources| kernels::HILLIS_STEELE.source(sources),
    entry: "scan",
    binds: &[&[
        Bind::uniform(Resource::Batch),
        Bind::uniform(Resource::Step),
        Bind::read(Resource::Front),
        Bind::write(Resource::Back),
    ]],
    dispatch: Dispatch::Doubling,
};

const COMPACT: Pass = Pass {
    stage: Stage::Compact,
    name: "compact_hillis_steele",
    source: |sources| kernels::HILLIS_STEELE.source(sources),
    entry: "compact",
    binds: &[&[
        Bind::uniform(Resource::Batch),
        Bind::read(Resource::Chunks),
        Bind::write(Resource::Survivors),
        Bind::read(Resource::Front),
    ]],
    dispatch: Dispatch::Blocks,
};

const ARGS: Pass = Pass {
    stage: Stage::Args,
    name: "args_sums",
    source: |sources| kernels::ARGS_SUMS.source(sources),
    entry: "write_args",
    binds: &[&[
        Bind::uniform(Resource::Batch),
        Bind::read(Resource::Front),
        Bind::read(Resource::ChunkViews),
        Bind::write(Resource::Args),
    ]],
    dispatch: Dispatch::Rows,
};
