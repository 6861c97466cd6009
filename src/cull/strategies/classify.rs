//! Blocks first, then words: only words that a view's border crosses read their instances.

use super::{
    Arena, Bind, Dispatch, Pass, Resource, Sources, Strategy,
    shared::{COMPACT, INPUTS, SCAN, testing},
};
use crate::cull::{
    Stage,
    shaders::{BLOCKS, FRUSTUM, join, wgsl},
};

pub(super) const STRATEGY: Strategy = Strategy {
    ordered: true,
    needs_subgroups: false,
    arena: Arena::Dense,
    passes: &[CLASSIFY, VOTE, VOTE_OWN, SCAN, COMPACT],
    // A bit is written and read, of crossed blocks at most.
    traffic: |instances| instances / 4,
};

const CLASSIFY: Pass = Pass {
    stage: Stage::Classify,
    name: "classify",
    source: |_| {
        join(&[
            FRUSTUM,
            wgsl!("lists"),
            wgsl!("block_state"),
            BLOCKS,
            wgsl!("classify"),
        ])
    },
    entry: "classify",
    binds: &[&[
        Bind::uniform(0, Resource::Batch),
        Bind::read(1, Resource::Chunks),
        Bind::read(2, Resource::Rows),
        Bind::write(6, Resource::Counts),
        Bind::write(7, Resource::Lists),
        Bind::read(8, Resource::Bounds),
    ]],
    dispatch: Dispatch::BlockThreads,
};

const VOTE: Pass = Pass {
    stage: Stage::Vote,
    name: "vote_live",
    source: |sources| {
        vote_live(
            sources,
            &[
                sources.pick(wgsl!("ballot_component"), ""),
                sources.pick(wgsl!("pairs"), ""),
                sources.pick(wgsl!("vote_row_subgroup"), ""),
                sources.pick(wgsl!("vote_live_subgroup"), wgsl!("vote_live_workgroup")),
            ],
        )
    },
    entry: "vote",
    binds: &[
        INPUTS,
        &[
            Bind::write(5, Resource::Words),
            Bind::write(6, Resource::Counts),
            Bind::write(7, Resource::Lists),
            Bind::read(8, Resource::Bounds),
        ],
    ],
    dispatch: Dispatch::SharedCrossed,
};

/// Instead of `VOTE`, where that pays.
const VOTE_OWN: Pass = Pass {
    name: "vote_live_own",
    source: |sources| vote_live(sources, &[wgsl!("vote_asked"), wgsl!("vote_live_own")]),
    dispatch: Dispatch::OwnCrossed,
    ..VOTE
};

/// The WGSL of a vote on crossed blocks.
fn vote_live(sources: &Sources<'_>, kernel: &[&str]) -> String {
    let mut parts = vec![
        wgsl!("lists"),
        wgsl!("words"),
        wgsl!("word_bound"),
        wgsl!("block_state"),
        wgsl!("word_state"),
    ];
    parts.extend_from_slice(kernel);
    testing(sources, &parts)
}
