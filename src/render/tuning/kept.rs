//! With the feature `tune`: tunings from files, or measured.

use super::TuningSource;
use crate::cull::{Compaction, CullerOptions, CullingTier, Gpu, Tuning, guarded, tune};
use bevy::prelude::*;
use wgpu::{Device, Queue};

/// Tunings that were looked for on the device at hand. Each file is read once, and each measurement
/// made once, however often the culler is made.
#[derive(Default)]
pub(in crate::render) struct Tunings(Vec<(Wanted, Option<Tuning>)>);

type Wanted = (CullingTier, TuningSource);

impl Tunings {
    /// The tuning for a culler with these options; `None` is the rule. Logs which one it is.
    pub fn find(
        &mut self,
        source: TuningSource,
        gpu: Gpu<'_>,
        options: &CullerOptions,
    ) -> Option<Tuning> {
        // A browser has neither files nor a wait for the GPU.
        let is_rule = source == TuningSource::Rule || cfg!(target_arch = "wasm32");
        if is_rule || options.compaction != Compaction::Auto {
            return None;
        }
        let tier = options.tier.unwrap_or_else(|| best_tier(gpu.device));
        let is_supported = tier
            .check(gpu.device.features(), &gpu.device.limits())
            .is_ok();
        if tier == CullingTier::Cpu || !is_supported {
            return None;
        }
        let wanted = (tier, source);
        if let Some((_, tuning)) = self.0.iter().find(|(known, _)| *known == wanted) {
            return tuning.clone();
        }
        let tuning = match source {
            TuningSource::Rule => None,
            TuningSource::Kept => kept(gpu.device, tier),
            TuningSource::Measure => measured(gpu.device, gpu.queue, tier),
        };
        self.0.push((wanted, tuning.clone()));
        tuning
    }
}

/// The tier that a culler on this device has if its options name none.
fn best_tier(device: &Device) -> CullingTier {
    let (tier, _) = CullingTier::supported(device.features(), &device.limits());
    match tier.check_subgroup_size(device.adapter_info().subgroup_min_size) {
        Ok(()) => tier,
        Err(_) => CullingTier::Workgroup,
    }
}

fn kept(device: &Device, tier: CullingTier) -> Option<Tuning> {
    match tune::kept(&device.adapter_info(), tier, None) {
        Ok(Some((tuning, file))) => {
            info!(
                "Compaction::Auto uses the tuning in {}: {tuning}",
                file.display()
            );
            Some(tuning)
        }
        Ok(None) => {
            info!(
                "Compaction::Auto uses the rule for the tier: no tuning is kept for this adapter"
            );
            None
        }
        Err(error) => {
            warn!(
                "{error}; Compaction::Auto uses the rule for the tier. Delete the file, or replace it: TuningSource::Measure does"
            );
            None
        }
    }
}

fn measured(device: &Device, queue: &Queue, tier: CullingTier) -> Option<Tuning> {
    let options = tune::TuneOptions::default();
    let measure = || tune::tuning(device, queue, &device.adapter_info(), tier, &options);
    match guarded(device, "gpu_culling tuning", measure).flatten() {
        Ok(tuned) => {
            for problem in &tuned.problems {
                warn!("{problem}");
            }
            let origin = match &tuned.file {
                Some(file) if tuned.measurements.is_empty() => format!("in {}", file.display()),
                _ => "that was measured now".to_owned(),
            };
            info!(
                "Compaction::Auto uses the tuning {origin}: {}",
                tuned.tuning
            );
            Some(tuned.tuning)
        }
        Err(error) => {
            warn!(
                "no tuning could be measured: {error}; Compaction::Auto uses the rule for the tier"
            );
            None
        }
    }
}
