//! What a batch reads and does not own.

use super::{rows::RowFiller, tables::TablePlace};
use crate::cull::{gpu::version::Version, layout::Projection, store::PageBuffers};
use std::sync::Arc;
use wgpu::Buffer;

/// The buffers that a batch reads and does not own.
pub(crate) struct BatchInputs<'a> {
    pub page: PageBuffers<'a>,
    pub pages_version: Version,
    /// The page's records of what views have seen.
    pub history: Option<&'a Buffer>,
    pub history_version: Version,
    pub pyramid: Option<PyramidBuffers<'a>>,
    /// The projections of the plan.
    pub projections: &'a [Projection],
    /// What fills rows that share views, and the views.
    pub shared: Option<SharedInputs<'a>>,
}

/// What rows that share views are filled with.
#[derive(Clone, Copy)]
pub(in crate::cull) struct SharedInputs<'a> {
    pub filler: &'a Arc<RowFiller>,
    /// The views in the frame's tables.
    pub views: TablePlace,
}

/// The depth of a view.
#[derive(Clone, Copy)]
pub(crate) struct PyramidBuffers<'a> {
    pub depths: &'a Buffer,
    pub shape: &'a Buffer,
    /// Changes when a buffer is replaced.
    pub version: Version,
}
