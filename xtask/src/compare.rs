//! Compares two pictures pixel by pixel.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use image::RgbaImage;

/// A pixel differs when one of its channels is further apart than this (of 255).
const CHANNEL_LIMIT: u8 = 8;

/// Pixels in ten thousand that may differ: 0.05 %.
const PIXELS_IN_TEN_THOUSAND: u64 = 5;

/// How far two pictures are apart.
#[derive(Debug, PartialEq)]
pub struct Difference {
    /// Pixels with a channel further apart than [`CHANNEL_LIMIT`].
    differing: u64,
    /// Pixels in all.
    pixels: u64,
    /// The largest distance of any channel.
    worst: u8,
}

impl Difference {
    /// Whether the pictures count as the same.
    pub fn is_small(&self) -> bool {
        self.differing * 10_000 <= self.pixels * PIXELS_IN_TEN_THOUSAND
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = 100.0 * self.differing as f64 / self.pixels.max(1) as f64;
        write!(
            f,
            "{share:.4} % of the pixels ({} of {}) differ by more than {CHANNEL_LIMIT}/255, the worst channel by {}/255",
            self.differing, self.pixels, self.worst
        )
    }
}

/// Reads and compares two files.
pub fn files(a: &Path, b: &Path) -> Result<Difference> {
    pictures(&read(a)?, &read(b)?)
}

/// Reads a picture.
pub fn read(path: &Path) -> Result<RgbaImage> {
    let picture = image::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(picture.to_rgba8())
}

/// Compares two pictures. Two empty or one-color pictures would prove nothing: an error.
pub fn pictures(a: &RgbaImage, b: &RgbaImage) -> Result<Difference> {
    ensure!(
        a.dimensions() == b.dimensions(),
        "sizes differ: {:?} and {:?}",
        a.dimensions(),
        b.dimensions()
    );
    for picture in [a, b] {
        let mut pixels = picture.pixels();
        let first = pixels.next().context("a picture without pixels")?;
        ensure!(
            pixels.any(|pixel| pixel != first),
            "a picture of one color shows nothing"
        );
    }
    let mut difference = Difference {
        differing: 0,
        pixels: 0,
        worst: 0,
    };
    for (left, right) in a.pixels().zip(b.pixels()) {
        let distance = left
            .0
            .iter()
            .zip(right.0)
            .map(|(l, r)| l.abs_diff(r))
            .max()
            .unwrap_or(0);
        difference.pixels += 1;
        difference.differing += u64::from(distance > CHANNEL_LIMIT);
        difference.worst = difference.worst.max(distance);
    }
    Ok(difference)
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgba;

    /// A hundred by a hundred: 5 pixels are exactly 0.05 %.
    fn picture() -> RgbaImage {
        RgbaImage::from_fn(100, 100, |x, y| Rgba([x as u8, y as u8, 50, 255]))
    }

    fn changed(count: u32, by: u8) -> RgbaImage {
        let mut changed = picture();
        for x in 0..count {
            changed.get_pixel_mut(x, 0).0[2] += by;
        }
        changed
    }

    #[test]
    fn a_picture_equals_itself() -> Result<()> {
        let same = pictures(&picture(), &picture())?;
        assert_eq!(
            same,
            Difference {
                differing: 0,
                pixels: 10_000,
                worst: 0
            }
        );
        assert!(same.is_small());
        Ok(())
    }

    #[test]
    fn the_limit_of_a_channel_is_8() -> Result<()> {
        assert_eq!(pictures(&picture(), &changed(40, 8))?.differing, 0);
        let beyond = pictures(&picture(), &changed(40, 9))?;
        assert_eq!((beyond.differing, beyond.worst), (40, 9));
        Ok(())
    }

    #[test]
    fn the_limit_of_the_share_is_5_in_10_000() -> Result<()> {
        assert!(pictures(&picture(), &changed(5, 200))?.is_small());
        let beyond = pictures(&picture(), &changed(6, 200))?;
        assert!(!beyond.is_small());
        assert!(
            beyond
                .to_string()
                .starts_with("0.0600 % of the pixels (6 of 10000)"),
            "{beyond}"
        );
        Ok(())
    }

    #[test]
    fn pictures_that_prove_nothing_are_errors() {
        let blank = RgbaImage::new(100, 100);
        assert!(pictures(&blank, &blank).is_err());
        assert!(pictures(&picture(), &blank).is_err());
        assert!(pictures(&RgbaImage::new(0, 0), &RgbaImage::new(0, 0)).is_err());
        assert!(pictures(&picture(), &RgbaImage::new(100, 99)).is_err());
    }
}
