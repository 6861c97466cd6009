//! The grid of photographs, and their sizes.

use super::octahedron::ImpostorSides;
use bevy::prelude::*;
use core::ops::RangeInclusive;

/// The grid of photographs.
#[derive(Reflect, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Grid {
    /// Number of views per side.
    pub side: u32,
    /// Pixels per side of a view.
    pub pixels: u32,
    pub sides: ImpostorSides,
}

impl Grid {
    /// See [`BakeImpostor::views`](super::BakeImpostor::views).
    pub const SIDE: RangeInclusive<u32> = 2..=32;
    /// See [`BakeImpostor::resolution`](super::BakeImpostor::resolution).
    pub const PIXELS: RangeInclusive<u32> = 32..=512;
    /// Of this number, pixels are a multiple. So rows of the photographs, which are twice as large,
    /// need no padding, and views have mips of their own.
    pub const STEP: u32 = 32;

    /// Width of all views together, in pixels.
    pub fn width(&self) -> u32 {
        self.side * self.pixels
    }

    /// The widths of all mips, in pixels. Views shrink until they have three or four.
    pub fn mip_widths(&self) -> impl Iterator<Item = u32> {
        let side = self.side;
        let halve = |pixels: &u32| (*pixels > 4 && pixels.is_multiple_of(2)).then(|| pixels / 2);
        core::iter::successors(Some(self.pixels), halve).map(move |pixels| side * pixels)
    }

    /// Bytes of a picture of 4 bytes per pixel, with its mips.
    pub fn bytes(&self) -> usize {
        let widths = self.mip_widths();
        widths
            .map(|width| 4 * width as usize * width as usize)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_shrink_to_a_few_pixels_of_their_own() {
        let grid = |pixels| Grid {
            side: 10,
            pixels,
            sides: ImpostorSides::All,
        };
        let widths = |pixels| grid(pixels).mip_widths().collect::<Vec<_>>();
        assert_eq!(widths(96), [960, 480, 240, 120, 60, 30]);
        assert_eq!(widths(32), [320, 160, 80, 40]);
        assert_eq!(
            grid(32).bytes(),
            4 * (320 * 320 + 160 * 160 + 80 * 80 + 40 * 40)
        );
    }
}
