//! What a set's pipelines and draws bind at group 2.

use super::{
    animation::{POSES_BINDING, poses_layout},
    draw_slots::SlotBuffers,
    mesh_metadata::METADATA_BYTES,
};
use crate::cull::{BatchVersion, CullError, guarded};
use bevy::{
    material::MaterialProperties,
    render::{
        render_resource::{
            BindGroup, BindGroupEntry, BindGroupLayout, BindGroupLayoutDescriptor, BindingResource,
            BufferBinding, ShaderStages, binding_types::storage_buffer_read_only_sized,
        },
        renderer::RenderDevice,
    },
};
use core::num::NonZero;

/// Binding of the draw slots in `shaders/draw/instance.wesl`. The buffers of
/// [`Culler::batch_buffers`](crate::cull::Culler::batch_buffers) follow: survivors, instances,
/// scales, data.
const SLOT_BINDING: u32 = 20;

/// Binding of Bevy's mesh uniforms.
const UNIFORMS_BINDING: u32 = 0;
/// Binding of Bevy's mesh metadata. A set's is a uniform ([`mesh_metadata`](super::mesh_metadata)).
pub(super) const METADATA_BINDING: u32 = 9;
/// Shader def of Bevy's: the mesh metadata is the uniform of one mesh.
pub(super) const METADATA_DEF: &str = "METADATA_USE_UNIFORM_BUFFERS";

/// Storage buffers of the vertex stage without the material's: the slots and the four buffers
/// behind them, Bevy's mesh uniforms and its visibility ranges.
const VERTEX_STORAGE_BUFFERS: u32 = 7;
/// How many of them are bound at a dynamic offset: the slots.
const DYNAMIC_STORAGE_BUFFERS: u32 = 1;
/// Uniform buffers that a pipeline binds at a dynamic offset: seven of a view in Bevy's main pass,
/// with order-independent transparency, and the metadata of a mesh.
const DYNAMIC_UNIFORM_BUFFERS: u32 = 8;

/// All that a draw binds: the buffers of a batch, and the buffer of the draw slots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DrawVersion {
    pub batch: BatchVersion,
    /// [`DrawSlots::generation`](super::draw_slots::DrawSlots::generation).
    pub slots: u64,
}

/// Bevy's mesh bind group, with the bindings that our vertex stage reads. Metadata and slots are
/// bound at a dynamic offset, in this order.
pub(super) fn set_layout(mesh: &BindGroupLayoutDescriptor) -> BindGroupLayoutDescriptor {
    let mut layout = mesh.clone();
    layout.label = "gpu_culling set layout".into();
    // Bevy's skins have more. A set's poses are in a texture, which all sets bind.
    let is_kept = |binding| binding == UNIFORMS_BINDING || binding == METADATA_BINDING;
    layout.entries.retain(|entry| is_kept(entry.binding));
    for entry in &mut layout.entries {
        if entry.binding == METADATA_BINDING {
            entry.ty = wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Uniform,
                has_dynamic_offset: true,
                min_binding_size: NonZero::new(METADATA_BYTES),
            };
        }
    }
    let ours = (SLOT_BINDING..=SLOT_BINDING + 4).map(|binding| {
        let is_slots = binding == SLOT_BINDING;
        storage_buffer_read_only_sized(is_slots, None).build(binding, ShaderStages::VERTEX)
    });
    layout.entries.extend(ours);
    layout.entries.push(poses_layout());
    layout
}

/// The bind group of a set's draws: slots and metadata, and the buffers of
/// [`Culler::batch_buffers`](crate::cull::Culler::batch_buffers).
///
/// # Errors
/// The device refuses the bind group.
pub(super) fn set_bind_group(
    device: &RenderDevice,
    layout: &BindGroupLayout,
    slots: SlotBuffers<'_>,
    buffers: &[&wgpu::Buffer],
) -> Result<BindGroup, CullError> {
    let SlotBuffers {
        slots,
        window,
        uniforms,
        metadata,
        poses,
        ..
    } = slots;
    let entry = |binding, buffer, bytes| BindGroupEntry {
        binding,
        resource: BindingResource::Buffer(BufferBinding {
            buffer,
            offset: 0,
            size: NonZero::new(bytes),
        }),
    };
    let mut entries = vec![
        entry(UNIFORMS_BINDING, uniforms, uniforms.size()),
        entry(METADATA_BINDING, metadata, METADATA_BYTES),
        entry(SLOT_BINDING, slots, window),
    ];
    let behind = SLOT_BINDING + 1..;
    entries.extend(behind.zip(buffers).map(|(binding, buffer)| BindGroupEntry {
        binding,
        resource: buffer.as_entire_binding(),
    }));
    entries.push(BindGroupEntry {
        binding: POSES_BINDING,
        resource: BindingResource::TextureView(poses),
    });
    guarded(device.wgpu_device(), "gpu_culling set", || {
        device.create_bind_group("gpu_culling set", layout, &entries)
    })
}

/// Whether a device with these limits can bind the vertex stage of sets. All tiers draw with it.
///
/// # Errors
/// The limit that is too low, as text for the log.
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
        (
            "max_dynamic_uniform_buffers_per_pipeline_layout",
            limits.max_dynamic_uniform_buffers_per_pipeline_layout,
            DYNAMIC_UNIFORM_BUFFERS,
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

/// Whether indirect draws read their count from a buffer.
///
/// Not on DX12: there they lose the first instance, which finds survivors (wgpu issue 7974).
pub(super) fn counts_draws(features: wgpu::Features, backend: wgpu::Backend) -> bool {
    features.contains(wgpu::Features::MULTI_DRAW_INDIRECT_COUNT) && backend != wgpu::Backend::Dx12
}

/// Number of storage buffers that a bind group layout adds to the vertex stage.
pub(super) fn vertex_storage_buffers(layout: &BindGroupLayoutDescriptor) -> u32 {
    let is_one = |entry: &&wgpu::BindGroupLayoutEntry| {
        let storage = wgpu::BufferBindingType::Storage { read_only: true };
        let writable = wgpu::BufferBindingType::Storage { read_only: false };
        let is_storage = matches!(
            entry.ty,
            wgpu::BindingType::Buffer { ty, .. } if ty == storage || ty == writable
        );
        // Binding arrays have their own limit.
        is_storage && entry.count.is_none() && entry.visibility.contains(ShaderStages::VERTEX)
    };
    layout.entries.iter().filter(is_one).count() as u32
}

/// The bind group of a batch.
#[derive(Clone, Default)]
pub(super) struct BatchBinding {
    /// `None` if there are no buffers to bind, or if the device refused it.
    pub bind_group: Option<BindGroup>,
    /// What it was made for, or refused for.
    pub made_for: Option<DrawVersion>,
}

/// Number of storage buffers of a set's vertex stage with this material.
pub(super) fn storage_buffers_with(material: &MaterialProperties) -> u32 {
    let of_material = material
        .material_layout
        .as_ref()
        .map_or(0, vertex_storage_buffers);
    VERTEX_STORAGE_BUFFERS + of_material
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy::render::render_resource::BindGroupLayoutEntries;

    #[test]
    fn devices_that_cannot_bind_the_vertex_stage_are_told_apart() {
        let mut limits = wgpu::Limits::default();
        assert_eq!(can_draw_sets(&limits), Ok(()));
        limits.max_storage_buffers_per_shader_stage = VERTEX_STORAGE_BUFFERS;
        assert_eq!(can_draw_sets(&limits), Ok(()));
        limits.max_storage_buffers_per_shader_stage -= 1;
        let missing = can_draw_sets(&limits).err().unwrap_or_default();
        assert!(missing.contains("is 6 on this device"), "{missing}");
        limits = wgpu::Limits::default();
        limits.max_dynamic_uniform_buffers_per_pipeline_layout = DYNAMIC_UNIFORM_BUFFERS - 1;
        let missing = can_draw_sets(&limits).err().unwrap_or_default();
        assert!(missing.contains("is 7 on this device"), "{missing}");
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

    /// The metadata of a mesh must not cost a storage buffer: with it, the vertex stage would need
    /// all eight that a device has at least.
    #[test]
    fn metadata_is_a_uniform_of_one_mesh() {
        let storage = storage_buffer_read_only_sized(false, None);
        let bevys = BindGroupLayoutEntries::with_indices(
            ShaderStages::VERTEX_FRAGMENT,
            ((0, storage), (METADATA_BINDING, storage)),
        );
        let layout = set_layout(&BindGroupLayoutDescriptor::new("test", &bevys));
        // Bevy's visibility ranges are the seventh.
        assert_eq!(vertex_storage_buffers(&layout) + 1, VERTEX_STORAGE_BUFFERS);
        let mut entries = layout.entries.iter();
        let metadata = entries.find(|entry| entry.binding == METADATA_BINDING);
        assert_eq!(
            metadata.map(|entry| entry.ty),
            Some(wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Uniform,
                has_dynamic_offset: true,
                min_binding_size: NonZero::new(METADATA_BYTES),
            })
        );
    }

    #[test]
    fn draws_take_their_number_from_a_buffer_where_they_keep_their_first_instance() {
        use wgpu::{Backend, Features};
        assert!(counts_draws(Features::all(), Backend::Vulkan));
        assert!(!counts_draws(Features::all(), Backend::Dx12));
        assert!(!counts_draws(Features::empty(), Backend::Vulkan));
    }
}
