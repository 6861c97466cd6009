//! What there is to draw with.

use crate::Failure;
use bevy::render::settings::WgpuSettings;
use wgpu::{Adapter, Instance, InstanceDescriptor};

/// Prints the adapters' names, one a line.
pub fn list() -> Result<(), Failure> {
    for adapter in find()? {
        println!("{}", adapter.get_info().name);
    }
    Ok(())
}

/// Bevy's renderer panics without an adapter; this says what to do about it.
pub fn require_one() -> Result<(), Failure> {
    find().map(|_| ())
}

/// The adapters of the backends that Bevy would look at.
fn find() -> Result<Vec<Adapter>, Failure> {
    let settings = WgpuSettings::default();
    let backends = settings.backends.unwrap_or_default();
    let instance = Instance::new(InstanceDescriptor {
        backends,
        flags: settings.instance_flags,
        ..InstanceDescriptor::new_without_display_handle()
    });
    let adapters = pollster::block_on(instance.enumerate_adapters(backends));
    if adapters.is_empty() {
        return Err(Failure::new(
            Failure::NO_ADAPTER,
            "no GPU adapter found, not even a software one: `cargo xtask setup` installs one or says how",
        ));
    }
    Ok(adapters)
}
