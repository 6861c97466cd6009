//! The adapters.

use crate::Failure;
use bevy::render::settings::WgpuSettings;
use wgpu::{Adapter, Instance, InstanceDescriptor};

/// Prints the adapters' names, one per line.
pub fn list() -> Result<(), Failure> {
    for adapter in find()? {
        println!("{}", adapter.get_info().name);
    }
    Ok(())
}

/// An error that names the remedy if there is no adapter. Bevy's renderer would panic.
pub fn require_one() -> Result<(), Failure> {
    find().map(|_| ())
}

/// The adapters of the backends that Bevy uses.
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
