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

mod auto;
mod batch;
mod belt;
mod bounds;
mod compaction;
mod compactor;
mod culler;
mod draws;
mod error;
pub mod expand;
mod frame;
mod guard;
mod inspect;
pub mod layout;
mod memory;
pub mod meshlets;
mod pages;
mod pairs;
mod pipelines;
pub mod plan;
mod planner;
mod previous;
mod readback;
pub mod reference;
mod residents;
mod sets;
pub mod shaders;
mod stages;
mod staging;
mod tier;
#[cfg(feature = "tune")]
pub mod tune;
mod tuning;
mod view;
mod written;

#[cfg(feature = "bevy")]
pub(crate) use guard::{growing_size, guarded};
#[cfg(feature = "bevy")]
pub(crate) use pipelines::{KernelJob, compile_kernel};

pub use compaction::Compaction;
pub use compactor::{Compactor, CompactorOptions};
pub use culler::{Culler, CullerOptions};
pub use draws::{DrawSource, IndirectDraws};
pub use error::CullError;
pub use expand::{Expander, Expansion};
pub use frame::{CullFrame, CullRequest, Refusal};
pub use pages::{Channels, Region, SMALL_SET, SetId};
pub use plan::{BoundingSphere, DrawPart, DrawShape};
pub use readback::{BatchData, FrameCounts, RowCount};
pub use sets::Residency;
pub use stages::Stage;
pub use tier::CullingTier;
pub use tuning::Tuning;
pub use view::CullView;
pub use written::WrittenRegion;
