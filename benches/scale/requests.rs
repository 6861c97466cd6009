//! The requests of a frame.

use crate::{
    SET,
    points::{self, RADIUS},
};
use bevy_gpu_culling::cull::{
    BoundingSphere, CoarserLevel, CullFrame, CullRequest, CullView, DrawShape, FurtherShape,
    LodEye, Order,
};
use glam::Vec3;
use std::sync::Arc;

/// Where the first coarser level begins: a distance from the eye.
const FIRST_LEVEL: f32 = 0.4;
/// How much farther each next one begins. A view that keeps a quarter of the points sees five
/// levels.
const LEVEL_STEP: f32 = 0.3;
/// From where levels are seen: a side of the cube.
const EYE: Vec3 = Vec3::Z;

/// The requests of a frame: one with several primitives, or several with one each.
#[derive(Clone, Copy)]
pub struct Requests {
    pub count: usize,
    pub primitives: usize,
    pub levels: u32,
}

impl Requests {
    /// A single primitive.
    pub const ONE: Self = Self {
        count: 1,
        primitives: 1,
        levels: 1,
    };

    /// The requests for a number of primitives and levels: together, and apart.
    pub fn all(primitives: u32, levels: u32) -> Vec<Self> {
        let primitives = primitives as usize;
        let together = Self {
            count: 1,
            primitives,
            levels,
        };
        let apart = Self {
            count: primitives,
            primitives: 1,
            levels,
        };
        let all = [together, apart];
        all[..primitives.min(2)].to_vec()
    }

    /// A frame in which every view sees a share of the set.
    pub fn frame(self, share: f64, views: u32, order: Order) -> CullFrame {
        let shape = DrawShape::NonIndexed {
            vertex_count: 3,
            first_vertex: 0,
        };
        let further = FurtherShape {
            shape,
            coarser: None,
        };
        // With a resolution of 1, a level begins at the distance that is its error.
        let coarser = |level: u32| CoarserLevel {
            shape,
            error: FIRST_LEVEL + (level - 1) as f32 * LEVEL_STEP,
            sphere: None,
        };
        let coarser: Option<Arc<[_]>> = match self.levels {
            1 => None,
            levels => Some((1..levels).map(coarser).collect()),
        };
        let request = |key: usize| CullRequest {
            key: key as u64,
            coarser: coarser.clone(),
            more: vec![further.clone(); self.primitives - 1],
            order,
            views: (0..views).collect(),
            ..CullRequest::new(
                SET,
                BoundingSphere {
                    center: Vec3::ZERO,
                    radius: RADIUS,
                },
                shape,
            )
        };
        CullFrame {
            views: (0..views).map(|at| self.view(share, at)).collect(),
            requests: (0..self.count).map(request).collect(),
            ..CullFrame::default()
        }
    }

    fn view(self, share: f64, at: u32) -> CullView {
        let view = points::view(share, at);
        match self.levels {
            1 => view,
            _ => view.with_lods_of(LodEye {
                position: EYE,
                is_orthographic: false,
                resolution: 1.0,
                min_resolution: f32::INFINITY,
                pixels: f32::INFINITY,
                fades: false,
            }),
        }
    }
}
