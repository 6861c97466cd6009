//! From the camera's pictures to an atlas: half as large, without gaps between what is seen, and
//! with mips.

use super::grid::Grid;
use bevy::color::{LinearRgba, Srgba};

/// Pixels of the camera per pixel of the atlas, along each side. Their share that is covered is the
/// opacity.
pub(super) const SAMPLES: u32 = 2;

/// The opacity from which on cards are drawn.
pub(super) const CUTOFF: f32 = 0.5;

/// What the camera saw: 4 bytes per pixel, as in
/// [`ImpostorAtlas`](super::atlas::ImpostorAtlas), [`SAMPLES`] times as wide. Opacities are 0 or
/// 255.
pub(super) struct Pictures {
    pub colors: Vec<u8>,
    pub shapes: Vec<u8>,
}

/// Color, normal and height.
type Look = [f32; 7];

/// What is seen at a pixel.
#[derive(Clone, Copy, Default)]
struct Pixel {
    /// Times the opacity.
    look: Look,
    opacity: f32,
}

impl Pixel {
    /// The mean of some, if there are `of`.
    fn mean(pixels: impl Iterator<Item = Self>, of: f32) -> Self {
        pixels.fold(Self::default(), |mut sum, pixel| {
            for (sum, part) in sum.look.iter_mut().zip(pixel.look) {
                *sum += part / of;
            }
            sum.opacity += pixel.opacity / of;
            sum
        })
    }

    /// What is there, whatever its opacity.
    fn whole(&self) -> Option<Look> {
        (self.opacity > 0.0).then(|| self.look.map(|part| part / self.opacity))
    }
}

/// A square picture.
struct Level {
    width: usize,
    pixels: Vec<Pixel>,
}

impl Level {
    /// The atlas itself.
    fn finest(pictures: &Pictures, width: usize) -> Self {
        let linear: Vec<f32> = (0..=u8::MAX)
            .map(|byte| LinearRgba::from(Srgba::rgb_u8(byte, 0, 0)).red)
            .collect();
        let sample = |at: usize| {
            let (color, shape) = (&pictures.colors[4 * at..], &pictures.shapes[4 * at..]);
            if color[3] < 128 {
                return Pixel::default();
            }
            let [red, green, blue] = [0, 1, 2].map(|part| linear[usize::from(color[part])]);
            let [x, y, z, height] = [0, 1, 2, 3].map(|part| from_byte(shape[part]));
            Pixel {
                look: [red, green, blue, x, y, z, height],
                opacity: 1.0,
            }
        };
        Self::mean_of(width, SAMPLES as usize, sample)
    }

    /// Half as wide.
    fn halved(&self) -> Self {
        Self::mean_of(self.width / 2, 2, |at| self.pixels[at])
    }

    /// Each pixel is the mean of `per` by `per` samples.
    fn mean_of(width: usize, per: usize, sample: impl Fn(usize) -> Pixel) -> Self {
        let pixel = |at: usize| {
            let (x, y) = (at % width * per, at / width * per);
            let squares = (0..per * per).map(|i| (y + i / per) * width * per + x + i % per);
            Pixel::mean(squares.map(&sample), (per * per) as f32)
        };
        Self {
            width,
            pixels: (0..width * width).map(pixel).collect(),
        }
    }

    /// What each pixel looks like. Where nothing is seen, it is as in the coarser level, so that
    /// filters mix in no background.
    fn filled(&self, coarser: &dyn Fn(usize, usize) -> Look) -> Vec<Look> {
        let look = |(at, pixel): (usize, &Pixel)| {
            let (x, y) = (at % self.width, at / self.width);
            pixel.whole().unwrap_or_else(|| coarser(x, y))
        };
        self.pixels.iter().enumerate().map(look).collect()
    }

    /// What opacities are multiplied by, so that as many pixels are drawn as are covered in the
    /// finest level, as a share: distant trees keep their leaves.
    fn keeps(&self, covered: f32) -> f32 {
        let mut opacities: Vec<f32> = self.pixels.iter().map(|pixel| pixel.opacity).collect();
        let drawn = (covered * opacities.len() as f32).round() as usize;
        let Some(last) = drawn.checked_sub(1).filter(|at| *at < opacities.len()) else {
            return 1.0;
        };
        let (_, faintest, _) = opacities.select_nth_unstable_by(last, |a, b| b.total_cmp(a));
        let faintest = *faintest;
        // Many may be as faint as this one: without them it may be nearer.
        let with = opacities.iter().filter(|one| **one >= faintest).count();
        let without = opacities.iter().filter(|one| **one > faintest).count();
        let brighter = opacities.iter().copied().filter(|one| *one > faintest);
        let cut = match with - drawn > drawn - without {
            true => brighter.fold(1.0, f32::min),
            false => faintest,
        };
        // What is covered as a whole stays opaque.
        match cut > 0.0 {
            true => (CUTOFF / cut).max(1.0),
            false => 1.0,
        }
    }
}

/// -1 to 1.
fn from_byte(byte: u8) -> f32 {
    f32::from(byte) / 127.5 - 1.0
}

fn to_byte(number: f32) -> u8 {
    ((number + 1.0) * 127.5).round() as u8
}

/// The pictures of an atlas with their mips: base colors, then shapes. `None` if nothing is seen.
pub(super) fn develop(pictures: &Pictures, grid: Grid) -> Option<[Vec<u8>; 2]> {
    let mut levels = vec![Level::finest(pictures, grid.width() as usize)];
    for _ in grid.mip_widths().skip(1) {
        levels.extend(levels.last().map(Level::halved));
    }
    let finest = levels.first()?;
    let all = finest.pixels.iter();
    let covered = all.map(|pixel| pixel.opacity).sum::<f32>() / finest.pixels.len() as f32;
    if covered <= 0.0 {
        return None;
    }
    let looks = fill(&levels, grid.side as usize);
    let mut bytes = [const { Vec::new() }; 2];
    for (at, (level, looks)) in levels.iter().zip(&looks).enumerate() {
        let keeps = if at == 0 { 1.0 } else { level.keeps(covered) };
        for (pixel, look) in level.pixels.iter().zip(looks) {
            let [red, green, blue, x, y, z, height] = *look;
            let color = Srgba::from(LinearRgba::rgb(red, green, blue));
            let opacity = (pixel.opacity * keeps).min(1.0);
            let [red, green, blue] = [color.red, color.green, color.blue];
            let unit = [red, green, blue, opacity].map(|part| (part * 255.0).round() as u8);
            bytes[0].extend(unit);
            let long = (x * x + y * y + z * z).sqrt().max(f32::MIN_POSITIVE);
            bytes[1].extend([x / long, y / long, z / long, height].map(to_byte));
        }
    }
    Some(bytes)
}

/// What each pixel of each level looks like.
fn fill(levels: &[Level], side: usize) -> Vec<Vec<Look>> {
    let mut filled: Vec<Vec<Look>> = Vec::with_capacity(levels.len());
    for level in levels.iter().rev() {
        let looks = match filled.last() {
            Some(coarser) => {
                let width = level.width / 2;
                level.filled(&|x, y| coarser[y / 2 * width + x / 2])
            }
            None => {
                // Behind the coarsest level is the mean of a view.
                let per = level.width / side;
                let views = Level::mean_of(side, per, |at| level.pixels[at]);
                let of_view = |x: usize, y: usize| views.pixels[y / per * side + x / per].whole();
                level.filled(&|x, y| of_view(x, y).unwrap_or_default())
            }
        };
        filled.push(looks);
    }
    filled.reverse();
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::impostors::octahedron::ImpostorSides;

    const GRID: Grid = Grid {
        side: 2,
        pixels: 32,
        sides: ImpostorSides::All,
    };

    /// Pictures in which `is_seen` says what is covered, all of one color and normal.
    fn pictures(is_seen: impl Fn(usize, usize) -> bool) -> Pictures {
        let width = (GRID.width() * SAMPLES) as usize;
        let seen: Vec<bool> = (0..width * width)
            .map(|at| is_seen(at % width, at / width))
            .collect();
        let fill = |byte: [u8; 4], none: [u8; 4]| {
            let pixel = |seen: &bool| if *seen { byte } else { none };
            seen.iter().flat_map(pixel).collect()
        };
        Pictures {
            colors: fill([200, 100, 50, 255], [0; 4]),
            shapes: fill([255, 128, 128, 191], [0; 4]),
        }
    }

    fn opacities(colors: &[u8]) -> impl Iterator<Item = u8> {
        colors
            .as_chunks::<4>()
            .0
            .iter()
            .map(|[.., opacity]| *opacity)
    }

    #[test]
    fn nothing_is_no_atlas() {
        assert!(develop(&pictures(|_, _| false), GRID).is_none());
    }

    #[test]
    fn all_that_is_seen_keeps_its_look_in_all_mips() {
        let [colors, shapes] = develop(&pictures(|_, _| true), GRID).unwrap_or_default();
        assert_eq!(colors.len(), GRID.bytes());
        assert_eq!(shapes.len(), GRID.bytes());
        for color in colors.as_chunks::<4>().0 {
            assert_eq!(*color, [200, 100, 50, 255]);
        }
        for [x, y, z, height] in shapes.as_chunks::<4>().0 {
            assert!(
                (254..=255).contains(x) && (127..=129).contains(y),
                "{x} {y}"
            );
            assert!(
                (127..=129).contains(z) && (190..=192).contains(height),
                "{z} {height}"
            );
        }
    }

    /// Around what is seen there is no other color than its own, in no mip.
    #[test]
    fn gaps_have_the_look_of_what_is_near() {
        let [colors, _] =
            develop(&pictures(|x, y| x % 64 == 10 && y % 64 > 20), GRID).unwrap_or_default();
        for [red, green, blue, _] in colors.as_chunks::<4>().0 {
            assert_eq!([*red, *green, *blue], [200, 100, 50]);
        }
    }

    #[test]
    fn a_pixel_is_as_opaque_as_it_is_covered() {
        let [colors, _] = develop(&pictures(|x, _| x % 4 == 0), GRID).unwrap_or_default();
        let finest = opacities(&colors).take(64 * 64);
        for (at, opacity) in finest.enumerate() {
            assert_eq!(opacity, if at % 2 == 0 { 128 } else { 0 });
        }
    }

    /// Thin leaves would vanish in mips if opacities were means alone.
    #[test]
    fn mips_draw_as_much_as_is_covered() {
        // A quarter of the camera's pixels, more to the right, and nowhere most of them.
        let hash = |x: usize, y: usize| ((x + 128 * y + 1) as u32).wrapping_mul(2_654_435_761);
        let is_seen = |x: usize, y| hash(x, y) >> 16 & 1023 < (x as u32 % 64) * 8;
        let [colors, _] = develop(&pictures(is_seen), GRID).unwrap_or_default();
        let mut rest: Vec<u8> = opacities(&colors).collect();
        for width in GRID.mip_widths() {
            let all = (width * width) as usize;
            let drawn = rest.drain(..all).filter(|opacity| *opacity >= 127).count();
            let share = drawn as f32 / all as f32;
            // The means alone would draw 12, 3, 0 and 0 %. The finest level has only four samples
            // per pixel.
            let range = if width == 64 { 0.3..0.4 } else { 0.18..0.27 };
            assert!(range.contains(&share), "{width}: {share}");
        }
    }

    #[test]
    fn views_keep_to_themselves() {
        // Only the first view shows anything.
        let [colors, shapes] =
            develop(&pictures(|x, y| x < 64 && y < 64), GRID).unwrap_or_default();
        let width = 64;
        for (at, color) in colors.as_chunks::<4>().0[..width * width]
            .iter()
            .enumerate()
        {
            let is_first = at % width < 32 && at / width < 32;
            assert_eq!(color[3] > 0, is_first, "{at}");
            assert_eq!(color[0] > 0, is_first, "{at}");
        }
        assert_eq!(shapes.len(), GRID.bytes());
    }
}
