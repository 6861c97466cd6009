//! Three levels: subgroup, workgroup, and one global `atomicAdd` per workgroup.
//!
//! Kernels: `shaders/study/workgroup_atomic.wesl`, `shaders/study/regions.wesl`.

use super::{
    ARGS_REGIONS, Arena, CLEAR_ROWS, Dispatch, INPUTS, Pass, REGIONS, Stage, Strategy, kernels,
};

pub(in crate::cull::compaction) const STRATEGY: Strategy = Strategy {
    is_ordered: false,
    needs_subgroups: false,
    arena: Arena::Regions,
    passes: &[CLEAR_ROWS, COMPACT, ARGS_REGIONS],
    traffic: |_| 0,
};

const COMPACT: Pass = Pass {
    stage: Stage::Compact,
    name: "compact_workgroup_atomic",
    source: |sources| kernels::WORKGROUP_ATOMIC.source(sources),
    entry: "compact",
    binds: &[INPUTS, REGIONS],
    dispatch: Dispatch::Blocks,
};
