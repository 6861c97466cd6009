//! The culling engine: instance pages, views and requests in; survivor lists and indirect draws out.
//!
//! It needs wgpu, glam and bytemuck, and no Bevy. One frame in order:
//!
//! ```text
//! CullFrame (views, requests) -> plan (chunks, rows; pure) -> tables on the GPU
//!   classify blocks    -> kept, dropped or crossed by each view (only crossed blocks go on to vote)
//!   vote     instances -> visibility words, one bit an instance and row; survivors of each block and row
//!   scan     counts    -> their exclusive prefixes (large batches; small ones are added up in compact)
//!   compact  words     -> survivor ids, in instance order; indirect commands and totals
//! ```
//!
//! These are the passes of the default [`Compaction`]; the others have their own, with the same inputs and outputs.
//!
//! Apart from the frame, [`Expander`] gives each item of each source a thread ([`Expansion`]).
//!
//! Words used throughout: a *page* is a buffer of instances; a *chunk* is a run of one set's instances in one
//! page as one request uses it; a *block* is 1,024 instances of a chunk; a *row* is one view of one chunk; a
//! *batch* is what one dispatch of each stage covers: all chunks of a page.

mod bounds;
mod choose;
mod compactor;
mod culler;
mod error;
pub mod expand;
mod gpu;
pub mod layout;
pub mod meshlets;
mod pipelines;
pub mod plan;
pub mod policy;
pub mod reference;
mod refusal;
mod request;
mod run;
pub mod shaders;
mod stages;
mod store;
mod strategies;
mod tier;
#[cfg(feature = "tune")]
pub mod tune;

#[cfg(feature = "bevy")]
pub(crate) use gpu::{guard::guarded, limits::growing_size};
#[cfg(feature = "bevy")]
pub(crate) use pipelines::{KernelJob, compile_kernel};

pub use choose::tuning::Tuning;
pub use compactor::{Compactor, CompactorOptions};
pub use culler::{
    Culler, CullerOptions, DrawSource, Follower, Frame, IndirectDraws, PassRecorder, PlainPasses,
    Recorded,
};
pub use error::CullError;
pub use expand::{Expander, Expansion};
pub use gpu::{Gpu, version::Version};
pub use plan::{BoundingSphere, DrawPart, DrawShape, planner::BatchKey, view::CullView};
pub use refusal::Refusal;
pub use request::{CullFrame, CullRequest};
pub use run::{
    BatchVersion,
    readback::{BatchData, FrameCounts, RowCount},
};
pub use stages::Stage;
pub use store::{
    InstanceStore, Residency, SMALL_SET, WrittenRegion, WrittenSize,
    region::{Channels, Region, SetId},
};
pub use strategies::Compaction;
pub use tier::CullingTier;
