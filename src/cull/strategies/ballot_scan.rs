//! Ballots as votes, a scan by subgroup operations, one global `atomicAdd` a block.

use super::{
    Arena, Bind, Dispatch, Pass, Resource, Strategy,
    shared::{ARGS_REGIONS, CLEAR_ROWS, VOTE_WORDS},
};
use crate::cull::{
    Stage,
    shaders::{join, wgsl},
};

pub(super) const STRATEGY: Strategy = Strategy {
    ordered: false,
    needs_subgroups: true,
    arena: Arena::Regions,
    passes: &[VOTE_WORDS, CLEAR_ROWS, COMPACT, ARGS_REGIONS],
    // A bit is written and read.
    traffic: |instances| instances / 4,
};

const COMPACT: Pass = Pass {
    stage: Stage::Compact,
    name: "compact_ballot_scan",
    source: |_| {
        join(&[
            wgsl!("block_tables"),
            wgsl!("blocks"),
            wgsl!("survivors"),
            wgsl!("regions"),
            wgsl!("write_words"),
            wgsl!("compact_ballot_scan"),
        ])
    },
    entry: "compact",
    binds: &[&[
        Bind::uniform(0, Resource::Batch),
        Bind::read(1, Resource::Chunks),
        Bind::read(2, Resource::Words),
        Bind::write(5, Resource::Survivors),
        Bind::write(6, Resource::RowCounts),
    ]],
    dispatch: Dispatch::Blocks,
};
