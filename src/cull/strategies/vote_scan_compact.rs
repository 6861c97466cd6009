//! Visibility bits and the blocks' counts; prefixes of the counts, where they are many; ids in instance order.

use super::{
    Arena, Bind, Dispatch, Pass, Resource, Strategy,
    shared::{COMPACT, INPUTS, SCAN, testing},
};
use crate::cull::{
    Stage,
    shaders::{Kernel, wgsl},
};

pub(super) const STRATEGY: Strategy = Strategy {
    ordered: true,
    needs_subgroups: false,
    arena: Arena::Dense,
    passes: &[VOTE, VOTE_OWN, SCAN, COMPACT],
    // A bit is written and read.
    traffic: |instances| instances / 4,
};

const VOTE: Pass = Pass {
    stage: Stage::Vote,
    name: "vote",
    source: |sources| Kernel::Vote.source_with(sources),
    entry: "vote",
    binds: &[
        INPUTS,
        &[
            Bind::write(5, Resource::Words),
            Bind::write(6, Resource::Counts),
            Bind::write(7, Resource::Lists),
        ],
    ],
    dispatch: Dispatch::SharedBlocks,
};

/// Instead of `VOTE`, where that pays.
const VOTE_OWN: Pass = Pass {
    stage: Stage::Vote,
    name: "vote_own",
    source: |sources| {
        testing(
            sources,
            &[
                wgsl!("words"),
                wgsl!("lists"),
                wgsl!("vote_counts"),
                wgsl!("vote"),
                wgsl!("ballot_component"),
                wgsl!("pairs"),
                wgsl!("vote_row_subgroup"),
                wgsl!("vote_own"),
            ],
        )
    },
    entry: "vote_own",
    dispatch: Dispatch::OwnBlocks,
    ..VOTE
};
