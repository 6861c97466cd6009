//! The default: visibility bits, a scan of the blocks' counts (reduce, spine), compact as its downsweep.

use super::{Arena, Bind, Dispatch, Pass, Resource, Strategy, shared::VOTE_WORDS};
use crate::cull::{Stage, shaders::Kernel};

pub(super) const STRATEGY: Strategy = Strategy {
    ordered: true,
    needs_subgroups: false,
    arena: Arena::Dense,
    passes: &[VOTE_WORDS, SCAN, SPINE, COMPACT, ARGS],
    // A bit is written and read twice.
    traffic: |instances| instances * 3 / 8,
};

const SCANNED: &[Bind] = &[
    Bind::uniform(0, Resource::Batch),
    Bind::read(1, Resource::Words),
    Bind::write(2, Resource::Counts),
    Bind::write(3, Resource::Partials),
];

const SCAN: Pass = Pass {
    stage: Stage::Scan,
    name: "scan",
    source: |sources| Kernel::Scan.source_with(sources),
    entry: "scan",
    binds: &[SCANNED],
    dispatch: Dispatch::Tiles,
};

const SPINE: Pass = Pass {
    stage: Stage::Scan,
    name: "spine",
    source: |sources| Kernel::Scan.source_with(sources),
    entry: "spine",
    binds: &[SCANNED],
    dispatch: Dispatch::One,
};

const COMPACT: Pass = Pass {
    stage: Stage::Compact,
    name: "compact",
    source: |sources| Kernel::Compact.source_with(sources),
    entry: "compact",
    binds: &[&[
        Bind::uniform(0, Resource::Batch),
        Bind::read(1, Resource::Chunks),
        Bind::read(2, Resource::Words),
        Bind::read(3, Resource::Counts),
        Bind::read(4, Resource::Partials),
        Bind::write(5, Resource::Survivors),
    ]],
    dispatch: Dispatch::Blocks,
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
