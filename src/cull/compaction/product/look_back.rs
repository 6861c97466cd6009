//! All stages in one pass: decoupled look-back finds the places instead of separate passes.
//!
//! Kernel: `shaders/cull/look_back.wgsl`.

use super::{Arena, Bind, Dispatch, INPUTS, Pass, Resource, Stage, Strategy, kernels};

pub(in crate::cull::compaction) const STRATEGY: Strategy = Strategy {
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
