//! How a picture with levels of detail differs from the same picture in full detail.

use anyhow::{Result, ensure};
use image::RgbImage;

/// A pixel differs if one of its channels is farther off than this, of 255.
const CHANNEL_LIMIT: u8 = 8;

/// The likeness of two pictures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Likeness {
    /// Peak signal-to-noise ratio over all channels, in decibels; `None` if the pictures are equal.
    pub psnr: Option<f64>,
    /// Share of the pixels that differ, from 0 to 1.
    pub differing: f64,
}

/// Compares two pictures of the same size.
pub fn of(a: &RgbImage, b: &RgbImage) -> Result<Likeness> {
    ensure!(
        a.dimensions() == b.dimensions(),
        "the sizes of the pictures differ: {:?} and {:?}",
        a.dimensions(),
        b.dimensions()
    );
    let (mut squares, mut differing) = (0u64, 0u64);
    for (a, b) in a.pixels().zip(b.pixels()) {
        let apart = [0, 1, 2].map(|channel| a.0[channel].abs_diff(b.0[channel]));
        squares += apart.iter().map(|off| u64::from(*off).pow(2)).sum::<u64>();
        differing += u64::from(apart.iter().any(|off| *off > CHANNEL_LIMIT));
    }
    let pixels = f64::from(a.width()) * f64::from(a.height());
    let mean = squares as f64 / (pixels * 3.0);
    Ok(Likeness {
        psnr: (squares > 0).then(|| 10.0 * (255.0 * 255.0 / mean).log10()),
        differing: differing as f64 / pixels,
    })
}
