//! Results of the meshlet stages on their way back.

use crate::cull::layout::meshlets::MeshletResult;
use crate::cull::{BatchKey, DrawList, gpu::staging::StagingRing};

/// What one view drew of one chunk at one level of detail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeshletRowCount {
    /// [`CullRequest::key`](crate::cull::CullRequest::key).
    pub request: u64,
    /// Index of the view in the frame.
    pub view: u32,
    /// Level of detail, the full mesh being level 0.
    pub level: u32,
    /// Which survivors of the view.
    pub list: DrawList,
    /// Number of survivors whose meshlets were tested.
    pub survivors: u64,
    /// Number of meshlets tested: survivors times the meshlets of the level.
    pub tested: u64,
    /// Number of meshlets outside the view.
    pub outside: u64,
    /// Number of meshlets inside the view whose triangles all face away.
    pub facing_away: u64,
    /// Number of meshlets that the depth of the view hides: of late lists.
    pub hidden: u64,
    /// Number of meshlets drawn.
    pub visible: u64,
    /// Number of triangles drawn.
    pub triangles: u64,
    /// Number of triangles that the survivors would have if their level were drawn whole.
    pub whole_triangles: u64,
    /// Whether the survivors were drawn whole because their meshlets did not fit.
    pub is_whole: bool,
}

/// Counters of one frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeshletCounts {
    /// Number of the frame, counted by the meshlet culler.
    pub frame: u64,
    /// One per chunk, view, list and level whose mesh has meshlets. Rows of late lists may be
    /// of another frame.
    pub rows: Vec<MeshletRowCount>,
}

/// What a row's result means, kept until the result arrives.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowMeaning {
    pub request: u64,
    pub view: u32,
    pub level: u32,
    pub list: DrawList,
    pub meshlets: u32,
    pub triangles: u32,
}

impl RowMeaning {
    pub fn count(&self, result: &MeshletResult) -> MeshletRowCount {
        let survivors = u64::from(result.survivor_count);
        let is_whole = result.whole != 0;
        let tested = if is_whole {
            0
        } else {
            survivors * u64::from(self.meshlets)
        };
        let [outside, hidden, visible] =
            [result.outside, result.hidden, result.visible].map(u64::from);
        MeshletRowCount {
            request: self.request,
            view: self.view,
            level: self.level,
            list: self.list,
            survivors,
            tested,
            outside: outside.min(tested),
            hidden: hidden.min(tested),
            facing_away: tested.saturating_sub(outside + hidden + visible),
            visible,
            triangles: result.triangle_count(),
            whole_triangles: survivors * u64::from(self.triangles),
            is_whole,
        }
    }
}

/// What the results of some batches mean, row by row.
pub(super) type Meanings = Vec<(BatchKey, Vec<RowMeaning>)>;

/// The counters of a view's late lists.
pub(super) struct LateCounters {
    pub readback: StagingRing<Meanings>,
    pub counts: MeshletCounts,
    pub last_used: u64,
}

impl LateCounters {
    pub fn new() -> Self {
        Self {
            readback: StagingRing::new("gpu_culling late meshlet counters"),
            counts: MeshletCounts::default(),
            last_used: 0,
        }
    }
}
