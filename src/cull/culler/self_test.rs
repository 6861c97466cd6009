//! A test of a tier's kernels at the start: the survivors of a small scene, against the tier
//! `Cpu`, whose stages run on the CPU. So a driver that computes wrongly is found before anything
//! is drawn.

use super::{Culler, CullerOptions, make::Kernels};
use crate::{
    cull::{
        BoundingSphere, Channels, CoarserLevel, CullError, CullFrame, CullRequest, CullView,
        CullingTier, DrawShape, Gpu, LodEye, Order, SetId, choose::Choice,
    },
    instance::{PackedInstance, ScaleKind},
};
use core::f32::consts::FRAC_1_SQRT_2;
use glam::{Affine3A, Quat, Vec3, Vec4};

/// Number of instances along a side of the square that a set fills: two blocks, of which the second
/// is not full.
const SIDE: u32 = 40;

/// A set without scales, and one in which each instance has a scale of one half.
const SETS: [(SetId, ScaleKind); 2] = [(SetId(0), ScaleKind::One), (SetId(1), ScaleKind::Uniform)];

impl Culler {
    /// Compares what the kernels keep with what the tier `Cpu` keeps.
    ///
    /// # Errors
    /// [`CullError::WrongResult`], or [`CullError::Readback`] if the results cannot be read.
    pub(super) fn test(
        gpu: Gpu<'_>,
        tier: CullingTier,
        kernels: &Kernels,
        options: &CullerOptions,
    ) -> Result<(), CullError> {
        // A browser does not wait for results.
        if tier == CullingTier::Cpu || cfg!(target_arch = "wasm32") {
            return Ok(());
        }
        let frame = frame();
        let device = gpu.device;
        let on_cpu = Kernels {
            pipelines: Vec::new(),
            bounds: None,
            choice: Choice::new(device, CullingTier::Cpu, options.compaction, None),
        };
        let cpu = Culler::of(device, CullingTier::Cpu, options.clone(), on_cpu)?;
        let expected = survivors(cpu, gpu, &frame)?;
        for pipelines in &kernels.pipelines {
            let compaction = pipelines.compaction;
            let options = CullerOptions {
                compaction,
                ..options.clone()
            };
            let one = Kernels {
                pipelines: vec![pipelines.clone()],
                bounds: kernels.bounds.clone(),
                choice: Choice::new(device, tier, compaction, None),
            };
            let culler = Culler::of(device, tier, options, one)?;
            let mut found = survivors(culler, gpu, &frame)?;
            let mut expected = expected.clone();
            if !compaction.is_ordered() {
                let lists = found.iter_mut().chain(&mut expected);
                lists.for_each(|list| list.sort_unstable());
            }
            let mut lists = found.iter().zip(&expected);
            if let Some(wrong) = lists.position(|(found, expected)| found != expected) {
                return Err(CullError::WrongResult {
                    tier,
                    compaction: compaction.name(),
                    list: wrong,
                    found: found[wrong].len(),
                    expected: expected[wrong].len(),
                });
            }
        }
        Ok(())
    }
}

/// Three requests in two views. Planes cut the larger spheres of some instances, and miss the
/// smaller ones by more than rounding could decide.
fn frame() -> CullFrame {
    // It keeps everything.
    let open = Vec4::new(0.0, 1.0, 0.0, 100.0);
    let [left, right] = [1.0, -1.0].map(|x| Vec4::new(x, 0.0, 0.0, 8.3));
    let [near, far] = [(1.0, 12.3), (-1.0, 3.0)].map(|(z, w)| Vec4::new(0.0, 0.0, z, w));
    let orthographic = LodEye {
        position: Vec3::ZERO,
        is_orthographic: true,
        resolution: 1.0,
        min_resolution: f32::INFINITY,
        pixels: f32::INFINITY,
        fades: false,
    };
    let square = CullView::from_planes([left, right, open, open, near, far]);
    let diagonal = Vec4::new(-1.0, 0.0, -1.0, 0.7) * FRAC_1_SQRT_2;
    let half = CullView::from_planes([diagonal, open, open, open, open, open]);
    let sphere = BoundingSphere {
        center: Vec3::ZERO,
        radius: 0.25,
    };
    let triangle = DrawShape::Indexed {
        index_count: 3,
        first_index: 0,
        base_vertex: 0,
    };
    let request = |key: u64, (set, _): (SetId, ScaleKind)| CullRequest {
        key,
        views: vec![0, 1],
        ..CullRequest::new(set, sphere, triangle)
    };
    let level = CoarserLevel {
        shape: triangle,
        error: 0.01,
        sphere: None,
    };
    let moved = Affine3A::from_rotation_translation(
        Quat::from_rotation_y(core::f32::consts::FRAC_PI_2),
        Vec3::new(0.0, 0.0, 3.0),
    );
    CullFrame {
        views: vec![square.with_lods_of(orthographic), half],
        requests: vec![
            request(0, SETS[0]),
            CullRequest {
                world_from_local: moved,
                ..request(1, SETS[1])
            },
            CullRequest {
                coarser: Some([level].into()),
                order: Order::Set,
                ..request(2, SETS[0])
            },
        ],
        ..CullFrame::default()
    }
}

/// The survivors of each request in each of its views.
fn survivors(
    mut culler: Culler,
    gpu: Gpu<'_>,
    frame: &CullFrame,
) -> Result<Vec<Vec<u32>>, CullError> {
    let at = |i: u32| (i as f32) - 0.5 * (SIDE - 1) as f32;
    let places = (0..SIDE * SIDE).map(|i| Vec3::new(at(i % SIDE), 0.0, at(i / SIDE)));
    let instances: Vec<_> = places
        .map(|place| PackedInstance::new(place, Quat::IDENTITY))
        .collect();
    let store = culler.store_mut();
    for (set, scale) in SETS {
        let channels = Channels {
            scale,
            ..Channels::default()
        };
        store.reserve_set(gpu.device, set, SIDE * SIDE, channels)?;
        store.upload(gpu.queue, set, 0, &instances)?;
        if scale == ScaleKind::Uniform {
            store.upload_scales(gpu.queue, set, 0, &vec![0.5; instances.len()])?;
        }
    }
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    let recorded = culler.prepare(gpu, frame).record(gpu, &mut encoder);
    gpu.queue.submit([encoder.finish()]);
    culler.finish(recorded);
    let mut lists = Vec::new();
    for (index, request) in frame.requests.iter().enumerate() {
        for view in 0..request.views.len() {
            lists.push(culler.read_survivors(gpu, frame, index, view)?);
        }
    }
    Ok(lists)
}
