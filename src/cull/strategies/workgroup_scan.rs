//! Votes of 32 bits, then one pass that scans a block in workgroup memory, places it with one global
//! `atomicAdd` and writes its ids.

use super::{
    Arena, Bind, Dispatch, Pass, Resource, Strategy,
    shared::{ARGS_REGIONS, CLEAR_ROWS, VOTE_FLAGS},
};
use crate::cull::{
    Stage,
    shaders::{join, wgsl},
};

pub(super) const STRATEGY: Strategy = Strategy {
    ordered: false,
    needs_subgroups: false,
    arena: Arena::Regions,
    passes: &[VOTE_FLAGS, CLEAR_ROWS, COMPACT, ARGS_REGIONS],
    // A vote is written and read.
    traffic: |instances| instances * 8,
};

const COMPACT: Pass = Pass {
    stage: Stage::Compact,
    name: "compact_workgroup_scan",
    source: |_| {
        join(&[
            wgsl!("block_tables"),
            wgsl!("blocks"),
            wgsl!("survivors"),
            wgsl!("regions"),
            wgsl!("compact_workgroup_scan"),
        ])
    },
    entry: "compact",
    binds: &[&[
        Bind::uniform(0, Resource::Batch),
        Bind::read(1, Resource::Chunks),
        Bind::read(2, Resource::Front),
        Bind::write(5, Resource::Survivors),
        Bind::write(6, Resource::RowCounts),
    ]],
    dispatch: Dispatch::Blocks,
};
