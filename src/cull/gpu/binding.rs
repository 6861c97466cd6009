//! What a kernel binds, and how.

use bytemuck::NoUninit;
use core::num::NonZeroU64;
use wgpu::{
    BindGroupLayoutEntry, BindingResource, BindingType, Buffer, BufferBinding, BufferBindingType,
    ShaderStages, TextureSampleType, TextureViewDimension,
};

/// Distance of uniforms that are bound one at a time, in bytes: the largest alignment that a device
/// may need.
pub(crate) const UNIFORM_STRIDE: u64 = 256;

/// Uniforms of at most [`UNIFORM_STRIDE`] bytes, for a buffer.
pub(crate) fn strided<T: NoUninit>(uniforms: impl Iterator<Item = T>) -> Vec<u8> {
    let stride = UNIFORM_STRIDE as usize;
    let mut bytes = Vec::with_capacity(uniforms.size_hint().0 * stride);
    for uniform in uniforms {
        bytes.extend_from_slice(bytemuck::bytes_of(&uniform));
        bytes.resize(bytes.len().next_multiple_of(stride), 0);
    }
    bytes
}

/// A uniform of a buffer that [`strided`] has filled.
pub(crate) fn uniform_at<T>(buffer: &Buffer, index: u64) -> BindingResource<'_> {
    BindingResource::Buffer(BufferBinding {
        buffer,
        offset: index * UNIFORM_STRIDE,
        size: NonZeroU64::new(size_of::<T>() as u64),
    })
}

/// How a kernel uses a buffer or a texture.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Uniform,
    /// A uniform whose offset is given when the bind group is set.
    DynamicUniform,
    Read,
    Write,
    /// A texture of fractions, of which single texels are read.
    Texture,
    /// A depth texture with one sample per pixel.
    Depth,
    /// A depth texture with several samples per pixel.
    MultisampledDepth,
}

impl Access {
    fn binding_type(self) -> BindingType {
        let buffer = |ty| BindingType::Buffer {
            ty,
            has_dynamic_offset: false,
            min_binding_size: None,
        };
        let dynamic_uniform = BindingType::Buffer {
            ty: BufferBindingType::Uniform,
            has_dynamic_offset: true,
            min_binding_size: None,
        };
        let storage = |read_only| buffer(BufferBindingType::Storage { read_only });
        let depth = |multisampled| BindingType::Texture {
            sample_type: TextureSampleType::Depth,
            view_dimension: TextureViewDimension::D2,
            multisampled,
        };
        let texture = BindingType::Texture {
            sample_type: TextureSampleType::Float { filterable: false },
            view_dimension: TextureViewDimension::D2,
            multisampled: false,
        };
        match self {
            Self::Texture => texture,
            Self::Uniform => buffer(BufferBindingType::Uniform),
            Self::DynamicUniform => dynamic_uniform,
            Self::Read => storage(true),
            Self::Write => storage(false),
            Self::Depth => depth(false),
            Self::MultisampledDepth => depth(true),
        }
    }
}

/// A binding of group 0. `S` names what a family of kernels binds.
#[derive(Clone, Copy)]
pub(crate) struct Bind<S> {
    /// `@binding(number)`.
    pub number: u32,
    /// The buffer or the texture.
    pub resource: S,
    pub access: Access,
}

impl<S> Bind<S> {
    /// The binding with this number.
    pub const fn at(number: u32, resource: S, access: Access) -> Self {
        Self {
            number,
            resource,
            access,
        }
    }
}

/// The layout of a binding of a compute pass.
pub(crate) fn layout_entry(binding: u32, access: Access) -> BindGroupLayoutEntry {
    BindGroupLayoutEntry {
        binding,
        visibility: ShaderStages::COMPUTE,
        ty: access.binding_type(),
        count: None,
    }
}
