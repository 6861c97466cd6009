//! The requests of a frame.

use crate::{
    SET,
    points::{self, RADIUS},
};
use bevy_gpu_culling::cull::{
    BoundingSphere, CullFrame, CullRequest, DrawShape, ErrorRange, FurtherShape, Order,
};
use glam::{Affine3A, Vec3};

/// The requests of a frame: one with several primitives, or several with one each.
#[derive(Clone, Copy)]
pub struct Requests {
    pub count: usize,
    pub primitives: usize,
}

impl Requests {
    /// A single primitive.
    pub const ONE: Self = Self {
        count: 1,
        primitives: 1,
    };

    /// The requests for a number of primitives: together, and apart.
    pub fn all(primitives: u32) -> Vec<Self> {
        let primitives = primitives as usize;
        let together = Self {
            primitives,
            ..Self::ONE
        };
        let apart = Self {
            count: primitives,
            ..Self::ONE
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
        let request = |key: usize| CullRequest {
            key: key as u64,
            set: SET,
            world_from_local: Affine3A::IDENTITY,
            sphere: BoundingSphere {
                center: Vec3::ZERO,
                radius: RADIUS,
            },
            shape,
            coarser: None,
            more: vec![further.clone(); self.primitives - 1],
            fade: 0.0,
            range: None,
            thin_below: 0.0,
            errors: ErrorRange::default(),
            order,
            views: (0..views).collect(),
        };
        CullFrame {
            views: (0..views).map(|at| points::view(share, at)).collect(),
            requests: (0..self.count).map(request).collect(),
        }
    }
}
