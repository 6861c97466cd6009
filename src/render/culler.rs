//! The engine in the render world, and the sets that it holds.

use super::{
    bindings::can_draw_sets,
    extract::{Roster, SetLists},
    gpu::RenderGpu,
    gpu_written::InstanceBuffers,
    settings::GpuCullingSettings,
    told::Told,
    tuning::Tunings,
    upload::KnownSets,
};
use crate::{
    cull::{Compaction, CullError, Culler, CullerOptions, CullingTier, Gpu, Recorded},
    instance::InstanceSet,
};
use bevy::{
    log::{error, info, warn},
    platform::collections::HashSet,
    prelude::*,
};

/// The engine, and the sets that it holds.
#[derive(Resource, Default)]
pub(super) struct GpuCuller {
    /// `None` if the device cannot cull at all.
    pub culler: Option<Culler>,
    /// Whether the renderer has started on the present device. Bevy makes another device when it
    /// recovers from a lost one; devices of two instances of wgpu may compare as equal.
    pub has_started: bool,
    /// Whether it has started since the last extraction.
    pub is_fresh: bool,
    /// Number of storage buffers that a vertex stage may have on the device.
    pub vertex_buffers: u32,
    /// Sets whose instances the GPU wrote on a device that was lost.
    pub lost: HashSet<AssetId<InstanceSet>>,
    /// The settings that the culler was made for.
    pub settings: GpuCullingSettings,
    /// Tunings that were looked for on the device.
    pub tunings: Tunings,
    /// Bumped whenever the culler is replaced.
    pub made: u64,
    /// What the GPU has of each set.
    pub known: KnownSets,
    /// Sets of which a warning about their asset usage was logged.
    pub told: Told<AssetId<InstanceSet>>,
    /// Bytes of new sets that the last extraction uploaded.
    pub streamed: u64,
    /// The id of the newest set.
    pub last_id: u64,
    /// Number of extractions so far.
    pub frame: u64,
    /// The entities as extractions read them.
    pub roster: Roster,
    /// The entities with sets, and their sets.
    pub lists: SetLists,
    /// What was recorded in the frame.
    pub recorded: Recorded,
}

/// Makes the culler for the device: when the renderer starts, and when it starts again after a lost
/// device.
pub(super) fn init_culler(
    mut sets: ResMut<GpuCuller>,
    mut buffers: ResMut<InstanceBuffers>,
    settings: Res<GpuCullingSettings>,
    gpu: RenderGpu,
) {
    let sets = &mut *sets;
    sets.leave_device(&mut buffers);
    sets.settings = settings.clone();
    sets.culler = make_culler(gpu.wgpu(), &settings, &mut sets.tunings);
    (sets.has_started, sets.is_fresh) = (true, true);
    sets.vertex_buffers = gpu.device.limits().max_storage_buffers_per_shader_stage;
}

impl GpuCuller {
    /// Forgets everything on the device. Sets are then uploaded again, if the CPU has them.
    pub fn leave_device(&mut self, buffers: &mut InstanceBuffers) {
        self.has_started = false;
        self.lost.extend(buffers.written_by_apps());
        self.culler = None;
        self.tunings = Tunings::default();
        self.made += 1;
        self.known.clear();
        self.roster.forget();
        self.lists.clear_sets();
        self.streamed = 0;
        self.recorded = Recorded::default();
        buffers.clear();
    }

    /// The tier in use.
    pub fn tier(&self) -> Option<CullingTier> {
        self.culler.as_ref().map(Culler::tier)
    }
}

/// Makes the culler that the settings ask for, or the best that the device supports, and logs the
/// reason. `None` if the device cannot cull at all.
pub(super) fn make_culler(
    gpu: Gpu<'_>,
    settings: &GpuCullingSettings,
    tunings: &mut Tunings,
) -> Option<Culler> {
    let device = gpu.device;
    if let Err(missing) = can_draw_sets(&device.limits()) {
        error!("GPU culling is off, no GpuInstances are drawn: {missing}");
        return None;
    }
    let mut options = settings.options();
    let mut make = |options: &CullerOptions| {
        let tuning = tunings.find(settings.tuning, gpu, options);
        let options = CullerOptions {
            tuning,
            ..options.clone()
        };
        match settings.self_test {
            true => Culler::new_tested(gpu, options),
            false => Culler::new(device, options),
        }
    };
    let mut made = make(&options);
    // First the tier, then the compaction fall back to what the device supports.
    for _ in 0..2 {
        match &made {
            Err(error @ CullError::TierUnsupported { .. }) => {
                warn!("{error}; the best tier that it supports is used instead");
                options.tier = None;
            }
            Err(error @ CullError::CompactionUnsupported { .. }) => {
                warn!("{error}; \"auto\" is used instead");
                options.compaction = Compaction::default();
            }
            _ => break,
        }
        made = make(&options);
    }
    match made {
        Ok((culler, reason)) => {
            let (tier, compaction) = (culler.tier(), culler.compaction());
            match reason {
                Some(reason) => info!("GPU culling at tier \"{tier}\" ({compaction}): {reason}"),
                None => info!("GPU culling at tier \"{tier}\" ({compaction})"),
            }
            Some(culler)
        }
        Err(error) => {
            error!("GPU culling is off, no GpuInstances are drawn: {error}");
            None
        }
    }
}
