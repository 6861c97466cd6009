//! Visibility bits and the blocks' counts, then ids in instance order. Two passes: each workgroup of `compact` adds up the
//! counts before its own, so the scan needs none of its own.

use super::{
    Arena, Bind, Dispatch, Pass, Resource, Strategy,
    shared::{COMPACT, INPUTS},
};
use crate::cull::{Stage, shaders::Kernel};

pub(super) const STRATEGY: Strategy = Strategy {
    ordered: true,
    needs_subgroups: false,
    arena: Arena::Dense,
    passes: &[VOTE, COMPACT],
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
            Bind::write(7, Resource::Progress),
        ],
    ],
    dispatch: Dispatch::Blocks,
};
