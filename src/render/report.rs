//! The report of what the culling did, on its way from the GPU to the main world.
//!
//! 1. `content`: [`CullingReport`]. `sets`: [`SetReport`], its counters per set.
//! 2. `counts`: from the counters of a frame to its report.
//! 3. `finish`: asks for counters, and sends the newest report to the main world.

mod content;
mod counts;
mod finish;
mod sets;

pub use content::{
    CullingReport, FrameWork, LevelReport, MeshletReport, OcclusionReport, ViewReport,
};
pub use sets::SetReport;

pub(super) use finish::{ReportInbox, finish_culling, receive_report};
