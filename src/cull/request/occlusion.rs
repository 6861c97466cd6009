//! What a caller says of a view whose depth hides instances.

use core::ops::Range;
use glam::{Mat4, UVec2};
use wgpu::TextureView;

/// A view of a frame in which instances may be hidden.
#[derive(Debug)]
pub struct OcclusionView {
    /// Index of the view in the frame.
    pub view: u32,
    /// Names the view, the same in every frame: what it has seen is kept under this name.
    pub key: u64,
    /// From the world to the clip space in which the view draws, with reverse z.
    pub clip_from_world: Mat4,
    /// Whether the view draws with an offset of up to half a pixel from that matrix.
    pub is_jittered: bool,
    /// Words of 32 instances, one of which is at least this wide in pixels, are drawn early even if
    /// the frame before has not seen them; after a cut, of a sixteenth of the width. If the
    /// instances of a block are far from each other, the frame before decides, and after a cut the
    /// width of each. It changes the speed alone.
    pub near_pixels: f32,
    /// Indices of the requests whose instances may be hidden, in increasing order. Their draws must
    /// test depth, and write no depth but what lies inside their instances' spheres. Far-first
    /// requests are never hidden.
    pub requests: Vec<u32>,
    /// Whether the view draws only what it saw in its last frame that was not frozen. What it had
    /// no memory of then is drawn as the frustum keeps it. It has no late lists.
    pub is_frozen: bool,
    /// What the early draws leave.
    pub depth: DepthBuffer,
}

impl Clone for OcclusionView {
    fn clone(&self) -> Self {
        Self {
            requests: self.requests.clone(),
            depth: self.depth.clone(),
            ..*self
        }
    }

    fn clone_from(&mut self, source: &Self) {
        let mut requests = core::mem::take(&mut self.requests);
        requests.clone_from(&source.requests);
        *self = Self {
            requests,
            depth: source.depth.clone(),
            ..*source
        };
    }
}

/// A depth buffer in reverse z: 1 is near.
#[derive(Clone, Debug)]
pub struct DepthBuffer {
    /// A view of the depth aspect, which can be bound as a texture.
    pub texture: TextureView,
    /// Number of samples per pixel.
    pub samples: u32,
    /// First pixel of the viewport in the texture.
    pub origin: UVec2,
    /// Size of the viewport in pixels.
    pub size: UVec2,
    /// The depths of the viewport: of the far plane, and of the near plane. Mostly 0
    /// to 1.
    pub range: Range<f32>,
}

/// Which survivors of a request are drawn in a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DrawList {
    /// What the frustum keeps.
    #[default]
    Kept,
    /// What is drawn first, in a view in which instances may be hidden; in other views, what the
    /// frustum keeps.
    Early,
    /// What is visible but was not drawn early. Nothing in other views.
    Late,
    /// All that is visible; in other views, what the frustum keeps.
    Visible,
}
