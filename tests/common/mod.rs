//! Code that the engine's tests share: devices, random scenes, and the comparison of the GPU with
//! the twins.
#![allow(
    clippy::unwrap_used,
    dead_code,
    unused_imports,
    reason = "a test may panic, and not every test uses every helper"
)]

mod compare;
mod devices;
pub mod generated;
pub mod kernel;

pub use compare::{Seen, compare, compare_shapes, equal, order, page_bounds, position};
pub use devices::{TestGpu, gpu, gpu_with, instance, test_gpu};

use bevy_gpu_culling::{
    cull::{
        BoundingSphere, Channels, CoarserLevel, CullFrame, CullRequest, CullView, Culler,
        CullerOptions, CullingTier, DistanceRange, DrawShape, ErrorRange, FurtherShape, Gpu,
        LodEye, Order, SetId,
    },
    instance::{InstanceSet, InstanceTransform, PackedInstance, ScaleKind},
};
use glam::camera::rh::{proj::directx, view};
use glam::{Affine3A, EulerRot, Mat4, Quat, Vec3, Vec4};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

pub fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

fn random_vec(rng: &mut ChaCha8Rng, size: f32) -> Vec3 {
    Vec3::new(
        rng.random_range(-size..=size),
        rng.random_range(-size..=size),
        rng.random_range(-size..=size),
    )
}

fn random_rotation(rng: &mut ChaCha8Rng) -> Quat {
    let turn = random_vec(rng, core::f32::consts::PI);
    Quat::from_euler(EulerRot::XYZ, turn.x, turn.y, turn.z)
}

/// `len` instances in a cube of side 100, with scales of this kind.
pub fn random_set(rng: &mut ChaCha8Rng, len: usize, scale: ScaleKind) -> InstanceSet {
    InstanceSet::from_transforms((0..len).map(|_| InstanceTransform {
        translation: random_vec(rng, 50.0),
        rotation: random_rotation(rng),
        scale: match scale {
            ScaleKind::One => Vec3::ONE,
            ScaleKind::Uniform => Vec3::splat(rng.random_range(0.1..4.0)),
            ScaleKind::NonUniform => Vec3::from_array([(); 3].map(|()| rng.random_range(0.1..4.0))),
        },
    }))
    .unwrap()
}

/// A request of a set that draws a triangle, within half a unit, per instance.
pub fn triangles_of(set: u64) -> CullRequest {
    let sphere = BoundingSphere {
        center: Vec3::ZERO,
        radius: 0.5,
    };
    let shape = DrawShape::Indexed {
        index_count: 3,
        first_index: 0,
        base_vertex: 0,
    };
    CullRequest::new(SetId(set), sphere, shape)
}

/// A random camera, cascade or cube face, or a view that keeps everything or nothing.
pub fn random_view(rng: &mut ChaCha8Rng) -> CullView {
    let eye = random_vec(rng, 80.0);
    let view = view::look_at_mat4(eye, random_vec(rng, 20.0), Vec3::Y);
    let aspect = rng.random_range(0.5..2.0);
    match rng.random_range(0..6) {
        0 => CullView::EVERYTHING,
        1 => CullView::from_planes([Vec4::new(0.0, 0.0, 1.0, -1e6); 6]),
        2 => {
            let side = rng.random_range(5.0..60.0);
            let clip = directx::orthographic(-side, side, -side, side, 200.0, 0.0);
            let view = CullView::from_clip_from_world(&(clip * view));
            if rng.random() {
                view
            } else {
                view.without_near()
            }
        }
        3 => {
            let clip =
                directx::perspective_infinite_reverse(core::f32::consts::FRAC_PI_2, 1.0, 0.1);
            CullView::from_clip_from_world(&(clip * view)).within(eye, rng.random_range(1.0..90.0))
        }
        _ => {
            let angle = rng.random_range(0.2..2.0);
            // Usually near, as in real cameras. Otherwise far enough to matter.
            let far_off = rng.random_bool(0.25);
            let near = if far_off {
                rng.random_range(1.0..40.0)
            } else {
                0.1
            };
            let clip = directx::perspective_infinite_reverse(angle, aspect, near);
            CullView::from_clip_from_world(&(clip * view)).without_far()
        }
    }
}

/// From where a view sees levels of detail.
pub fn random_eye(rng: &mut ChaCha8Rng, thins: &mut ChaCha8Rng) -> LodEye {
    LodEye {
        position: random_vec(rng, 80.0),
        is_orthographic: rng.random_bool(0.2),
        resolution: 10f32.powf(rng.random_range(0.0..3.0)),
        min_resolution: match rng.random_bool(0.3) {
            true => 10f32.powf(rng.random_range(0.0..3.0)),
            false => f32::INFINITY,
        },
        pixels: 10f32.powf(thins.random_range(1.0..3.0)),
        fades: rng.random(),
    }
}

/// The view as it sees levels of detail: usually from a point, rarely not at all.
fn with_random_lods(rng: &mut ChaCha8Rng, thins: &mut ChaCha8Rng, view: CullView) -> CullView {
    let eye = random_eye(rng, thins);
    if rng.random_bool(0.1) {
        view
    } else {
        view.with_lods_of(eye)
    }
}

/// Sometimes a range of distances, rarely an empty one.
fn random_range(rng: &mut ChaCha8Rng) -> Option<DistanceRange> {
    let start = rng.random_range(-5.0..60.0);
    let range = DistanceRange {
        start,
        end: start + rng.random_range(-2.0..120.0),
        of_centers: rng.random(),
    };
    rng.random_bool(0.3).then_some(range)
}

/// Up to seven coarser levels, some of the same error.
fn random_levels(rng: &mut ChaCha8Rng) -> Option<Arc<[CoarserLevel]>> {
    let count = rng.random_range(0..=7);
    if count == 0 || rng.random() {
        return None;
    }
    let mut error = 0.0;
    let levels = (0..count).map(|level| {
        if rng.random_bool(0.8) {
            error += 10f32.powf(rng.random_range(-3.0..0.5));
        }
        let shape = DrawShape::Indexed {
            index_count: 30 - 3 * level,
            first_index: 100 * level,
            base_vertex: 5,
        };
        let sphere = BoundingSphere {
            center: Vec3::X * 0.02 * level as f32,
            radius: 0.1 + 0.05 * level as f32,
        };
        CoarserLevel {
            shape,
            error,
            sphere: (level % 3 > 0).then_some(sphere),
        }
    });
    Some(levels.collect())
}

/// Often every error; otherwise errors from one on, up to one, or both.
fn random_errors(rng: &mut ChaCha8Rng) -> ErrorRange {
    let mut error = || {
        let error = 10f32.powf(rng.random_range(-3.0..0.5));
        rng.random_bool(0.15).then_some(error)
    };
    let (start, end) = (error(), error());
    ErrorRange {
        start,
        end,
        levels_before: rng.random_range(0..3),
    }
}

/// A scene: sets, their requests and the views.
pub struct Scene {
    pub sets: Vec<InstanceSet>,
    pub frame: CullFrame,
}

/// A random transform with a uniform scale if `even`, or else sometimes with a nonuniform one.
pub fn random_transform(rng: &mut ChaCha8Rng, even: bool) -> Affine3A {
    let scale = if even || rng.random() {
        Vec3::splat(rng.random_range(0.2..3.0))
    } else {
        random_vec(rng, 1.0) + 1.5
    };
    Affine3A::from_scale_rotation_translation(scale, random_rotation(rng), random_vec(rng, 20.0))
}

/// Half of the requests have further shapes, with and without indices, with and without levels.
fn random_shapes(rng: &mut ChaCha8Rng) -> Vec<FurtherShape> {
    let max = if rng.random() { 0 } else { 3 };
    let shape = |rng: &mut ChaCha8Rng| match rng.random() {
        true => DrawShape::Indexed {
            index_count: rng.random_range(1..100),
            first_index: rng.random_range(0..100),
            base_vertex: rng.random_range(-9..9),
        },
        false => DrawShape::NonIndexed {
            vertex_count: rng.random_range(1..100),
            first_vertex: rng.random_range(0..100),
        },
    };
    let level = |rng: &mut ChaCha8Rng| CoarserLevel {
        shape: shape(rng),
        error: f32::NAN,
        sphere: None,
    };
    (0..rng.random_range(0..=max))
        .map(|_| FurtherShape {
            shape: shape(rng),
            coarser: rng
                .random::<bool>()
                .then(|| (0..2).map(|_| level(rng)).collect()),
        })
        .collect()
}

/// Hides instances of some sets: every n-th, and sometimes whole blocks.
fn hide_some(rng: &mut ChaCha8Rng, set: &mut InstanceSet) {
    let len = set.len();
    let each = rng.random_range(2..2000);
    let run = rng.random_range(0..3000);
    let (has_gaps, has_run) = (rng.random_bool(0.3), rng.random_bool(0.3));
    if !has_gaps || len == 0 {
        return;
    }
    let first = rng.random_range(0..len);
    let hidden = (0..len).filter(|i| i % each == 0 || has_run && (first..first + run).contains(i));
    for i in hidden {
        set.hide(i as u32).unwrap();
    }
}

/// A random scene of sets with these lengths.
pub fn random_scene(rng: &mut ChaCha8Rng, lengths: &[usize]) -> Scene {
    // Its own stream: the rest of the scene does not depend on orders.
    let mut orders = rng.clone();
    orders.set_stream(1);
    let mut lods = rng.clone();
    lods.set_stream(2);
    let mut borders = rng.clone();
    borders.set_stream(3);
    let mut siblings = rng.clone();
    siblings.set_stream(4);
    let mut kinds = rng.clone();
    kinds.set_stream(5);
    let mut thins = rng.clone();
    thins.set_stream(6);
    let mut gaps = rng.clone();
    gaps.set_stream(7);
    // Sometimes more views than the kernels test at a time: 4, 16, or a subgroup's lanes.
    let max = if rng.random_bool(0.2) { 40 } else { 8 };
    let views: Vec<_> = (0..rng.random_range(1..=max))
        .map(|_| random_view(rng))
        .map(|view| with_random_lods(&mut lods, &mut thins, view))
        .collect();
    // Often like most real sets: no scales, no stretched transforms, centered meshes.
    let plain = rng.random_bool(0.4);
    let sets: Vec<_> = lengths
        .iter()
        .map(|len| {
            let scale = match rng.random() && !plain {
                false => ScaleKind::One,
                true if kinds.random() => ScaleKind::NonUniform,
                true => ScaleKind::Uniform,
            };
            let mut set = random_set(rng, *len, scale);
            hide_some(&mut gaps, &mut set);
            // Only blocks of neighbors have an order.
            if orders.random() { set.sorted() } else { set }
        })
        .collect();
    let mut requests = Vec::new();
    for (key, _) in sets.iter().enumerate() {
        let center = if plain || rng.random() {
            Vec3::ZERO
        } else {
            random_vec(rng, 2.0)
        };
        requests.push(CullRequest {
            key: key as u64,
            set: SetId(key as u64),
            world_from_local: random_transform(rng, plain),
            sphere: BoundingSphere {
                center,
                radius: rng.random_range(0.0..2.0),
            },
            full_sphere: (key % 2 > 0).then_some(BoundingSphere {
                center: 0.5 * center,
                radius: 0.3,
            }),
            shape: if rng.random() {
                DrawShape::Indexed {
                    index_count: 36,
                    first_index: 7,
                    base_vertex: -3,
                }
            } else {
                DrawShape::NonIndexed {
                    vertex_count: 9,
                    first_vertex: 4,
                }
            },
            coarser: random_levels(&mut lods),
            more: random_shapes(&mut siblings),
            fade: if lods.random() {
                0.0
            } else {
                lods.random_range(0.0..1.0)
            },
            range: random_range(&mut lods),
            thin_below: match thins.random_bool(0.2) {
                true => 10f32.powf(thins.random_range(-1.0..1.5)),
                false => 0.0,
            },
            errors: random_errors(&mut borders),
            order: match orders.random_bool(0.7) {
                true => Order::NearFirst,
                false if key % 2 == 0 => Order::FarFirst,
                false => Order::Set,
            },
            views: (0..views.len() as u32)
                .filter(|_| rng.random_range(0..8) > 0)
                .collect(),
            resting: 0,
        });
    }
    Scene {
        sets,
        frame: CullFrame {
            views,
            requests,
            ..CullFrame::default()
        },
    }
}

pub fn options(tier: CullingTier, shader_checks: bool) -> CullerOptions {
    CullerOptions {
        tier: Some(tier),
        shader_checks,
        // The comparison reads the visibility words of every block.
        compaction: bevy_gpu_culling::cull::Compaction::VoteScanCompact,
        ..CullerOptions::default()
    }
}

/// Uploads the sets and runs one frame.
pub fn run(culler: &mut Culler, gpu: Gpu<'_>, scene: &Scene) {
    upload(culler, gpu, scene);
    run_resident(culler, gpu, &scene.frame);
}

/// Runs one frame with the sets that are resident.
pub fn run_resident(culler: &mut Culler, gpu: Gpu<'_>, frame: &CullFrame) {
    culler.prepare(gpu, frame);
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    let recorded = culler.prepared().unwrap().record(gpu, &mut encoder);
    gpu.queue.submit([encoder.finish()]);
    culler.finish(recorded);
}

pub fn upload(culler: &mut Culler, gpu: Gpu<'_>, scene: &Scene) {
    for (id, set) in scene.sets.iter().enumerate() {
        upload_set(culler, gpu, (SetId(id as u64), set));
    }
}

/// Uploads a set under a name.
pub fn upload_set(
    culler: &mut Culler,
    Gpu { device, queue }: Gpu<'_>,
    (id, set): (SetId, &InstanceSet),
) {
    let channels = Channels {
        previous: set.keeps_previous(),
        scale: set.scale_kind(),
        data_words: set.data_size() as u32 / 4,
    };
    let store = culler.store_mut();
    store
        .reserve_set(device, id, set.len() as u32, channels)
        .unwrap();
    store.upload(queue, id, 0, set.packed()).unwrap();
    store
        .upload_scales(queue, id, 0, set.scale_floats())
        .unwrap();
    store.upload_data(queue, id, 0, set.data_words()).unwrap();
}

/// The instances of a page and the numbers of their scales as they are on the GPU, reconstructed
/// from the scene's sets.
pub fn page_copy(culler: &Culler, scene: &Scene, page: usize) -> (Vec<PackedInstance>, Vec<f32>) {
    let (mut instances, mut scales) = (Vec::new(), Vec::new());
    for (id, set) in scene.sets.iter().enumerate() {
        let mut done = 0;
        for region in culler.store().set_regions(SetId(id as u64)) {
            let take = (set.len() - done).min(region.capacity as usize);
            if region.page == page {
                let end = region.first as usize + take;
                instances.resize(instances.len().max(end), PackedInstance::default());
                // A page with a scale per axis has no other sets.
                let floats = set.scale_kind().floats().max(1);
                scales.resize(scales.len().max(end * floats), 1.0);
                instances[region.first as usize..end]
                    .copy_from_slice(&set.packed()[done..done + take]);
                if set.has_scales() {
                    scales[region.first as usize * floats..end * floats].copy_from_slice(
                        &set.scale_floats()[done * floats..(done + take) * floats],
                    );
                }
            }
            done += take;
        }
    }
    (instances, scales)
}
