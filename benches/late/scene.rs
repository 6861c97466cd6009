//! Points in a cube, the camera that sees some of them, and the wall that hides some of those.

use anyhow::Result;
use bevy_gpu_culling::{
    cull::{
        BoundingSphere, CoarserLevel, CullFrame, CullRequest, CullView, DepthBuffer, DrawShape,
        LodEye, OcclusionView, SetId,
    },
    instance::{InstanceSet, PackedInstance},
};
use glam::camera::rh::{proj::directx, view};
use glam::{Mat4, Quat, UVec2, Vec3};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use wgpu::TextureView;

/// Radius of an instance. The cube has sides of 2.
const RADIUS: f32 = 0.002;
/// Distance of the near plane.
const NEAR: f32 = 0.01;
/// The camera, at a side of the cube.
const EYE: Vec3 = Vec3::Z;

/// Sets of points, as instances per set.
pub fn sets(count: u32, sets: u32) -> Result<Vec<InstanceSet>> {
    let set = |set: u32| {
        let len = count / sets + u32::from(set < count % sets);
        let mut rng = ChaCha8Rng::seed_from_u64(u64::from(set));
        let mut unit = || rng.random_range(-1.0f32..1.0);
        let points = (0..len).map(|_| {
            let place = Vec3::new(unit(), unit(), unit());
            PackedInstance::new(place, Quat::IDENTITY)
        });
        Ok(InstanceSet::from_packed(points.collect())?.sorted())
    };
    (0..sets).map(set).collect()
}

/// The requests: each set once, with `levels` levels of detail.
pub fn requests(sets: u32, levels: u32) -> Vec<CullRequest> {
    let shape = DrawShape::Indexed {
        index_count: 3,
        first_index: 0,
        base_vertex: 0,
    };
    // With a resolution of 1, a level begins at the distance that is its error.
    let coarser = |level: u32| CoarserLevel {
        shape,
        error: level as f32 * 2.0 / levels as f32,
        sphere: None,
    };
    let coarser: Option<Arc<[_]>> = (levels > 1).then(|| (1..levels).map(coarser).collect());
    let request = |set: u32| CullRequest {
        key: u64::from(set),
        coarser: coarser.clone(),
        views: vec![0],
        ..CullRequest::new(
            SetId(u64::from(set)),
            BoundingSphere {
                center: Vec3::ZERO,
                radius: RADIUS,
            },
            shape,
        )
    };
    (0..sets).map(request).collect()
}

/// The camera, turned by some radians.
pub struct Camera {
    pub clip_from_world: Mat4,
    view_from_world: Mat4,
}

impl Camera {
    pub fn new(size: UVec2, turn: f32) -> Self {
        let ahead = Quat::from_rotation_y(turn) * Vec3::NEG_Z;
        let view_from_world = view::look_to_mat4(EYE, ahead, Vec3::Y);
        let aspect = size.x as f32 / size.y as f32;
        let lens = directx::perspective_infinite_reverse(0.8, aspect, NEAR);
        Self {
            clip_from_world: lens * view_from_world,
            view_from_world,
        }
    }

    /// Its frame.
    pub fn frame(&self, requests: &[CullRequest]) -> CullFrame {
        let view = CullView::from_clip_from_world(&self.clip_from_world);
        let view = view.with_eye().with_lods_of(LodEye {
            position: EYE,
            is_orthographic: false,
            resolution: 1.0,
            min_resolution: f32::INFINITY,
            pixels: f32::INFINITY,
            fades: false,
        });
        CullFrame {
            views: vec![view],
            requests: requests.to_vec(),
            ..CullFrame::default()
        }
    }

    /// The view that hides what is behind `depth`.
    pub fn occlusion(&self, texture: &TextureView, size: UVec2, sets: u32) -> OcclusionView {
        OcclusionView {
            view: 0,
            key: 1,
            clip_from_world: self.clip_from_world,
            is_jittered: false,
            near_pixels: 256.0,
            requests: (0..sets).collect(),
            is_frozen: false,
            depth: DepthBuffer {
                samples: texture.texture().sample_count(),
                texture: texture.clone(),
                origin: UVec2::ZERO,
                size,
                range: 0.0..1.0,
            },
        }
    }

    /// The depth of a wall, in the depth buffer, behind which the share `hidden` of what the
    /// frustum keeps lies, and the least and the greatest number of instances that are not behind
    /// it. Nothing is behind a wall at depth 0.
    pub fn wall(&self, sets: &[InstanceSet], hidden: f64) -> (f32, [u64; 2]) {
        let mut nearest: Vec<f32> = Vec::new();
        let mut beside = 0;
        for instance in sets.iter().flat_map(|set| set.packed()) {
            let place = instance.position();
            let clip = self.clip_from_world * place.extend(1.0);
            let sides = clip.x.abs().max(clip.y.abs());
            if clip.w > NEAR && sides < clip.w {
                nearest.push(-self.view_from_world.transform_point3(place).z - RADIUS);
            } else if sides < clip.w + 4.0 * RADIUS {
                // The frustum may keep the sphere.
                beside += 1;
            }
        }
        nearest.sort_by(f32::total_cmp);
        let first = (nearest.len() as f64 * (1.0 - hidden)) as usize;
        let Some(distance) = nearest.get(first).filter(|_| hidden > 0.0) else {
            return (0.0, [nearest.len() as u64, u64::MAX]);
        };
        // Rounding may decide at the wall.
        let before = |distance: f32| nearest.partition_point(|near| *near < distance) as u64;
        let min = before(distance * 0.999);
        (NEAR / distance, [min, before(distance * 1.001) + beside])
    }
}
