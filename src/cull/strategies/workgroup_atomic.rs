//! Three levels: subgroup, workgroup, and one global `atomicAdd` a workgroup.

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
    name: "compact_workgroup_atomic",
    source: |sources| {
        testing(
            sources,
            &[
                wgsl!("survivors"),
                wgsl!("regions"),
                wgsl!("ballot"),
                sources.pick(
                    wgsl!("place_in_group_subgroup"),
                    wgsl!("place_in_group_workgroup"),
                ),
                wgsl!("compact_workgroup_atomic"),
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
