//! The poses on the GPU: a texture, because a vertex stage has few storage buffers, and because one
//! for all sets leaves their draws joined.
//!
//! ```text
//! row 0                         behind
//! | clock | place 1 | 2 | ...   | clips and matrices of place 1 | of place 2 | ...
//! ```

use super::{
    poses::AnimationPoses,
    rows::{HeldPoses, Placed, WIDTH, pack, place},
    table::{AnimationClock, PoseEntry, PoseTable},
};
use crate::{
    cull::{CullError, RetryTimer, guarded, policy::RETRY_AFTER},
    render::told::Told,
};
use bevy::{
    asset::AssetId,
    log::error,
    render::{
        render_resource::{
            CommandEncoderDescriptor, Extent3d, Origin3d, ShaderStages, TexelCopyBufferLayout,
            TexelCopyTextureInfo, Texture, TextureAspect, TextureDescriptor, TextureDimension,
            TextureFormat, TextureUsages, TextureView, TextureViewDescriptor, TextureViewDimension,
        },
        renderer::{RenderDevice, RenderQueue},
    },
};

/// Binding of the texture in `shaders/draw/animation.wesl`.
pub(in crate::render) const POSES_BINDING: u32 = 25;

/// Bytes of a texel.
const TEXEL_BYTES: u32 = 16;
/// Textures of fewer rows (2 MiB) do not become smaller.
const SMALL: u32 = 64;

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

/// The texture of all poses. Those that are in it stay in their rows while others come and go.
#[derive(Default)]
pub(in crate::render) struct PoseTexture {
    /// `None` before the first upload, and if the device refused even one row.
    texture: Option<(Texture, TextureView)>,
    rows: u32,
    /// Row 0.
    directory: Vec<[u32; 4]>,
    /// What is in the texture, by its place in the table, from place 1 on.
    held: Vec<Option<HeldPoses>>,
    /// The table that was uploaded; `None` if it is to be looked at again.
    version: Option<u64>,
    /// Runs if the device refused a larger texture.
    retry: RetryTimer,
    told: Told<AssetId<AnimationPoses>>,
}

impl PoseTexture {
    /// What draws bind.
    pub fn view(&self) -> Option<&TextureView> {
        self.texture.as_ref().map(|(_, view)| view)
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        let rows = self.texture.as_ref().map_or(0, |_| self.rows);
        u64::from(rows) * u64::from(WIDTH * TEXEL_BYTES)
    }

    /// Uploads the poses that are new, and the frame's clock. Poses for which there is no room are
    /// not drawn; if the device refused it, it is asked again [`RETRY_AFTER`] frames later. Returns
    /// whether the texture was replaced.
    pub fn upload(
        &mut self,
        table: &PoseTable,
        clock: AnimationClock,
        frame: u64,
        device: &RenderDevice,
        queue: &RenderQueue,
    ) -> bool {
        if self.version == Some(table.version) && !self.retry.is_due(frame) {
            if self.rows > 1 {
                self.write(queue, 0, &[clock.texel()]);
            }
            return false;
        }
        self.version = Some(table.version);
        let max_rows = device.limits().max_texture_dimension_2d;
        self.release_changed(table);
        let Placed { mut new, left_out } = place(&mut self.held, table.entries(), max_rows);
        let used = self.held.iter().flatten().map(|held| held.rows.len());
        if self.rows > SMALL && used.sum::<usize>() < self.rows as usize / 4 {
            new.extend(pack(&mut self.held));
        }
        for place in left_out {
            self.tell_left_out(&table.entries()[place], max_rows);
        }
        let ends = self.held.iter().flatten().map(|held| held.rows.end);
        let needed = ends.max().unwrap_or(1);
        let is_new = self.make_room(needed, max_rows, frame, device, queue);
        self.directory.resize(WIDTH as usize, [0; 4]);
        for place in new {
            let entry = &table.entries()[place];
            let (Some(held), Some(poses)) = (&self.held[place], &entry.poses) else {
                continue;
            };
            if held.rows.end > self.rows {
                self.held[place] = None;
                self.directory[place + 1] = [0; 4];
                continue;
            }
            let mut texels = Vec::with_capacity(held.rows.len() * WIDTH as usize);
            poses.write_texels(&mut texels);
            texels.resize(held.rows.len() * WIDTH as usize, [0; 4]);
            self.directory[place + 1] = poses.entry(held.rows.start * WIDTH);
            self.write(queue, held.rows.start, &texels);
        }
        self.directory[0] = clock.texel();
        self.write(queue, 0, &self.directory);
        is_new
    }

    /// Forgets the poses that went or changed.
    fn release_changed(&mut self, table: &PoseTable) {
        self.held.resize(table.entries().len(), None);
        for (place, entry) in table.entries().iter().enumerate() {
            let held = &mut self.held[place];
            let stays =
                |held: &mut HeldPoses| entry.poses.is_some() && held.version == entry.version;
            if held.take_if(|held| !stays(held)).is_some() {
                self.directory[place + 1] = [0; 4];
            }
        }
    }

    fn tell_left_out(&mut self, entry: &PoseEntry, max_rows: u32) {
        if let Some(poses) = &entry.poses
            && self.told.is_new(entry.id)
        {
            error!(
                "AnimationPoses with {} clips and {} joints are not drawn: with their {} texels, all poses have more \
                 than the {max_rows} rows of {WIDTH} texels that a texture may have on this device. Bake fewer poses per \
                 second",
                poses.clip_count(),
                poses.joint_count(),
                poses.texel_count()
            );
        }
    }

    /// Makes the texture larger if it has fewer rows, or smaller if a quarter is enough. What it
    /// holds is kept, also if the device refuses. Returns whether it was replaced.
    fn make_room(
        &mut self,
        needed: u32,
        max_rows: u32,
        frame: u64,
        device: &RenderDevice,
        queue: &RenderQueue,
    ) -> bool {
        let fits = self.texture.is_some() && needed <= self.rows;
        let is_too_large = self.rows > SMALL && needed <= self.rows / 4;
        let was_refused = self.retry.stop();
        if fits && !is_too_large {
            return false;
        }
        // Apps without poses need the directory alone.
        let slack = if needed > 1 { needed / 8 } else { 0 };
        let min = if self.texture.is_none() { 1 } else { needed };
        let mut rows = (needed + slack).min(max_rows).max(needed);
        let mut made = make(device, rows);
        let mut refusal = None;
        for fewer in [needed, min] {
            if let Err(error) = &made
                && fewer < rows
            {
                refusal = Some(error.clone());
                rows = fewer;
                made = make(device, rows);
            }
        }
        let (made, refusal) = match made {
            Ok(texture) => (Some(texture), refusal.filter(|_| rows < needed)),
            Err(error) => (None, Some(error)),
        };
        let is_new = made.is_some();
        if let Some(texture) = made {
            if let Some((old, _)) = &self.texture {
                copy_rows(device, queue, [old, &texture.0], rows.min(self.rows));
            }
            (self.texture, self.rows) = (Some(texture), rows);
        }
        if let Some(error) = refusal.filter(|_| !fits) {
            self.retry = RetryTimer::start(frame);
            if !was_refused {
                let what = match self.texture {
                    Some(_) => "new AnimationPoses are not drawn",
                    None => "no GpuInstances are drawn",
                };
                error!(
                    "{what}: {error}. Free GPU memory: it is tried again every {RETRY_AFTER} frames"
                );
            }
        }
        is_new
    }

    /// Writes rows from `first` on, or a part of one.
    fn write(&self, queue: &RenderQueue, first: u32, texels: &[[u32; 4]]) {
        let Some((texture, _)) = &self.texture else {
            return;
        };
        let width = (texels.len() as u32).min(WIDTH);
        queue.write_texture(
            TexelCopyTextureInfo {
                texture,
                mip_level: 0,
                origin: Origin3d {
                    x: 0,
                    y: first,
                    z: 0,
                },
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

/// Copies the first rows of a texture to another one.
fn copy_rows(device: &RenderDevice, queue: &RenderQueue, [from, to]: [&Texture; 2], rows: u32) {
    let whole = |texture| TexelCopyTextureInfo {
        texture,
        mip_level: 0,
        origin: Origin3d::ZERO,
        aspect: TextureAspect::All,
    };
    let size = Extent3d {
        width: WIDTH,
        height: rows,
        depth_or_array_layers: 1,
    };
    let label = Some("gpu_culling poses");
    let mut encoder = device.create_command_encoder(&CommandEncoderDescriptor { label });
    encoder.copy_texture_to_texture(whole(from), whole(to), size);
    queue.submit([encoder.finish()]);
}

/// A texture with this number of rows.
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
            usage: TextureUsages::TEXTURE_BINDING
                | TextureUsages::COPY_DST
                | TextureUsages::COPY_SRC,
            view_formats: &[],
        });
        let view = texture.create_view(&TextureViewDescriptor::default());
        (texture, view)
    })
}
