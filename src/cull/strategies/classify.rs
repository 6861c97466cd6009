//! Blocks first: only blocks that a view's border crosses read their instances.

use super::{Arena, Bind, Dispatch, Pass, Resource, Sources, Strategy, shared::INPUTS};
use crate::cull::{
    Stage,
    shaders::{BLOCKS, FRUSTUM, Kernel, inputs, join, wgsl},
};

pub(super) const STRATEGY: Strategy = Strategy {
    ordered: true,
    needs_subgroups: false,
    arena: Arena::Dense,
    passes: &[CLEAR_LIVE, CLASSIFY, VOTE, SCAN, SPINE, COMPACT, ARGS],
    // A bit is written and read, of crossed blocks at most.
    traffic: |instances| instances * 2 / 8,
};

fn classify(_: &Sources<'_>) -> String {
    join(&[FRUSTUM, wgsl!("block_state"), BLOCKS, wgsl!("classify")])
}

const CLASSIFIED: &[Bind] = &[
    Bind::uniform(0, Resource::Batch),
    Bind::read(1, Resource::Chunks),
    Bind::read(2, Resource::Rows),
    Bind::write(3, Resource::Counts),
    Bind::write(4, Resource::Live),
    Bind::read(6, Resource::Bounds),
];

const CLEAR_LIVE: Pass = Pass {
    stage: Stage::Classify,
    name: "clear_live",
    source: classify,
    entry: "clear_live",
    binds: &[CLASSIFIED],
    dispatch: Dispatch::One,
};

const CLASSIFY: Pass = Pass {
    stage: Stage::Classify,
    name: "classify",
    source: classify,
    entry: "classify",
    binds: &[CLASSIFIED],
    dispatch: Dispatch::BlockThreads,
};

const VOTE: Pass = Pass {
    stage: Stage::Vote,
    name: "vote_live",
    source: |sources| {
        let mut parts = inputs(sources.encoding).to_vec();
        parts.extend([
            wgsl!("block_state"),
            wgsl!("live"),
            wgsl!("vote"),
            sources.pick(wgsl!("vote_row_subgroup"), ""),
            sources.pick(wgsl!("vote_live_subgroup"), wgsl!("vote_live_workgroup")),
        ]);
        join(&parts)
    },
    entry: "vote",
    binds: &[
        INPUTS,
        &[
            Bind::write(5, Resource::Words),
            Bind::read(6, Resource::Bounds),
            Bind::write(7, Resource::Counts),
            Bind::read(8, Resource::Live),
        ],
    ],
    dispatch: Dispatch::Live,
};

fn scan(sources: &Sources<'_>) -> String {
    join(&[
        wgsl!("scan"),
        wgsl!("scan_counts"),
        sources.pick(wgsl!("scan_subgroup"), wgsl!("scan_workgroup")),
    ])
}

const SCANNED: &[Bind] = &[
    Bind::uniform(0, Resource::Batch),
    Bind::write(2, Resource::Counts),
    Bind::write(3, Resource::Partials),
];

const SCAN: Pass = Pass {
    stage: Stage::Scan,
    name: "scan_counts",
    source: scan,
    entry: "scan",
    binds: &[SCANNED],
    dispatch: Dispatch::Tiles,
};

const SPINE: Pass = Pass {
    stage: Stage::Scan,
    name: "spine_counts",
    source: scan,
    entry: "spine",
    binds: &[SCANNED],
    dispatch: Dispatch::One,
};

const COMPACT: Pass = Pass {
    stage: Stage::Compact,
    name: "compact_live",
    source: |sources| {
        join(&[
            wgsl!("block_tables"),
            BLOCKS,
            wgsl!("survivors"),
            wgsl!("write_words"),
            wgsl!("compact"),
            wgsl!("live"),
            sources.pick(wgsl!("words_subgroup"), wgsl!("words_workgroup")),
            sources.pick(
                wgsl!("compact_live_subgroup"),
                wgsl!("compact_live_workgroup"),
            ),
        ])
    },
    entry: "compact",
    binds: &[&[
        Bind::uniform(0, Resource::Batch),
        Bind::read(1, Resource::Chunks),
        Bind::read(2, Resource::Words),
        Bind::read(3, Resource::Counts),
        Bind::read(4, Resource::Partials),
        Bind::write(5, Resource::Survivors),
        Bind::read(6, Resource::Live),
    ]],
    dispatch: Dispatch::Live,
};

const ARGS: Pass = Pass {
    stage: Stage::Args,
    name: "args",
    source: |sources| Kernel::Args.source_with(sources),
    entry: "write_args",
    binds: &[&[
        Bind::uniform(0, Resource::Batch),
        Bind::read(1, Resource::RowDraws),
        Bind::read(2, Resource::Counts),
        Bind::read(3, Resource::Partials),
        Bind::write(4, Resource::Args),
    ]],
    dispatch: Dispatch::Rows,
};
