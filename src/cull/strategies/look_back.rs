//! All stages in one pass: places by decoupled look-back instead of passes of their own.

use super::{
    Arena, Bind, Dispatch, Pass, Resource, Strategy,
    shared::{INPUTS, testing},
};
use crate::cull::{Stage, shaders::wgsl};

pub(super) const STRATEGY: Strategy = Strategy {
    ordered: true,
    needs_subgroups: true,
    arena: Arena::Dense,
    passes: &[LOOK_BACK],
    // Only statuses of strips, one in thousands of instances.
    traffic: |_| 0,
};

const LOOK_BACK: Pass = Pass {
    stage: Stage::Compact,
    name: "look_back",
    source: |sources| {
        testing(
            sources,
            &[
                wgsl!("survivors"),
                wgsl!("draw"),
                wgsl!("word_bound"),
                wgsl!("block_state"),
                wgsl!("word_state"),
                wgsl!("ballot_component"),
                wgsl!("pairs"),
                wgsl!("vote_row_subgroup"),
                wgsl!("vote_asked"),
                wgsl!("strip_vote"),
                wgsl!("look_back"),
                wgsl!("strip"),
            ],
        )
    },
    entry: "cull",
    binds: &[
        INPUTS,
        &[
            Bind::write(5, Resource::Survivors),
            Bind::write(7, Resource::LookBack),
            Bind::read(8, Resource::Bounds),
            Bind::write(10, Resource::Args),
        ],
    ],
    dispatch: Dispatch::Strips,
};
