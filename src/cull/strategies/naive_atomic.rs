//! One global `atomicAdd` a survivor: the pattern that the articles start from.

use super::{
    Arena, Bind, Dispatch, Pass, Resource, Strategy,
    shared::{ARGS_REGIONS, CLEAR_ROWS, INPUTS, testing},
};
use crate::cull::{Stage, shaders::wgsl};

pub(super) const STRATEGY: Strategy = Strategy {
    ordered: false,
    needs_subgroups: false,
    arena: Arena::Regions,
    passes: &[CLEAR_ROWS, COMPACT, ARGS_REGIONS],
    traffic: |_| 0,
};

const COMPACT: Pass = Pass {
    stage: Stage::Compact,
    name: "compact_naive_atomic",
    source: |sources| {
        testing(
            sources,
            &[
                wgsl!("survivors"),
                wgsl!("regions"),
                wgsl!("compact_naive_atomic"),
            ],
        )
    },
    entry: "compact",
    binds: &[
        INPUTS,
        &[
            Bind::write(5, Resource::Survivors),
            Bind::write(6, Resource::RowCounts),
        ],
    ],
    dispatch: Dispatch::Blocks,
};
