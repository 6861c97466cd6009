//! Votes of 32 bits, a scan of log2(n) passes over global memory, compact: the naive start of the ladder.

use super::{
    Arena, Bind, Dispatch, Pass, Resource, Sources, Strategy, passes::doublings, shared::VOTE_FLAGS,
};
use crate::cull::{
    Stage,
    shaders::{join, wgsl},
};

pub(super) const STRATEGY: Strategy = Strategy {
    ordered: true,
    needs_subgroups: false,
    arena: Arena::Dense,
    passes: &[VOTE_FLAGS, SCAN, COMPACT, ARGS],
    // A vote is written; each pass reads and writes a sum; compact reads one.
    traffic: |instances| instances * 8 * (1 + doublings(instances) as u64),
};

fn source(_: &Sources<'_>) -> String {
    join(&[
        wgsl!("block_tables"),
        wgsl!("blocks"),
        wgsl!("survivors"),
        wgsl!("compact_hillis_steele"),
    ])
}

const SCAN: Pass = Pass {
    stage: Stage::Scan,
    name: "scan_hillis_steele",
    source,
    entry: "scan",
    binds: &[&[
        Bind::uniform(0, Resource::Batch),
        Bind::uniform(7, Resource::Step),
        Bind::read(8, Resource::Front),
        Bind::write(9, Resource::Back),
    ]],
    dispatch: Dispatch::Doubling,
};

const COMPACT: Pass = Pass {
    stage: Stage::Compact,
    name: "compact_hillis_steele",
    source,
    entry: "compact",
    binds: &[&[
        Bind::uniform(0, Resource::Batch),
        Bind::read(1, Resource::Chunks),
        Bind::write(5, Resource::Survivors),
        Bind::read(8, Resource::Front),
    ]],
    dispatch: Dispatch::Blocks,
};

const ARGS: Pass = Pass {
    stage: Stage::Args,
    name: "args_sums",
    source: |_| {
        join(&[
            wgsl!("block_tables"),
            wgsl!("draw"),
            wgsl!("row_draw"),
            wgsl!("args_sums"),
            wgsl!("args"),
        ])
    },
    entry: "write_args",
    binds: &[&[
        Bind::uniform(0, Resource::Batch),
        Bind::read(2, Resource::Front),
        Bind::read(3, Resource::RowDraws),
        Bind::write(10, Resource::Args),
    ]],
    dispatch: Dispatch::Rows,
};
