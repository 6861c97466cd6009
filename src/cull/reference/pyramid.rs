//! Twin of `shaders/occlusion/pyramid.wesl`.

use crate::cull::layout::DepthPyramid;

/// The texels of a depth pyramid, level after level, row after row.
///
/// `depths` has the samples of the depth texture, pixel after pixel, row after row; `width` is the
/// number of pixels per row. The viewport lies within the texture.
#[must_use]
pub fn pyramid(depths: &[f32], width: u32, pyramid_shape: &DepthPyramid) -> Vec<f32> {
    let shape = pyramid_shape;
    let samples = shape.samples as usize;
    let mut texels: Vec<f32> = Vec::with_capacity(shape.texel_count() as usize);
    for (number, level) in shape.levels().iter().enumerate() {
        for y in 0..level.height {
            for x in 0..level.width {
                let min = if number == 0 {
                    let pixel = (shape.first_y + y) * width + shape.first_x + x;
                    let first = pixel as usize * samples;
                    let all = depths[first..first + samples].iter();
                    all.copied().fold(f32::INFINITY, f32::min)
                } else {
                    let finer = &shape.levels[number - 1];
                    let columns = 2 * x..(2 * x + 2).min(finer.width);
                    let rows = 2 * y..(2 * y + 2).min(finer.height);
                    let places = rows.flat_map(|y| columns.clone().map(move |x| (x, y)));
                    let texel = |(x, y)| texels[(finer.first + y * finer.width + x) as usize];
                    places.map(texel).fold(f32::INFINITY, f32::min)
                };
                texels.push(min);
            }
        }
    }
    texels
}
