//! Ballot and bit count: one global `atomicAdd` per subgroup, whose result is broadcast.
//!
//! Kernels: `shaders/study/subgroup_atomic.wesl`, `shaders/study/regions.wesl`.

use super::{
    ARGS_REGIONS, Arena, CLEAR_ROWS, Dispatch, INPUTS, Pass, REGIONS, Stage, Strategy, kernels,
};

pub(in crate::cull::compaction) const STRATEGY: Strategy = Strategy {
    is_ordered: false,
    needs_subgroups: true,
    arena: Arena::Regions,
    passes: &[CLEAR_ROWS, COMPACT, ARGS_REGIONS],
    traffic: |_| 0,
};

const COMPACT: Pass = Pass {
    stage: Stage::Compact,
    name: "compact_subgroup_atomic",
    source: |sources| kernels::SUBGROUP_ATOMIC.source(sources),
    entry: "compact",
    binds: &[INPUTS, REGIONS],
    dispatch: Dispatch::Blocks,
};
