//! The pass that writes one `MeshUniform` per survivor.

use crate::{
    cull::{CullError, CullingTier, KernelJob, compile_kernel, shaders::kernels},
    render::{bindings::DrawVersion, draw_slots::SLOT_BYTES},
};
use bytemuck::{Pod, Zeroable};
use core::num::NonZeroU64;
use wgpu::{
    BindGroupLayoutEntry, BindingType, BufferBindingType, ComputePipeline, Device, ShaderStages,
};

/// `UniformJob` of `shaders/draw/mesh_uniforms.wesl`: what the pass does for one draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct UniformJob {
    /// Index of the draw's row in its batch.
    pub row: u32,
    /// 1 for a mesh with indices, else 0.
    pub indexed: u32,
    /// Index of the draw's command.
    pub draw: u32,
    /// Index of the draw's first uniform.
    pub first: u32,
    /// Number of uniforms that there is room for.
    pub room: u32,
    /// Index of the mesh's `MeshMetadata`.
    pub metadata: u32,
    pub pad_b: u32,
    pub pad_c: u32,
}

/// The compiled pass.
pub(super) struct ExpandPass {
    pub pipeline: ComputePipeline,
    pub layout: wgpu::BindGroupLayout,
}

/// What the pass binds for a batch.
pub(super) struct PassBinding {
    pub made_for: PassVersion,
    pub bind_group: wgpu::BindGroup,
}

/// The buffers of a [`PassBinding`]. It serves as long as this stays equal.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct PassVersion {
    pub draw: DrawVersion,
    /// [`Buffers::generation`](super::buffers::Buffers).
    pub buffers: u64,
}

/// The WGSL of the pass.
fn source() -> &'static str {
    kernels::MESH_UNIFORMS.on(CullingTier::Workgroup)
}

/// Compiles the pass.
pub(super) fn build(device: &Device) -> Result<ExpandPass, CullError> {
    let entry = |binding, ty, has_dynamic_offset, bytes| BindGroupLayoutEntry {
        binding,
        visibility: ShaderStages::COMPUTE,
        ty: BindingType::Buffer {
            ty,
            has_dynamic_offset,
            min_binding_size: NonZeroU64::new(bytes),
        },
        count: None,
    };
    let read = BufferBindingType::Storage { read_only: true };
    let write = BufferBindingType::Storage { read_only: false };
    let job_bytes = size_of::<UniformJob>() as u64;
    let mut entries = vec![
        entry(0, BufferBindingType::Uniform, true, job_bytes),
        entry(1, read, true, SLOT_BYTES),
    ];
    entries.extend((2..=6).map(|binding| entry(binding, read, false, 0)));
    entries.extend((7..=8).map(|binding| entry(binding, write, false, 0)));
    let job = KernelJob {
        tier: CullingTier::Workgroup,
        label: "mesh_uniforms",
        source: source().to_owned(),
        entry: "mesh_uniforms",
        checks: true,
    };
    let (pipeline, layout) = compile_kernel(device, &job, &entries, None)?;
    Ok(ExpandPass { pipeline, layout })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cull::layout::args_offset, render::draw_slots::UNIFORM_BYTES};
    use bevy::{pbr::MeshUniform, render::render_resource::ShaderType};
    use core::mem::offset_of;
    use wgpu::naga::{self, front::wgsl::parse_str};

    fn fields(name: &str) -> (Vec<(String, u32)>, u32) {
        let module = parse_str(source()).unwrap_or_default();
        let found = module
            .types
            .iter()
            .find(|(_, ty)| ty.name.as_deref() == Some(name));
        match found.map(|(_, ty)| &ty.inner) {
            Some(naga::TypeInner::Struct { members, span }) => {
                let named = members
                    .iter()
                    .map(|member| (member.name.clone().unwrap_or_default(), member.offset));
                (named.collect(), *span)
            }
            _ => (Vec::new(), 0),
        }
    }

    #[test]
    fn structs_are_those_of_the_host_and_of_bevy() {
        let (job, span) = fields("UniformJob");
        let host = [
            ("row", offset_of!(UniformJob, row)),
            ("indexed", offset_of!(UniformJob, indexed)),
            ("draw", offset_of!(UniformJob, draw)),
            ("first", offset_of!(UniformJob, first)),
            ("room", offset_of!(UniformJob, room)),
            ("metadata", offset_of!(UniformJob, metadata)),
        ];
        let host = host.map(|(name, offset)| (name.to_owned(), offset as u32));
        assert_eq!(
            (&job[..6], span as usize),
            (&host[..], size_of::<UniformJob>())
        );
        let (mesh, span) = fields("Mesh");
        assert_eq!(u64::from(span), UNIFORM_BYTES);
        assert_eq!(MeshUniform::min_size().get(), UNIFORM_BYTES);
        let bevys: Vec<_> = (0..mesh.len())
            .map(|field| MeshUniform::METADATA.offset(field) as u32)
            .collect();
        let ours: Vec<_> = mesh.iter().map(|(_, offset)| *offset).collect();
        assert_eq!(ours, bevys);
        let (args, _) = fields("Args");
        assert_eq!(args[1], ("draws".to_owned(), args_offset(0) as u32));
        let (slot, span) = fields("DrawSlot");
        assert_eq!(u64::from(span), SLOT_BYTES);
        assert_eq!(
            slot[1..],
            [
                ("flags".to_owned(), 176),
                ("region_first".to_owned(), 180),
                ("set_first".to_owned(), 184),
                ("previous_offset".to_owned(), 188),
                ("errors".to_owned(), 192),
                ("distances".to_owned(), 208),
                ("center".to_owned(), 224),
                ("radius".to_owned(), 236),
                ("pad_a".to_owned(), 240),
                ("instance_from_mesh".to_owned(), 304),
                ("previous_instance_from_mesh".to_owned(), 352),
                ("instance_from_mesh_normals".to_owned(), 400),
            ]
        );
    }
}
