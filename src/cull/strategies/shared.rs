//! Bindings and passes that strategies share.

use super::{Bind, Dispatch, Pass, Resource, Sources};
use crate::cull::{
    Stage,
    shaders::{self, Kernel, join, wgsl},
};

/// What every kernel that tests instances reads (`visible.wgsl`).
pub(super) const INPUTS: &[Bind] = &[
    Bind::uniform(0, Resource::Batch),
    Bind::read(1, Resource::Chunks),
    Bind::read(2, Resource::Rows),
    Bind::read(3, Resource::Instances),
    Bind::read(4, Resource::Scales),
];

/// The WGSL of a kernel that tests instances: what reads them, then `parts`.
pub(super) fn testing(sources: &Sources<'_>, parts: &[&str]) -> String {
    let mut all = shaders::inputs(sources.encoding).to_vec();
    all.extend_from_slice(parts);
    join(&all)
}

/// Instances to visibility words.
pub(super) const VOTE_WORDS: Pass = Pass {
    stage: Stage::Vote,
    name: "vote_words",
    source: |sources| shaders::vote(sources, &[wgsl!("vote_no_counts")]),
    entry: "vote",
    binds: &[INPUTS, &[Bind::write(5, Resource::Words)]],
    dispatch: Dispatch::Blocks,
};

/// Words to ids in instance order, and the commands.
pub(super) const COMPACT: Pass = Pass {
    stage: Stage::Compact,
    name: "compact",
    source: |sources| Kernel::Compact.source_with(sources),
    entry: "compact",
    binds: &[&[
        Bind::uniform(0, Resource::Batch),
        Bind::read(1, Resource::Chunks),
        Bind::read(2, Resource::Words),
        Bind::read(3, Resource::RowDraws),
        Bind::write(10, Resource::Args),
        Bind::write(5, Resource::Survivors),
        Bind::read(6, Resource::Counts),
        Bind::write(7, Resource::Lists),
        Bind::read(8, Resource::Partials),
    ]],
    dispatch: Dispatch::Counts,
};

/// Counts to prefixes, where they are many.
pub(super) const SCAN: Pass = Pass {
    stage: Stage::Scan,
    name: "scan",
    source: |sources| Kernel::Scan.source_with(sources),
    entry: "scan",
    binds: &[&[
        Bind::uniform(0, Resource::Batch),
        Bind::write(6, Resource::Counts),
        Bind::write(7, Resource::Lists),
        Bind::write(8, Resource::Partials),
    ]],
    dispatch: Dispatch::Tiles,
};

/// Instances to votes of 32 bits.
pub(super) const VOTE_FLAGS: Pass = Pass {
    stage: Stage::Vote,
    name: "vote_flags",
    source: |sources| testing(sources, &[wgsl!("vote_flags")]),
    entry: "vote_flags",
    binds: &[INPUTS, &[Bind::write(5, Resource::Front)]],
    dispatch: Dispatch::Blocks,
};

fn args_regions(_: &Sources<'_>) -> String {
    join(&[
        wgsl!("block_tables"),
        wgsl!("draw"),
        wgsl!("row_draw"),
        wgsl!("args_regions"),
    ])
}

/// Survivors of each row back to none: before the pass that counts them, in its stage.
pub(super) const CLEAR_ROWS: Pass = Pass {
    stage: Stage::Compact,
    name: "clear_rows",
    source: args_regions,
    entry: "clear_rows",
    binds: &[&[
        Bind::uniform(0, Resource::Batch),
        Bind::write(2, Resource::RowCounts),
    ]],
    dispatch: Dispatch::Rows,
};

/// Commands of an arena of regions.
pub(super) const ARGS_REGIONS: Pass = Pass {
    stage: Stage::Args,
    name: "args_regions",
    source: args_regions,
    entry: "write_args",
    binds: &[&[
        Bind::uniform(0, Resource::Batch),
        Bind::write(2, Resource::RowCounts),
        Bind::read(3, Resource::RowDraws),
        Bind::write(10, Resource::Args),
    ]],
    dispatch: Dispatch::Rows,
};
