//! The compactions that the product runs, and the passes that they share.

pub(super) mod classify;
pub(super) mod look_back;
pub(super) mod vote_scan_compact;

use super::passes::{Arena, Bind, Dispatch, INPUTS, Pass, Resource, Strategy};
use crate::cull::{Stage, shaders::kernels};

/// Counts to prefixes, if they are many.
const SCAN: Pass = Pass {
    stage: Stage::Scan,
    name: "scan",
    source: |sources| kernels::SCAN.source(sources),
    entry: "scan",
    binds: &[&[
        Bind::uniform(Resource::Batch),
        Bind::write(Resource::Counts),
        Bind::write(Resource::Lists),
        Bind::write(Resource::Partials),
    ]],
    dispatch: Dispatch::Tiles,
};

/// Words to ids in instance order, and the commands.
const COMPACT: Pass = Pass {
    stage: Stage::Compact,
    name: "compact",
    source: |sources| kernels::COMPACT.source(sources),
    entry: "compact",
    binds: &[&[
        Bind::uniform(Resource::Batch),
        Bind::read(Resource::Chunks),
        Bind::read(Resource::Words),
        Bind::read(Resource::ChunkViews),
        Bind::write(Resource::Args),
        Bind::write(Resource::Survivors),
        Bind::read(Resource::Counts),
        Bind::write(Resource::Lists),
        Bind::read(Resource::Partials),
    ]],
    dispatch: Dispatch::Counts,
};
