//! Twin of `shaders/shared/thin.wesl`: which instances are kept of those that are too small to be
//! seen one by one, and how much larger these are drawn.

/// From this share on, instances are drawn as they are.
pub const THIN_SHARE: f32 = 1.5;
/// Smaller shares count as this one.
pub const MIN_SHARE: f32 = 5.960_464_5e-8;
/// The largest growth of an instance is this divided by the square root of its share; from share 1
/// on, this. The square root of 1.2.
#[cfg(feature = "testing")]
pub const THIN_GROWTH: f32 = 1.095_445_2;

fn hash(value: u32) -> u32 {
    let x = value.wrapping_mul(0x9e37_79b1);
    let x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    let x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

/// The share at which instance `i` of a region vanishes: its threshold, in 0..1, in steps of 2^-24.
/// The thresholds of a word of 32 instances are stratified: each 32nd part of 0..1 has one.
#[must_use]
pub fn threshold_of(i: u32) -> f32 {
    (((i & 31).reverse_bits() ^ hash(i >> 5)) >> 8) as f32 * 5.960_464_5e-8
}

/// How much an instance grows that does not shrink, if `share` of the instances like it are kept.
/// Summed over all thresholds, the area stays the same.
#[must_use]
pub fn thinned_growth(share: f32) -> f32 {
    if share >= THIN_SHARE {
        return 1.0;
    }
    let whole = share / THIN_SHARE;
    let area = if share <= 1.0 {
        0.833_333_3 * share
    } else {
        3.0 - whole - 1.0 / whole
    };
    1.0 / area.sqrt()
}

/// The scale at which an instance of this threshold is drawn, in multiples of its scale; 0 if it is
/// not kept.
#[cfg(feature = "testing")]
#[must_use]
pub fn thinned_scale(share: f32, threshold: f32) -> f32 {
    if share >= THIN_SHARE {
        return 1.0;
    }
    let left = (3.0 - 3.0 * threshold / share).clamp(0.0, 1.0);
    left.sqrt() * thinned_growth(share)
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Shares from far beyond the least one to far above the greatest one.
    fn share() -> impl Strategy<Value = f32> {
        (0u32..4000).prop_map(|step| 2f32.powf(step as f32 / 100.0 - 36.0))
    }

    #[test]
    fn the_thresholds_of_a_word_are_one_per_stratum() {
        for word in (0..2000).chain([u32::MAX >> 5]) {
            let mut strata: Vec<_> = (0..32)
                .map(|bit| (threshold_of(word * 32 + bit) * 32.0) as u32)
                .collect();
            strata.sort_unstable();
            assert!(strata.into_iter().eq(0..32), "word {word}");
        }
    }

    proptest! {
        /// A word keeps its share of 32 instances, up to one; many words keep it up to six
        /// standard deviations, of which a word has at most half an instance.
        #[test]
        fn the_kept_share_is_the_share(share in share(), first in 0u32..1 << 20) {
            const WORDS: u32 = 1000;
            let mut all = 0;
            for word in first..first + WORDS {
                let is_kept = |bit: &u32| threshold_of(word * 32 + bit) < share;
                let kept = (0..32).filter(is_kept).count() as u32;
                prop_assert!((kept as f32 - 32.0 * share.min(1.0)).abs() <= 1.0, "{} of 32", kept);
                all += kept;
            }
            let expected = 32.0 * share.min(1.0) * WORDS as f32;
            let deviation = 0.5 * (WORDS as f32).sqrt();
            let apart = (all as f32 - expected).abs();
            prop_assert!(apart <= 6.0 * deviation, "{} for {}", all, expected);
        }

        /// The sum of the drawn areas is the sum of the areas, as an integral over all thresholds.
        #[test]
        fn the_area_stays_the_same(share in share()) {
            const STEPS: u32 = 1 << 14;
            let share = share.max(1e-2);
            let threshold = |step| (f64::from(step) + 0.5) / f64::from(STEPS);
            let area = |step| f64::from(thinned_scale(share, threshold(step) as f32)).powi(2);
            let mean = (0..STEPS).map(area).sum::<f64>() / f64::from(STEPS);
            prop_assert!((mean - 1.0).abs() < 0.005, "{} at share {}", mean, share);
        }

        /// Nothing is drawn larger than the sphere that is tested, and what is not kept is not
        /// drawn.
        #[test]
        fn growth_is_the_most_that_is_drawn(share in share(), i in any::<u32>()) {
            let share = share.max(MIN_SHARE);
            let (threshold, growth) = (threshold_of(i), thinned_growth(share));
            let scale = thinned_scale(share, threshold);
            prop_assert!(scale <= growth);
            prop_assert!(growth <= THIN_GROWTH * 1.000_01 * share.powf(-0.5).max(1.0));
            prop_assert!(scale == 0.0 || threshold < share);
            prop_assert!(scale > 0.0 || threshold > 0.999 * share);
        }
    }

    /// An eye that walks away in steps of a thousandth of the distance sees every instance shrink
    /// before it goes: no step changes an area by more than a small part of what it is at most.
    #[test]
    fn nothing_pops() {
        for i in 0..4096 {
            let threshold = threshold_of(i);
            let mut before: Option<f32> = None;
            let mut apart = 1.0f32;
            while apart < 2000.0 {
                let share = (2.0 / (apart * apart)).max(MIN_SHARE);
                let area = thinned_scale(share, threshold).powi(2);
                // What an area is at most about here.
                let max = thinned_growth(share).powi(2);
                let changed = before.map_or(0.0, |before| (area - before).abs() / max);
                assert!(
                    changed < 0.01,
                    "threshold {threshold}, share {share}: {changed}"
                );
                before = Some(area);
                apart *= 1.001;
            }
            assert!(
                threshold < 1e-5 || before == Some(0.0),
                "threshold {threshold} is gone in the end"
            );
        }
    }
}
