//! The compactions of the ladder (docs/internals/ladder.md), which the product does not choose, and
//! the passes that they share.

pub(super) mod ballot_scan;
pub(crate) mod doubling;
pub(super) mod hillis_steele;
pub(super) mod naive_atomic;
pub(super) mod subgroup_atomic;
pub(super) mod workgroup_atomic;
pub(super) mod workgroup_scan;

use super::passes::{Arena, Bind, Dispatch, INPUTS, Pass, Resource, Strategy};
use crate::cull::{Stage, shaders::kernels};

/// What a kernel writes that tests instances and places them in regions.
const REGIONS: &[Bind] = &[
    Bind::write(Resource::Survivors),
    Bind::write(Resource::RowCounts),
];

/// Instances to visibility words.
const VOTE_WORDS: Pass = Pass {
    stage: Stage::Vote,
    name: "vote_words",
    source: |sources| kernels::VOTE_WORDS.source(sources),
    entry: "vote",
    binds: &[INPUTS, &[Bind::write(Resource::Words)]],
    dispatch: Dispatch::Blocks,
};

/// Instances to votes of 32 bits.
const VOTE_FLAGS: Pass = Pass {
    stage: Stage::Vote,
    name: "vote_flags",
    source: |sources| kernels::FLAGS.source(sources),
    entry: "vote_flags",
    binds: &[INPUTS, &[Bind::write(Resource::Front)]],
    dispatch: Dispatch::Blocks,
};

/// Clears the counters of the rows, in the stage of the pass that counts survivors and before it.
const CLEAR_ROWS: Pass = Pass {
    stage: Stage::Compact,
    name: "clear_rows",
    source: |sources| kernels::REGIONS.source(sources),
    entry: "clear_rows",
    binds: &[&[
        Bind::uniform(Resource::Batch),
        Bind::write(Resource::RowCounts),
    ]],
    dispatch: Dispatch::Rows,
};

/// Commands of an arena of regions.
const ARGS_REGIONS: Pass = Pass {
    stage: Stage::Args,
    name: "args_regions",
    source: |sources| kernels::REGIONS.source(sources),
    entry: "write_args",
    binds: &[&[
        Bind::uniform(Resource::Batch),
        Bind::write(Resource::RowCounts),
        Bind::read(Resource::ChunkViews),
        Bind::write(Resource::Args),
    ]],
    dispatch: Dispatch::Rows,
};
