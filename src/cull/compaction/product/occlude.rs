//! What a view has not hidden, of what the frustum keeps: the late lists.
//!
//! It takes the place of the vote in separate batches, for which `recall` has left records.
//!
//! Kernel: `shaders/occlusion/occlude.wesl`.

use super::{
    Arena, Bind, COMPACT, Dispatch, ORDER, ORDER_RINGS, Pass, Resource, SCAN, Stage, Strategy,
    kernels,
};

pub(in crate::cull::compaction) const STRATEGY: Strategy = Strategy {
    is_ordered: true,
    needs_subgroups: false,
    arena: Arena::Dense,
    passes: &[
        late(ORDER_RINGS),
        late(ORDER),
        OCCLUDE_WORDS,
        OCCLUDE,
        late(SCAN),
        late(COMPACT),
    ],
    // A bit is read and written, and two are written.
    traffic: |instances| instances / 2,
};

/// A pass of the frame, in the stage of the late lists.
const fn late(pass: Pass) -> Pass {
    Pass {
        stage: Stage::Occlude,
        ..pass
    }
}

const OCCLUDE_WORDS: Pass = Pass {
    stage: Stage::Occlude,
    name: "occlude_words",
    source: |sources| kernels::OCCLUDE_WORDS.source(sources),
    entry: "occlude_words",
    binds: &[&[
        Bind::uniform(Resource::Batch),
        Bind::read(Resource::Bounds),
        Bind::write(Resource::Counts),
        Bind::write(Resource::Lists),
        Bind::read(Resource::Pyramid),
        Bind::uniform(Resource::PyramidShape),
        Bind::read(Resource::Occlusion),
        Bind::write(Resource::History),
    ]],
    dispatch: Dispatch::Cells,
};

const OCCLUDE: Pass = Pass {
    stage: Stage::Occlude,
    name: "occlude",
    source: |sources| kernels::OCCLUDE.source(sources),
    entry: "occlude",
    binds: &[&[
        Bind::uniform(Resource::Batch),
        Bind::read(Resource::Instances),
        Bind::read(Resource::Scales),
        Bind::write(Resource::Words),
        Bind::write(Resource::Counts),
        // Atomics are writes.
        Bind::write(Resource::Lists),
        Bind::read(Resource::Pyramid),
        Bind::uniform(Resource::PyramidShape),
        Bind::read(Resource::Occlusion),
        Bind::write(Resource::History),
    ]],
    dispatch: Dispatch::ListedCells,
};
