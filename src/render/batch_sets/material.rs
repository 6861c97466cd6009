//! The materials that one multi-draw may draw.
//!
//! Bevy puts *bindless* materials of a type into one bind group, and the mesh uniform says which of
//! them a draw has. Then sets with different materials are drawn by one multi-draw, if the
//! materials also have the same pipelines. Other materials have a bind group each.

use bevy::{asset::UntypedAssetId, material::MaterialProperties, pbr::PreparedMaterial};
use core::any::TypeId;
use std::sync::Arc;

/// The materials of a batch set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::render) enum BatchSetMaterial {
    /// One.
    Own(UntypedAssetId),
    /// The materials of a type in a bind group whose pipelines are the same.
    Bindless {
        material_type: TypeId,
        /// `MaterialBindGroupIndex`.
        group: u32,
        /// Index in [`MaterialPipelines`].
        pipelines: u32,
    },
}

/// What was met so far that decides on pipelines: the properties of one material of each kind.
#[derive(Default)]
pub(super) struct MaterialPipelines(Vec<Arc<MaterialProperties>>);

/// A material is compared with one of each kind. Apps have a handful.
const MAX_KINDS: usize = 256;

impl MaterialPipelines {
    /// The materials that may be drawn with one of this id.
    pub fn of(&mut self, id: UntypedAssetId, material: &PreparedMaterial) -> BatchSetMaterial {
        let properties = &material.properties;
        let own = BatchSetMaterial::Own(id);
        if !properties.bindless {
            return own;
        }
        let mut kinds = self.0.iter();
        let place = match kinds.position(|known| have_same_pipelines(known, properties)) {
            Some(place) => place,
            None if self.0.len() == MAX_KINDS => return own,
            None => {
                self.0.push(Arc::clone(properties));
                self.0.len() - 1
            }
        };
        BatchSetMaterial::Bindless {
            material_type: id.type_id(),
            group: material.binding.group.0,
            pipelines: place as u32,
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Whether Bevy draws two materials of one type in the same phases and with the same pipelines.
/// They are aliases of sets that do not fade.
fn have_same_pipelines(a: &MaterialProperties, b: &MaterialProperties) -> bool {
    // All fields are named: one that Bevy adds is an error here, not overlooked.
    let MaterialProperties {
        render_method,
        alpha_mode,
        mesh_pipeline_key_bits,
        // It orders what is blended.
        depth_bias: _,
        reads_view_transmission_texture,
        render_phase_type,
        material_layout,
        draw_functions,
        shaders,
        bindless,
        // The type of the material decides on these.
        base_specialize: _,
        prepass_specialize: _,
        user_specialize: _,
        material_key,
        shadows_enabled,
        prepass_enabled,
        oit_enabled,
    } = a;
    *render_method == b.render_method
        // The threshold of a mask is data of the material.
        && core::mem::discriminant(alpha_mode) == core::mem::discriminant(&b.alpha_mode)
        && *mesh_pipeline_key_bits == b.mesh_pipeline_key_bits
        && *reads_view_transmission_texture == b.reads_view_transmission_texture
        && core::mem::discriminant(render_phase_type)
            == core::mem::discriminant(&b.render_phase_type)
        && *material_layout == b.material_layout
        && *draw_functions == b.draw_functions
        && *shaders == b.shaders
        && *bindless == b.bindless
        && *material_key == b.material_key
        && *shadows_enabled == b.shadows_enabled
        && *prepass_enabled == b.prepass_enabled
        && *oit_enabled == b.oit_enabled
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy::{
        material::{OpaqueRendererMethod, key::ErasedMaterialKey},
        prelude::*,
        render::material_bind_groups::{
            MaterialBindGroupIndex, MaterialBindGroupSlot, MaterialBindingId,
        },
    };

    fn material(group: u32, slot: u32, properties: MaterialProperties) -> PreparedMaterial {
        PreparedMaterial {
            binding: MaterialBindingId {
                group: MaterialBindGroupIndex(group),
                slot: MaterialBindGroupSlot(slot),
            },
            properties: Arc::new(properties),
        }
    }

    fn bindless() -> MaterialProperties {
        MaterialProperties {
            bindless: true,
            material_key: ErasedMaterialKey::new(7u32),
            ..default()
        }
    }

    fn id<A: Asset>(number: u128) -> UntypedAssetId {
        AssetId::<A>::Uuid {
            uuid: bevy::asset::uuid::Uuid::from_u128(number),
        }
        .untyped()
    }

    #[test]
    fn bindless_materials_of_a_group_are_drawn_together() {
        let mut known = MaterialPipelines::default();
        let red = known.of(id::<StandardMaterial>(1), &material(3, 0, bindless()));
        let blue = known.of(id::<StandardMaterial>(2), &material(3, 1, bindless()));
        assert_eq!(red, blue);
        let cut = |threshold| MaterialProperties {
            alpha_mode: AlphaMode::Mask(threshold),
            ..bindless()
        };
        let half = known.of(id::<StandardMaterial>(3), &material(3, 2, cut(0.5)));
        let third = known.of(id::<StandardMaterial>(4), &material(3, 3, cut(0.3)));
        assert_eq!(half, third);
        assert_ne!(half, red);
        let others = [
            known.of(id::<StandardMaterial>(5), &material(4, 0, bindless())),
            known.of(id::<Image>(6), &material(3, 4, bindless())),
        ];
        let deferred = MaterialProperties {
            render_method: OpaqueRendererMethod::Deferred,
            ..bindless()
        };
        let with_shadows = MaterialProperties {
            shadows_enabled: true,
            ..bindless()
        };
        let with_map = MaterialProperties {
            material_key: ErasedMaterialKey::new(8u32),
            ..bindless()
        };
        let differing = [deferred, with_shadows, with_map];
        let differing =
            differing.map(|other| known.of(id::<StandardMaterial>(7), &material(3, 5, other)));
        for other in others.into_iter().chain(differing) {
            assert_ne!(other, red);
        }
        assert_eq!(known.0.len(), 5);
    }

    #[test]
    fn a_material_with_its_own_bind_group_is_alone() {
        let mut known = MaterialPipelines::default();
        let properties = || MaterialProperties {
            bindless: false,
            ..bindless()
        };
        let [red, blue] = [1, 2].map(|number| {
            let id = id::<StandardMaterial>(number);
            known.of(id, &material(3, 0, properties()))
        });
        assert_ne!(red, blue);
        assert!(known.0.is_empty());
    }
}
