//! What a kernel binds, and how.

use wgpu::{BindGroupLayoutEntry, BindingType, BufferBindingType, ShaderStages};

/// How a kernel uses a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Uniform,
    Read,
    Write,
}

/// A binding of group 0. `S` names the buffers of a family of kernels.
#[derive(Clone, Copy)]
pub(crate) struct Bind<S> {
    /// `@binding(number)`.
    pub number: u32,
    /// The buffer.
    pub slot: S,
    pub access: Access,
}

/// The layout of a buffer of a compute pass.
pub(crate) fn layout_entry(binding: u32, access: Access) -> BindGroupLayoutEntry {
    BindGroupLayoutEntry {
        binding,
        visibility: ShaderStages::COMPUTE,
        ty: BindingType::Buffer {
            ty: match access {
                Access::Uniform => BufferBindingType::Uniform,
                access => BufferBindingType::Storage {
                    read_only: access == Access::Read,
                },
            },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    }
}
