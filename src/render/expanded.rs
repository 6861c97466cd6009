//! A `MeshUniform` for each survivor: what Bevy's own vertex stages, and any that call `mesh_functions`, read.
//!
//! Sets whose material has a vertex shader that knows nothing of instances, and sets that ask for it
//! ([`InstanceMeshUniforms`](super::InstanceMeshUniforms)), are drawn by Bevy's own pipelines: a pass after the culling
//! writes 176 bytes for each survivor and view, and a command whose instances start there.

mod pass;

use super::{
    draw_slots::{DrawSlots, SLOT_BYTES, UNIFORM_BYTES},
    history::FrameView,
};
use crate::cull::{
    BatchKey, BatchVersion, CullError, Culler, CullingTier, DrawPart, DrawShape, DrawSource,
    Follower, FrameCounts, IndirectDraws, PassRecorder, growing_size, guarded,
    layout::{Totals, args_offset},
};
use bevy::{
    log::warn_once,
    platform::collections::HashMap,
    prelude::*,
    render::{
        render_resource::{BindGroup, BindGroupLayout},
        renderer::{RenderDevice, RenderQueue},
        sync_world::MainEntity,
        view::RetainedViewEntity,
    },
};
use core::num::NonZeroU64;
use pass::{Built, UniformJob, build};
use wgpu::{
    BindGroupDescriptor, BindGroupEntry, BindingResource, Buffer, BufferBinding, BufferDescriptor,
    BufferUsages, ComputePass, Device,
};

/// Distance of the jobs' uniforms: the strictest alignment.
const JOB_STRIDE: usize = 256;
/// Uniforms that there is room for without asking how many survive (176 MiB); beyond, room follows the counters.
const BUDGET: u64 = 1 << 20;

/// A draw of a set by uniforms.
struct ExpandedDraw {
    job: UniformJob,
    batch: usize,
    /// Byte offset of the entity's slot.
    slot: u32,
    key: (MainEntity, RetainedViewEntity),
}

/// The uniforms of the frame, and the pass that writes them.
#[derive(Resource, Default)]
pub(super) struct ExpandedUniforms {
    pass: Option<Result<Built, CullError>>,
    /// The device has refused room, and the log says so.
    is_refused: bool,
    /// Bytes of uniforms that it may be asked for since then.
    most_bytes: Option<u64>,
    draws: Vec<ExpandedDraw>,
    /// Draws of an entity in a view.
    by_view: HashMap<(MainEntity, RetainedViewEntity), Vec<usize>>,
    jobs: Option<Buffer>,
    uniforms: Option<Buffer>,
    commands: Option<Buffer>,
    /// Changes when one of the three is replaced.
    generation: u64,
    /// By batch: what the pass binds, and what it was made for.
    bind_groups: HashMap<BatchKey, ((BatchVersion, u64, u64), wgpu::BindGroup)>,
    /// What Bevy's pipelines bind at group 2.
    pub mesh_bind_group: Option<BindGroup>,
    /// The most survivors that were counted.
    peaks: HashMap<(u64, RetainedViewEntity), u32>,
    /// There is no more room to be had: what one binding holds is taken.
    is_full: bool,
}

/// Whether sets can be drawn by uniforms: there must be compute passes.
pub(super) fn can_write(culler: Option<&Culler>) -> bool {
    culler.is_some_and(|culler| culler.tier() != CullingTier::Cpu)
}

/// A request that is drawn by uniforms.
pub(super) struct ExpandedRequest<'a> {
    pub index: usize,
    pub entity: MainEntity,
    pub shape: DrawShape,
    pub views: &'a [RetainedViewEntity],
    /// Offset of the slot of each region.
    pub slots: &'a [u32],
    /// Instances of each region.
    pub instances: &'a [u32],
}

impl ExpandedUniforms {
    /// Starts a frame.
    pub fn clear(&mut self) {
        self.draws.clear();
        self.by_view.clear();
    }

    /// Notes the draws of a request.
    pub fn add(&mut self, culler: &Culler, request: &ExpandedRequest<'_>) {
        for (slot, view) in request.views.iter().enumerate() {
            for part in culler.draw_parts(request.index, slot) {
                self.add_draw(request, *view, part);
            }
        }
    }

    fn add_draw(
        &mut self,
        request: &ExpandedRequest<'_>,
        view: RetainedViewEntity,
        part: &DrawPart,
    ) {
        let (Some(slot), Some(instances)) = (
            request.slots.get(part.region),
            request.instances.get(part.region),
        ) else {
            return;
        };
        let key = (request.entity, view);
        let draw = self.draws.len();
        self.by_view.entry(key).or_default().push(draw);
        self.draws.push(ExpandedDraw {
            job: UniformJob {
                row: part.row,
                indexed: u32::from(matches!(request.shape, DrawShape::Indexed { .. })),
                draw: draw as u32,
                room: *instances,
                ..UniformJob::default()
            },
            batch: part.batch,
            slot: *slot,
            key,
        });
    }

    /// Divides the room, uploads the jobs and binds what the pass and the draws need.
    pub fn prepare(
        &mut self,
        culler: &Culler,
        slots: &DrawSlots,
        (device, queue): (&RenderDevice, &RenderQueue),
        mesh_layout: impl Fn() -> BindGroupLayout,
    ) {
        if self.draws.is_empty() {
            self.bind_groups.clear();
            return;
        }
        let wgpu_device = device.wgpu_device();
        if self.pass.is_none() {
            let built = build(wgpu_device);
            if let Err(error) = &built {
                error!(
                    "GpuInstances with InstanceMeshUniforms, or with a vertex shader for single meshes, are not drawn: {error}"
                );
            }
            self.pass = Some(built);
        }
        let limits = wgpu_device.limits();
        let most = limits
            .max_storage_buffer_binding_size
            .min(limits.max_buffer_size)
            .min(self.most_bytes.unwrap_or(u64::MAX))
            / UNIFORM_BYTES;
        let total = self.divide_room(most);
        self.is_full = total >= most;
        let jobs: Vec<u8> = self.job_bytes();
        let wanted = Wanted {
            jobs: jobs.len() as u64,
            commands: args_offset(self.draws.len() as u32),
            uniforms: total.max(1) * UNIFORM_BYTES,
        };
        let made = self
            .make_room(device, &wanted, mesh_layout)
            .and_then(|()| self.bind(culler, slots, wgpu_device));
        if let Err(error) = made {
            if !core::mem::replace(&mut self.is_refused, true) {
                error!(
                    "GpuInstances with InstanceMeshUniforms, or with a vertex shader for single meshes, are not drawn: {error}"
                );
            }
            self.clear();
            return;
        }
        if let (Some(buffer), Some(commands)) = (&self.jobs, &self.commands) {
            queue.write_buffer(buffer, 0, &jobs);
            let totals = Totals {
                draw_count: 1,
                ..Totals::default()
            };
            queue.write_buffer(commands, 0, bytemuck::bytes_of(&totals));
        }
    }

    /// Buffers that hold what is wanted, and what Bevy's pipelines bind of them.
    fn make_room(
        &mut self,
        device: &RenderDevice,
        wanted: &Wanted,
        mesh_layout: impl Fn() -> BindGroupLayout,
    ) -> Result<(), CullError> {
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_DST;
        let wgpu_device = device.wgpu_device();
        let generation = &mut self.generation;
        let jobs = ("gpu_culling uniform jobs", wanted.jobs);
        let usage_of_jobs = BufferUsages::UNIFORM | BufferUsages::COPY_DST;
        *generation += u64::from(reserve(wgpu_device, &mut self.jobs, jobs, usage_of_jobs)?);
        let commands = ("gpu_culling uniform commands", wanted.commands);
        let indirect = usage | BufferUsages::INDIRECT;
        *generation += u64::from(reserve(
            wgpu_device,
            &mut self.commands,
            commands,
            indirect,
        )?);
        let uniforms = ("gpu_culling mesh uniforms", wanted.uniforms);
        let room = reserve(wgpu_device, &mut self.uniforms, uniforms, usage).inspect_err(|_| {
            let had = self.uniforms.as_ref().map_or(0, Buffer::size);
            self.most_bytes = Some(had.max(wanted.uniforms / 2));
        })?;
        *generation += u64::from(room);
        if let Some(uniforms) = &self.uniforms
            && (room || self.mesh_bind_group.is_none())
        {
            let entry = BindGroupEntry {
                binding: 0,
                resource: uniforms.as_entire_binding(),
            };
            let label = "gpu_culling mesh uniforms";
            self.mesh_bind_group = None;
            self.mesh_bind_group = Some(guarded(wgpu_device, label, || {
                device.create_bind_group(label, &mesh_layout(), &[entry])
            })?);
        }
        Ok(())
    }

    /// Gives each draw its place: room for all its instances, or, where that is too much, twice the survivors that were
    /// counted and a share. Returns the uniforms of all.
    fn divide_room(&mut self, most: u64) -> u64 {
        let all: u64 = self.draws.iter().map(|draw| u64::from(draw.job.room)).sum();
        let budget = BUDGET.min(most);
        let mut first = 0u64;
        for draw in &mut self.draws {
            let job = &mut draw.job;
            if all > budget {
                let key = (draw.key.0.to_bits(), draw.key.1);
                let counted = 2 * u64::from(self.peaks.get(&key).copied().unwrap_or(0));
                let share = (budget / 2) * u64::from(job.room) / all;
                job.room = u64::from(job.room).min(counted.max(share)) as u32;
            }
            job.room = u64::from(job.room).min(most.saturating_sub(first)) as u32;
            job.first = first as u32;
            first += u64::from(job.room);
        }
        first
    }

    fn job_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.draws.len() * JOB_STRIDE];
        for (draw, slot) in self.draws.iter().zip(bytes.chunks_exact_mut(JOB_STRIDE)) {
            slot[..size_of::<UniformJob>()].copy_from_slice(bytemuck::bytes_of(&draw.job));
        }
        bytes
    }

    fn bind(
        &mut self,
        culler: &Culler,
        slots: &DrawSlots,
        device: &Device,
    ) -> Result<(), CullError> {
        let (Some(Ok(built)), Some(jobs), Some(uniforms), Some(commands), Some(slot_buffer)) = (
            &self.pass,
            &self.jobs,
            &self.uniforms,
            &self.commands,
            &slots.buffer,
        ) else {
            return Ok(());
        };
        let mut live = Vec::new();
        for draw in &self.draws {
            let Some(batch) = culler.batch_version(draw.batch) else {
                continue;
            };
            let key = batch.key;
            if live.contains(&key) {
                continue;
            }
            live.push(key);
            let version = (batch, self.generation, slots.generation);
            if let Some((made_for, _)) = self.bind_groups.get(&key)
                && *made_for == version
            {
                continue;
            }
            let part = DrawPart {
                batch: draw.batch,
                ..DrawPart::default()
            };
            let (Some(buffers), Some(DrawSource::Indirect(IndirectDraws { buffer: args, .. }))) =
                (culler.batch_buffers(draw.batch), culler.draw_source(&part))
            else {
                continue;
            };
            let sized = |buffer, bytes| {
                BindingResource::Buffer(BufferBinding {
                    buffer,
                    offset: 0,
                    size: NonZeroU64::new(bytes),
                })
            };
            let [survivors, instances, scales, tags] = buffers.map(Buffer::as_entire_binding);
            let resources = [
                sized(jobs, size_of::<UniformJob>() as u64),
                sized(slot_buffer, SLOT_BYTES),
                survivors,
                instances,
                scales,
                tags,
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
                    layout: &built.layout,
                    entries: &entries,
                })
            })?;
            self.bind_groups.insert(key, (version, bind_group));
        }
        self.bind_groups.retain(|key, _| live.contains(key));
        Ok(())
    }

    /// Whether the frame has any.
    pub fn has_work(&self) -> bool {
        matches!(self.pass, Some(Ok(_))) && !self.draws.is_empty()
    }

    fn record_draws(&self, culler: &Culler, pass: &mut ComputePass<'_>, limit: u32) {
        let Some(Ok(built)) = &self.pass else { return };
        pass.set_pipeline(&built.pipeline);
        for (index, draw) in self.draws.iter().enumerate() {
            let group = culler
                .batch_version(draw.batch)
                .and_then(|version| self.bind_groups.get(&version.key));
            if let Some((_, group)) = group {
                let offsets = [(index * JOB_STRIDE) as u32, draw.slot];
                pass.set_bind_group(0, group, &offsets);
                let groups = draw.job.room.div_ceil(64).max(1);
                let width = groups.min(limit);
                pass.dispatch_workgroups(width, groups.div_ceil(width), 1);
            }
        }
    }

    /// The commands of an entity in a view.
    pub fn commands(
        &self,
        entity: MainEntity,
        view: RetainedViewEntity,
    ) -> impl Iterator<Item = IndirectDraws<'_>> {
        let draws = self.by_view.get(&(entity, view)).into_iter().flatten();
        let commands = self.commands.as_ref().filter(|_| self.has_work());
        draws.filter_map(move |draw| {
            let commands = commands?;
            let offset = args_offset(*draw as u32);
            Some(IndirectDraws::one(commands, offset, commands))
        })
    }

    /// Learns from counters of some frames ago, and says if there was no room.
    pub fn learn(&mut self, counts: &FrameCounts, views: &[FrameView]) {
        if self.draws.is_empty() {
            self.peaks.clear();
            return;
        }
        let mut sums: HashMap<(u64, RetainedViewEntity), u32> = HashMap::new();
        for row in &counts.rows {
            if let Some((view, ..)) = views.get(row.view as usize) {
                *sums.entry((row.request, *view)).or_default() += row.visible;
            }
        }
        let mut missing = 0;
        for (key, draws) in &self.by_view {
            let key = (key.0.to_bits(), key.1);
            let Some(visible) = sums.get(&key) else {
                continue;
            };
            let room: u32 = draws.iter().map(|draw| self.draws[*draw].job.room).sum();
            missing += visible.saturating_sub(room);
            let peak = self.peaks.entry(key).or_default();
            *peak = (*peak).max(*visible);
        }
        if missing > 0 && self.is_full {
            warn_once!(
                "{missing} visible instances have no room for their MeshUniform and are not drawn: this adapter binds \
                 no more; a vertex shader that imports bevy_gpu_culling::draw_instance needs none"
            );
        } else if missing > 0 {
            warn!(
                "{missing} visible instances had no room for their MeshUniform and were not drawn in one frame: the \
                 room grows"
            );
        }
    }
}

impl Follower for ExpandedUniforms {
    fn has_work(&self) -> bool {
        self.has_work()
    }

    /// The room for uniforms grows with the counters.
    fn needs_counts(&self) -> bool {
        true
    }

    fn record(
        &mut self,
        culler: &Culler,
        device: &Device,
        encoder: &mut wgpu::CommandEncoder,
        passes: &mut dyn PassRecorder,
    ) {
        let limit = device.limits().max_compute_workgroups_per_dimension;
        passes.pass(encoder, "gpu_culling/mesh_uniforms", &mut |pass| {
            self.record_draws(culler, pass, limit);
        });
    }
}

/// Bytes that the buffers must hold.
struct Wanted {
    jobs: u64,
    commands: u64,
    uniforms: u64,
}

/// Makes room; true if the buffer was replaced.
fn reserve(
    device: &Device,
    buffer: &mut Option<Buffer>,
    (label, bytes): (&'static str, u64),
    usage: BufferUsages,
) -> Result<bool, CullError> {
    if buffer.as_ref().is_some_and(|buffer| buffer.size() >= bytes) {
        return Ok(false);
    }
    *buffer = Some(guarded(device, label, || {
        device.create_buffer(&BufferDescriptor {
            label: Some(label),
            size: growing_size(bytes, &device.limits()),
            usage,
            mapped_at_creation: false,
        })
    })?);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(room: u32, entity: u32) -> ExpandedDraw {
        let entity = Entity::from_raw_u32(entity).unwrap_or(Entity::PLACEHOLDER);
        let view = RetainedViewEntity::new(MainEntity::from(Entity::PLACEHOLDER), None, 0);
        ExpandedDraw {
            job: UniformJob {
                room,
                ..UniformJob::default()
            },
            batch: 0,
            slot: 0,
            key: (MainEntity::from(entity), view),
        }
    }

    #[test]
    fn room_is_for_all_or_follows_the_counters() {
        let rooms = |uniforms: &mut ExpandedUniforms, most| {
            let total = uniforms.divide_room(most);
            let rooms: Vec<_> = uniforms
                .draws
                .iter()
                .map(|draw| (draw.job.first, draw.job.room))
                .collect();
            (total, rooms)
        };
        let mut uniforms = ExpandedUniforms {
            draws: vec![draw(100, 1), draw(50, 2)],
            ..default()
        };
        assert_eq!(rooms(&mut uniforms, 1000), (150, vec![(0, 100), (100, 50)]));
        // Too much for a binding: shares of half of it, then what was counted.
        uniforms.draws = vec![draw(3000, 1), draw(1000, 2)];
        assert_eq!(
            rooms(&mut uniforms, 1000),
            (500, vec![(0, 375), (375, 125)])
        );
        let key = uniforms.draws[1].key;
        uniforms.peaks.insert((key.0.to_bits(), key.1), 200);
        uniforms.draws = vec![draw(3000, 1), draw(1000, 2)];
        assert_eq!(
            rooms(&mut uniforms, 1000),
            (775, vec![(0, 375), (375, 400)])
        );
        uniforms.peaks.insert((key.0.to_bits(), key.1), 900);
        uniforms.draws = vec![draw(3000, 1), draw(1000, 2)];
        assert_eq!(
            rooms(&mut uniforms, 1000),
            (1000, vec![(0, 375), (375, 625)])
        );
    }
}
