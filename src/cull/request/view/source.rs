//! Views as the GPU takes them.

use super::{CullView, normalized_plane};
use crate::cull::layout::{PlanePairs, RING_STEPS, RINGS, ViewSource};
use glam::{Vec4, Vec4Swizzles};

impl CullView {
    /// The view, for rows that share it.
    pub(in crate::cull) fn source(&self) -> ViewSource {
        let planes = self.planes.map(normalized_plane);
        ViewSource {
            planes,
            reach: self.reach,
            pairs: PlanePairs::of_planes(planes),
            is_near_first: 1,
            lod_eye: self.lod_eye.map_or(glam::Vec3::ZERO, |eye| eye.position),
            ..self.eye_source()
        }
    }

    /// The source of rows that keep nothing, in any space.
    pub(in crate::cull) fn nothing_source() -> ViewSource {
        let nothing = Self::nothing();
        ViewSource {
            planes: nothing.planes(),
            reach: nothing.reach,
            ..ViewSource::default()
        }
    }

    /// What decides the order of survivors.
    pub(super) fn eye_source(&self) -> ViewSource {
        let source = ViewSource::default();
        match self.depth {
            _ if self.eye == Vec4::ZERO => source,
            Some((plane, range)) => ViewSource {
                eye: plane.xyz().extend(0.0),
                depth_offset: plane.w,
                depth_steps: (RINGS * RING_STEPS) as f32 / range,
                ..source
            },
            None => match self.eye.xyz() / self.eye.w {
                eye if eye.is_finite() => ViewSource {
                    eye: eye.extend(1.0),
                    ..source
                },
                _ => source,
            },
        }
    }
}
