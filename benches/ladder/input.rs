//! The instances to test: points in a cube, in spatial or in random order, divided into pages.

use crate::common::{Gpu, buffer, encoding::Encoding, verify::Expected};
use anyhow::Result;
use bevy_gpu_culling::{
    cull::{
        BoundingSphere, CullView, DrawShape, Region,
        layout::{BLOCK, Chunk, ViewPlanes},
        plan::{Plan, PlanLimits, PlanRequest},
        reference,
    },
    instance::{PackedInstance, ScaleKind},
};
use glam::{Affine3A, Quat, Vec3, Vec4};
use wgpu::{Buffer, BufferUsages};

/// The order of the instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// Along a Morton curve.
    Sorted,
    /// In random order.
    Random,
}

impl Order {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sorted => "sorted",
            Self::Random => "random",
        }
    }
}

/// Radius of an instance. The cube has a side of 2.
const RADIUS: f32 = 0.001;
/// Instances per work item of a thread.
const PART: u32 = 1 << 19;

/// Half the side of the box that contains `share` of the points. A view that keeps every instance
/// whose center is inside keeps that share.
fn half_side(share: f64) -> f32 {
    if share >= 1.0 {
        4.0
    } else {
        share.cbrt() as f32
    }
}

/// A view that keeps about `share` of the points.
pub fn view(share: f64) -> CullView {
    let distance = half_side(share) - RADIUS;
    let plane = |axis: Vec3| axis.extend(distance);
    let axes = [
        Vec3::X,
        Vec3::NEG_X,
        Vec3::Y,
        Vec3::NEG_Y,
        Vec3::Z,
        Vec3::NEG_Z,
    ];
    CullView::from_planes(axes.map(plane))
}

/// The properties that all input sets of one size share.
pub struct Shape {
    pub count: u32,
    pub order: Order,
    pub encoding: Encoding,
    /// Instances per page: all of them if they fit one binding.
    pub page_len: u32,
    /// The visible shares that will be measured.
    pub shares: Vec<f64>,
}

impl Shape {
    pub fn new(gpu: &Gpu, count: u32, order: Order, encoding: Encoding, shares: &[f64]) -> Self {
        let max = gpu.binding_limit() / encoding.bytes() as u64 / u64::from(BLOCK);
        let max = max.min(u64::from(u32::MAX / BLOCK)) as u32 * BLOCK;
        Self {
            count,
            order,
            encoding,
            page_len: count.next_multiple_of(BLOCK).min(max),
            shares: shares.to_vec(),
        }
    }

    /// Size of one input set in bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.count) * self.encoding.bytes() as u64
    }

    /// The tables for a view that keeps `share` of the points.
    pub fn plan(&self, gpu: &Gpu, share: f64) -> Plan {
        let pages = self.count.div_ceil(self.page_len);
        let regions: Vec<_> = (0..pages)
            .map(|page| Region {
                page: page as usize,
                first: 0,
                first_bound: 0,
                capacity: self.page_len,
            })
            .collect();
        let rows = [view(share).planes_in(&Affine3A::IDENTITY)];
        let request = PlanRequest {
            regions: &regions,
            len: self.count,
            scale: ScaleKind::One,
            world_from_local: Affine3A::IDENTITY,
            sphere: BoundingSphere {
                center: Vec3::ZERO,
                radius: RADIUS,
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
            rows: &rows,
        };
        let workgroups = gpu.device.limits().max_compute_workgroups_per_dimension;
        Plan::build(&[request], PlanLimits::new(gpu.binding_limit(), workgroups))
    }

    /// Instance `i` of the set `seed`.
    fn instance(&self, seed: u64, i: u32) -> PackedInstance {
        let bits = mix(seed << 32 | u64::from(i));
        let unit = |shift: u32| ((bits >> shift & 0x1f_ffff) as f32 + 0.5) / 2_097_152.0;
        let inside = Vec3::new(unit(0), unit(21), unit(42));
        let mut position = match self.order {
            Order::Random => inside * 2.0 - 1.0,
            Order::Sorted => {
                // The points of one cell of the curve are consecutive.
                let levels = self.count.max(1).ilog2() / 3;
                let cell = (u64::from(i) << (3 * levels)) / u64::from(self.count);
                let corner = Vec3::new(
                    every_third(cell) as f32,
                    every_third(cell >> 1) as f32,
                    every_third(cell >> 2) as f32,
                );
                (corner + inside) / (1u32 << levels) as f32 * 2.0 - 1.0
            }
        };
        // Rounding decides whether a point on a border is visible, and every result is checked. So
        // move it.
        for half in self.shares.iter().map(|share| half_side(*share)) {
            for axis in 0..3 {
                if (position[axis].abs() - half).abs() < 1e-4 {
                    position[axis] -= 3e-4 * position[axis].signum();
                }
            }
        }
        PackedInstance::new(
            position,
            Quat::from_vec4(Vec4::from(rotation(bits))).normalize(),
        )
    }
}

fn rotation(bits: u64) -> [f32; 4] {
    let component = |shift: u32| (bits >> shift & 0xff) as f32 / 127.5 - 1.0;
    [
        component(3),
        component(17),
        component(29),
        component(45) + 2.0,
    ]
}

/// SplitMix64.
fn mix(value: u64) -> u64 {
    let mut z = value
        .wrapping_add(0x9e37_79b9_7f4a_7c15)
        .wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Collects bits 0, 3, 6 and so on into contiguous bits.
fn every_third(value: u64) -> u32 {
    (0..21).fold(0, |all, bit| all | ((value >> (3 * bit) & 1) as u32) << bit)
}

/// An input set on the GPU.
pub struct Input {
    pub pages: Vec<Buffer>,
    /// The twin's survivors, for each of the shares.
    pub expected: Vec<Expected>,
}

impl Input {
    /// Creates the set `seed`. `progress` receives the number of finished instances.
    pub fn new(gpu: &Gpu, shape: &Shape, seed: u64, progress: impl Fn(u64)) -> Result<Self> {
        let stride = shape.encoding.bytes() as u64;
        let pages = gpu.within_memory(|| {
            let page = |page: u32| {
                let len = (shape.count - page * shape.page_len).min(shape.page_len);
                let usage = BufferUsages::STORAGE | BufferUsages::COPY_DST;
                buffer(&gpu.device, "instances", u64::from(len) * stride, usage)
            };
            Ok((0..shape.count.div_ceil(shape.page_len))
                .map(page)
                .collect::<Vec<_>>())
        })?;
        let mut expected = vec![Expected::default(); shape.shares.len()];
        let chunk = Chunk {
            sphere: Vec4::new(0.0, 0.0, 0.0, RADIUS),
            ..Chunk::default()
        };
        let rows: Vec<_> = shape
            .shares
            .iter()
            .map(|share| view(*share).planes_in(&Affine3A::IDENTITY))
            .collect();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let firsts: Vec<_> = (0..shape.count).step_by(PART as usize).collect();
        for group in firsts.chunks(threads) {
            let make = |first: u32| {
                let last = first.saturating_add(PART).min(shape.count);
                part(shape, seed, first..last, &chunk, &rows)
            };
            let parts = std::thread::scope(|scope| {
                let workers: Vec<_> = group
                    .iter()
                    .map(|first| scope.spawn(move || make(*first)))
                    .collect();
                workers
                    .into_iter()
                    .map(|worker| worker.join())
                    .collect::<Vec<_>>()
            });
            for (first, made) in group.iter().zip(parts) {
                let (bytes, seen) = made.map_err(|_| anyhow::anyhow!("a worker stopped"))?;
                write(gpu, &pages, shape, *first, &bytes);
                expected
                    .iter_mut()
                    .zip(seen)
                    .for_each(|(sum, seen)| *sum += seen);
                progress(bytes.len() as u64 / stride);
            }
            // Lets the staging memory be freed.
            gpu.queue.submit([]);
            gpu.device.poll(wgpu::PollType::wait_indefinitely())?;
        }
        Ok(Self { pages, expected })
    }
}

/// Some encoded instances, and the twin's survivors of them.
fn part(
    shape: &Shape,
    seed: u64,
    range: core::ops::Range<u32>,
    chunk: &Chunk,
    rows: &[ViewPlanes],
) -> (Vec<u8>, Vec<Expected>) {
    let instances: Vec<_> = range.clone().map(|i| shape.instance(seed, i)).collect();
    let mut expected = vec![Expected::default(); rows.len()];
    for (id, i) in range.zip(0..) {
        let sphere = reference::load_sphere(chunk, &instances, &[], i);
        for (row, expected) in rows.iter().zip(&mut expected) {
            if reference::is_visible(chunk, row, sphere) {
                expected.add(id);
            }
        }
    }
    let mut bytes = Vec::with_capacity(instances.len() * shape.encoding.bytes());
    shape.encoding.encode(&instances, &mut bytes);
    (bytes, expected)
}

/// Writes instances from `first` on, across the borders of pages.
fn write(gpu: &Gpu, pages: &[Buffer], shape: &Shape, first: u32, bytes: &[u8]) {
    let stride = shape.encoding.bytes();
    let mut at = first;
    let mut left = bytes;
    while !left.is_empty() {
        let (page, start) = (at / shape.page_len, at % shape.page_len);
        let room = (shape.page_len - start) as usize * stride;
        let (now, later) = left.split_at(left.len().min(room));
        gpu.queue
            .write_buffer(&pages[page as usize], u64::from(start) * stride as u64, now);
        at += (now.len() / stride) as u32;
        left = later;
    }
}
