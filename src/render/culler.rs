//! The engine in the render world, and the sets that it holds.

use super::{
    bindings::can_draw_sets, extract::Extraction, gpu::RenderGpu, gpu_written::InstanceBuffers,
    settings::GpuCullingSettings, tuning::Tunings,
};
use crate::cull::{
    Compaction, CullError, Culler, CullerOptions, CullingTier, Gpu, RecordedPasses, RetryTimer,
    policy::RETRY_AFTER,
};
use bevy::{
    log::{error, info, warn},
    prelude::*,
};

/// The engine, and the sets that it holds.
#[derive(Resource, Default)]
pub(super) struct GpuCuller {
    /// `None` if the device cannot cull at all, or has refused it.
    pub culler: Option<Culler>,
    /// Runs if the device refused the culler. It counts extractions.
    retry: RetryTimer,
    /// Whether the renderer has started on the present device. Bevy makes another device when it
    /// recovers from a lost one; devices of two instances of wgpu may compare as equal.
    pub has_started: bool,
    /// Whether it has started since the last extraction.
    pub is_fresh: bool,
    /// Number of storage buffers that a vertex stage may have on the device.
    pub vertex_buffers: u32,
    /// The settings that the culler was made for.
    pub settings: GpuCullingSettings,
    /// Tunings that were looked for on the device.
    pub tunings: Tunings,
    /// Bumped whenever the culler is replaced.
    pub generation: u64,
    /// The sets that it holds.
    pub extraction: Extraction,
    /// What was recorded in the frame.
    pub recorded: RecordedPasses,
}

/// Makes the culler for the device: when the renderer starts, and when it starts again after a lost
/// device.
pub(super) fn init_culler(
    mut culling: ResMut<GpuCuller>,
    mut buffers: ResMut<InstanceBuffers>,
    settings: Res<GpuCullingSettings>,
    gpu: RenderGpu,
) {
    let culling = &mut *culling;
    culling.leave_device(&mut buffers);
    culling.settings = settings.clone();
    culling.make_culler(gpu.wgpu(), &settings);
    (culling.has_started, culling.is_fresh) = (true, true);
    culling.vertex_buffers = gpu.device.limits().max_storage_buffers_per_shader_stage;
}

impl GpuCuller {
    /// Forgets everything on the device. Sets are then uploaded again, if the CPU has them.
    pub fn leave_device(&mut self, buffers: &mut InstanceBuffers) {
        self.has_started = false;
        (self.culler, self.retry) = (None, RetryTimer::default());
        self.tunings = Tunings::default();
        self.generation += 1;
        self.extraction.leave_device(buffers.written_by_apps());
        self.recorded = RecordedPasses::default();
        buffers.clear();
    }

    /// Makes the culler that the settings ask for. If the device refuses it, because it has no
    /// memory, [`Self::tries_again`] says when.
    pub fn make_culler(&mut self, gpu: Gpu<'_>, settings: &GpuCullingSettings) {
        self.generation += 1;
        let was_told = self.retry.stop();
        match make_culler(gpu, settings, &mut self.tunings) {
            Ok(culler) => self.culler = culler,
            Err(error) => {
                if !was_told {
                    error!(
                        "GPU culling is off, no GpuInstances are drawn: {error}. It is tried again every {RETRY_AFTER} frames"
                    );
                }
                (self.culler, self.retry) = (None, RetryTimer::start(self.extraction.frame));
            }
        }
    }

    /// Whether the device refused the culler so long ago that it is to be tried again.
    pub fn tries_again(&self) -> bool {
        self.retry.is_due(self.extraction.frame)
    }

    /// The tier in use.
    pub fn tier(&self) -> Option<CullingTier> {
        self.culler.as_ref().map(Culler::tier)
    }
}

/// Makes the culler that the settings ask for, or the best that the device supports, and logs the
/// reason. `None` if the device cannot cull at all.
///
/// # Errors
/// [`CullError::Gpu`].
fn make_culler(
    gpu: Gpu<'_>,
    settings: &GpuCullingSettings,
    tunings: &mut Tunings,
) -> Result<Option<Culler>, CullError> {
    let device = gpu.device;
    if let Err(missing) = can_draw_sets(&device.limits()) {
        error!("GPU culling is off, no GpuInstances are drawn: {missing}");
        return Ok(None);
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
                Some(reason) if culler.has_fallen_back() => {
                    warn!("GPU culling at tier \"{tier}\" ({compaction}): {reason}");
                }
                Some(reason) => info!("GPU culling at tier \"{tier}\" ({compaction}): {reason}"),
                None => info!("GPU culling at tier \"{tier}\" ({compaction})"),
            }
            Ok(Some(culler))
        }
        Err(error @ CullError::Gpu { .. }) => Err(error),
        Err(error) => {
            error!("GPU culling is off, no GpuInstances are drawn: {error}");
            Ok(None)
        }
    }
}
