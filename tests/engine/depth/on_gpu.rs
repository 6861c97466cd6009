//! The depth test on the GPU against its twin.

use super::{
    cases::{Case, SIZE},
    near::Near,
    picture::Picture,
};
use crate::common::{
    gpu,
    kernel::{Kernel, buffer_of, read},
    rng,
};
use bevy_gpu_culling::cull::{
    Gpu,
    layout::{HIDDEN, Projection, ROUNDING, VISIBLE},
    occlusion::{Pyramid, PyramidBuilder},
    reference::{self, Span, occlusion_of_span},
    shaders,
};
use glam::dcamera::rh::proj::directx;
use glam::{UVec2, Vec2, Vec4};
use wgpu::{Buffer, Device};

const KERNEL: &str = "
struct Found {
    low: vec2<f32>,
    high: vec2<f32>,
    sum: vec2<f32>,
    difference: vec2<f32>,
    nearest: f32,
    is_bounded: u32,
    occlusion: u32,
    is_hidden: u32,
}

@group(0) @binding(0) var<storage, read> projections: array<Projection>;
@group(0) @binding(1) var<storage, read> spheres: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> found: array<Found>;

@compute @workgroup_size(64)
fn look(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&spheres)) {
        let projection = projections[0];
        let bounds = span(projection, spheres[id.x]);
        found[id.x] = Found(
            bounds.low,
            bounds.high,
            bounds.sum,
            bounds.difference,
            bounds.nearest,
            u32(bounds.is_bounded),
            occlusion_of(projection, spheres[id.x]),
            u32(is_hidden(projection, spheres[id.x])),
        );
    }
}
";

/// What the kernel finds of a sphere.
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Found {
    low: Vec2,
    high: Vec2,
    sum: Vec2,
    difference: Vec2,
    nearest: f32,
    is_bounded: u32,
    occlusion: u32,
    is_hidden: u32,
}

/// The functions of the depth test, in a kernel.
struct Looker(Kernel);

impl Looker {
    fn new(device: &Device, edit: impl Fn(String) -> String) -> Self {
        let parts = [shaders::LAYOUT, shaders::SPAN, shaders::FOOTPRINT, KERNEL];
        Self(Kernel::new(device, &edit(parts.concat()), "look"))
    }

    fn look(
        &self,
        gpu: Gpu<'_>,
        projection: &Projection,
        spheres: &[Vec4],
        pyramid: [&Buffer; 2],
    ) -> Vec<Found> {
        let buffer = |contents: &[u8]| buffer_of(gpu.device, contents);
        let projections = buffer(bytemuck::bytes_of(projection));
        let inputs = buffer(bytemuck::cast_slice(spheres));
        let found = buffer(&vec![0xff; spheres.len() * size_of::<Found>()]);
        let [texels, shape] = pyramid;
        let buffers = [
            (0, &projections),
            (1, &inputs),
            (2, &found),
            (18, texels),
            (19, shape),
        ];
        let workgroups = spheres.len().div_ceil(64) as u32;
        self.0.run(gpu, &buffers, workgroups);
        read(gpu, &found, 0, spheres.len())
    }
}

/// The least and the greatest t of a row, with what rounding may do to them.
fn near_extent(row: Vec4, gram: Vec4, w: Vec4, at: Near, size: Near, slope: f32) -> [Near; 2] {
    let v = |k: usize| at * Near::exact(w[k]) - Near::exact(row[k]);
    let square = size * size;
    let flat = square * Near::exact(gram.z);
    let dot = Near::sum([v(0) * v(0), v(1) * v(1), v(2) * v(2)]);
    let root = size * (dot - flat).max_zero().sqrt();
    let middle = at - square * Near::exact(gram.y);
    let sum = if middle.value >= 0.0 {
        middle + root
    } else {
        middle - root
    };
    let slant = size * Near::exact(slope);
    let one = Near::exact(1.0);
    let first = sum / ((one - slant) * (one + slant));
    let second = (at * at - square * Near::exact(gram.x)) / sum;
    if first.value < second.value {
        [first, second]
    } else {
        [second, first]
    }
}

/// Low, high, nearest, and size times slope of a sphere's span, with what rounding may do to them.
struct NearSpan {
    low: [Near; 2],
    high: [Near; 2],
    /// Least and greatest; `None` if there are no diagonals.
    sum: Option<[Near; 2]>,
    difference: Option<[Near; 2]>,
    nearest: Near,
    distance: Near,
    slant: Near,
}

fn near_span(projection: &Projection, sphere: Vec4) -> NearSpan {
    let unit = Near::exact(projection.unit);
    let center = [0, 1, 2].map(|k| Near::exact(sphere[k]) * unit);
    let dot = |row: Vec4| {
        let product = |k: usize| Near::exact(row[k]) * center[k];
        Near::sum([product(0), product(1), product(2), Near::exact(row.w)])
    };
    let rounding = Near::exact(ROUNDING);
    let reach = Near::sum(center.map(Near::abs));
    let exact = Near::exact(sphere.w) * unit;
    let radius = exact + Near::exact(projection.margin) + rounding * (exact + reach);
    let distance = dot(projection.w);
    let inverse = Near::exact(1.0) / distance;
    let size = radius * inverse;
    let extent = |row: Vec4, gram: Vec4| {
        near_extent(
            row,
            gram,
            projection.w,
            dot(row) * inverse,
            size,
            projection.slope,
        )
    };
    let x = extent(projection.x, projection.gram_x);
    let y = extent(projection.y, projection.gram_y);
    let z = extent(projection.z, projection.gram_z)[1];
    let diagonal = |row: Vec4, gram: Vec4, at: Near| {
        let (w, slope) = (projection.w, projection.slope);
        (projection.has_diagonals != 0).then(|| near_extent(row, gram, w, at, size, slope))
    };
    let [across, down] = [projection.x, projection.y].map(|row| dot(row) * inverse);
    let (sum, difference) = (projection.x + projection.y, projection.x - projection.y);
    let sum = diagonal(sum, projection.gram_sum, across + down);
    let difference = diagonal(difference, projection.gram_difference, across - down);
    let row = projection.z.abs();
    let product = |k: usize| Near::exact(row[k]) * center[k].abs();
    let summands = Near::sum([product(0), product(1), product(2), Near::exact(row.w)]) * inverse;
    let nearest = z + rounding * (z.abs() + summands) + Near::exact(1e-9);
    NearSpan {
        low: [x[0], y[0]],
        high: [x[1], y[1]],
        sum,
        difference,
        nearest,
        distance,
        slant: size * Near::exact(projection.slope),
    }
}

impl NearSpan {
    /// The span that is as narrow (-1) or as wide (1) as rounding may make it. Borders are compared
    /// after one more subtraction.
    fn at(&self, side: f64) -> Span {
        let border = |near: Near, side: f64| {
            let error = near.error + (near.value.abs() + 4.0) * Near::UNIT * 2.0;
            (near.value + side * error) as f32
        };
        let range = |diagonal: Option<[Near; 2]>| match diagonal {
            Some([min, greatest]) => Vec2::new(border(min, -side), border(greatest, side)),
            None => Span::UNKNOWN.sum,
        };
        Span {
            sum: range(self.sum),
            difference: range(self.difference),
            low: Vec2::from(self.low.map(|near| border(near, -side))),
            high: Vec2::from(self.high.map(|near| border(near, side))),
            nearest: (self.nearest.value + side * self.nearest.error).max(0.0) as f32,
            is_bounded: true,
        }
    }

    /// Whether the sphere is before the eye; `None` if rounding decides.
    fn is_bounded(&self) -> Option<bool> {
        let (distance, slant) = (self.distance, self.slant);
        if distance.value < -distance.error || slant.value - slant.error > f64::from(0.999f32) {
            return Some(false);
        }
        let is_before = distance.value > distance.error;
        (is_before && slant.value + slant.error < f64::from(0.999f32)).then_some(true)
    }
}

/// Compares what the kernel finds of a case's spheres with the twin. Returns the number of spheres
/// that rounding decides.
fn compare(case: &Case, projection: &Projection, found: &[Found]) -> Result<usize, String> {
    let mut undecided = 0;
    for (sphere, found) in case.spheres.iter().zip(found) {
        let near = near_span(projection, *sphere);
        let Some(is_bounded) = near.is_bounded() else {
            undecided += 1;
            continue;
        };
        if (found.is_bounded != 0) != is_bounded {
            return Err(format!("{sphere}: {found:?} is not bounded: {is_bounded}"));
        }
        if (found.is_hidden != 0) != (found.occlusion != VISIBLE) {
            return Err(format!("{found:?}"));
        }
        let occlusion =
            |bounds: &Span| occlusion_of_span(&case.texels, &case.shape, projection, bounds);
        if !is_bounded {
            if found.occlusion != VISIBLE {
                return Err(format!("{sphere}: {found:?} without a span"));
            }
            continue;
        }
        let (narrow, wide) = (near.at(-1.0), near.at(1.0));
        let within = |value: f32, a: f32, b: f32| (a.min(b)..=a.max(b)).contains(&value);
        for axis in 0..2 {
            if !within(found.low[axis], narrow.low[axis], wide.low[axis])
                || !within(found.high[axis], narrow.high[axis], wide.high[axis])
            {
                return Err(format!("{sphere}: {found:?} is not {narrow:?} to {wide:?}"));
            }
        }
        for (found, narrow, wide) in [
            (found.sum, narrow.sum, wide.sum),
            (found.difference, narrow.difference, wide.difference),
        ] {
            if (0..2).any(|end| !within(found[end], narrow[end], wide[end])) {
                return Err(format!("{sphere}: {found} is not {narrow} to {wide}"));
            }
        }
        if !within(found.nearest, narrow.nearest, wide.nearest) {
            return Err(format!("{sphere}: {found:?} is not {narrow:?} to {wide:?}"));
        }
        // A wider span is hidden only if every narrower one is: its texels include theirs.
        let both = [&narrow, &wide].map(occlusion);
        if both[0] != both[1] {
            undecided += 1;
        } else if found.occlusion != both[0] {
            return Err(format!(
                "{sphere}: {found:?}, but the twin says {}",
                both[0]
            ));
        }
        let twin = reference::span(projection, *sphere);
        if !within(twin.nearest, narrow.nearest, wide.nearest) {
            return Err(format!("the twin of {sphere}: {twin:?}"));
        }
    }
    Ok(undecided)
}

/// Random cases on the GPU, with the pyramid that the GPU makes of them.
fn compare_all(seed: u64, cases: usize, edit: impl Fn(String) -> String) -> Result<(), String> {
    let gpu = gpu();
    let builder = PyramidBuilder::new(gpu.device, true).unwrap();
    let mut pyramid = Pyramid::new(gpu).unwrap();
    let looker = Looker::new(gpu.device, edit);
    let mut rng = rng(seed);
    let (mut undecided, mut all) = (0, 0);
    let mut outcomes = [0; 3];
    for number in 0..cases {
        let case = Case::any(&mut rng, number, if number % 4 < 2 { 1 } else { 4 });
        let projection = case.projection();
        let depth = case.picture.draw(gpu);
        pyramid
            .prepare(gpu, &builder, &depth, UVec2::ZERO, SIZE)
            .unwrap();
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        pyramid.record(
            &builder,
            &mut encoder.begin_compute_pass(&Default::default()),
        );
        gpu.queue.submit([encoder.finish()]);
        let buffers = [pyramid.buffer(), pyramid.uniform()];
        let found = looker.look(gpu, &projection, &case.spheres, buffers);
        undecided += compare(&case, &projection, &found)?;
        all += found.len();
        for found in &found {
            outcomes[found.occlusion as usize] += 1;
        }
    }
    assert!(
        undecided * 20 < all,
        "rounding decides {undecided} of {all}"
    );
    assert!(
        outcomes.iter().all(|count| count * 20 > all),
        "{outcomes:?}"
    );
    Ok(())
}

#[test]
fn the_gpu_hides_what_the_twin_hides() {
    compare_all(711, 200, |source| source).unwrap();
}

#[test]
fn a_broken_depth_test_is_seen() {
    for (line, broken) in [
        ("y <= place.last.y", "y < place.last.y"),
        ("x <= place.last.x", "x < place.last.x"),
        ("let bits = 32u - ", "let bits = 33u - "),
        (
            "floor(min(bounds.high - least, border))",
            "floor(bounds.high - least)",
        ),
        (
            "ceil(max(bounds.low - greatest, vec2<f32>(0.0)))",
            "ceil(bounds.low - greatest)",
        ),
        ("bounds.low - greatest", "bounds.low - least"),
        ("if (!place.covers)", "if (false)"),
        ("if (!bounds.is_bounded |", "if ("),
        ("y * level.width", "y * pyramid_shape.width"),
        ("sum.y < bounds.sum.x", "sum.y < bounds.sum.y"),
        (
            "difference.x > bounds.difference.y",
            "difference.x > bounds.difference.x",
        ),
        ("last.x + last.y", "first.x + last.y"),
        ("last.x - first.y", "last.x - last.y"),
        ("+ samples.zw", ""),
        (
            "known(sum, has_diagonals)",
            "known(difference, has_diagonals)",
        ),
        ("across + down, size", "across - down, size"),
        ("max(nearest, 0.0)", "max(z.x, 0.0)"),
        ("dot(v, v) - square * gram.z", "dot(v, v)"),
        ("at - square * gram.y", "at"),
        ("ROUNDING * (exact + reach)", "0.0"),
    ] {
        let edit = |source: String| {
            assert!(source.contains(line), "no kernel has {line}");
            source.replace(line, broken)
        };
        assert!(compare_all(712, 60, edit).is_err(), "{broken} was not seen");
    }
}

/// What has no span, or no pyramid, is visible on the GPU, too.
#[test]
fn spheres_without_a_span_are_visible_on_the_gpu() {
    let gpu = gpu();
    let builder = PyramidBuilder::new(gpu.device, true).unwrap();
    let mut pyramid = Pyramid::new(gpu).unwrap();
    let looker = Looker::new(gpu.device, |source| source);
    let clip = directx::perspective_infinite_reverse(1.0, 1.0, 0.1);
    let hides = Projection::new(clip, SIZE, 1, false);
    let flat = directx::orthographic(-5.0, 5.0, -5.0, 5.0, 100.0, 0.0);
    let orthographic = Projection::new(flat, SIZE, 1, false);
    let spheres = [
        (0.0, 0.0, 1.0),
        (0.0, 0.0, 0.0),
        (0.0, -1.0, 1.0),
        (0.0, -1.0, 2.0),
        (0.0, 1.0, 0.5),
        (0.0, -1.0, f32::NAN),
        (0.0, -1.0, f32::INFINITY),
        (0.0, -1.0, -1.0),
        (0.0, -1.0, f32::MIN),
        (f32::NAN, -1.0, 0.1),
        (f32::INFINITY, -1.0, 0.1),
        (0.0, f32::NEG_INFINITY, 0.1),
        (0.0, f32::NAN, 0.1),
        (0.0, -1.0, f32::MAX),
    ];
    let spheres = spheres.map(|(x, z, r)| Vec4::new(x, 0.0, z, r));
    // In front of all of them is a wall.
    let picture = Picture {
        size: SIZE,
        samples: 1,
        depths: vec![1.0; (SIZE.x * SIZE.y) as usize],
    };
    let depth = picture.draw(gpu);
    for has_pyramid in [true, false] {
        if has_pyramid {
            pyramid
                .prepare(gpu, &builder, &depth, UVec2::ZERO, SIZE)
                .unwrap();
            let mut encoder = gpu.device.create_command_encoder(&Default::default());
            pyramid.record(
                &builder,
                &mut encoder.begin_compute_pass(&Default::default()),
            );
            gpu.queue.submit([encoder.finish()]);
        } else {
            pyramid
                .prepare(gpu, &builder, &depth, UVec2::ZERO, UVec2::ZERO)
                .unwrap_err();
        }
        let buffers = [pyramid.buffer(), pyramid.uniform()];
        let occlusions = |projection: &Projection, spheres: &[Vec4]| {
            let found = looker.look(gpu, projection, spheres, buffers);
            found
                .iter()
                .map(|found| found.occlusion)
                .collect::<Vec<_>>()
        };
        for projection in [&hides, &Projection::default()] {
            assert_eq!(occlusions(projection, &spheres), [VISIBLE; 14]);
        }
        // An orthographic view has no eye: only what is no sphere is unbounded.
        let visible = occlusions(&orthographic, &spheres[5..]);
        assert_eq!(visible, [VISIBLE; 9]);
        let before = [
            Vec4::new(0.0, 0.0, -3.0, 0.5),
            Vec4::new(0.0, 0.0, -3.0, 0.0),
        ];
        let expected = if has_pyramid { HIDDEN } else { VISIBLE };
        assert_eq!(occlusions(&hides, &before), [expected; 2]);
        assert_eq!(occlusions(&orthographic, &before), [expected; 2]);
        // Nothing that reaches the near plane is hidden.
        let near = [
            Vec4::new(0.0, 0.0, -0.3, 0.2),
            Vec4::new(0.0, 0.0, -0.3, 0.25),
        ];
        assert_eq!(occlusions(&hides, &near), [VISIBLE; 2]);
    }
}
