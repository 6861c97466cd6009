//! Points in a cube of side 2, the views that keep a share of them, and the twin's survivors.

use crate::common::verify::Expected;
use anyhow::Result;
use bevy_gpu_culling::{
    cull::{
        CullView,
        layout::{Chunk, ViewPlanes},
        reference,
    },
    instance::{InstanceSet, PackedInstance},
};
use core::sync::atomic::{AtomicUsize, Ordering};
use glam::{Affine3A, Quat, Vec3, Vec4};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::{sync::Mutex, thread};

/// Radius of an instance.
pub const RADIUS: f32 = 0.001;
/// Instances per work item of a thread.
const PART: usize = 1 << 18;

/// The order of the instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// Along the Morton curve, as `InstanceSet::sorted` does it.
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

/// Center and half side of the box that the view number `view` sees, if the views keep `share`. The
/// first box is in the middle; the others are moved toward the cube's corners. With a share of 0,
/// the box lies outside the cube. With a share of 1, it contains the cube.
fn seen(share: f64, view: u32) -> (Vec3, f32) {
    if share <= 0.0 {
        return (Vec3::new(4.0 + view as f32, 0.0, 0.0), 0.5);
    }
    if share >= 1.0 {
        return (Vec3::ZERO, 4.0 + view as f32);
    }
    let half = share.cbrt() as f32;
    let corner = |axis: u32| if view >> axis & 1 == 0 { 1.0 } else { -1.0 };
    let lean = if view == 0 { 0.0 } else { 0.8 * (1.0 - half) };
    (Vec3::new(corner(0), corner(1), corner(2)) * lean, half)
}

/// A view that keeps about `share` of the points.
pub fn view(share: f64, view: u32) -> CullView {
    let (center, half) = seen(share, view);
    let axes = [
        Vec3::X,
        Vec3::NEG_X,
        Vec3::Y,
        Vec3::NEG_Y,
        Vec3::Z,
        Vec3::NEG_Z,
    ];
    // A sphere is visible as soon as it touches the box, so the planes are one radius further in.
    let planes = axes.map(|axis| axis.extend(half - RADIUS - axis.dot(center)));
    let view = CullView::from_planes(planes).with_eye();
    view.sorted_toward(Vec3::new(0.6, 0.5, 0.7))
}

/// A set of `count` points. None lies on the border of a view, because rounding would decide there.
pub fn points(count: u32, order: Order, shares: &[f64], views: u32) -> Result<InstanceSet> {
    let boxes: Vec<_> = shares
        .iter()
        .flat_map(|share| (0..views).map(move |at| seen(*share, at)))
        .collect();
    let mut packed = vec![PackedInstance::default(); count as usize];
    for_each_part(packed.chunks_mut(PART), |part, instances| {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        rng.set_stream(part as u64);
        for instance in instances {
            let mut unit = || rng.random_range(-1.0f32..1.0);
            let mut place = Vec3::new(unit(), unit(), unit());
            for axis in 0..3 {
                while boxes
                    .iter()
                    .any(|(center, half)| ((place[axis] - center[axis]).abs() - half).abs() < 1e-4)
                {
                    place[axis] = unit();
                }
            }
            let turn = Vec4::new(unit(), unit(), unit(), 1.5);
            *instance = PackedInstance::new(place, Quat::from_vec4(turn).normalize());
        }
    });
    let set = InstanceSet::from_packed(packed)?;
    Ok(match order {
        Order::Sorted => set.sorted(),
        Order::Random => set,
    })
}

/// The twin's survivors for each share and view.
pub fn expected(set: &InstanceSet, shares: &[f64], views: u32) -> Vec<Vec<Expected>> {
    let chunk = Chunk {
        sphere: Vec4::new(0.0, 0.0, 0.0, RADIUS),
        ..Chunk::default()
    };
    let rows: Vec<ViewPlanes> = shares
        .iter()
        .flat_map(|share| (0..views).map(move |at| view(*share, at)))
        .map(|view| view.planes_in(&Affine3A::IDENTITY))
        .collect();
    let sums = Mutex::new(vec![Expected::default(); rows.len()]);
    for_each_part(set.packed().chunks(PART), |part, instances| {
        let mut own = vec![Expected::default(); rows.len()];
        for (at, id) in (0..instances.len() as u32).zip((part * PART) as u32..) {
            let sphere = reference::load_sphere(&chunk, instances, &[], at);
            for (row, own) in rows.iter().zip(&mut own) {
                if reference::is_visible(&chunk, row, sphere) {
                    own.add(id);
                }
            }
        }
        if let Ok(mut sums) = sums.lock() {
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
    });
    let sums = sums.into_inner().unwrap_or_default();
    sums.chunks(views.max(1) as usize)
        .map(<[_]>::to_vec)
        .collect()
}

/// Works on all parts. Each core takes the next part that is left.
fn for_each_part<T: Send>(parts: impl Iterator<Item = T> + Send, work: impl Fn(usize, T) + Sync) {
    let parts = Mutex::new(parts);
    let next_index = AtomicUsize::new(0);
    let next = || {
        let mut parts = parts.lock().ok()?;
        let part = parts.next()?;
        Some((next_index.fetch_add(1, Ordering::Relaxed), part))
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some((index, part)) = next() {
                    work(index, part);
                }
            });
        }
    });
}
