//! What a set's pipelines and draws bind at group 2.

use super::draw_slots::{SLOT_BYTES, UNIFORM_BYTES};
use crate::cull::{CullError, guarded};
use bevy::{
    material::MaterialProperties,
    render::{
        render_resource::{
            BindGroup, BindGroupEntry, BindGroupLayout, BindGroupLayoutDescriptor,
            BindGroupLayoutEntries, BindingResource, Buffer, BufferBinding, ShaderStages,
            binding_types::storage_buffer_read_only_sized,
        },
        renderer::RenderDevice,
    },
};
use core::num::NonZero;

/// Bevy's mesh bind group (group 2) with what our vertex stage reads: bindings 20 to 24 of
/// `shaders/draw/instance.wgsl`. The mesh uniform and the slot lie at a dynamic offset.
pub(super) fn set_layout(mesh: &BindGroupLayoutDescriptor) -> BindGroupLayoutDescriptor {
    let mut layout = mesh.clone();
    layout.label = "gpu_culling set layout".into();
    for entry in &mut layout.entries {
        if entry.binding == 0
            && let bevy::render::render_resource::BindingType::Buffer {
                has_dynamic_offset, ..
            } = &mut entry.ty
        {
            *has_dynamic_offset = true;
        }
    }
    let ours = BindGroupLayoutEntries::with_indices(
        ShaderStages::VERTEX,
        (
            (20, storage_buffer_read_only_sized(true, None)),
            (21, storage_buffer_read_only_sized(false, None)),
            (22, storage_buffer_read_only_sized(false, None)),
            (23, storage_buffer_read_only_sized(false, None)),
            (24, storage_buffer_read_only_sized(false, None)),
        ),
    );
    layout.entries.extend(ours.iter().copied());
    layout
}

/// Storage buffers of the vertex stage without the material's: ours (bindings 20 to 24), Bevy's mesh uniforms and its
/// visibility ranges.
const VERTEX_STORAGE_BUFFERS: u32 = 7;
/// Those of them that are bound at a dynamic offset: mesh uniform and slot.
const DYNAMIC_STORAGE_BUFFERS: u32 = 2;

/// Whether the vertex stage of sets can be bound on a device with these limits, else what it lacks. The tier makes no
/// difference: all draw with the same vertex stage.
pub(super) fn can_draw_sets(limits: &wgpu::Limits) -> Result<(), String> {
    let needs = [
        (
            "max_storage_buffers_per_shader_stage",
            limits.max_storage_buffers_per_shader_stage,
            VERTEX_STORAGE_BUFFERS,
        ),
        (
            "max_dynamic_storage_buffers_per_pipeline_layout",
            limits.max_dynamic_storage_buffers_per_pipeline_layout,
            DYNAMIC_STORAGE_BUFFERS,
        ),
    ];
    for (limit, has, needed) in needs {
        if has < needed {
            // As on WebGL2.
            let advice = match has {
                0 => ". In a browser, build for WebGPU (Bevy's feature \"webgpu\")",
                _ => "",
            };
            return Err(format!(
                "{limit} is {has} on this device, their vertex stage needs {needed}{advice}"
            ));
        }
    }
    Ok(())
}

/// Storage buffers that a bind group layout adds to the vertex stage.
pub(super) fn vertex_storage_buffers(layout: &BindGroupLayoutDescriptor) -> u32 {
    let is_one = |entry: &&wgpu::BindGroupLayoutEntry| {
        let storage = wgpu::BufferBindingType::Storage { read_only: true };
        let writable = wgpu::BufferBindingType::Storage { read_only: false };
        let is_storage = matches!(
            entry.ty,
            wgpu::BindingType::Buffer { ty, .. } if ty == storage || ty == writable
        );
        // Binding arrays have a limit of their own.
        is_storage && entry.count.is_none() && entry.visibility.contains(ShaderStages::VERTEX)
    };
    layout.entries.iter().filter(is_one).count() as u32
}

/// Storage buffers of the vertex stage of a set with this material.
pub(super) fn storage_buffers_with(material: &MaterialProperties) -> u32 {
    let own = material
        .material_layout
        .as_ref()
        .map_or(0, vertex_storage_buffers);
    VERTEX_STORAGE_BUFFERS + own
}

/// What a set's draws bind: slots, and the buffers of [`Culler::batch_buffers`].
pub(super) fn set_bind_group(
    device: &RenderDevice,
    layout: &BindGroupLayout,
    slot_buffer: &Buffer,
    buffers: &[&wgpu::Buffer],
) -> Result<BindGroup, CullError> {
    let slot = |bytes| {
        BindingResource::Buffer(BufferBinding {
            buffer: slot_buffer,
            offset: 0,
            size: NonZero::new(bytes),
        })
    };
    let mut entries = vec![
        BindGroupEntry {
            binding: 0,
            resource: slot(UNIFORM_BYTES),
        },
        BindGroupEntry {
            binding: 20,
            resource: slot(SLOT_BYTES),
        },
    ];
    entries.extend((21..).zip(buffers).map(|(binding, buffer)| BindGroupEntry {
        binding,
        resource: buffer.as_entire_binding(),
    }));
    guarded(device.wgpu_device(), "gpu_culling set", || {
        device.create_bind_group("gpu_culling set", layout, &entries)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_that_cannot_bind_the_vertex_stage_are_told_apart() {
        let mut limits = wgpu::Limits::default();
        assert_eq!(can_draw_sets(&limits), Ok(()));
        limits.max_storage_buffers_per_shader_stage = VERTEX_STORAGE_BUFFERS;
        assert_eq!(can_draw_sets(&limits), Ok(()));
        limits.max_storage_buffers_per_shader_stage -= 1;
        let missing = can_draw_sets(&limits).err().unwrap_or_default();
        assert!(missing.contains("is 6 on this device"), "{missing}");
        let webgl2 = wgpu::Limits::downlevel_webgl2_defaults();
        assert!(can_draw_sets(&webgl2).is_err());
        let webgpu = wgpu::Limits::downlevel_defaults();
        assert_eq!(
            can_draw_sets(&webgpu).is_ok(),
            webgpu.max_storage_buffers_per_shader_stage >= 7
        );
    }

    #[test]
    fn a_materials_storage_buffers_count_where_the_vertex_stage_sees_them() {
        let entries = BindGroupLayoutEntries::sequential(
            ShaderStages::VERTEX_FRAGMENT,
            (
                storage_buffer_read_only_sized(false, None),
                storage_buffer_read_only_sized(false, None).visibility(ShaderStages::FRAGMENT),
            ),
        );
        let material = MaterialProperties {
            material_layout: Some(BindGroupLayoutDescriptor::new("test", &entries)),
            ..MaterialProperties::default()
        };
        assert_eq!(storage_buffers_with(&material), VERTEX_STORAGE_BUFFERS + 1);
        let none = MaterialProperties::default();
        assert_eq!(storage_buffers_with(&none), VERTEX_STORAGE_BUFFERS);
    }
}
