//! What a kernel binds, and how.

use wgpu::{
    BindGroupLayoutEntry, BindingType, BufferBindingType, ShaderStages, TextureSampleType,
    TextureViewDimension,
};

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
    pub slot: S,
    pub access: Access,
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
