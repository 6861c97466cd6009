//! The eye of a view, and its pixels per unit.

use glam::Vec3;

/// The eye of a view, for levels of detail and visibility ranges, and its pixels per unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LodEye {
    /// The point in the world from which distances count. The view of a shadow has its camera's, so
    /// that shadows are of the level that is seen.
    pub position: Vec3,
    /// Whether the camera is orthographic: then an instance has the same size at all distances.
    pub is_orthographic: bool,
    /// Size of an error of one world unit at distance 1 (at any distance if orthographic), in
    /// multiples of the greatest error that may be seen. A perspective camera whose image is `h`
    /// pixels high has `h / (2 tan(fov / 2)) / pixels`, if `pixels` is the greatest error. If it is
    /// not finite or not above 0, the view draws full meshes.
    pub resolution: f32,
    /// The same for the diameter of an instance's sphere, in multiples of the least diameter that
    /// is drawn. If it is not finite or not above 0, every size is drawn.
    pub min_resolution: f32,
    /// Number of pixels of a world unit at distance 1 (at any distance if orthographic), by which
    /// instances are thinned out ([`CullRequest::thin_below`](crate::cull::CullRequest)). If it is
    /// not finite or not above 0, none are.
    pub pixels: f32,
    /// Whether both of two levels are drawn between which an instance fades
    /// ([`CullRequest::fade`](crate::cull::CullRequest::fade)); otherwise the coarser one alone is.
    pub fades: bool,
}
