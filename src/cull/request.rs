//! What a caller asks of a frame: views, and requests that name the sets they cull.

mod lod_eye;
mod occlusion;
mod plane_pairs;
mod shape;
mod view;

use crate::cull::store::region::SetId;
use glam::Affine3A;
pub use lod_eye::LodEye;
pub use occlusion::{DepthBuffer, DrawList, OcclusionView};
pub use shape::{BoundingSphere, DrawShape};
use std::sync::Arc;
pub use view::CullView;

/// One use of a set in a frame: the views that cull it, and what its survivors draw.
#[derive(Clone, Debug)]
pub struct CullRequest {
    /// Names the request in [`FrameCounts`](crate::cull::FrameCounts).
    pub key: u64,
    /// The set.
    pub set: SetId,
    /// Transform from the set's space to the world.
    pub world_from_local: Affine3A,
    /// Sphere around the mesh, in the mesh's space.
    pub sphere: BoundingSphere,
    /// The sphere around the full mesh, within `sphere`: occlusion culling tests it. If `None`, it
    /// tests `sphere`.
    pub full_sphere: Option<BoundingSphere>,
    /// What each survivor draws.
    pub shape: DrawShape,
    /// Coarser levels of detail, which far survivors draw instead of `shape`; `None` without
    /// levels. Views that have no [`LodEye`](crate::cull::LodEye) draw `shape` alone.
    pub coarser: Option<Arc<[CoarserLevel]>>,
    /// What each survivor draws besides `shape`, for example the other primitives of a tree.
    /// Further shapes cost no test and have no list: each has a command, which draws the list of
    /// `shape` ([`Culler::shape_source`](crate::cull::Culler::shape_source)). The sphere must
    /// surround all of them.
    pub more: Vec<FurtherShape>,
    /// How long an instance fades from level to level, as a share of the distance at which the
    /// coarser one begins: in between it is drawn at both. 0 switches at once.
    pub fade: f32,
    /// The distances at which instances are drawn at all; `None` for every distance. Views without
    /// a [`LodEye`](crate::cull::LodEye) draw at every distance.
    pub range: Option<DistanceRange>,
    /// The diameter in pixels of a view's [`LodEye`](crate::cull::LodEye) below which instances are
    /// thinned out: of those that are seen `s` pixels wide, the share `(s / thin_below)^2` is kept,
    /// and drawn larger, so that they cover as much as all did. They begin to change at 1.22 times
    /// this diameter, grow about their origins, and shrink to nothing before they go
    /// (`shaders/shared/thin.wesl`, whose text is [`THIN`](crate::cull::shaders::THIN)): the
    /// caller's vertex stage applies this. They are not tested for occlusion, and their meshlets
    /// are tested as if nothing grew: do not draw them by meshlets. 0 keeps all; so do numbers that
    /// are not finite or below 0.
    pub thin_below: f32,
    /// The levels of detail that the request draws, if other requests of the set draw the others.
    pub errors: ErrorRange,
    /// In which order its survivors are drawn.
    pub order: Order,
    /// Indices of the views that cull it.
    pub views: Vec<u32>,
    /// Which of the first 128 of `views` keep nothing in this frame: bit k is place k. Their rows
    /// stay in the plan, so that a set comes into view and leaves it without another plan.
    pub resting: u128,
}

impl CullRequest {
    /// A request of no view yet, with key 0: what it draws is not transformed, has no levels of
    /// detail, and near instances come first.
    #[must_use]
    pub fn new(set: SetId, sphere: BoundingSphere, shape: DrawShape) -> Self {
        Self {
            key: 0,
            set,
            world_from_local: Affine3A::IDENTITY,
            sphere,
            full_sphere: None,
            shape,
            coarser: None,
            more: Vec::new(),
            fade: 0.0,
            range: None,
            thin_below: 0.0,
            errors: ErrorRange::default(),
            order: Order::NearFirst,
            views: Vec::new(),
            resting: 0,
        }
    }

    /// Whether some view tests it.
    pub(crate) fn is_tested(&self) -> bool {
        self.views.len() > self.resting.count_ones() as usize
    }

    /// Whether its survivors are sorted by depth.
    pub(crate) fn is_far_first(&self) -> bool {
        self.order == Order::FarFirst
    }

    /// The levels of detail behind the full mesh.
    pub(crate) fn coarser_levels(&self) -> &[CoarserLevel] {
        self.coarser.as_deref().unwrap_or_default()
    }

    /// Number of levels of detail, the full mesh included.
    pub(crate) fn level_count(&self) -> usize {
        self.coarser_levels().len() + 1
    }

    /// Whether the view at a place of `views` keeps nothing.
    #[must_use]
    pub fn rests_in(&self, place: usize) -> bool {
        place < 128 && self.resting >> place & 1 == 1
    }

    /// The sphere around what survivors draw at a level, the full mesh first.
    pub(in crate::cull) fn sphere_of_level(&self, level: usize) -> BoundingSphere {
        // The spheres of what else is drawn are not known, and what is thinned out grows.
        if !self.more.is_empty() || self.thins() {
            return self.sphere;
        }
        let own = match level.checked_sub(1) {
            None => self.full_sphere,
            Some(at) => (self.coarser_levels().get(at)).and_then(|level| level.sphere),
        };
        own.unwrap_or(self.sphere)
    }

    /// Whether views may thin instances out.
    pub(in crate::cull) fn thins(&self) -> bool {
        self.thin_below.is_finite() && self.thin_below > 0.0 && self.sphere.radius > 0.0
    }
}

/// What survivors draw besides [`CullRequest::shape`].
#[derive(Clone, Debug, PartialEq)]
pub struct FurtherShape {
    /// What each survivor draws.
    pub shape: DrawShape,
    /// What far survivors draw instead, level by level. The errors of [`CullRequest::coarser`]
    /// decide; errors given here are not read. If a level is missing, `shape` is drawn.
    pub coarser: Option<Arc<[CoarserLevel]>>,
}

impl FurtherShape {
    /// What is drawn at a level, the full mesh first.
    pub(in crate::cull) fn at_level(&self, level: usize) -> DrawShape {
        let coarser = self.coarser.as_deref().unwrap_or_default();
        let found = level.checked_sub(1).and_then(|at| coarser.get(at));
        found.map_or(self.shape, |level| level.shape)
    }
}

/// A level of detail that is coarser than the full mesh.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoarserLevel {
    /// What each survivor draws.
    pub shape: DrawShape,
    /// How far its surface lies from the full mesh's at most, in the mesh's units. A view draws the
    /// coarsest level whose error it sees as at most its threshold of pixels. Errors increase from
    /// level to level; a smaller one counts as equal to the one before.
    pub error: f32,
    /// The sphere around its mesh, within [`CullRequest::sphere`]: occlusion culling tests it. If
    /// `None`, it tests the request's.
    pub sphere: Option<BoundingSphere>,
}

impl CoarserLevel {
    /// A level within the request's sphere.
    #[must_use]
    pub fn new(shape: DrawShape, error: f32) -> Self {
        Self {
            shape,
            error,
            sphere: None,
        }
    }
}

/// What a request draws of a set that several requests share out by level of detail, for example
/// one per material. The error of an instance in a view is the one that is seen there as the
/// greatest allowed; so exactly one of two requests draws it if one ends at the error at which the
/// other starts. Both need the same transform, sphere and views. The default draws every instance.
///
/// ```text
/// error     0         0.1        0.4
/// near      | shape   | coarser  |          end: Some(0.4)
/// far       |         |          | shape    start: Some(0.4), levels_before: 2
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ErrorRange {
    /// The request draws instances from this error on. Views that cannot tell levels apart draw
    /// none. `None` draws from the finest level on.
    pub start: Option<f32>,
    /// The request draws instances up to this error, and as long as they fade
    /// ([`CullRequest::fade`]). Coarser levels with a larger error are not drawn. `None` draws the
    /// coarsest level at any distance.
    pub end: Option<f32>,
    /// Number of levels that other requests draw. The counters number the request's levels from
    /// here on, and if it is above 0, they count its instances as tested by those requests.
    pub levels_before: u32,
}

/// The distances from a view's eye at which instances are drawn, in world units: `start` included,
/// `end` not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DistanceRange {
    /// The least distance. Below 0 means 0.
    pub start: f32,
    /// The distance at which instances vanish. At most `start` draws nothing.
    pub end: f32,
    /// Whether distances are of the centers of the instances' spheres, instead of their origins.
    pub of_centers: bool,
}

/// In which order the survivors of a view are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// Near words of 32 instances first, or blocks of 1,024 in large frames, in rings of distance
    /// from the view, so that near instances hide far ones before these are shaded. Instances of
    /// one word are in set order. Only the compactions of the product sort blocks
    /// ([`Compaction::sorts_blocks`](crate::cull::Compaction::sorts_blocks)); the others keep set
    /// order.
    #[default]
    NearFirst,
    /// The order of the set.
    Set,
    /// The farthest survivor first, as blended materials need: each view sorts its survivors by the
    /// depth of the centers of their meshes' spheres
    /// ([`CullView::sorted_toward`](crate::cull::CullView::sorted_toward)). Survivors of equal
    /// depth stay in set order, unless the compaction keeps none
    /// ([`Compaction::is_ordered`](crate::cull::Compaction::is_ordered)). Each region of a set is
    /// sorted alone.
    FarFirst,
}

/// The views and requests of one frame.
#[derive(Clone, Debug, Default)]
pub struct CullFrame {
    /// All views.
    pub views: Vec<CullView>,
    /// All requests.
    pub requests: Vec<CullRequest>,
    /// Indices of the requests that differ from the frame that was prepared before, if the caller
    /// knows them: the others are then not compared, except for those behind the requests of that
    /// frame. `None` compares all.
    pub changed: Option<Vec<usize>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::Vec3;

    #[test]
    fn a_level_has_its_own_sphere_unless_more_is_drawn() {
        let sphere = |radius| BoundingSphere {
            center: Vec3::ZERO,
            radius,
        };
        let shape = DrawShape::NonIndexed {
            vertex_count: 3,
            first_vertex: 0,
        };
        let mut request = CullRequest::new(SetId(1), sphere(4.0), shape);
        let radii =
            |request: &CullRequest| [0, 1, 2, 3].map(|level| request.sphere_of_level(level).radius);
        assert_eq!(radii(&request), [4.0; 4]);
        let near = CoarserLevel {
            sphere: Some(sphere(2.0)),
            ..CoarserLevel::new(shape, 0.1)
        };
        request.full_sphere = Some(sphere(1.0));
        request.coarser = Some([near, CoarserLevel::new(shape, 0.2)].into());
        assert_eq!(radii(&request), [1.0, 2.0, 4.0, 4.0]);
        request.more = vec![FurtherShape {
            shape,
            coarser: None,
        }];
        assert_eq!(radii(&request), [4.0; 4]);
        request.more.clear();
        request.thin_below = 3.0;
        assert_eq!(radii(&request), [4.0; 4]);
    }
}
