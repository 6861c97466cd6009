//! Sets that a compute pass writes. The GPU encodes instances as the CPU does, tests them like
//! uploaded instances, and keeps the previous frame's instances.

use crate::common::{
    gpu,
    kernel::{Kernel, buffer, buffer_of, read},
    options, random_set, random_view, rng, run_resident,
};
use bevy_gpu_culling::{
    cull::{
        BoundingSphere, Channels, CoarserLevel, Compaction, CullError, CullFrame, CullRequest,
        CullView, Culler, CullerOptions, CullingTier, DrawShape, Gpu, LodEye, Order, Residency,
        SetId, WrittenSize, layout::BLOCK, shaders,
    },
    instance::{PackedInstance, PackedQuat, ScaleKind},
};
use glam::{Affine3A, Quat, Vec3};
use rand::RngExt;
use wgpu::Device;

/// A kernel that packs the instances in `plain` and writes them to the set.
const KERNEL: &str = "
struct Plain { position: vec3<f32>, scale: f32, rotation: vec4<f32> }

@group(0) @binding(0) var<storage, read> plain: array<Plain>;
@group(0) @binding(1) var<storage, read_write> written: array<PackedInstance>;
@group(0) @binding(2) var<storage, read_write> scales: array<f32>;

@compute @workgroup_size(64)
fn write(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&plain)) {
        let given = plain[id.x];
        if (given.scale == -1.0) {
            written[id.x] = hidden();
        } else {
            written[id.x] = pack(given.position, given.rotation);
        }
        // Three numbers per instance if there is room for them.
        if (arrayLength(&scales) >= 3u * arrayLength(&plain)) {
            scales[3u * id.x] = given.scale;
            scales[3u * id.x + 1u] = given.scale * 0.5;
            scales[3u * id.x + 2u] = given.scale * 1.5;
        } else {
            scales[id.x] = given.scale;
        }
    }
}
";

/// An instance before it is packed: position, scale (-1 hides it) and rotation.
type Plain = [f32; 8];

fn plain(position: Vec3, scale: f32, rotation: Quat) -> Plain {
    let (p, q) = (position, rotation);
    [p.x, p.y, p.z, scale, q.x, q.y, q.z, q.w]
}

/// The user's compute pass.
struct Writer(Kernel);

impl Writer {
    fn new(device: &Device) -> Self {
        let source = [shaders::INSTANCE, shaders::INSTANCE_PACK, KERNEL].join("\n");
        Self(Kernel::new(device, &source, "write"))
    }

    /// Records a pass that writes `data` from the start of the buffers on.
    fn record(
        &self,
        device: &Device,
        encoder: &mut wgpu::CommandEncoder,
        data: &[Plain],
        [written, scales]: [wgpu::BindingResource<'_>; 2],
    ) {
        let input = buffer_of(device, bytemuck::cast_slice(data));
        let bindings = [(0, input.as_entire_binding()), (1, written), (2, scales)];
        let workgroups = data.len().div_ceil(64) as u32;
        self.0.record(device, encoder, bindings, workgroups);
    }

    /// Writes a set region by region.
    fn write_set(
        &self,
        device: &Device,
        encoder: &mut wgpu::CommandEncoder,
        (culler, id): (&Culler, SetId),
        data: &[Plain],
    ) {
        let spare = buffer(device, u64::from(BLOCK) * 1024 * 4);
        for region in culler.store().written_regions(id) {
            let from = region.first as usize;
            let to = (from + region.capacity as usize).min(data.len());
            if from < to {
                let scales = region.scales_binding();
                let scales = scales.unwrap_or(spare.as_entire_binding());
                let bindings = [region.instances_binding(), scales];
                self.record(device, encoder, &data[from..to], bindings);
            }
        }
    }
}

fn size((capacity, active): (u32, u32), channels: Channels, classify: bool) -> WrittenSize {
    WrittenSize {
        capacity,
        active,
        channels,
        classify,
        noted: false,
    }
}

fn culler_of(device: &Device, tier: CullingTier, compaction: Compaction) -> Culler {
    let options = CullerOptions {
        compaction,
        ..options(tier, true)
    };
    Culler::new(device, options).unwrap().0
}

/// Makes room for the set, with a scale per instance.
fn reserve_scaled(gpu: Gpu<'_>, culler: &mut Culler, room: (u32, u32), classify: bool) {
    let channels = Channels {
        scale: ScaleKind::Uniform,
        ..Channels::default()
    };
    let size = size(room, channels, classify);
    let store = culler.store_mut();
    store.reserve_written(gpu, SetId(0), size).unwrap();
}

#[test]
fn the_gpu_encodes_the_same_rotations() {
    let gpu = gpu();
    let mut rng = rng(91);
    let mut quaternions: Vec<Quat> = (0..50_000)
        .map(|_| Quat::from_array(core::array::from_fn(|_| rng.random_range(-1.0f32..1.0))))
        .collect();
    // Rotations that 32 bits represent exactly.
    for q in quaternions.clone().iter().take(20_000) {
        quaternions.push(PackedQuat::encode(*q).decode());
    }
    let directionless = quaternions.len();
    quaternions.extend([
        Quat::from_xyzw(0.0, 0.0, 0.0, 0.0),
        Quat::from_xyzw(0.0, f32::NAN, 0.0, 1.0),
        Quat::from_xyzw(f32::INFINITY, 0.0, 0.0, 1.0),
        Quat::IDENTITY,
        -Quat::IDENTITY,
    ]);
    for axis in [Vec3::X, Vec3::Y, Vec3::Z, Vec3::NEG_Y] {
        for turn in [0.0, 0.5, 1.0, 1.5, 2.0] {
            quaternions.push(Quat::from_axis_angle(axis, turn * core::f32::consts::PI));
        }
    }
    for signs in 0..16u32 {
        let sign = |bit: u32| if signs >> bit & 1 == 0 { 0.5 } else { -0.5 };
        quaternions.push(Quat::from_xyzw(sign(0), sign(1), sign(2), sign(3)));
    }
    quaternions.extend([1e-30, 1e30].map(|length| quaternions[0] * length));
    let data: Vec<Plain> = quaternions
        .iter()
        .map(|q| plain(Vec3::new(q.x, 2.0, 3.0), 1.0, *q))
        .collect();
    let len = data.len();
    let (written, scales) = (
        buffer(gpu.device, len as u64 * 16),
        buffer(gpu.device, len as u64 * 4),
    );
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    let bindings = [written.as_entire_binding(), scales.as_entire_binding()];
    Writer::new(gpu.device).record(gpu.device, &mut encoder, &data, bindings);
    gpu.queue.submit([encoder.finish()]);
    let words: Vec<[u32; 4]> = read(gpu, &written, 0, len);
    let mut differ = 0;
    for (index, (q, got)) in quaternions.iter().zip(&words).enumerate() {
        assert_eq!(got[..2], [q.x.to_bits(), 2f32.to_bits()]);
        let (cpu, gpu) = (PackedQuat::encode(*q), PackedQuat::from_bits(got[3]));
        if cpu == gpu {
            continue;
        }
        differ += 1;
        assert!(
            !(directionless..directionless + 5).contains(&index),
            "{q}: {gpu:?}"
        );
        // Divisions may round differently. That matters on the border of two codes, or of two
        // largest components.
        let turn = q.normalize().angle_between(gpu.decode());
        assert!(turn <= PackedQuat::MAX_ERROR_RADIANS * 1.001, "{q}: {turn}");
    }
    assert!(differ * 1000 <= len, "{differ} of {len} differ");
}

fn random_plain(rng: &mut rand_chacha::ChaCha8Rng, len: usize, scale: ScaleKind) -> Vec<Plain> {
    let set = random_set(rng, len, scale);
    let instances = set.iter();
    instances
        .map(|at| plain(at.translation, at.scale.x, at.rotation))
        .collect()
}

fn request(views: usize) -> CullRequest {
    CullRequest {
        world_from_local: Affine3A::from_rotation_y(0.4),
        views: (0..views as u32).collect(),
        ..CullRequest::new(
            SetId(0),
            BoundingSphere {
                center: Vec3::new(0.1, 0.0, 0.2),
                radius: 0.8,
            },
            DrawShape::Indexed {
                index_count: 3,
                first_index: 0,
                base_vertex: 0,
            },
        )
    }
}

/// Records a frame with the written set. Returns the survivors of each view.
fn written_frame(
    gpu: Gpu<'_>,
    culler: &mut Culler,
    (writer, data): (&Writer, &[Plain]),
    frame: &CullFrame,
) -> Vec<Vec<u32>> {
    culler.prepare(gpu, frame);
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    writer.write_set(gpu.device, &mut encoder, (culler, SetId(0)), data);
    let recorded = culler.prepared().unwrap().record(gpu, &mut encoder);
    gpu.queue.submit([encoder.finish()]);
    culler.finish(recorded);
    survivors(gpu, culler, frame)
}

#[test]
fn a_frame_is_recorded_once() {
    let gpu = gpu();
    let (mut culler, _) = Culler::new(gpu.device, CullerOptions::default()).unwrap();
    assert!(culler.prepared().is_none(), "nothing is prepared");
    culler.prepare(gpu, &CullFrame::default());
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    let frame = culler.prepared().expect("the frame is prepared");
    let recorded = frame.record(gpu, &mut encoder);
    assert!(culler.prepared().is_none(), "the frame was recorded");
    gpu.queue.submit([encoder.finish()]);
    culler.finish(recorded);
    // The next one is.
    culler.prepare(gpu, &CullFrame::default());
    assert!(culler.prepared().is_some());
}

fn survivors(gpu: Gpu<'_>, culler: &Culler, frame: &CullFrame) -> Vec<Vec<u32>> {
    (0..frame.views.len())
        .map(|view| culler.read_survivors(gpu, frame, 0, view).unwrap())
        .collect()
}

/// The survivors of the same instances after an upload. The instances are read back from the GPU,
/// so both sets are equal to the bit.
fn uploaded(
    gpu: Gpu<'_>,
    from: &Culler,
    compaction: Compaction,
    frame: &CullFrame,
) -> Vec<Vec<u32>> {
    let (instances, scales) = from.store().read_instances(gpu, SetId(0)).unwrap();
    let mut culler = culler_of(gpu.device, from.tier(), compaction);
    let channels = Channels {
        scale: match scales.len() / instances.len().max(1) {
            0 => ScaleKind::One,
            1 => ScaleKind::Uniform,
            _ => ScaleKind::NonUniform,
        },
        ..Channels::default()
    };
    culler
        .store_mut()
        .reserve_set(gpu.device, SetId(0), instances.len() as u32, channels)
        .unwrap();
    culler
        .store_mut()
        .upload(gpu.queue, SetId(0), 0, &instances)
        .unwrap();
    culler
        .store_mut()
        .upload_scales(gpu.queue, SetId(0), 0, &scales)
        .unwrap();
    run_resident(&mut culler, gpu, frame);
    survivors(gpu, &culler, frame)
}

/// The compactions that `Auto` may choose, on every tier that supports them.
fn rungs(device: &Device) -> impl Iterator<Item = (CullingTier, Compaction)> {
    let features = device.features();
    [CullingTier::Subgroup, CullingTier::Workgroup]
        .into_iter()
        .flat_map(move |tier| {
            let all = [
                Compaction::VoteScanCompact,
                Compaction::Classify,
                Compaction::LookBack,
            ];
            all.into_iter()
                .filter(move |compaction| compaction.check(tier, features).is_ok())
                .map(move |compaction| (tier, compaction))
        })
}

#[test]
fn a_written_set_has_the_survivors_of_the_same_instances_uploaded() {
    let gpu = gpu();
    let writer = Writer::new(gpu.device);
    let mut rng = rng(17);
    let (mut kept, mut culled) = (0, 0);
    for (tier, compaction) in rungs(gpu.device) {
        for (len, scale, classify, pages) in [
            (1, ScaleKind::One, true, None),
            (1025, ScaleKind::Uniform, true, None),
            (1500, ScaleKind::NonUniform, true, None),
            (30_000, ScaleKind::One, true, None),
            (30_000, ScaleKind::Uniform, false, None),
            (9_000, ScaleKind::NonUniform, true, Some(4096)),
        ] {
            let mut culler = culler_of(gpu.device, tier, compaction);
            if let Some(pages) = pages {
                culler.limit_pages(pages, 10_000, 10_000);
            }
            let channels = Channels {
                scale,
                ..Channels::default()
            };
            let room = (len as u32, len as u32);
            let made =
                culler
                    .store_mut()
                    .reserve_written(gpu, SetId(0), size(room, channels, classify));
            assert_eq!(made, Ok(Residency::Moved));
            let views: Vec<CullView> = (0..3).map(|_| random_view(&mut rng)).collect();
            let mut frame = CullFrame {
                requests: vec![request(views.len())],
                views,
                ..CullFrame::default()
            };
            if pages.is_some() || !classify {
                // Each page has its own order, and `uploaded` has one page and knows all bounds.
                frame.requests[0].order = Order::Set;
            }
            // Writes other instances in each of three frames. The bounds must follow.
            for _ in 0..3 {
                let data = random_plain(&mut rng, len, scale);
                let ids = written_frame(gpu, &mut culler, (&writer, &data), &frame);
                let again = culler.store_mut().reserve_written(
                    gpu,
                    SetId(0),
                    size(room, channels, classify),
                );
                assert_eq!(again, Ok(Residency::Kept));
                let expected = uploaded(gpu, &culler, compaction, &frame);
                assert_eq!(ids, expected, "{tier}, {compaction}, {len}");
                kept += ids.iter().map(Vec::len).sum::<usize>();
                culled += 3 * len - ids.iter().map(Vec::len).sum::<usize>();
            }
            assert_eq!(
                culler.store().written_regions(SetId(0)).len(),
                if pages.is_some() { 3 } else { 1 }
            );
        }
    }
    assert!(kept > 1000 && culled > 1000, "{kept} kept, {culled} culled");
}

#[test]
fn what_is_not_written_hidden_or_not_a_number_is_invisible() {
    let gpu = gpu();
    let writer = Writer::new(gpu.device);
    let views = vec![
        CullView::EVERYTHING,
        CullView::EVERYTHING.within(Vec3::ZERO, 1e6),
    ];
    let mut frame = CullFrame {
        requests: vec![request(views.len())],
        views,
        ..CullFrame::default()
    };
    // A center other than the origin would be scaled, too.
    frame.requests[0].sphere.center = Vec3::ZERO;
    for (tier, compaction) in rungs(gpu.device) {
        for classify in [true, false] {
            let mut culler = culler_of(gpu.device, tier, compaction);
            let live = |culler: &mut Culler, live: u32| {
                reserve_scaled(gpu, culler, (5000, live), classify);
            };
            live(&mut culler, 5000);
            let nothing = vec![Vec::<u32>::new(); 2];
            let ids = written_frame(gpu, &mut culler, (&writer, &[]), &frame);
            assert_eq!(ids, nothing, "nothing has been written yet");

            let mut data = random_plain(&mut rng(3), 5000, ScaleKind::Uniform);
            let broken: [(usize, usize, f32); 7] = [
                (7, 0, f32::NAN),
                (8, 1, f32::INFINITY),
                (9, 2, f32::NEG_INFINITY),
                (10, 3, -1.0),
                // The only broken one in its block. A maximum must not lose NaN.
                (1030, 3, f32::NAN),
                (4999, 3, f32::INFINITY),
                (4998, 3, f32::NEG_INFINITY),
            ];
            for (index, field, value) in broken {
                data[index][field] = value;
            }
            // Hides two whole blocks. One of them also contains a scale of NaN.
            for at in &mut data[2048..4096] {
                at[3] = -1.0;
            }
            data[3000][3] = f32::NAN;
            let expected = |live: u32| -> Vec<u32> {
                (0..live)
                    .filter(|id| {
                        !(2048..4096).contains(id)
                            && broken.iter().all(|(index, ..)| *index != *id as usize)
                    })
                    .collect()
            };
            let ids = written_frame(gpu, &mut culler, (&writer, &data), &frame);
            assert_eq!(ids[0], expected(5000), "{tier}, {compaction}, {classify}");
            assert_eq!(ids[1], ids[0]);
            for count in [4500, 1024, 0, 1, 5000] {
                live(&mut culler, count);
                let ids = written_frame(gpu, &mut culler, (&writer, &[]), &frame);
                assert_eq!(ids[0], expected(count), "{count} live");
            }
        }
    }
}

/// Without bounds of its blocks, too, a set has each instance at one level. In an orthographic view
/// the scale alone decides at which.
#[test]
fn instances_of_blocks_without_bounds_are_at_one_level() {
    let gpu = gpu();
    let writer = Writer::new(gpu.device);
    let scales = [4.0, 2.0, 1.0, 0.1];
    let data: Vec<_> = (0..2000)
        .map(|i| plain(Vec3::X * i as f32, scales[i % 4], Quat::IDENTITY))
        .collect();
    let eye = LodEye {
        position: Vec3::ZERO,
        is_orthographic: true,
        resolution: 100.0,
        min_resolution: f32::INFINITY,
        pixels: 0.0,
        fades: false,
    };
    // The coarser level is seen with errors of 1.6, 0.8, 0.4 and 0.04: too large at scale 4 alone.
    let mut frame = CullFrame {
        requests: vec![request(1)],
        views: vec![CullView::EVERYTHING.with_lods_of(eye)],
        ..CullFrame::default()
    };
    frame.requests[0].coarser = Some(
        vec![CoarserLevel {
            shape: frame.requests[0].shape,
            error: 0.004,
            sphere: None,
        }]
        .into(),
    );
    for (tier, compaction) in rungs(gpu.device) {
        for classify in [true, false] {
            let mut culler = culler_of(gpu.device, tier, compaction);
            reserve_scaled(gpu, &mut culler, (2000, 2000), classify);
            let mut ids = written_frame(gpu, &mut culler, (&writer, &data), &frame).remove(0);
            ids.sort_unstable();
            let all = (0..2000).collect::<Vec<u32>>();
            assert_eq!(ids, all, "{tier}, {compaction}, {classify}");
        }
    }
}

/// The position is finite, so only the scale hides the instance. Blocks that a view keeps whole are
/// covered, too.
#[test]
fn an_instance_of_negative_scale_is_invisible_to_every_compaction() {
    let gpu = gpu();
    let writer = Writer::new(gpu.device);
    let len = 3 * BLOCK;
    let mut data = random_plain(&mut rng(5), len as usize, ScaleKind::Uniform);
    data[5][3] = -0.5;
    for at in &mut data[2 * BLOCK as usize..] {
        at[3] = -2.0;
    }
    let expected: Vec<u32> = (0..2 * BLOCK).filter(|id| *id != 5).collect();
    let wide = [
        Vec3::X,
        Vec3::NEG_X,
        Vec3::Y,
        Vec3::NEG_Y,
        Vec3::Z,
        Vec3::NEG_Z,
    ];
    let views = vec![
        CullView::EVERYTHING,
        CullView::from_planes(wide.map(|normal| normal.extend(1e4))),
        CullView::EVERYTHING.within(Vec3::ZERO, 1e6),
    ];
    let mut frame = CullFrame {
        requests: vec![request(views.len())],
        views,
        ..CullFrame::default()
    };
    let mut wrong = Vec::new();
    for (tier, compaction) in rungs(gpu.device) {
        for (classify, radius) in [(true, 0.8), (false, 0.8), (true, 0.0), (false, 0.0)] {
            frame.requests[0].sphere.radius = radius;
            let mut culler = culler_of(gpu.device, tier, compaction);
            reserve_scaled(gpu, &mut culler, (len, len), classify);
            let ids = written_frame(gpu, &mut culler, (&writer, &data), &frame);
            for (view, ids) in ids.iter().enumerate().filter(|(_, ids)| **ids != expected) {
                let ids = ids.len();
                wrong.push((tier, compaction, classify, radius, view, ids));
            }
        }
    }
    assert!(wrong.is_empty(), "not {}: {wrong:?}", expected.len());
}

#[test]
fn the_frame_before_is_kept() {
    let gpu = gpu();
    let writer = Writer::new(gpu.device);
    let mut rng = rng(4);
    let (mut culler, _) = Culler::new(gpu.device, options(CullingTier::Workgroup, true)).unwrap();
    let channels = Channels {
        scale: ScaleKind::Uniform,
        previous: true,
        ..Channels::default()
    };
    let frame = CullFrame {
        requests: vec![request(1)],
        views: vec![CullView::EVERYTHING],
        ..CullFrame::default()
    };
    let instances = |data: &[Plain]| -> Vec<(PackedInstance, f32)> {
        let packed = data.iter().map(|at| {
            let position = Vec3::new(at[0], at[1], at[2]);
            let rotation = Quat::from_xyzw(at[4], at[5], at[6], at[7]);
            (PackedInstance::new(position, rotation), at[3])
        });
        packed.collect()
    };
    // The previous `len` instances, which are stored after the region.
    let before = |culler: &Culler, len: usize| -> Vec<(PackedInstance, f32)> {
        let region = &culler.store().set_regions(SetId(0))[0];
        let at = u64::from(region.first + region.capacity);
        let buffers = culler.batch_buffers(0).unwrap();
        let packed: Vec<PackedInstance> = read(gpu, buffers[1], at * 16, len);
        let scales: Vec<f32> = read(gpu, buffers[2], at * 4, len);
        packed.into_iter().zip(scales).collect()
    };
    let frames: Vec<Vec<Plain>> = (0..4)
        .map(|_| random_plain(&mut rng, 3000, ScaleKind::Uniform))
        .collect();
    let live = [2000, 2000, 3000, 1000];
    let mut seen: Vec<(PackedInstance, f32)> = Vec::new();
    for (data, live) in frames.iter().zip(live) {
        let room = (3000, live);
        culler
            .store_mut()
            .reserve_written(gpu, SetId(0), size(room, channels, true))
            .unwrap();
        let data = &data[..live as usize];
        written_frame(gpu, &mut culler, (&writer, data), &frame);
        let now = instances(data);
        // Instances that are new in this frame have not moved.
        let mut expected = now.clone();
        let known = seen.len().min(expected.len());
        expected[..known].copy_from_slice(&seen[..known]);
        assert!(before(&culler, live as usize) == expected, "{live} live");
        seen = now;
    }
}

#[test]
fn the_tier_cpu_refuses_what_it_cannot_see() {
    let gpu = gpu();
    let (mut culler, _) = Culler::new(gpu.device, options(CullingTier::Cpu, true)).unwrap();
    let refused = culler.store_mut().reserve_written(
        gpu,
        SetId(3),
        size((10, 10), Channels::default(), true),
    );
    assert_eq!(refused, Err(CullError::WrittenOnCpu(3)));
    assert!(culler.store().written_regions(SetId(3)).is_empty());
}

#[test]
fn room_for_a_large_written_set_is_hidden_without_staging_all_of_it() {
    let gpu = gpu();
    let (mut culler, _) = Culler::new(gpu.device, options(CullingTier::Workgroup, true)).unwrap();
    let (len, channels) = (1 << 20, Channels::default());
    culler.take_uploaded();
    for classify in [true, false] {
        culler
            .store_mut()
            .reserve_written(gpu, SetId(0), size((len, len), channels, classify))
            .unwrap();
        let staged = culler.take_uploaded();
        assert!(staged > 0 && staged <= 2 << 20, "{staged} bytes");
        let (instances, _) = culler.store().read_instances(gpu, SetId(0)).unwrap();
        assert_eq!(instances.len(), len as usize);
        let is_hidden = |instance: &PackedInstance| instance.position.iter().all(|x| x.is_nan());
        assert!(instances.iter().all(is_hidden), "classify {classify}");
        let bounds = culler.store().read_bounds(gpu, SetId(0)).unwrap();
        let is_unknown = |bound: &bevy_gpu_culling::cull::layout::Bound| bound.radius == f32::MAX;
        assert!(classify || bounds.iter().all(is_unknown));
    }
}
