//! Kernels that several cullers on one device share.
//!
//! An app has one culler. A test program makes hundreds on one device, and a software driver needs
//! more time to compile their kernels than to run them.

use super::kernel::{KernelJob, compile_kernel};
use crate::cull::CullError;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use wgpu::{BindGroupLayout, BindGroupLayoutEntry, ComputePipeline, Device};

/// All that a compiled kernel depends on.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    source: String,
    entry: String,
    checks: bool,
    entries: Vec<BindGroupLayoutEntry>,
}

type CompiledKernel = (ComputePipeline, BindGroupLayout);
/// `None` until it is compiled.
type Slot = Arc<Mutex<Option<CompiledKernel>>>;

/// The devices that share kernels, which are few, and their kernels.
static DEVICES: Mutex<Vec<(Device, HashMap<Key, Slot>)>> = Mutex::new(Vec::new());

/// From now on, compiles each kernel on `device` once, for all cullers. The kernels and the device
/// live until the process ends.
///
/// Devices are told apart by their numbers in their `wgpu::Instance`. All devices of the process
/// must come from the same one: a device of another may have the same number.
pub fn share_kernels(device: &Device) {
    let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    if devices.iter().all(|(shared, _)| shared != device) {
        devices.push((device.clone(), HashMap::new()));
    }
}

/// The kernel, compiled, or the one that an earlier call compiled if the device
/// [shares](share_kernels) them. It has bindings of group 0 only.
pub(super) fn kernel_of(
    device: &Device,
    job: &KernelJob<'_>,
    entries: &[BindGroupLayoutEntry],
) -> Result<CompiledKernel, CullError> {
    let Some(slot) = slot_of(device, job, entries) else {
        return compile_kernel(device, job, entries, None);
    };
    // Another thread that wants the same kernel waits here; others compile theirs meanwhile.
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(built) = &*slot {
        return Ok(built.clone());
    }
    let built = compile_kernel(device, job, entries, None)?;
    *slot = Some(built.clone());
    Ok(built)
}

fn slot_of(device: &Device, job: &KernelJob<'_>, entries: &[BindGroupLayoutEntry]) -> Option<Slot> {
    let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, kernels) = devices.iter_mut().find(|(shared, _)| shared == device)?;
    let key = Key {
        source: job.source.clone(),
        entry: job.entry.to_owned(),
        checks: job.checks,
        entries: entries.to_vec(),
    };
    Some(kernels.entry(key).or_default().clone())
}
