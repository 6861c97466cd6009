//! The depth pyramid on the GPU: each texel equals its twin, and the brute minimum.

use super::picture::Picture;
use crate::common::{gpu, gpu_with, kernel::read, rng};
use bevy_gpu_culling::cull::{
    CullError, Gpu,
    layout::{DepthPyramid, MAX_PYRAMID_LEVELS},
    occlusion::{Pyramid, PyramidBuilder},
    reference,
};
use glam::UVec2;
use wgpu::TextureView;

/// Sizes of viewports around a thread, a tile, two passes and three.
const SIZES: [(u32, u32); 14] = [
    (1, 1),
    (1, 7),
    (4, 4),
    (5, 1),
    (63, 65),
    (64, 64),
    (65, 64),
    (127, 255),
    (320, 200),
    (1919, 1081),
    (4097, 33),
    (4096, 2),
    (1, 8193),
    (129, 4160),
];

/// Records the pyramid and reads its texels.
fn make(
    gpu: Gpu<'_>,
    builder: &PyramidBuilder,
    pyramid: &mut Pyramid,
    depth: &TextureView,
    (first, size): (UVec2, UVec2),
) -> Vec<f32> {
    pyramid.prepare(gpu, builder, depth, first, size).unwrap();
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    pyramid.record(
        builder,
        &mut encoder.begin_compute_pass(&Default::default()),
    );
    gpu.queue.submit([encoder.finish()]);
    let len = pyramid.shape().texel_count() as usize;
    read(gpu, pyramid.buffer(), 0, len)
}

#[test]
fn every_texel_equals_the_twin() {
    let gpu = gpu();
    for checks in [true, false] {
        let builder = PyramidBuilder::new(gpu.device, checks).unwrap();
        let mut pyramid = Pyramid::new(gpu).unwrap();
        let mut rng = rng(601);
        for (width, height) in SIZES {
            for samples in [1, 4] {
                let size = UVec2::new(width, height);
                for first in [UVec2::ZERO, UVec2::new(13, 7)] {
                    // The texture is larger than the viewport, with nearer and farther pixels.
                    let whole = first + size + first / 2;
                    let picture = Picture::noise(&mut rng, whole, samples);
                    let depth = picture.draw(gpu);
                    let place = (first, size);
                    let texels = make(gpu, &builder, &mut pyramid, &depth, place);
                    let shape = DepthPyramid::new(first, size, samples);
                    assert_eq!(*pyramid.shape(), shape);
                    let twin = reference::pyramid(&picture.depths, whole.x, &shape);
                    let wrong = texels.iter().zip(&twin).position(|(gpu, cpu)| gpu != cpu);
                    assert_eq!(wrong, None, "{size} from {first}, {samples} samples");
                }
            }
        }
    }
}

/// The twin is the minimum over the pixels of each square.
#[test]
fn the_twin_is_the_brute_minimum() {
    let mut rng = rng(602);
    for (width, height) in [(1, 1), (1, 7), (5, 1), (127, 55), (64, 64), (65, 33)] {
        for samples in [1, 4] {
            let (first, size) = (UVec2::new(3, 5), UVec2::new(width, height));
            let picture = Picture::noise(&mut rng, first + size + 2, samples);
            let shape = DepthPyramid::new(first, size, samples);
            let texels = reference::pyramid(&picture.depths, picture.size.x, &shape);
            assert_eq!(texels.len() as u64, shape.texel_count());
            for (number, level) in shape.levels().iter().enumerate() {
                let side = 1u32 << number;
                for (x, y) in (0..level.height).flat_map(|y| (0..level.width).map(move |x| (x, y)))
                {
                    let mut min = f32::INFINITY;
                    for py in y * side..((y + 1) * side).min(height) {
                        for px in x * side..((x + 1) * side).min(width) {
                            for sample in 0..samples {
                                let at = picture.at(first + UVec2::new(px, py), sample);
                                min = min.min(picture.depths[at]);
                            }
                        }
                    }
                    let texel = texels[(level.first + y * level.width + x) as usize];
                    assert_eq!(texel, min, "level {number}, {x}, {y} of {size}");
                }
            }
        }
    }
}

#[test]
fn levels_end_at_one_texel() {
    let shape = |x, y| DepthPyramid::new(UVec2::ZERO, UVec2::new(x, y), 1);
    for (x, y, levels) in [
        (1, 1, 1),
        (1, 2, 2),
        (3, 1, 3),
        (1920, 1080, 12),
        (16_384, 9, 15),
    ] {
        let shape = shape(x, y);
        let last = shape.levels().last().unwrap();
        assert_eq!(shape.level_count, levels, "{x} x {y}");
        assert_eq!((last.width, last.height), (1, 1));
        let mut first = 0;
        for level in shape.levels() {
            assert_eq!(level.first, first);
            first += level.width * level.height;
        }
        assert_eq!(u64::from(first), shape.texel_count());
    }
    assert_eq!(shape(0, 5), DepthPyramid::default());
    // Larger than what any device draws: no overflow.
    assert_eq!(shape(u32::MAX, u32::MAX).level_count, MAX_PYRAMID_LEVELS);
}

/// What did not change stays, and what changed is followed: another texture, viewport or number of
/// samples.
#[test]
fn a_pyramid_follows_its_view() {
    let gpu = gpu();
    let builder = PyramidBuilder::new(gpu.device, true).unwrap();
    let mut pyramid = Pyramid::new(gpu).unwrap();
    assert_eq!(*pyramid.shape(), DepthPyramid::default());
    let mut rng = rng(603);
    let whole = UVec2::new(90, 50);
    let pictures = [1, 4, 1].map(|samples| Picture::noise(&mut rng, whole, samples));
    for _ in 0..2 {
        for picture in &pictures {
            let depth = picture.draw(gpu);
            for (first, size) in [
                (UVec2::ZERO, whole),
                (UVec2::ZERO, whole),
                (UVec2::new(45, 0), UVec2::new(45, 50)),
                (UVec2::new(45, 10), UVec2::new(45, 40)),
                (UVec2::new(89, 49), UVec2::ONE),
            ] {
                let place = (first, size);
                let texels = make(gpu, &builder, &mut pyramid, &depth, place);
                let shape = DepthPyramid::new(first, size, picture.samples);
                let twin = reference::pyramid(&picture.depths, whole.x, &shape);
                assert!(texels == twin, "{size} from {first}");
            }
        }
    }
    assert!(pyramid.sizes().iter().all(|(_, bytes)| *bytes > 0));
}

#[test]
fn a_viewport_outside_of_the_texture_is_an_error_and_hides_nothing() {
    let gpu = gpu();
    let builder = PyramidBuilder::new(gpu.device, true).unwrap();
    let mut pyramid = Pyramid::new(gpu).unwrap();
    let picture = Picture::noise(&mut rng(604), UVec2::new(40, 30), 1);
    let depth = picture.draw(gpu);
    for (first, size) in [
        ((0, 0), (41, 30)),
        ((0, 0), (40, 31)),
        ((1, 0), (40, 30)),
        ((40, 0), (1, 1)),
        ((0, u32::MAX), (1, u32::MAX)),
        ((0, 0), (0, 30)),
        ((0, 0), (40, 0)),
    ] {
        let (first, size) = (UVec2::from(first), UVec2::from(size));
        let whole = UVec2::new(40, 30);
        pyramid
            .prepare(gpu, &builder, &depth, UVec2::ZERO, whole)
            .unwrap();
        let error = pyramid
            .prepare(gpu, &builder, &depth, first, size)
            .unwrap_err();
        assert!(
            matches!(error, CullError::ViewportOutside { .. }),
            "{error}"
        );
        assert!(error.to_string().contains("40 x 30"), "{error}");
        assert_eq!(pyramid.shape().level_count, 0);
        // Records nothing.
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        pyramid.record(
            &builder,
            &mut encoder.begin_compute_pass(&Default::default()),
        );
        gpu.queue.submit([encoder.finish()]);
    }
}

#[test]
fn a_pyramid_beyond_a_binding_is_an_error_and_hides_nothing() {
    let min = 64 * 1024;
    let limited = gpu_with(|limits| limits.max_storage_buffer_binding_size = min);
    let gpu = limited.gpu();
    let builder = PyramidBuilder::new(gpu.device, true).unwrap();
    let mut pyramid = Pyramid::new(gpu).unwrap();
    let picture = Picture {
        size: UVec2::new(128, 128),
        samples: 1,
        depths: vec![0.5; 64 * 1024 / 4],
    };
    let depth = picture.draw(gpu);
    let error = pyramid
        .prepare(gpu, &builder, &depth, UVec2::ZERO, picture.size)
        .unwrap_err();
    let CullError::PyramidTooLarge { bytes, limit, .. } = error else {
        panic!("{error}");
    };
    assert!(bytes > limit && limit == min);
    assert_eq!(pyramid.shape().level_count, 0);
    pyramid
        .prepare(gpu, &builder, &depth, UVec2::ZERO, UVec2::splat(100))
        .unwrap();
}

#[test]
fn a_broken_pyramid_is_seen() {
    let gpu = gpu();
    let cases: [(&str, &str); 9] = [
        (
            "return min(min(four.x, four.y), min(four.z, four.w))",
            "return min(min(four.x, four.y), max(four.z, four.w))",
        ),
        (
            "quads[item] = min(quads[item], four)",
            "quads[item] = max(quads[item], four)",
        ),
        (
            "values[lower], values[lower + 1u]",
            "values[lower], values[lower]",
        ),
        (
            "let first = vec2<u32>(pyramid_shape.first_x, pyramid_shape.first_y)",
            "let first = vec2<u32>(0u)",
        ),
        (
            "first + min(half * 2u + 1u, last)",
            "first + half * 2u + 1u",
        ),
        (
            "min(vec2<u32>(half.x * 2u, half.x * 2u + 1u), vec2<u32>(last.x))",
            "vec2<u32>(half.x * 2u, half.x * 2u + 1u)",
        ),
        ("min_of(quads[item])", "quads[item].x"),
        ("const SOURCE: u32 = 12u", "const SOURCE: u32 = 13u"),
        (
            "if (all(at < vec2<u32>(level.width, level.height)))",
            "if (true)",
        ),
    ];
    let first = UVec2::new(13, 7);
    let mut rng = rng(605);
    let sizes = [UVec2::new(4200, 37), UVec2::new(77, 131)];
    let pictures: Vec<_> = sizes
        .into_iter()
        .flat_map(|size| [1, 4].map(|samples| Picture::noise(&mut rng, first + size + 3, samples)))
        .collect();
    let is_wrong = |builder: &PyramidBuilder| {
        pictures.iter().any(|picture| {
            let mut pyramid = Pyramid::new(gpu).unwrap();
            let size = picture.size - first - 3;
            let depth = picture.draw(gpu);
            let place = (first, size);
            let texels = make(gpu, builder, &mut pyramid, &depth, place);
            let shape = DepthPyramid::new(first, size, picture.samples);
            texels != reference::pyramid(&picture.depths, picture.size.x, &shape)
        })
    };
    assert!(!is_wrong(&PyramidBuilder::new(gpu.device, true).unwrap()));
    for (line, broken) in cases {
        let changed = core::cell::Cell::new(false);
        let edit = |_: &str, source: String| {
            changed.set(changed.get() || source.contains(line));
            source.replace(line, broken)
        };
        let builder = PyramidBuilder::with_sources(gpu.device, edit).unwrap();
        assert!(changed.get(), "no kernel has {line}");
        assert!(is_wrong(&builder), "{broken} was not seen");
    }
}
