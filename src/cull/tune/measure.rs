//! The measurement: the ordered compactions, over a few instance counts.

use crate::{
    cull::{
        BoundingSphere, Compaction, Compactor, CompactorOptions, CullError, CullView, CullingTier,
        DrawShape, Region,
        gpu::limits::binding_limit,
        layout::BLOCK,
        plan::{Plan, PlanLimits, PlanRequest},
        store::page_limit,
    },
    instance::{PackedInstance, ScaleKind},
};
use glam::{Affine3A, Quat, Vec3};
use std::time::{Duration, Instant};
use wgpu::{
    Buffer, BufferDescriptor, BufferUsages, ComputePassDescriptor, ComputePassTimestampWrites,
    Device, Features, MapMode, PollType, QuerySetDescriptor, QueryType, Queue,
};

/// Numbers of instances that are measured, as far as one binding and the time allow.
const COUNTS: [u32; 4] = [1 << 13, 1 << 16, 1 << 19, 1 << 22];
/// Time after which no larger count is measured.
const BUDGET: Duration = Duration::from_millis(400);
const WARM_UP: usize = 2;
const RUNS: usize = 7;
/// Another compaction replaces the default if it needs less than this share of the default's time.
const CLEARLY_FASTER_SHARE: f64 = 0.97;

/// The time of one compaction in one case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// Number of instances, in one view that keeps a quarter of them.
    pub count: u32,
    /// The compaction.
    pub compaction: Compaction,
    /// Median of several runs, in microseconds.
    pub us: f64,
}

/// Times every ordered compaction at a few instance counts, at least at the smallest. Uses
/// timestamps if the device has the feature `TIMESTAMP_QUERY`, otherwise the CPU's clock. Does
/// nothing on the `Cpu` tier, which has no choice.
///
/// # Errors
/// [`CullError::TierUnsupported`], [`CullError::Pipeline`], [`CullError::BindingTooSmall`],
/// [`CullError::Readback`].
pub fn measure(
    device: &Device,
    queue: &Queue,
    tier: CullingTier,
) -> Result<Vec<Measurement>, CullError> {
    let mut measurements = Vec::new();
    if tier == CullingTier::Cpu {
        return Ok(measurements);
    }
    let limits = device.limits();
    let max = page_limit(&limits)?;
    let ordered =
        Compaction::supported(tier, device.features()).filter(|compaction| compaction.is_ordered());
    let mut compactors = Vec::new();
    for compaction in ordered {
        let options = CompactorOptions {
            tier,
            compaction,
            ..CompactorOptions::default()
        };
        compactors.push((compaction, Compactor::new(device, options)?));
    }
    let stopwatch = Stopwatch::new(device);
    let start = Instant::now();
    for count in COUNTS.into_iter().filter(|count| *count <= max) {
        if start.elapsed() > BUDGET && !measurements.is_empty() {
            break;
        }
        let pages = [instances(device, queue, count)];
        let plan = plan(&limits, count);
        for (compaction, compactor) in &mut compactors {
            compactor.prepare(device, queue, &plan, &pages)?;
            let mut times = Vec::new();
            for run in 0..WARM_UP + RUNS {
                let us = stopwatch.time(device, queue, compactor, &plan)?;
                if run >= WARM_UP {
                    times.push(us);
                }
            }
            times.sort_by(f64::total_cmp);
            measurements.push(Measurement {
                count,
                compaction: *compaction,
                us: times[RUNS / 2],
            });
        }
    }
    Ok(measurements)
}

/// For each count, the fastest compaction; the default unless another one is clearly faster. A
/// count's step ends halfway (geometrically) to the next count.
pub(super) fn fastest(measurements: &[Measurement]) -> crate::cull::Tuning {
    let mut counts: Vec<_> = measurements.iter().map(|measured| measured.count).collect();
    counts.dedup();
    let steps = counts.iter().enumerate().map(|(index, count)| {
        let case = || {
            measurements
                .iter()
                .filter(|measured| measured.count == *count)
        };
        let default = case().find(|measured| measured.compaction == Compaction::VoteScanCompact);
        let best = case().min_by(|a, b| a.us.total_cmp(&b.us));
        let compaction = match (best, default) {
            (Some(best), Some(default)) if best.us < default.us * CLEARLY_FASTER_SHARE => {
                best.compaction
            }
            (Some(best), None) => best.compaction,
            _ => Compaction::VoteScanCompact,
        };
        let next = counts.get(index + 1);
        let max = next.map_or(u64::MAX, |next| {
            (u64::from(*count) * u64::from(*next)).isqrt()
        });
        (max, compaction)
    });
    crate::cull::Tuning::new(steps)
}

/// Points in a cube, in no spatial order.
fn instances(device: &Device, queue: &Queue, count: u32) -> Buffer {
    let component = |value: u32| (value & 0x3ff) as f32 / 512.0 - 1.0;
    let instance = |i: u32| {
        // The output function of PCG.
        let state = i.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        let word = ((state >> ((state >> 28) + 4)) ^ state).wrapping_mul(277_803_737);
        let word = (word >> 22) ^ word;
        PackedInstance::new(
            Vec3::new(
                component(word),
                component(word >> 10),
                component(word >> 20),
            ),
            Quat::IDENTITY,
        )
    };
    let data: Vec<_> = (0..count).map(instance).collect();
    let buffer = device.create_buffer(&BufferDescriptor {
        label: Some("gpu_culling tuning instances"),
        size: u64::from(count) * size_of::<PackedInstance>() as u64,
        usage: BufferUsages::STORAGE | BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    queue.write_buffer(&buffer, 0, bytemuck::cast_slice(&data));
    buffer
}

/// One view that keeps a quarter of the points.
fn plan(limits: &wgpu::Limits, count: u32) -> Plan {
    let axes = [
        Vec3::X,
        Vec3::NEG_X,
        Vec3::Y,
        Vec3::NEG_Y,
        Vec3::Z,
        Vec3::NEG_Z,
    ];
    let view = CullView::from_planes(axes.map(|axis| axis.extend(0.63)));
    let request = PlanRequest {
        regions: &[Region {
            page: 0,
            first: 0,
            first_bound: 0,
            capacity: count.next_multiple_of(BLOCK),
        }],
        len: count,
        scale: ScaleKind::One,
        world_from_local: Affine3A::IDENTITY,
        sphere: BoundingSphere {
            center: Vec3::ZERO,
            radius: 0.001,
        },
        more: &[],
        shapes: &[DrawShape::NonIndexed {
            vertex_count: 3,
            first_vertex: 0,
        }],
        fades: false,
        thins: false,
        rings: None,
        row_group: 1,
        lists: 1,
        rows: &[view.planes_in(&Affine3A::IDENTITY)],
    };
    Plan::build(
        &[request],
        PlanLimits::new(
            binding_limit(limits),
            limits.max_compute_workgroups_per_dimension,
        ),
    )
}

/// Measures with timestamps if the device has them.
struct Stopwatch {
    stamps: Option<(wgpu::QuerySet, Buffer, Buffer)>,
}

impl Stopwatch {
    fn new(device: &Device) -> Self {
        let stamps = device
            .features()
            .contains(Features::TIMESTAMP_QUERY)
            .then(|| {
                let descriptor = QuerySetDescriptor {
                    label: Some("gpu_culling tuning"),
                    ty: QueryType::Timestamp,
                    count: 2,
                };
                let buffer = |usage| {
                    let label = Some("gpu_culling tuning");
                    device.create_buffer(&BufferDescriptor {
                        label,
                        size: 16,
                        usage,
                        mapped_at_creation: false,
                    })
                };
                let resolved = buffer(BufferUsages::QUERY_RESOLVE | BufferUsages::COPY_SRC);
                let staging = buffer(BufferUsages::COPY_DST | BufferUsages::MAP_READ);
                (device.create_query_set(&descriptor), resolved, staging)
            });
        Self { stamps }
    }

    /// Duration of one run, in microseconds.
    fn time(
        &self,
        device: &Device,
        queue: &Queue,
        compactor: &Compactor,
        plan: &Plan,
    ) -> Result<f64, CullError> {
        let failed = |what: &dyn core::fmt::Display| CullError::Readback(what.to_string());
        let mut encoder = device.create_command_encoder(&Default::default());
        let writes = self
            .stamps
            .as_ref()
            .map(|(query_set, _, _)| ComputePassTimestampWrites {
                query_set,
                beginning_of_pass_write_index: Some(0),
                end_of_pass_write_index: Some(1),
            });
        let descriptor = ComputePassDescriptor {
            label: Some("gpu_culling tuning"),
            timestamp_writes: writes,
        };
        let mut pass = encoder.begin_compute_pass(&descriptor);
        compactor.record(plan, &mut pass);
        drop(pass);
        if let Some((queries, resolved, staging)) = &self.stamps {
            encoder.resolve_query_set(queries, 0..2, resolved, 0);
            encoder.copy_buffer_to_buffer(resolved, 0, staging, 0, 16);
        }
        let start = Instant::now();
        queue.submit([encoder.finish()]);
        let Some((_, _, staging)) = &self.stamps else {
            device
                .poll(PollType::wait_indefinitely())
                .map_err(|error| failed(&error))?;
            return Ok(start.elapsed().as_secs_f64() * 1e6);
        };
        let (send, receive) = std::sync::mpsc::channel();
        staging.map_async(MapMode::Read, .., move |result| {
            // The receiver is gone only if the wait below failed, which is reported there.
            let _ = send.send(result);
        });
        device
            .poll(PollType::wait_indefinitely())
            .map_err(|error| failed(&error))?;
        receive
            .recv()
            .map_err(|error| failed(&error))?
            .map_err(|error| failed(&error))?;
        let stamps: Vec<u64> = {
            let bytes = staging
                .get_mapped_range(..)
                .map_err(|error| failed(&error))?;
            bytemuck::pod_collect_to_vec(&bytes)
        };
        staging.unmap();
        let ticks = stamps[1].wrapping_sub(stamps[0]) as f64;
        Ok(ticks * f64::from(queue.get_timestamp_period()) / 1e3)
    }
}

#[cfg(all(test, feature = "study"))]
mod tests {
    use super::*;
    use Compaction::{HillisSteele, VoteScanCompact};

    #[test]
    fn the_default_stays_unless_another_is_clearly_faster() {
        let case = |count, hillis, vote| {
            [(HillisSteele, hillis), (VoteScanCompact, vote)].map(|(compaction, us)| Measurement {
                count,
                compaction,
                us,
            })
        };
        let all = [
            case(100, 5.0, 10.0),
            case(10_000, 9.9, 10.0),
            case(1_000_000, 90.0, 10.0),
        ]
        .concat();
        let tuning = fastest(&all);
        assert_eq!(
            tuning.steps(),
            [(1000, HillisSteele), (u64::MAX, VoteScanCompact)]
        );
        assert_eq!(fastest(&[]).steps(), [(u64::MAX, VoteScanCompact)]);
    }
}
