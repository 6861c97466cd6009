//! The poses on the GPU: a texture, because a vertex stage has few storage buffers, and because one
//! for all sets leaves their draws joined.
//!
//! ```text
//! row 0                         behind
//! | clock | place 1 | 2 | ...   | clips and matrices of place 1 | of place 2 | ...
//! ```

use super::{
    poses::AnimationPoses,
    table::{AnimationClock, PoseTable},
};
use crate::cull::{CullError, guarded};
use bevy::{
    log::error,
    render::{
        render_resource::{
            Extent3d, Origin3d, ShaderStages, TexelCopyBufferLayout, TexelCopyTextureInfo, Texture,
            TextureAspect, TextureDescriptor, TextureDimension, TextureFormat, TextureUsages,
            TextureView, TextureViewDescriptor, TextureViewDimension,
        },
        renderer::{RenderDevice, RenderQueue},
    },
};

/// Binding of the texture in `shaders/draw/animation.wesl`.
pub(in crate::render) const POSES_BINDING: u32 = 25;

/// `POSES_WIDTH` in `shaders/draw/animation.wesl`: texels of a row.
const WIDTH: u32 = 2048;
/// Bytes of a texel.
const TEXEL_BYTES: u32 = 16;

/// The layout of the texture's binding.
pub(in crate::render) fn poses_layout() -> wgpu::BindGroupLayoutEntry {
    wgpu::BindGroupLayoutEntry {
        binding: POSES_BINDING,
        visibility: ShaderStages::VERTEX,
        ty: wgpu::BindingType::Texture {
            sample_type: wgpu::TextureSampleType::Uint,
            view_dimension: TextureViewDimension::D2,
            multisampled: false,
        },
        count: None,
    }
}

/// The texture of all poses.
#[derive(Default)]
pub(in crate::render) struct PoseTexture {
    /// `None` before the first upload, and if the device refused even one row.
    made: Option<(Texture, TextureView)>,
    rows: u32,
    /// The table that was uploaded.
    version: Option<u64>,
}

impl PoseTexture {
    /// What draws bind.
    pub fn view(&self) -> Option<&TextureView> {
        self.made.as_ref().map(|(_, view)| view)
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        let rows = self.made.as_ref().map_or(0, |_| self.rows);
        u64::from(rows) * u64::from(WIDTH * TEXEL_BYTES)
    }

    /// Uploads the poses if some changed, and the frame's clock. Returns whether the texture was
    /// replaced.
    pub fn upload(
        &mut self,
        table: &PoseTable,
        clock: AnimationClock,
        device: &RenderDevice,
        queue: &RenderQueue,
    ) -> bool {
        let before = self.version.replace(table.version);
        if before == Some(table.version) {
            if self.rows > 1 {
                self.write(queue, &[clock.texel()]);
            }
            return false;
        }
        let max_rows = device.limits().max_texture_dimension_2d;
        let (mut texels, left_out) = texels_of(table.poses(), max_rows);
        for (poses, texels) in left_out {
            error!(
                "AnimationPoses with {} clips and {} joints are not drawn: with their {texels} texels, all poses have more \
                 than the {max_rows} rows of {WIDTH} texels that a texture may have on this device. Bake fewer poses per \
                 second",
                poses.clip_count(),
                poses.joint_count()
            );
        }
        texels[0] = clock.texel();
        let rows = texels.len() as u32 / WIDTH;
        let is_new = self.made.is_none() || self.rows != rows;
        if is_new {
            let made = make(device, rows).or_else(|error| {
                error!("no InstanceAnimation is drawn: {error}");
                // Sets without one need a directory, if an empty one.
                texels = vec![[0; 4]; WIDTH as usize];
                make(device, 1)
            });
            self.rows = texels.len() as u32 / WIDTH;
            self.made = made
                .inspect_err(|error| error!("no GpuInstances are drawn: {error}"))
                .ok();
        }
        self.write(queue, &texels);
        is_new
    }

    /// Writes the first rows, or a part of the first one.
    fn write(&self, queue: &RenderQueue, texels: &[[u32; 4]]) {
        let Some((texture, _)) = &self.made else {
            return;
        };
        let width = (texels.len() as u32).min(WIDTH);
        queue.write_texture(
            TexelCopyTextureInfo {
                texture,
                mip_level: 0,
                origin: Origin3d::ZERO,
                aspect: TextureAspect::All,
            },
            bytemuck::cast_slice(texels),
            TexelCopyBufferLayout {
                offset: 0,
                bytes_per_row: Some(width * TEXEL_BYTES),
                rows_per_image: None,
            },
            Extent3d {
                width,
                height: texels.len() as u32 / width,
                depth_or_array_layers: 1,
            },
        );
    }
}

/// A texture with as many rows.
fn make(device: &RenderDevice, rows: u32) -> Result<(Texture, TextureView), CullError> {
    let label = "gpu_culling poses";
    guarded(device.wgpu_device(), label, || {
        let texture = device.create_texture(&TextureDescriptor {
            label: Some(label),
            size: Extent3d {
                width: WIDTH,
                height: rows,
                depth_or_array_layers: 1,
            },
            mip_level_count: 1,
            sample_count: 1,
            dimension: TextureDimension::D2,
            format: TextureFormat::Rgba32Uint,
            usage: TextureUsages::TEXTURE_BINDING | TextureUsages::COPY_DST,
            view_formats: &[],
        });
        let view = texture.create_view(&TextureViewDescriptor::default());
        (texture, view)
    })
}

/// The texels of all poses in at most as many rows: the directory, and then what it names. Poses
/// that do not fit are left out, and returned with their number of texels.
fn texels_of<'a>(
    all: impl Iterator<Item = Option<&'a AnimationPoses>>,
    max_rows: u32,
) -> (Vec<[u32; 4]>, Vec<(&'a AnimationPoses, u64)>) {
    let mut texels = vec![[0; 4]; WIDTH as usize];
    let mut left_out = Vec::new();
    let max = u64::from(WIDTH) * u64::from(max_rows);
    for (place, poses) in (1usize..).zip(all) {
        let Some(poses) = poses else { continue };
        let first = texels.len();
        let count = poses.texel_count();
        if place >= WIDTH as usize || first as u64 + count > max {
            left_out.push((poses, count));
            continue;
        }
        poses.write_texels(&mut texels);
        texels[place] = poses.entry(first as u32);
    }
    texels.resize(texels.len().next_multiple_of(WIDTH as usize), [0; 4]);
    (texels, left_out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::render::animation::PoseClip;
    use bevy::math::Affine3A;

    #[test]
    fn the_directory_names_all_poses_that_fit() {
        let poses = |count| {
            let clip = PoseClip {
                poses: vec![vec![Affine3A::IDENTITY; 7]; count],
                seconds: 1.0,
                loops: true,
            };
            Some(AnimationPoses::new([clip]).unwrap())
        };
        let all = [poses(3), None, poses(400), poses(2)];
        // 50, 5608 and 36 texels.
        let (texels, left_out) = texels_of(all.iter().map(Option::as_ref), 9);
        assert_eq!(texels.len() as u32, 4 * WIDTH);
        assert!(left_out.is_empty());
        assert_eq!(texels[1], [WIDTH, 7, 1, 2]);
        assert_eq!(texels[2], [0; 4]);
        assert_eq!(texels[3], [WIDTH + 50, 7, 1, 2]);
        assert_eq!(texels[4], [WIDTH + 50 + 5608, 7, 1, 2]);
        assert_eq!(texels[WIDTH as usize], [8, 2, 1024 * 32, 1]);
        let (texels, left_out) = texels_of(all.iter().map(Option::as_ref), 2);
        assert_eq!(texels.len() as u32, 2 * WIDTH);
        assert_eq!(left_out.len(), 1);
        assert_eq!(left_out[0].1, 5608);
        assert_eq!((texels[3], texels[4]), ([0; 4], [WIDTH + 50, 7, 1, 2]));
    }
}
