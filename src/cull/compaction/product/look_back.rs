//! All stages in one pass: decoupled look-back finds the places instead of separate passes.
//!
//! Kernel: `shaders/cull/look_back.wesl`.

use super::{
    Arena, Bind, Dispatch, INPUTS, ORDER_RINGS, ORDER_STRIPS, Pass, Resource, Stage, Strategy,
    kernels,
};

pub(in crate::cull::compaction) const STRATEGY: Strategy = Strategy {
    is_ordered: true,
    needs_subgroups: true,
    arena: Arena::Dense,
    passes: &[
        Pass {
            stage: Stage::Compact,
            ..ORDER_RINGS
        },
        Pass {
            stage: Stage::Compact,
            ..ORDER_STRIPS
        },
        LOOK_BACK,
        LOOK_BACK_NEAR_FIRST,
    ],
    // Only statuses of strips, one in thousands of instances.
    traffic: |_| 0,
};

const LOOK_BACK: Pass = Pass {
    stage: Stage::Compact,
    name: "look_back",
    source: |sources| kernels::LOOK_BACK.source(sources),
    entry: "cull",
    binds: &[
        INPUTS,
        &[
            Bind::write(Resource::Survivors),
            Bind::write(Resource::LookBack),
            Bind::read(Resource::Bounds),
            Bind::write(Resource::Args),
        ],
    ],
    dispatch: Dispatch::Strips,
};

/// Runs instead of `LOOK_BACK` if rows are near first.
const LOOK_BACK_NEAR_FIRST: Pass = Pass {
    name: "look_back_near_first",
    source: |sources| kernels::LOOK_BACK_NEAR_FIRST.source(sources),
    dispatch: Dispatch::NearFirstStrips,
    ..LOOK_BACK
};
