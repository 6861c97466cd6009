//! The compactions that the product runs, and the passes that they share.

pub(super) mod classify;
pub(super) mod look_back;
pub(super) mod occlude;
pub(super) mod vote_scan_compact;

use super::passes::{Arena, Bind, Dispatch, INPUTS, Pass, Resource, Strategy};
use crate::cull::{Stage, shaders::kernels};

/// Counts units per ring of distance, if rows are near first and have many units.
///
/// Kernels of this and the next two passes: `shaders/cull/order.wesl`.
const ORDER_RINGS: Pass = Pass {
    stage: Stage::Vote,
    name: "order_rings",
    source: |sources| kernels::ORDER_RINGS.source(sources),
    entry: "order_rings",
    binds: &[ORDER_INPUTS, &[Bind::write(Resource::Rings)]],
    dispatch: Dispatch::OrderRings,
};

/// Sorts the units of each row, if rows are near first.
const ORDER: Pass = Pass {
    name: "order",
    source: |sources| kernels::ORDER.source(sources),
    entry: "order",
    binds: &[
        ORDER_INPUTS,
        &[Bind::write(Resource::Rings), Bind::write(Resource::Ranks)],
    ],
    dispatch: Dispatch::OrderTiles,
    ..ORDER_RINGS
};

/// The same for `look-back`, whose kernel has no binding left for [`Resource::Ranks`].
const ORDER_STRIPS: Pass = Pass {
    name: "order_strips",
    source: |sources| kernels::ORDER_STRIPS.source(sources),
    binds: &[
        ORDER_INPUTS,
        &[
            Bind::write(Resource::Rings),
            Bind::write(Resource::LookBack),
        ],
    ],
    ..ORDER
};

const ORDER_INPUTS: &[Bind] = &[
    Bind::uniform(Resource::Batch),
    Bind::read(Resource::Chunks),
    Bind::read(Resource::ChunkViews),
    Bind::read(Resource::Bounds),
];

/// Of rows that may be hidden, what is drawn early.
///
/// Kernel: `shaders/occlusion/recall.wesl`.
const RECALL: Pass = Pass {
    stage: Stage::Recall,
    name: "recall",
    source: |sources| kernels::RECALL.source(sources),
    entry: "recall",
    binds: &[&[
        Bind::uniform(Resource::Batch),
        Bind::read(Resource::Instances),
        Bind::read(Resource::Scales),
        Bind::read(Resource::Bounds),
        Bind::write(Resource::Words),
        Bind::write(Resource::Counts),
        Bind::read(Resource::Occlusion),
        Bind::write(Resource::History),
    ]],
    dispatch: Dispatch::Cells,
};

/// Counts to places, if they are many.
const SCAN: Pass = Pass {
    stage: Stage::Scan,
    name: "scan",
    source: |sources| kernels::SCAN.source(sources),
    entry: "scan",
    binds: &[&[
        Bind::uniform(Resource::Batch),
        Bind::read(Resource::Words),
        Bind::read(Resource::Counts),
        Bind::write(Resource::Lists),
        Bind::write(Resource::Ranks),
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
        Bind::read(Resource::Ranks),
    ]],
    dispatch: Dispatch::Counts,
};
