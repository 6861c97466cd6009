//! The buffers of the pass.

use crate::{
    cull::{CullError, RetryTimer, growing_size, guarded},
    render::bindings::METADATA_BINDING,
};
use bevy::render::{
    render_resource::{BindGroup, BindGroupLayout},
    renderer::RenderDevice,
};
use wgpu::{BindGroupEntry, Buffer, BufferDescriptor, BufferUsages, Device};

/// Sizes that the buffers must have, in bytes.
pub(super) struct Sizes {
    pub jobs: u64,
    pub commands: u64,
    pub uniforms: u64,
}

/// What the pass reads and writes, and what Bevy's pipelines bind of it.
#[derive(Default)]
pub(super) struct Buffers {
    pub jobs: Option<Buffer>,
    pub uniforms: Option<Buffer>,
    pub commands: Option<Buffer>,
    /// Bumped when one of the three is replaced.
    pub generation: u64,
    /// Group 2 of Bevy's pipelines.
    pub mesh_bind_group: Option<BindGroup>,
    /// [`MeshBinding::generation`] of `mesh_bind_group`.
    bound: u64,
    refused: Option<Refused>,
}

/// The device refused the uniforms.
struct Refused {
    /// Runs from the first refusal.
    retry: RetryTimer,
    /// Size of the uniforms that it may still be asked for, in bytes.
    max_bytes: u64,
}

/// What Bevy's pipelines bind besides the uniforms.
pub(super) struct MeshBinding<'a, L> {
    /// A `MeshMetadata` per row; `None` if the device refused it.
    pub metadata: Option<&'a Buffer>,
    /// Changes when `metadata` is replaced.
    pub generation: u64,
    pub layout: L,
}

impl Buffers {
    /// Size of the uniforms that the device may be asked for, in bytes.
    pub fn max_bytes(&self) -> u64 {
        let refused = self.refused.as_ref();
        refused.map_or(u64::MAX, |refused| refused.max_bytes)
    }

    /// Whether the device has refused more than [`Self::max_bytes`].
    pub fn is_limited(&self) -> bool {
        self.refused.is_some()
    }

    /// Forgets a refusal after which the device is to be asked again.
    pub fn ask_again(&mut self, now: u64) {
        self.refused.take_if(|refused| refused.retry.is_due(now));
    }

    /// Drops the buffers.
    pub fn drop_all(&mut self) {
        *self = Self {
            generation: self.generation + u64::from(self.uniforms.is_some()),
            ..Self::default()
        };
    }

    /// Grows the buffers to these sizes, and binds the uniforms as Bevy's pipelines do.
    ///
    /// # Errors
    /// The device refuses a buffer or the bind group.
    pub fn grow(
        &mut self,
        device: &RenderDevice,
        sizes: &Sizes,
        mesh: MeshBinding<'_, impl Fn() -> BindGroupLayout>,
        now: u64,
    ) -> Result<(), CullError> {
        let wgpu_device = device.wgpu_device();
        let storage = BufferUsages::STORAGE | BufferUsages::COPY_DST;
        let jobs = Growth {
            label: "gpu_culling uniform jobs",
            bytes: sizes.jobs,
            usage: BufferUsages::UNIFORM | BufferUsages::COPY_DST,
        };
        self.generation += u64::from(jobs.apply(wgpu_device, &mut self.jobs)?);
        let commands = Growth {
            label: "gpu_culling uniform commands",
            bytes: sizes.commands,
            usage: storage | BufferUsages::INDIRECT,
        };
        self.generation += u64::from(commands.apply(wgpu_device, &mut self.commands)?);
        let uniforms = Growth {
            label: "gpu_culling mesh uniforms",
            bytes: sizes.uniforms,
            usage: storage,
        };
        let grown = uniforms
            .apply(wgpu_device, &mut self.uniforms)
            .inspect_err(|_| {
                let had = self.uniforms.as_ref().map_or(0, Buffer::size);
                let before = self.refused.as_ref().map(|refused| refused.retry);
                self.refused = Some(Refused {
                    retry: before.unwrap_or(RetryTimer::start(now)),
                    max_bytes: had.max(sizes.uniforms / 2),
                });
            })?;
        self.generation += u64::from(grown);
        let is_bound = self.mesh_bind_group.is_some() && self.bound == mesh.generation;
        if let (Some(uniforms), Some(metadata)) = (&self.uniforms, mesh.metadata)
            && (grown || !is_bound)
        {
            let entries = [(0, uniforms), (METADATA_BINDING, metadata)].map(|(binding, buffer)| {
                BindGroupEntry {
                    binding,
                    resource: buffer.as_entire_binding(),
                }
            });
            let label = "gpu_culling mesh uniforms";
            self.mesh_bind_group = None;
            self.mesh_bind_group = Some(guarded(wgpu_device, label, || {
                device.create_bind_group(label, &(mesh.layout)(), &entries)
            })?);
            self.bound = mesh.generation;
        }
        Ok(())
    }
}

/// A buffer that must have a size.
struct Growth {
    label: &'static str,
    bytes: u64,
    usage: BufferUsages,
}

impl Growth {
    /// Makes the buffer, unless it is large enough. Returns whether it was replaced.
    fn apply(&self, device: &Device, buffer: &mut Option<Buffer>) -> Result<bool, CullError> {
        let has = buffer.as_ref().map(Buffer::size);
        if has.is_some_and(|size| size >= self.bytes) {
            return Ok(false);
        }
        *buffer = Some(guarded(device, self.label, || {
            device.create_buffer(&BufferDescriptor {
                label: Some(self.label),
                size: growing_size(self.bytes, &device.limits()),
                usage: self.usage,
                mapped_at_creation: false,
            })
        })?);
        Ok(true)
    }
}
