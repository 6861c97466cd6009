//! Blocks first, then words: only words that a view's border crosses read their instances.
//!
//! Kernels: `shaders/cull/classify.wesl`, `shaders/cull/vote_crossed_subgroup.wesl`,
//! `shaders/cull/vote_crossed_workgroup.wesl`, `shaders/cull/vote_crossed_block_per_subgroup.wesl`,
//! `shaders/cull/scan.wesl`, `shaders/cull/compact.wesl`.

use super::{
    Arena, Bind, COMPACT, Dispatch, INPUTS, ORDER, ORDER_RINGS, Pass, RECALL, Resource, SCAN,
    Stage, Strategy, kernels,
};
use crate::cull::CullingTier;

pub(in crate::cull::compaction) const STRATEGY: Strategy = Strategy {
    is_ordered: true,
    needs_subgroups: false,
    arena: Arena::Dense,
    passes: &[
        Pass {
            stage: Stage::Classify,
            ..ORDER_RINGS
        },
        CLASSIFY,
        ORDER,
        VOTE,
        VOTE_BLOCK_PER_SUBGROUP,
        RECALL,
        SCAN,
        COMPACT,
    ],
    // A bit is written and read, of crossed blocks at most.
    traffic: |instances| instances / 4,
};

const CLASSIFY: Pass = Pass {
    stage: Stage::Classify,
    name: "classify",
    source: |sources| kernels::CLASSIFY.source(sources),
    entry: "classify",
    binds: &[&[
        Bind::uniform(Resource::Batch),
        Bind::read(Resource::Chunks),
        Bind::read(Resource::ChunkViews),
        Bind::write(Resource::Words),
        Bind::write(Resource::Counts),
        Bind::write(Resource::Lists),
        Bind::read(Resource::Bounds),
    ]],
    dispatch: Dispatch::BlockThreads,
};

const VOTE: Pass = Pass {
    stage: Stage::Vote,
    name: "vote_crossed",
    source: |sources| match sources.tier {
        CullingTier::Subgroup => kernels::VOTE_CROSSED_SUBGROUP.source(sources),
        _ => kernels::VOTE_CROSSED_WORKGROUP.source(sources),
    },
    entry: "vote",
    binds: &[
        INPUTS,
        &[
            Bind::write(Resource::Words),
            Bind::write(Resource::Counts),
            Bind::read(Resource::Lists),
            Bind::read(Resource::Bounds),
        ],
    ],
    dispatch: Dispatch::SharedCrossed,
};

/// Runs instead of `VOTE` if that is faster.
const VOTE_BLOCK_PER_SUBGROUP: Pass = Pass {
    name: "vote_crossed_block_per_subgroup",
    source: |sources| kernels::VOTE_CROSSED_BLOCK_PER_SUBGROUP.source(sources),
    dispatch: Dispatch::CrossedPerSubgroup,
    ..VOTE
};
