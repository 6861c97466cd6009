//! Frames with and without hiding, timed and checked.

use crate::{
    common::{Gpu, buffer, stats::Times},
    row::Row,
    scene::{self, Camera},
};
use anyhow::{Context as _, Result, ensure};
use bevy_gpu_culling::{
    cull::{
        self, Channels, CullRequest, Culler, CullerOptions, CullingTier, DrawList, FrameCounts,
        OcclusionView, PassRecorder, SetId,
    },
    instance::InstanceSet,
};
use glam::UVec2;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use wgpu::{
    Buffer, BufferUsages, CommandEncoder, ComputePass, ComputePassDescriptor,
    ComputePassTimestampWrites, MapMode, PollType, QuerySet, QuerySetDescriptor, QueryType,
    RenderPipeline, TextureView,
};

/// The most passes of a frame.
const MAX_PASSES: u32 = 16;
/// Frames before the timed ones.
const WARM_UP: usize = 150;

/// What a row measures.
pub struct Case {
    pub size: UVec2,
    pub samples: u32,
    /// Share of what the frustum keeps that is hidden.
    pub hidden: f64,
    /// Radians per frame.
    pub turn: f32,
    pub frames: usize,
}

/// Sets on the GPU, and what times their frames.
pub struct Bench<'a> {
    gpu: &'a Gpu,
    culler: Culler,
    sets: &'a [InstanceSet],
    requests: Vec<CullRequest>,
    levels: u32,
    stamps: Stamps,
}

/// The times of a frame, in microseconds.
struct Timed {
    stages: Vec<(&'static str, f64)>,
    cpu: [f64; 2],
}

impl<'a> Bench<'a> {
    pub fn new(
        gpu: &'a Gpu,
        tier: CullingTier,
        sets: &'a [InstanceSet],
        (levels, together): (u32, bool),
    ) -> Result<Self> {
        let options = CullerOptions {
            tier: Some(tier),
            survivor_capacity: 1 << 27,
            ..Default::default()
        };
        let mut culler = Culler::new(&gpu.device, options)?.0;
        let on = cull::Gpu::new(&gpu.device, &gpu.queue);
        for (id, set) in (0..).zip(sets) {
            let store = culler.store_mut();
            let len = set.len() as u32;
            store.reserve_set(on.device, SetId(id), len, Channels::default())?;
            store.upload(on.queue, SetId(id), 0, set.packed())?;
        }
        Ok(Self {
            gpu,
            culler,
            sets,
            requests: scene::requests(sets.len() as u32, levels),
            levels,
            stamps: Stamps::new(gpu, together),
        })
    }

    pub fn measure(&mut self, case: &Case) -> Result<Row> {
        let still = Camera::new(case.size, 0.0);
        let (depth, expected) = still.wall(self.sets, case.hidden);
        let wall = Wall::new(self.gpu, case, depth);
        let frustum = self.frames(case, None)?;
        let hiding = self.frames(case, Some(&wall))?;
        let counts = self.counts(&still, case, &wall)?;
        let visible = counts.rows.iter();
        let visible = visible.filter(|row| row.list == DrawList::Visible);
        let visible: u64 = visible.map(|row| u64::from(row.visible)).sum();
        let seen = visible + counts.too_small;
        ensure!(
            expected[0] <= seen && visible <= expected[1],
            "{visible} instances are visible and {} reach no sample, instead of {expected:?}",
            counts.too_small
        );
        let count = self.sets.iter().map(|set| set.len() as u64);
        Ok(Row {
            count: count.sum(),
            sets: self.sets.len(),
            levels: self.levels,
            samples: case.samples,
            turn: case.turn.to_degrees(),
            in_frustum: counts.in_frustum,
            visible,
            frustum_us: stage_medians(&frustum),
            hiding_us: stage_medians(&hiding),
            frustum_cpu_us: cpu_medians(&frustum),
            hiding_cpu_us: cpu_medians(&hiding),
        })
    }

    /// The times of each measured frame, of a view that hides behind a wall, or of the frustum
    /// alone.
    fn frames(&mut self, case: &Case, wall: Option<&Wall>) -> Result<Vec<Timed>> {
        let begin = Instant::now();
        let software = self.gpu.is_software();
        let busy = Duration::from_secs(u64::from(!software));
        let warm_up = if software { 4 } else { WARM_UP };
        let mut all = Vec::new();
        let mut number = 0;
        while all.len() < case.frames {
            // It swings, so that it sees the same all the time.
            let turn = (number % 8).min(8 - number % 8) as f32 * case.turn;
            let camera = Camera::new(case.size, turn);
            let frame = self.frame(&camera, case, wall)?;
            number += 1;
            if number > warm_up && (begin.elapsed() > busy || !all.is_empty()) {
                all.push(frame);
            }
        }
        Ok(all)
    }

    fn occlusion(&self, camera: &Camera, case: &Case, wall: Option<&Wall>) -> Vec<OcclusionView> {
        let view = wall.map(|wall| {
            let sets = self.sets.len() as u32;
            camera.occlusion(&wall.depth, case.size, sets)
        });
        view.into_iter().collect()
    }

    fn frame(&mut self, camera: &Camera, case: &Case, wall: Option<&Wall>) -> Result<Timed> {
        let frame = camera.frame(&self.requests);
        let occlusion = self.occlusion(camera, case, wall);
        let on = cull::Gpu::new(&self.gpu.device, &self.gpu.queue);
        let mut encoder = self.gpu.device.create_command_encoder(&Default::default());
        let started = Instant::now();
        let prepared = self.culler.prepare_hiding(on, &frame, &occlusion);
        let prepare = started.elapsed();
        self.stamps.start();
        let started = Instant::now();
        let recorded = prepared.record_with(on, &mut encoder, &mut self.stamps, &mut []);
        let mut record = started.elapsed();
        if let Some(wall) = wall {
            wall.draw(&mut encoder);
            let started = Instant::now();
            let late = self
                .culler
                .record_late(on, &mut encoder, 0, &mut self.stamps);
            record += started.elapsed();
            ensure!(late.passes == 1, "the view does not hide");
        }
        let stages = self.stamps.read(self.gpu, encoder)?;
        self.culler.finish(recorded);
        Ok(Timed {
            stages,
            cpu: [prepare, record].map(|time| time.as_secs_f64() * 1e6),
        })
    }

    /// The counters of late lists.
    fn counts(&mut self, camera: &Camera, case: &Case, wall: &Wall) -> Result<FrameCounts> {
        let device = &self.gpu.device;
        self.culler.take_late_counts(device, |_| ());
        let mut last = None;
        // The counters are read in every 16th frame, and are a few frames old.
        for _ in 0..64 {
            self.frame(camera, case, Some(wall))?;
            (self.culler).take_late_counts(device, |counts| last = Some(counts.clone()));
        }
        last.context("no counters arrived")
    }
}

fn stage_medians(frames: &[Timed]) -> Vec<(&'static str, f64)> {
    let mut stages: BTreeMap<usize, (&'static str, Vec<f64>)> = BTreeMap::new();
    for frame in frames {
        for (at, (label, us)) in frame.stages.iter().enumerate() {
            stages.entry(at).or_insert((label, Vec::new())).1.push(*us);
        }
    }
    let stages = stages.into_values();
    stages
        .map(|(label, us)| (label, Times::of(us).median))
        .collect()
}

fn cpu_medians(frames: &[Timed]) -> [f64; 2] {
    [0, 1].map(|part| Times::of(frames.iter().map(|frame| frame.cpu[part]).collect()).median)
}

/// Compute passes with timestamps.
struct Stamps {
    queries: QuerySet,
    resolved: Buffer,
    staging: Buffer,
    labels: Vec<&'static str>,
    /// Whether all stages before the early draws share a pass.
    together: bool,
}

impl Stamps {
    fn new(gpu: &Gpu, together: bool) -> Self {
        let count = 2 * MAX_PASSES;
        let bytes = u64::from(count) * 8;
        let device = &gpu.device;
        Self {
            queries: device.create_query_set(&QuerySetDescriptor {
                label: Some("stages"),
                ty: QueryType::Timestamp,
                count,
            }),
            resolved: buffer(
                device,
                "stamps",
                bytes,
                BufferUsages::QUERY_RESOLVE | BufferUsages::COPY_SRC,
            ),
            staging: buffer(
                device,
                "stamps",
                bytes,
                BufferUsages::COPY_DST | BufferUsages::MAP_READ,
            ),
            labels: Vec::new(),
            together,
        }
    }

    fn start(&mut self) {
        self.labels.clear();
    }

    /// Submits the frame, waits for it, and returns the microseconds of each pass.
    fn read(&mut self, gpu: &Gpu, mut encoder: CommandEncoder) -> Result<Vec<(&'static str, f64)>> {
        let labels = &self.labels;
        let count = 2 * labels.len() as u32;
        encoder.resolve_query_set(&self.queries, 0..count, &self.resolved, 0);
        let bytes = u64::from(count) * 8;
        encoder.copy_buffer_to_buffer(&self.resolved, 0, &self.staging, 0, bytes);
        gpu.queue.submit([encoder.finish()]);
        self.staging.map_async(MapMode::Read, ..bytes, |_| ());
        gpu.device.poll(PollType::wait_indefinitely())?;
        let stamps: Vec<u64> =
            bytemuck::pod_collect_to_vec(&self.staging.get_mapped_range(..bytes)?);
        self.staging.unmap();
        let period = f64::from(gpu.queue.get_timestamp_period());
        let us = stamps
            .chunks(2)
            .map(|pair| pair[1].wrapping_sub(pair[0]) as f64 * period / 1e3);
        Ok(labels.iter().copied().zip(us).collect())
    }
}

impl PassRecorder for Stamps {
    fn pass(
        &mut self,
        encoder: &mut CommandEncoder,
        label: &'static str,
        record: &mut dyn FnMut(&mut ComputePass<'_>),
    ) {
        let first = 2 * self.labels.len() as u32;
        self.labels.push(label);
        record(&mut encoder.begin_compute_pass(&ComputePassDescriptor {
            label: Some(label),
            timestamp_writes: Some(ComputePassTimestampWrites {
                query_set: &self.queries,
                beginning_of_pass_write_index: Some(first),
                end_of_pass_write_index: Some(first + 1),
            }),
        }));
    }

    fn separates_stages(&self) -> bool {
        !self.together
    }
}

/// A wall before all that is hidden, drawn again in each frame.
struct Wall {
    depth: TextureView,
    pipeline: RenderPipeline,
}

impl Wall {
    /// Its depth differs a little from pixel to pixel, so that no tile of the depth is one value or
    /// plane.
    fn new(gpu: &Gpu, case: &Case, depth: f32) -> Self {
        let format = wgpu::TextureFormat::Depth32Float;
        let texture = gpu.device.create_texture(&wgpu::TextureDescriptor {
            label: Some("depth"),
            size: wgpu::Extent3d {
                width: case.size.x,
                height: case.size.y,
                depth_or_array_layers: 1,
            },
            mip_level_count: 1,
            sample_count: case.samples,
            dimension: wgpu::TextureDimension::D2,
            format,
            usage: wgpu::TextureUsages::RENDER_ATTACHMENT | wgpu::TextureUsages::TEXTURE_BINDING,
            view_formats: &[],
        });
        let source = format!(
            "@vertex fn corner(@builtin(vertex_index) index: u32) -> @builtin(position) vec4<f32> {{
                let at = vec2<f32>(vec2<u32>(index & 1u, index >> 1u)) * 4.0 - 1.0;
                return vec4<f32>(at, 0.5, 1.0);
            }}
            @fragment fn wall(@builtin(position) at: vec4<f32>) -> @builtin(frag_depth) f32 {{
                let pixel = vec2<u32>(at.xy);
                let noise = f32((pixel.x * 73u ^ pixel.y * 179u) & 255u) * 1e-6;
                return f32({depth:e}) * (1.0 + noise);
            }}"
        );
        let module = gpu
            .device
            .create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some("wall"),
                source: wgpu::ShaderSource::Wgsl(source.into()),
            });
        let descriptor = wgpu::RenderPipelineDescriptor {
            label: Some("wall"),
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
                count: case.samples,
                ..Default::default()
            },
            fragment: Some(wgpu::FragmentState {
                module: &module,
                entry_point: Some("wall"),
                compilation_options: Default::default(),
                targets: &[],
            }),
            multiview_mask: None,
            cache: None,
        };
        Self {
            depth: texture.create_view(&Default::default()),
            pipeline: gpu.device.create_render_pipeline(&descriptor),
        }
    }

    fn draw(&self, encoder: &mut CommandEncoder) {
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: Some("wall"),
            color_attachments: &[],
            depth_stencil_attachment: Some(wgpu::RenderPassDepthStencilAttachment {
                view: &self.depth,
                depth_ops: Some(wgpu::Operations {
                    load: wgpu::LoadOp::Clear(0.0),
                    store: wgpu::StoreOp::Store,
                }),
                stencil_ops: None,
            }),
            ..Default::default()
        });
        pass.set_pipeline(&self.pipeline);
        pass.draw(0..3, 0..1);
    }
}
