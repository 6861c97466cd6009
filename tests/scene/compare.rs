//! Compares pictures.

use image::RgbaImage;
use std::collections::HashSet;

/// How two pictures differ.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Difference {
    /// The percentage of pixels that differ by more than 8/255 in any channel.
    pub share: f64,
    /// Number of such pixels in the largest patch of neighbors: a shape that is missing.
    pub patch: usize,
    /// The mean difference of all channels of all pixels, in 255ths: a tint that is wrong.
    pub mean: f64,
}

impl Difference {
    /// The largest that rounding makes.
    pub const MAX: Self = Self {
        share: 0.05,
        patch: 5,
        mean: 0.05,
    };

    pub fn new(ours: &RgbaImage, bevys: &RgbaImage) -> Self {
        assert_eq!(ours.dimensions(), bevys.dimensions());
        let (width, height) = ours.dimensions();
        let (mut sum, mut differing) = (0, HashSet::new());
        for ((x, y, a), b) in ours.enumerate_pixels().zip(bevys.pixels()) {
            let channels = a.0.iter().zip(b.0).map(|(a, b)| u64::from(a.abs_diff(b)));
            sum += channels.clone().sum::<u64>();
            if channels.max() > Some(8) {
                differing.insert((x, y));
            }
        }
        let pixels = f64::from(width * height);
        Self {
            share: differing.len() as f64 * 100.0 / pixels,
            patch: largest_patch(differing),
            mean: sum as f64 / (4.0 * pixels),
        }
    }

    pub fn is_within(&self, max: &Self) -> bool {
        self.share <= max.share && self.patch <= max.patch && self.mean <= max.mean
    }
}

/// Size of the largest group of pixels that touch each other, also at corners.
fn largest_patch(mut left: HashSet<(u32, u32)>) -> usize {
    let mut largest = 0;
    while let Some(first) = left.iter().next().copied() {
        left.remove(&first);
        let (mut patch, mut open) = (0, vec![first]);
        while let Some((x, y)) = open.pop() {
            patch += 1;
            for near in (x.saturating_sub(1)..=x + 1)
                .flat_map(|x| (y.saturating_sub(1)..=y + 1).map(move |y| (x, y)))
            {
                if left.remove(&near) {
                    open.push(near);
                }
            }
        }
        largest = largest.max(patch);
    }
    largest
}

/// How the pictures differ. If that is more than [`Difference::MAX`], or if Bevy's picture shows
/// nothing, the function saves both pictures and returns an error.
pub fn different_pixels(
    name: &str,
    ours: &RgbaImage,
    bevys: &RgbaImage,
) -> Result<Difference, String> {
    let difference = Difference::new(ours, bevys);
    let colors: HashSet<_> = bevys.pixels().collect();
    let wrong = if colors.len() <= 50 {
        format!("{name}: the reference shows nothing")
    } else if difference.is_within(&Difference::MAX) {
        return Ok(difference);
    } else {
        let Difference { share, patch, mean } = difference;
        format!(
            "{name}: {share:.3} % of pixels differ by more than 8/255, {patch} of them in one patch; the mean difference \
             is {mean:.4}/255"
        )
    };
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    std::fs::create_dir_all(&folder).unwrap();
    ours.save(folder.join(format!("{name}-set.png"))).unwrap();
    bevys.save(folder.join(format!("{name}-bevy.png"))).unwrap();
    Err(format!(
        "{wrong}; both pictures are in {}",
        folder.display()
    ))
}

/// Panics if the pictures are [different](different_pixels).
pub fn assert_same_picture(name: &str, ours: &RgbaImage, bevys: &RgbaImage) {
    if let Err(wrong) = different_pixels(name, ours, bevys) {
        panic!("{wrong}");
    }
}
