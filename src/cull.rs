//! The culling engine: sets of instances, views and requests in; survivor lists and indirect draws
//! out.
//!
//! It needs wgpu, glam and bytemuck, and no Bevy. One frame, in order
//! (`docs/internals/architecture.md` has every kernel):
//!
//! ```text
//! CullFrame: views, requests
//!   plan      chunks, rows, batches                        (CPU, pure; kept while nothing changes)
//!   upload    the tables that changed
//!
//!   order         words or blocks of near-first rows -> ranks, near ones first
//!
//!   small frames: one dispatch per batch
//!     look_back   tests blocks, words and instances, and writes survivor ids and draw commands
//!
//!   large frames: one dispatch per batch and stage
//!     classify    blocks     -> kept, rejected or crossed by each view
//!     vote        instances of crossed blocks -> visibility words: one bit per instance and row
//!     scan        counts     -> exclusive prefixes (small batches skip it)
//!     compact     words      -> survivor ids in the order of the ranks, draw commands, totals
//!
//!   far_first     survivors of far-first rows -> sorted by depth, the farthest first
//!
//!   followers     meshlets, expanded mesh uniforms, commands of multi-draws
//!   read back     totals and commands, a few frames later
//! ```
//!
//! [`Compaction`] names these two ways; the feature `study` adds others. [`Expander`] gives one
//! thread to each item of each source ([`Expansion`]): to the meshlets of survivors, or to a
//! caller's items.
//!
//! The words, in short (`docs/glossary.md` has all of them): a *page* is a buffer of instances; a
//! *chunk* is a run of one set's instances in one page, as one request uses it; a *block* is 1,024
//! instances of a chunk; a *row* is one view of one chunk; a *batch* is all chunks that one
//! dispatch covers.
//!
//! The rooms, from the ground up; each imports only what comes before it, which the test `circles`
//! checks:
//!
//! 1. `layout` (what the shaders share), `policy` (thresholds), `tier`, `error`, `shaders`
//! 2. `gpu` (buffers, kernels, errors of the device), `store` (sets on the GPU)
//! 3. `request` (what a caller asks: views, shapes, levels), `plan` (tables)
//! 4. `compaction` (the passes), `pipelines`, `reference` (CPU twins), `run` (the batches)
//! 5. `expand`, `far_first` (the sort by depth), `choose` (which passes run), `occlusion`
//! 6. `culler` (the frame), `multi_draws`, `meshlets`, `scatter` (what grows where)
//!
//! The cargo feature `testing` makes `layout`, `occlusion`, `plan`, `policy` and `reference`
//! public.

mod choose;
mod compaction;
#[cfg(any(feature = "study", feature = "tune"))]
mod compactor;
mod culler;
mod error;
pub mod expand;
mod far_first;
mod gpu;
#[cfg(not(feature = "testing"))]
pub(crate) mod layout;
#[cfg(feature = "testing")]
pub mod layout;
pub mod meshlets;
mod multi_draws;
#[cfg(not(feature = "testing"))]
mod occlusion;
#[cfg(feature = "testing")]
pub mod occlusion;
mod pipelines;
#[cfg(not(feature = "testing"))]
pub(crate) mod plan;
#[cfg(feature = "testing")]
pub mod plan;
#[cfg(not(feature = "testing"))]
pub(crate) mod policy;
#[cfg(feature = "testing")]
pub mod policy;
#[cfg(not(feature = "testing"))]
pub(crate) mod reference;
#[cfg(feature = "testing")]
pub mod reference;
mod refusal;
mod request;
mod run;
pub mod scatter;
pub mod shaders;
mod stages;
mod store;
mod tier;
#[cfg(feature = "tune")]
pub mod tune;

#[cfg(feature = "bevy")]
pub(crate) use gpu::kernel::{KernelJob, compile_kernel};
#[cfg(feature = "bevy")]
pub(crate) use gpu::{
    guard::guarded,
    limits::growing_size,
    on_demand::{OnDemand, RetryTimer},
};

pub use choose::tuning::Tuning;
pub use compaction::Compaction;
#[cfg(feature = "testing")]
pub use compaction::PassRun;
#[cfg(feature = "study")]
pub use compactor::{Compactor, CompactorOptions};
#[cfg(all(feature = "tune", not(feature = "study")))]
pub(crate) use compactor::{Compactor, CompactorOptions};
pub use culler::{
    Culler, CullerOptions, CullerWork, DrawSource, Follower, Frame, IndirectDraws, PassRecorder,
    PlainPasses, RecordedPasses,
};
pub use error::CullError;
pub use expand::{Expander, Expansion};
#[cfg(feature = "bevy")]
pub(crate) use gpu::changes::ChangedBytes;
#[cfg(all(feature = "bevy", feature = "testing"))]
pub(crate) use gpu::readback::{forget_reads, reading_is_pending};
pub use gpu::{Gpu, version::Version};
#[cfg(feature = "testing")]
pub use gpu::{
    faults::{Fault, Faults},
    shared_kernels::share_kernels,
};
pub use multi_draws::{MultiDraws, WantedDraws};
pub use plan::{DrawPart, planned::BatchKey};
pub use refusal::{Missing, Refusal};
pub use request::{
    BoundingSphere, CoarserLevel, CullFrame, CullRequest, CullView, DepthBuffer, DistanceRange,
    DrawList, DrawShape, ErrorRange, FurtherShape, LodEye, OcclusionView, Order,
};
#[cfg(feature = "testing")]
pub use run::inspect::BatchData;
pub use run::{
    BatchVersion,
    readback::{FrameCounts, RowCount},
};
pub use stages::Stage;
pub use store::{
    InstanceStore, Residency, SMALL_SET, WrittenRegion, WrittenSize,
    region::{Channels, Region, SetId},
};
pub use tier::CullingTier;
