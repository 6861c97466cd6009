//! The component as the kernel reads it.

use super::component::Scatter;
use crate::cull::layout::{
    MAX_SLOPE_STEPS, SCATTER_HAS_DENSITY, SCATTER_HAS_EXCLUSION, SCATTER_HAS_HEIGHT, SCATTER_STEPS,
    SLOPE_STEPS, ScatterLayer,
};
use bevy::prelude::*;

/// The largest height of 24 bits: 65,535 with 8 bits between texels.
const MAX_HEIGHT: f64 = 65_535.0 * 256.0;

/// Steps, as a whole number of 31 bits.
const MAX_STEP: f64 = (1 << 30) as f64;

/// The layer of a component without problems. The height map has this size.
pub(super) fn layer_of(scatter: &Scatter, height_size: UVec2) -> ScatterLayer {
    let step = f64::from(scatter.spacing) / f64::from(SCATTER_STEPS);
    let area = scatter.map_area;
    let [x, z] = [(area.min.x, area.max.x), (area.min.y, area.max.y)]
        .map(|(min, max)| Axis::new(f64::from(min) / step, f64::from(max) / step));
    let heights = Heights::new(scatter);
    let rise = f64::from(scatter.map_heights.end) - f64::from(scatter.map_heights.start);
    let gradient = |length: f32, texels: u32| {
        let run = f64::from(length) / f64::from(texels.max(1));
        let gradient = f64::from(SLOPE_STEPS) * rise / (MAX_HEIGHT * run);
        gradient.min(f64::from(f32::MAX)) as f32
    };
    let flag = |map: &Option<Handle<Image>>, flag: u32| map.as_ref().map_or(0, |_| flag);
    let share = |share: f32, all: u32| (f64::from(share) * f64::from(all)).round() as u32;
    let (smallest, largest) = (
        f64::from(scatter.scales.start),
        f64::from(scatter.scales.end),
    );
    ScatterLayer {
        step: step as f32,
        seed: scatter.seed,
        jitter: share(scatter.jitter, SCATTER_STEPS),
        min_apart: share(scatter.min_distance, SCATTER_STEPS).pow(2),
        first_x: x.first,
        first_z: z.first,
        len_x: x.len,
        len_z: z.len,
        factor_x: x.factor,
        factor_z: z.factor,
        shift_x: x.shift,
        shift_z: z.shift,
        flags: flag(&scatter.density_map, SCATTER_HAS_DENSITY)
            | flag(&scatter.height_map, SCATTER_HAS_HEIGHT)
            | flag(&scatter.exclusion_map, SCATTER_HAS_EXCLUSION),
        density: share(scatter.density, 1 << 15),
        height_first: heights.first,
        height_shift: heights.shift,
        height_step: heights.step,
        min_height: heights.min,
        max_height: heights.max,
        gradient_x: gradient(area.width(), height_size.x),
        gradient_z: gradient(area.height(), height_size.y),
        min_slope: slope_square(scatter.slopes.start, f64::floor),
        max_slope: match slope_square(scatter.slopes.end, f64::ceil) {
            // As steep as it is told.
            steep if steep >= (MAX_SLOPE_STEPS as u32).pow(2) => u32::MAX,
            gentle => gentle,
        },
        align: scatter.align / SLOPE_STEPS,
        min_scale: match largest > 0.0 {
            true => (smallest / largest * 65_536.0).round() as u32,
            false => 1 << 16,
        },
        scale_step: (largest / 65_536.0) as f32,
        ..ScatterLayer::default()
    }
}

/// The square of a slope in steps.
fn slope_square(angle: f32, round: fn(f64) -> f64) -> u32 {
    let slope = f64::from(angle).tan() * f64::from(SLOPE_STEPS);
    // The tangent of a right angle in `f32` is negative.
    let is_upright = slope < 0.0 || slope > f64::from(MAX_SLOPE_STEPS);
    let slope = match is_upright {
        true => f64::from(MAX_SLOPE_STEPS),
        false => slope,
    };
    round(slope * slope) as u32
}

/// The maps' area along one axis, in steps.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Axis {
    first: i32,
    len: u32,
    factor: u32,
    shift: u32,
}

impl Axis {
    fn new(min: f64, max: f64) -> Self {
        let [first, end] = [min, max].map(|step| step.round().clamp(-MAX_STEP, MAX_STEP) as i64);
        // An area of less than two steps has none.
        let len = (end - first).max(2) as u64;
        let shift = len.ilog2();
        let factor = ((1u128 << (32 + shift)) / u128::from(len)).min(u128::from(u32::MAX));
        Self {
            first: first as i32,
            len: len as u32,
            factor: factor as u32,
            shift,
        }
    }
}

/// Heights as the kernel makes them: one product, of a whole number and a step.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Heights {
    first: i32,
    shift: u32,
    step: f32,
    min: u32,
    max: u32,
}

impl Heights {
    fn new(scatter: &Scatter) -> Self {
        if scatter.height_map.is_none() {
            return Self {
                first: 0,
                shift: 0,
                step: 0.0,
                min: 0,
                max: u32::MAX,
            };
        }
        let [low, high] = [scatter.map_heights.start, scatter.map_heights.end].map(f64::from);
        let [lowest, highest] = [scatter.heights.start, scatter.heights.end].map(f64::from);
        let fine = (high - low) / MAX_HEIGHT;
        // `low` must be a whole number of steps. If it is far from 0, they are larger than the
        // map's, and `f32` would not tell the map's apart either.
        let shift = (0..=24).find(|shift| low.abs() < fine * 2f64.powi(30 + shift));
        let (first, shift, step) = match shift {
            Some(shift) => {
                let step = fine * 2f64.powi(shift);
                ((low / step).round() as i32, shift as u32, step as f32)
            }
            // All heights are the same.
            None => (1, 31, low as f32),
        };
        let (min, max) = match fine > 0.0 {
            // Casts end at 0 and at the largest number.
            true => (
                ((lowest - low) / fine).ceil(),
                ((highest - low) / fine).floor(),
            ),
            false if (lowest..=highest).contains(&low) => (0.0, MAX_HEIGHT),
            false => (1.0, -1.0),
        };
        let (min, max) = match max < 0.0 {
            true => (1, 0),
            false => (min as u32, max as u32),
        };
        Self {
            first,
            shift,
            step,
            min,
            max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn with_heights(map: core::ops::Range<f32>, grows: core::ops::Range<f32>) -> Heights {
        Heights::new(&Scatter {
            height_map: Some(Handle::default()),
            map_heights: map,
            heights: grows,
            ..default()
        })
    }

    fn height(heights: Heights, bits: u32) -> f32 {
        ((bits >> heights.shift) as i32 + heights.first) as f32 * heights.step
    }

    #[test]
    fn black_and_white_are_the_heights_that_the_user_says() {
        let all = f32::NEG_INFINITY..f32::INFINITY;
        for (low, high) in [
            (0.0, 1.0),
            (-20.0, 80.0),
            (1000.0, 1001.0),
            (-1e9, -1e9 + 64.0),
            (5.0, 5.0),
            (0.0, 0.0),
            (1e7, 1e7 + 1.0),
        ] {
            let heights = with_heights(low..high, all.clone());
            let near = (high - low).max(low.abs()).max(high.abs()) * 1e-6;
            let [black, white] = [0, MAX_HEIGHT as u32].map(|bits| height(heights, bits));
            assert!((black - low).abs() <= near, "{low} to {high}: {black}");
            assert!((white - high).abs() <= near, "{low} to {high}: {white}");
            assert!((heights.min, heights.max) == (0, u32::MAX) || low == high);
        }
        let some = with_heights(-20.0..80.0, 5.0..6.0);
        assert!((height(some, some.min) - 5.0).abs() < 1e-4);
        assert!((height(some, some.max) - 6.0).abs() < 1e-4);
        let none = with_heights(0.0..1.0, -5.0..-4.0);
        assert!(none.min > none.max);
        let flat = with_heights(3.0..3.0, 0.0..2.0);
        assert!(flat.min > flat.max);
    }

    #[test]
    fn slopes_reach_from_level_to_upright() {
        let layer = |slopes| {
            layer_of(
                &Scatter {
                    slopes,
                    ..default()
                },
                UVec2::ONE,
            )
        };
        let all = layer(Scatter::default().slopes);
        assert_eq!((all.min_slope, all.max_slope), (0, u32::MAX));
        let gentle = layer(0.0..core::f32::consts::FRAC_PI_4);
        assert!(gentle.max_slope.abs_diff(1024 * 1024) <= 1);
        let steep = layer(1.57..core::f32::consts::FRAC_PI_2);
        assert_eq!(steep.min_slope, 32767 * 32767);
    }

    #[test]
    fn a_slope_is_what_the_map_rises_by() {
        // 10 units up from one texel to the next, which are 5 apart.
        let scatter = Scatter {
            height_map: Some(Handle::default()),
            map_area: Rect::new(0.0, 0.0, 20.0, 40.0),
            map_heights: 0.0..10.0,
            ..default()
        };
        let layer = layer_of(&scatter, UVec2::new(4, 8));
        let rise = MAX_HEIGHT as f32;
        assert!((rise * layer.gradient_x / SLOPE_STEPS - 2.0).abs() < 1e-4);
        assert!((rise * layer.gradient_z / SLOPE_STEPS - 2.0).abs() < 1e-4);
    }

    proptest! {
        #[test]
        fn steps_in_the_area_have_their_places(
            first in -1_000_000i32..1_000_000,
            len in 2u32..0x2000_0000,
            at in 0.0f64..1.0,
        ) {
            let axis = Axis::new(f64::from(first), f64::from(first) + f64::from(len));
            prop_assert_eq!((axis.first, axis.len), (first, len));
            prop_assert!((1..32).contains(&axis.shift));
            let step = (at * f64::from(axis.len)) as u32;
            let place = (u128::from(step) * u128::from(axis.factor)) >> axis.shift;
            prop_assert!(place < 1 << 32, "{axis:?} {step}: {place}");
            let exact = f64::from(step) / f64::from(axis.len) * 4_294_967_296.0;
            // The factor has 31 bits or more.
            prop_assert!((place as f64 - exact).abs() <= 4.0, "{place} {exact}");
        }
    }
}
