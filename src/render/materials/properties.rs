//! The copy of a material's properties that an alias has.

use super::{
    draw_mode::DrawMode,
    pipeline::{
        specialize_fading_set, specialize_fading_set_prepass, specialize_set,
        specialize_set_prepass,
    },
};
use crate::render::draw::{DrawSet, DrawSetDepthOnly, DrawSetPrepass};
use bevy::{
    core_pipeline::{
        core_3d::{AlphaMask3d, Opaque3d, Transparent3d},
        deferred::{AlphaMask3dDeferred, Opaque3dDeferred},
        prepass::{AlphaMask3dPrepass, Opaque3dPrepass},
    },
    ecs::system::SystemParam,
    material::{MaterialProperties, RenderPhaseType},
    pbr::*,
    prelude::*,
    render::render_phase::DrawFunctions,
};

/// The draw functions of all phases.
#[derive(SystemParam)]
pub(in crate::render) struct PhaseFunctions<'w> {
    opaque: Res<'w, DrawFunctions<Opaque3d>>,
    mask: Res<'w, DrawFunctions<AlphaMask3d>>,
    transmissive: Res<'w, DrawFunctions<Transmissive3d>>,
    transparent: Res<'w, DrawFunctions<Transparent3d>>,
    prepass: Res<'w, DrawFunctions<Opaque3dPrepass>>,
    prepass_mask: Res<'w, DrawFunctions<AlphaMask3dPrepass>>,
    deferred: Res<'w, DrawFunctions<Opaque3dDeferred>>,
    deferred_mask: Res<'w, DrawFunctions<AlphaMask3dDeferred>>,
    shadow: Res<'w, DrawFunctions<Shadow>>,
}

/// A copy of a material's properties with our draw functions, and with our specializers or, for
/// expanded sets, Bevy's. If sets with the material are not drawn, it has no draw function.
pub(super) fn alias_properties(
    from: &MaterialProperties,
    drawn: DrawMode,
    phases: &PhaseFunctions,
) -> MaterialProperties {
    // All fields are named: one that Bevy adds is an error here, not lost.
    let mut to = MaterialProperties {
        render_method: from.render_method,
        alpha_mode: from.alpha_mode,
        mesh_pipeline_key_bits: from.mesh_pipeline_key_bits,
        depth_bias: from.depth_bias,
        reads_view_transmission_texture: from.reads_view_transmission_texture,
        render_phase_type: from.render_phase_type,
        material_layout: from.material_layout.clone(),
        shaders: from.shaders.clone(),
        bindless: from.bindless,
        base_specialize: Some(specialize_set),
        prepass_specialize: Some(specialize_set_prepass),
        user_specialize: from.user_specialize,
        material_key: from.material_key.clone(),
        shadows_enabled: from.shadows_enabled,
        prepass_enabled: from.prepass_enabled,
        oit_enabled: from.oit_enabled,
        draw_functions: Default::default(),
    };
    if drawn == DrawMode::Fading {
        to.base_specialize = Some(specialize_fading_set);
        to.prepass_specialize = Some(specialize_fading_set_prepass);
    }
    if drawn == DrawMode::Expanded {
        to.base_specialize = from.base_specialize;
        to.prepass_specialize = from.prepass_specialize;
    }
    if !drawn.is_drawn() {
        // No pipeline either: one with the same key may be wanted once the shader is loaded.
        to.base_specialize = None;
        to.prepass_specialize = None;
        to.shadows_enabled = false;
        to.prepass_enabled = false;
        return to;
    }
    to.add_draw_function(
        MainPassOpaqueDrawFunction,
        phases.opaque.read().id::<DrawSet>(),
    );
    to.add_draw_function(
        MainPassAlphaMaskDrawFunction,
        phases.mask.read().id::<DrawSet>(),
    );
    to.add_draw_function(
        MainPassTransmissiveDrawFunction,
        phases.transmissive.read().id::<DrawSet>(),
    );
    to.add_draw_function(
        MainPassTransparentDrawFunction,
        phases.transparent.read().id::<DrawSet>(),
    );
    to.add_draw_function(
        PrepassOpaqueDrawFunction,
        phases.prepass.read().id::<DrawSetPrepass>(),
    );
    to.add_draw_function(
        PrepassOpaqueDepthOnlyDrawFunction,
        phases.prepass.read().id::<DrawSetDepthOnly>(),
    );
    to.add_draw_function(
        PrepassAlphaMaskDrawFunction,
        phases.prepass_mask.read().id::<DrawSetPrepass>(),
    );
    to.add_draw_function(
        DeferredOpaqueDrawFunction,
        phases.deferred.read().id::<DrawSetPrepass>(),
    );
    to.add_draw_function(
        DeferredAlphaMaskDrawFunction,
        phases.deferred_mask.read().id::<DrawSetPrepass>(),
    );
    to.add_draw_function(
        ShadowsDrawFunction,
        phases.shadow.read().id::<DrawSetPrepass>(),
    );
    to.add_draw_function(
        ShadowsDepthOnlyDrawFunction,
        phases.shadow.read().id::<DrawSetDepthOnly>(),
    );
    to
}

/// Whether a material is drawn in a phase in which far things come first.
pub(in crate::render) fn is_blended(properties: &MaterialProperties) -> bool {
    matches!(
        properties.render_phase_type,
        RenderPhaseType::Transmissive | RenderPhaseType::Transparent
    )
}
