//! A custom projection, different from Bevy's projections.

use bevy::{
    camera::{CameraProjection, SubCameraView},
    math::Vec3A,
    prelude::*,
};
use glam::camera::rh::proj::directx;

/// An infinite reverse-z projection whose center is not the screen's center, sheared in depth.
#[derive(Clone, Debug)]
pub struct Oblique {
    pub aspect: f32,
}

impl CameraProjection for Oblique {
    fn get_clip_from_view(&self) -> Mat4 {
        let mut clip = directx::perspective_infinite_reverse(0.9, self.aspect, 0.1);
        clip.z_axis.x = 0.25;
        clip.z_axis.y = -0.15;
        clip
    }

    fn get_clip_from_view_for_sub(&self, _: &SubCameraView) -> Mat4 {
        self.get_clip_from_view()
    }

    fn update(&mut self, width: f32, height: f32) {
        self.aspect = width / height;
    }

    fn far(&self) -> f32 {
        1000.0
    }

    fn get_frustum_corners(&self, z_near: f32, z_far: f32) -> [Vec3A; 8] {
        let view_from_clip = self.get_clip_from_view().inverse();
        let corner = |x: f32, y: f32, z: f32| {
            let depth = 0.1 / -z;
            let at = view_from_clip.project_point3(Vec3::new(x, y, depth));
            Vec3A::from(at)
        };
        [z_near, z_far]
            .map(|z| {
                [
                    corner(1.0, -1.0, z),
                    corner(1.0, 1.0, z),
                    corner(-1.0, 1.0, z),
                    corner(-1.0, -1.0, z),
                ]
            })
            .concat()
            .try_into()
            .unwrap()
    }
}
