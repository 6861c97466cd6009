//! Depth pictures: made on the CPU, drawn to a depth texture, sample by sample.

use crate::common::kernel::buffer_of;
use bevy_gpu_culling::cull::Gpu;
use glam::UVec2;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use wgpu::{
    BindGroupDescriptor, BindGroupEntry, Extent3d, RenderPipelineDescriptor, TextureDescriptor,
    TextureDimension, TextureFormat, TextureUsages, TextureView,
};

/// The depth of every sample, pixel after pixel, row after row.
pub struct Picture {
    pub size: UVec2,
    pub samples: u32,
    pub depths: Vec<f32>,
}

impl Picture {
    /// Every sample has a random depth.
    pub fn noise(rng: &mut ChaCha8Rng, size: UVec2, samples: u32) -> Self {
        let mut state = rng.random::<u32>() | 1;
        let mut depth = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state >> 8) as f32 / (1u32 << 24) as f32
        };
        let len = (size.x * size.y * samples) as usize;
        Self {
            size,
            samples,
            depths: (0..len).map(|_| depth()).collect(),
        }
    }

    /// Walls of random depths, one before the other, with a few holes of one sample. `depth` gives
    /// the depth of a wall.
    pub fn walls(
        rng: &mut ChaCha8Rng,
        size: UVec2,
        samples: u32,
        mut depth: impl FnMut(&mut ChaCha8Rng) -> f32,
    ) -> Self {
        let len = (size.x * size.y * samples) as usize;
        let mut picture = Self {
            size,
            samples,
            depths: vec![0.0; len],
        };
        for _ in 0..rng.random_range(3..9) {
            let value = depth(rng);
            let [x0, x1] = [(); 2].map(|()| rng.random_range(0..=size.x));
            let [y0, y1] = [(); 2].map(|()| rng.random_range(0..=size.y));
            for y in y0.min(y1)..y0.max(y1) {
                for x in x0.min(x1)..x0.max(x1) {
                    for sample in 0..samples {
                        let at = picture.at(UVec2::new(x, y), sample);
                        picture.depths[at] = picture.depths[at].max(value);
                    }
                }
            }
        }
        for _ in 0..rng.random_range(0..6) {
            let hole = rng.random_range(0..len);
            picture.depths[hole] = 0.0;
        }
        picture
    }

    pub fn at(&self, pixel: UVec2, sample: u32) -> usize {
        ((pixel.y * self.size.x + pixel.x) * self.samples + sample) as usize
    }

    /// The picture as a depth texture: each fragment writes the depth of its sample.
    pub fn draw(&self, Gpu { device, queue }: Gpu<'_>) -> TextureView {
        let format = TextureFormat::Depth32Float;
        let texture = device.create_texture(&TextureDescriptor {
            label: Some("picture"),
            size: Extent3d {
                width: self.size.x,
                height: self.size.y,
                depth_or_array_layers: 1,
            },
            mip_level_count: 1,
            sample_count: self.samples,
            dimension: TextureDimension::D2,
            format,
            usage: TextureUsages::RENDER_ATTACHMENT | TextureUsages::TEXTURE_BINDING,
            view_formats: &[],
        });
        let view = texture.create_view(&Default::default());
        let depths = buffer_of(device, bytemuck::cast_slice(&self.depths));
        let (argument, sample) = match self.samples {
            1 => ("", "0u"),
            _ => (", @builtin(sample_index) sample: u32", "sample"),
        };
        let source = format!(
            "@group(0) @binding(0) var<storage, read> depths: array<f32>;
            @vertex fn corner(@builtin(vertex_index) index: u32)
                -> @builtin(position) vec4<f32> {{
                let at = vec2<f32>(vec2<u32>(index & 1u, index >> 1u)) * 4.0 - 1.0;
                return vec4<f32>(at, 0.5, 1.0);
            }}
            @fragment fn write(@builtin(position) at: vec4<f32>{argument})
                -> @builtin(frag_depth) f32 {{
                let pixel = vec2<u32>(at.xy);
                return depths[(pixel.y * {}u + pixel.x) * {}u + {sample}];
            }}",
            self.size.x, self.samples
        );
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(source.into()),
        });
        let pipeline = device.create_render_pipeline(&RenderPipelineDescriptor {
            label: None,
            layout: None,
            vertex: wgpu::VertexState {
                module: &module,
                entry_point: Some("corner"),
                compilation_options: Default::default(),
                buffers: &[],
            },
            primitive: Default::default(),
            depth_stencil: Some(wgpu::DepthStencilState {
                format,
                depth_write_enabled: Some(true),
                depth_compare: Some(wgpu::CompareFunction::Always),
                stencil: Default::default(),
                bias: Default::default(),
            }),
            multisample: wgpu::MultisampleState {
                count: self.samples,
                ..Default::default()
            },
            fragment: Some(wgpu::FragmentState {
                module: &module,
                entry_point: Some("write"),
                compilation_options: Default::default(),
                targets: &[],
            }),
            multiview_mask: None,
            cache: None,
        });
        let group = device.create_bind_group(&BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &[BindGroupEntry {
                binding: 0,
                resource: depths.as_entire_binding(),
            }],
        });
        let mut encoder = device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
                label: None,
                color_attachments: &[],
                depth_stencil_attachment: Some(wgpu::RenderPassDepthStencilAttachment {
                    view: &view,
                    depth_ops: Some(wgpu::Operations {
                        load: wgpu::LoadOp::Clear(0.0),
                        store: wgpu::StoreOp::Store,
                    }),
                    stencil_ops: None,
                }),
                ..Default::default()
            });
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.draw(0..3, 0..1);
        }
        queue.submit([encoder.finish()]);
        view
    }
}
