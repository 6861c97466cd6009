//! The fallback in which the GPU expands survivors: one `MeshUniform` per survivor, which Bevy's
//! own vertex stages and every shader that calls `mesh_functions` read.
//!
//! Sets whose material has a vertex shader that does not read instances, and sets that ask for it
//! ([`InstanceMeshUniforms`](super::InstanceMeshUniforms)), are drawn by Bevy's own pipelines. A
//! pass after the culling writes 176 bytes per survivor and view, and a command whose instances
//! start there.
//!
//! 1. `draws`: the draws of the frame.
//! 2. `room`: how many uniforms each of them has room for.
//! 3. `buffers`, `pass`: the pass that writes them.

mod buffers;
mod draws;
mod pass;
mod room;

use super::{
    bindings::DrawVersion,
    draw_slots::{DrawSlots, SLOT_BYTES, SLOT_STRIDE, SlotBuffers, UNIFORM_BYTES},
    gpu::RenderGpu,
    mesh_metadata::metadata_index,
    views::FrameView,
};
use crate::cull::{
    BatchKey, CullError, Culler, CullingTier, DrawPart, DrawShape, DrawSource, Follower,
    FrameCounts, Gpu, IndirectDraws, OnDemand, PassRecorder, guarded,
    layout::{Totals, args_offset},
    policy::KEEP_FRAMES,
};
use bevy::{
    platform::collections::HashMap,
    prelude::*,
    render::{
        render_resource::{BindGroup, BindGroupLayout},
        sync_world::MainEntity,
        view::RetainedViewEntity,
    },
};
use buffers::{Buffers, MeshBinding, Sizes};
use core::num::NonZeroU64;
use draws::{DrawKey, ExpandedDraw, ExpandedDraws, JOB_STRIDE};
use pass::{ExpandPass, PassBinding, PassVersion, UniformJob, build};
use room::UniformBudget;
use wgpu::{
    BindGroupDescriptor, BindGroupEntry, BindingResource, Buffer, BufferBinding, CommandEncoder,
    ComputePass, Device,
};

/// Threads of a workgroup of `shaders/draw/mesh_uniforms.wesl`.
const WORKGROUP: u32 = 64;

/// The uniforms of the frame, and the pass that writes them.
#[derive(Resource, Default)]
pub(super) struct ExpandedUniforms {
    /// Empty until a set is expanded.
    pass: OnDemand<ExpandPass>,
    draws: ExpandedDraws,
    budget: UniformBudget,
    buffers: Buffers,
    /// What the pass binds, by batch.
    bind_groups: HashMap<BatchKey, PassBinding>,
    /// Whether it was logged that the device refused a buffer.
    is_refused: bool,
    /// The last frame with expanded draws.
    last_used: u64,
}

/// Whether sets can be expanded: a tier with compute passes can.
pub(super) fn can_expand(culler: Option<&Culler>) -> bool {
    culler.is_some_and(|culler| culler.tier() != CullingTier::Cpu)
}

/// A request that is expanded.
pub(super) struct ExpandedRequest<'a> {
    /// Its index in the frame.
    pub index: usize,
    /// [`CullRequest::key`](crate::cull::CullRequest::key).
    pub key: u64,
    pub shape: DrawShape,
    /// Byte offset of the row that the mesh is decoded with.
    pub metadata: u32,
    pub views: &'a [RetainedViewEntity],
    /// Index of the draw slot of each region.
    pub slots: &'a [u32],
    /// Number of instances of each region.
    pub instances: &'a [u32],
}

impl ExpandedUniforms {
    /// Starts a frame.
    pub fn start_frame(&mut self) {
        self.draws.clear();
    }

    /// Adds the draws of a request.
    pub fn add(&mut self, culler: &Culler, request: &ExpandedRequest<'_>) {
        for (place, view) in request.views.iter().enumerate() {
            for part in culler.draw_parts(request.index, place) {
                let (Some(slot), Some(instances)) = (
                    request.slots.get(part.region),
                    request.instances.get(part.region),
                ) else {
                    continue;
                };
                self.draws.push(ExpandedDraw {
                    job: UniformJob {
                        row: part.row,
                        indexed: u32::from(matches!(request.shape, DrawShape::Indexed { .. })),
                        room: *instances,
                        metadata: metadata_index(request.metadata),
                        ..UniformJob::default()
                    },
                    batch: part.batch,
                    slot: *slot,
                    key: DrawKey {
                        request: request.key,
                        view: *view,
                    },
                });
            }
        }
    }

    /// Divides the room, uploads the jobs and binds what the pass and the draws need.
    pub fn prepare(
        &mut self,
        culler: &Culler,
        slots: &DrawSlots,
        gpu: &RenderGpu,
        mesh_layout: impl Fn() -> BindGroupLayout,
    ) {
        let now = slots.frame;
        if self.draws.all.is_empty() {
            self.rest(now);
            return;
        }
        self.last_used = now;
        let Gpu { device, queue } = gpu.wgpu();
        let was_told = self.pass.has_failed();
        let tell = |error: &CullError| {
            if !was_told {
                log_refusal(error);
            }
        };
        let make = || build(device).inspect_err(tell);
        // Without it, nothing is bound, and so nothing is drawn.
        let _ = self.pass.get_or_make(now, make);
        self.buffers.ask_again(now);
        let mut made = self.make_room(slots, now, gpu, &mesh_layout);
        if made.is_err() && self.buffers.is_limited() {
            // What is there already may be enough for most.
            made = self.make_room(slots, now, gpu, &mesh_layout);
        }
        let jobs = self.draws.job_bytes();
        if let Err(error) = made.and_then(|()| self.bind(culler, slots, device)) {
            if !core::mem::replace(&mut self.is_refused, true) {
                log_refusal(&error);
            }
            self.draws.clear();
            return;
        }
        self.is_refused &= self.buffers.is_limited();
        if let (Some(buffer), Some(commands)) = (&self.buffers.jobs, &self.buffers.commands) {
            queue.write_buffer(buffer, 0, &jobs);
            let totals = Totals {
                draw_count: 1,
                ..Totals::default()
            };
            queue.write_buffer(commands, 0, bytemuck::bytes_of(&totals));
        }
    }

    /// The frame has no expanded draws. If none of the last frames had some, the buffers go.
    pub fn rest(&mut self, now: u64) {
        self.bind_groups.clear();
        if now >= self.last_used + KEEP_FRAMES {
            self.buffers.drop_all();
        }
    }

    /// Divides what the device may be asked for among the draws, and makes the buffers for it.
    fn make_room(
        &mut self,
        slots: &DrawSlots,
        now: u64,
        gpu: &RenderGpu,
        mesh_layout: &impl Fn() -> BindGroupLayout,
    ) -> Result<(), CullError> {
        let limits = gpu.device.limits();
        let max = limits
            .max_storage_buffer_binding_size
            .min(limits.max_buffer_size)
            .min(self.buffers.max_bytes())
            / UNIFORM_BYTES;
        let total = self.budget.divide(&mut self.draws.all, max);
        let sizes = Sizes {
            jobs: self.draws.job_bytes().len() as u64,
            commands: args_offset(self.draws.all.len() as u32),
            uniforms: total.max(1) * UNIFORM_BYTES,
        };
        let bound = MeshBinding {
            metadata: slots.buffers().map(|buffers| &**buffers.metadata),
            generation: slots.generation,
            layout: mesh_layout,
        };
        self.buffers.grow(&gpu.device, &sizes, bound, now)
    }

    /// Makes the bind groups of the pass, unless those that it has still serve.
    fn bind(
        &mut self,
        culler: &Culler,
        slots: &DrawSlots,
        device: &Device,
    ) -> Result<(), CullError> {
        let mut used = Vec::new();
        for draw in &self.draws.all {
            let Some(batch) = culler.batch_version(draw.batch) else {
                continue;
            };
            if used.contains(&batch.key) {
                continue;
            }
            used.push(batch.key);
            let version = PassVersion {
                draw: DrawVersion {
                    batch,
                    slots: slots.generation,
                },
                buffers: self.buffers.generation,
            };
            let known = self.bind_groups.get(&batch.key);
            if known.is_some_and(|known| known.made_for == version) {
                continue;
            }
            if let Some(bind_group) = self.bind_batch(culler, draw.batch, slots, device)? {
                let made = PassBinding {
                    made_for: version,
                    bind_group,
                };
                self.bind_groups.insert(batch.key, made);
            }
        }
        self.bind_groups.retain(|key, _| used.contains(key));
        Ok(())
    }

    /// What the pass binds for a batch; `None` if a buffer is missing.
    fn bind_batch(
        &self,
        culler: &Culler,
        batch: usize,
        slots: &DrawSlots,
        device: &Device,
    ) -> Result<Option<wgpu::BindGroup>, CullError> {
        let (
            Some(pass),
            Some(jobs),
            Some(uniforms),
            Some(commands),
            Some(SlotBuffers {
                slots, first_slot, ..
            }),
        ) = (
            self.pass.get(),
            &self.buffers.jobs,
            &self.buffers.uniforms,
            &self.buffers.commands,
            slots.buffers(),
        )
        else {
            return Ok(None);
        };
        let part = DrawPart {
            batch,
            ..DrawPart::default()
        };
        let (Some(buffers), Some(DrawSource::Indirect(IndirectDraws { buffer: args, .. }))) =
            (culler.batch_buffers(batch), culler.draw_source(&part))
        else {
            return Ok(None);
        };
        let sized = |buffer, offset, bytes| {
            BindingResource::Buffer(BufferBinding {
                buffer,
                offset,
                size: NonZeroU64::new(bytes),
            })
        };
        let [survivors, instances, scales, data] = buffers.map(Buffer::as_entire_binding);
        let resources = [
            sized(jobs, 0, size_of::<UniformJob>() as u64),
            sized(slots, first_slot, SLOT_BYTES),
            survivors,
            instances,
            scales,
            data,
            args.as_entire_binding(),
            uniforms.as_entire_binding(),
            commands.as_entire_binding(),
        ];
        let entries: Vec<_> = (0..)
            .zip(resources)
            .map(|(binding, resource)| BindGroupEntry { binding, resource })
            .collect();
        let bind_group = guarded(device, "gpu_culling mesh uniforms", || {
            device.create_bind_group(&BindGroupDescriptor {
                label: Some("gpu_culling mesh uniforms"),
                layout: &pass.layout,
                entries: &entries,
            })
        })?;
        Ok(Some(bind_group))
    }

    /// Whether the frame has expanded draws.
    pub fn has_work(&self) -> bool {
        self.pass.get().is_some() && !self.draws.all.is_empty()
    }

    /// Records the dispatches. `limit` is the largest number of workgroups per dimension.
    fn record_draws(&self, culler: &Culler, pass: &mut ComputePass<'_>, limit: u32) {
        let Some(built) = self.pass.get() else { return };
        pass.set_pipeline(&built.pipeline);
        for (index, draw) in self.draws.all.iter().enumerate() {
            let batch = culler.batch_version(draw.batch);
            let binding = batch.and_then(|batch| self.bind_groups.get(&batch.key));
            if let Some(binding) = binding {
                let slot = draw.slot * SLOT_STRIDE as u32;
                let offsets = [(index * JOB_STRIDE) as u32, slot];
                pass.set_bind_group(0, &binding.bind_group, &offsets);
                let groups = draw.job.room.div_ceil(WORKGROUP).max(1);
                let width = groups.min(limit);
                pass.dispatch_workgroups(width, groups.div_ceil(width), 1);
            }
        }
    }

    /// What Bevy's pipelines bind at group 2; `None` if the device refused it.
    pub fn mesh_bind_group(&self) -> Option<&BindGroup> {
        self.buffers.mesh_bind_group.as_ref()
    }

    /// The commands of an entity in a view.
    pub fn commands(
        &self,
        entity: MainEntity,
        view: RetainedViewEntity,
    ) -> impl Iterator<Item = IndirectDraws<'_>> {
        let request = entity.to_bits();
        let draws = self.draws.of(&DrawKey { request, view });
        let commands = self.buffers.commands.as_ref().filter(|_| self.has_work());
        draws.iter().filter_map(move |draw| {
            let commands = commands?;
            let offset = args_offset(*draw as u32);
            Some(IndirectDraws::one(commands, offset, commands))
        })
    }

    /// Learns how much room draws need from the counters of an earlier frame with these views.
    pub fn learn(&mut self, counts: &FrameCounts, views: &[FrameView]) {
        self.budget.learn(&self.draws, counts, views);
    }
}

fn log_refusal(error: &CullError) {
    error!(
        "GpuInstances with InstanceMeshUniforms, or with a vertex shader for single meshes, are not drawn: {error}"
    );
}

impl Follower for ExpandedUniforms {
    fn has_work(&self) -> bool {
        self.has_work()
    }

    /// The room for uniforms follows the counters.
    fn needs_counts(&self) -> bool {
        true
    }

    fn record(
        &mut self,
        culler: &Culler,
        device: &Device,
        encoder: &mut CommandEncoder,
        passes: &mut dyn PassRecorder,
    ) {
        let limit = device.limits().max_compute_workgroups_per_dimension;
        passes.pass(encoder, "gpu_culling/mesh_uniforms", &mut |pass| {
            self.record_draws(culler, pass, limit);
        });
    }
}
