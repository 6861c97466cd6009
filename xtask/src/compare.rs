//! Compares two pictures pixel by pixel.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use png::{BitDepth, ColorType, Decoder, Encoder, Transformations};

/// A pixel differs when one of its channels is further apart than this (of 255).
const CHANNEL_LIMIT: u8 = 8;

/// Pixels in ten thousand that may differ: 0.05 %.
const PIXELS_IN_TEN_THOUSAND: u64 = 5;

/// A picture, one array of red, green, blue and alpha per pixel, row by row.
#[derive(Clone)]
pub struct Picture {
    width: u32,
    height: u32,
    pixels: Vec<[u8; 4]>,
}

impl Picture {
    /// The picture whose pixels a function of column and row returns.
    pub fn from_fn(width: u32, height: u32, pixel: impl Fn(u32, u32) -> [u8; 4]) -> Self {
        let pixel = &pixel;
        let rows = (0..height).flat_map(|y| (0..width).map(move |x| pixel(x, y)));
        Self {
            width,
            height,
            pixels: rows.collect(),
        }
    }

    fn read(path: &Path) -> Result<Self> {
        let mut decoder = Decoder::new(BufReader::new(File::open(path)?));
        // To eight bits per channel.
        decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
        let mut reader = decoder.read_info()?;
        let size = reader.output_buffer_size().context("it is too large")?;
        let mut bytes = vec![0; size];
        let frame = reader.next_frame(&mut bytes)?;
        let bytes = &bytes[..frame.buffer_size()];
        let pixels = match frame.color_type {
            ColorType::Rgba => bytes
                .chunks_exact(4)
                .map(|texel| [texel[0], texel[1], texel[2], texel[3]])
                .collect(),
            ColorType::Rgb => bytes
                .chunks_exact(3)
                .map(|texel| [texel[0], texel[1], texel[2], u8::MAX])
                .collect(),
            other => bail!("its colors are {other:?}, neither RGB nor RGBA"),
        };
        Ok(Self {
            width: frame.width,
            height: frame.height,
            pixels,
        })
    }

    /// Writes it as a PNG file.
    pub fn save(&self, path: &Path) -> Result<()> {
        let file = BufWriter::new(File::create(path)?);
        let mut encoder = Encoder::new(file, self.width, self.height);
        encoder.set_color(ColorType::Rgba);
        encoder.set_depth(BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(self.pixels.as_flattened())?;
        Ok(writer.finish()?)
    }

    /// Width and height.
    pub fn dimensions(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// Number of different pixels.
    pub fn colors(&self) -> usize {
        self.pixels.iter().collect::<HashSet<_>>().len()
    }

    /// The pixel in a column and a row of the picture.
    pub fn pixel(&self, x: u32, y: u32) -> [u8; 4] {
        self.pixels[(y * self.width + x) as usize]
    }

    /// A pixel to change.
    #[cfg(test)]
    pub fn pixel_mut(&mut self, x: u32, y: u32) -> &mut [u8; 4] {
        &mut self.pixels[(y * self.width + x) as usize]
    }
}

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
        self.is_within(PIXELS_IN_TEN_THOUSAND)
    }

    /// Whether at most this number of pixels in ten thousand differ.
    pub fn is_within(&self, in_ten_thousand: u64) -> bool {
        self.differing * 10_000 <= self.pixels * in_ten_thousand
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
pub fn read(path: &Path) -> Result<Picture> {
    Picture::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Compares two pictures. Two empty or one-color pictures would prove nothing: an error.
pub fn pictures(a: &Picture, b: &Picture) -> Result<Difference> {
    ensure!(
        a.dimensions() == b.dimensions(),
        "sizes differ: {:?} and {:?}",
        a.dimensions(),
        b.dimensions()
    );
    for picture in [a, b] {
        let mut pixels = picture.pixels.iter();
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
    for (left, right) in a.pixels.iter().zip(&b.pixels) {
        let distance = left
            .iter()
            .zip(right)
            .map(|(l, r)| l.abs_diff(*r))
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

    /// A hundred by a hundred: 5 pixels are exactly 0.05 %.
    fn picture() -> Picture {
        Picture::from_fn(100, 100, |x, y| [x as u8, y as u8, 50, 255])
    }

    fn changed(count: u32, by: u8) -> Picture {
        let mut changed = picture();
        for x in 0..count {
            changed.pixel_mut(x, 0)[2] += by;
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
        let new = |width, height| Picture::from_fn(width, height, |_, _| [0; 4]);
        let blank = new(100, 100);
        assert!(pictures(&blank, &blank).is_err());
        assert!(pictures(&picture(), &blank).is_err());
        assert!(pictures(&new(0, 0), &new(0, 0)).is_err());
        assert!(pictures(&picture(), &new(100, 99)).is_err());
    }

    #[test]
    fn a_file_gives_back_what_was_saved() -> Result<()> {
        let path = std::env::temp_dir().join(format!("xtask-{}.png", std::process::id()));
        picture().save(&path)?;
        let again = read(&path);
        std::fs::remove_file(&path)?;
        let again = again?;
        assert_eq!(again.dimensions(), (100, 100));
        assert_eq!(again.pixels, picture().pixels);
        assert!(read(&path).is_err(), "there is no such file");
        Ok(())
    }
}
