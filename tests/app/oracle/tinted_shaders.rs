//! The shaders of tints, with shader defs that no adapter at hand may ask for: bindless materials,
//! order-independent transparency, and others.

use super::{
    build::{eye, ground, sun},
    stage, tinted,
};
use crate::scene::{How, Stage, field};
use bevy::{
    core_pipeline::prepass::{DeferredPrepass, DepthPrepass, MotionVectorPrepass, NormalPrepass},
    material::{OpaqueRendererMethod, descriptor::PipelineDescriptor},
    prelude::*,
    render::{RenderApp, render_resource::PipelineCache},
    shader::{ShaderCache, ShaderCacheError, ShaderCacheSource, ShaderDefVal, ValidateShader},
};
use naga::valid::{Capabilities, ValidationFlags, Validator};
use std::collections::HashSet;

type Cache = ShaderCache<(), ()>;

fn validate(
    _device: &(),
    source: ShaderCacheSource,
    _validate: &ValidateShader,
) -> Result<(), ShaderCacheError> {
    let ShaderCacheSource::Wgsl(wgsl) = source else {
        return Err(ShaderCacheError::CreateShaderModule("not WGSL".into()));
    };
    let module = naga::front::wgsl::parse_str(&wgsl)
        .map_err(|error| ShaderCacheError::CreateShaderModule(error.emit_to_string(&wgsl)))?;
    match Validator::new(ValidationFlags::all(), Capabilities::all()).validate(&module) {
        Ok(_) => Ok(()),
        Err(error) => Err(ShaderCacheError::CreateShaderModule(format!("{error:?}"))),
    }
}

/// Draws tinted sets and meshes, masked and deferred, so that their pipelines are made.
fn draw(stage: &mut Stage) {
    let mesh = Cuboid::from_length(0.5).mesh().build();
    let mesh = stage.mesh(mesh.with_generated_tangents().unwrap());
    for opaque_render_method in [
        OpaqueRendererMethod::Forward,
        OpaqueRendererMethod::Deferred,
    ] {
        let base = StandardMaterial {
            alpha_mode: AlphaMode::Mask(0.5),
            opaque_render_method,
            ..default()
        };
        let set = field(40, true);
        tinted::spawn(
            stage,
            &set,
            (mesh.clone(), base),
            Transform::IDENTITY,
            false,
        );
    }
    ground(stage);
    sun(stage);
    let prepasses = (DepthPrepass, NormalPrepass, MotionVectorPrepass);
    stage.camera(eye(), (Msaa::Off, prepasses, DeferredPrepass));
    stage.update(3);
}

/// The shader defs of the fragment stages with these shaders.
fn used_defs(stage: &Stage, name: &str) -> Vec<(AssetId<Shader>, Vec<ShaderDefVal>)> {
    let shaders = stage.app.world().resource::<Assets<Shader>>();
    let world = stage.app.sub_app(RenderApp).world();
    let cache = world.resource::<PipelineCache>();
    let mut known = HashSet::new();
    let mut found = Vec::new();
    for pipeline in cache.pipelines() {
        let PipelineDescriptor::RenderPipelineDescriptor(descriptor) = &pipeline.descriptor else {
            continue;
        };
        let Some(fragment) = &descriptor.fragment else {
            continue;
        };
        let shader = shaders.get(&fragment.shader);
        if shader.is_some_and(|shader| shader.path.ends_with(name))
            && known.insert(format!("{:?}", fragment.shader_defs))
        {
            found.push((fragment.shader.id(), fragment.shader_defs.clone()));
        }
    }
    found
}

#[test]
fn the_shaders_of_tints_build_with_all_defs() {
    let mut stage = stage(How::Set(None));
    draw(&mut stage);
    let mut cache = Cache::new((), validate);
    let shaders = stage.app.world().resource::<Assets<Shader>>();
    for (id, shader) in shaders.iter() {
        cache.set_shader(id, shader.clone());
    }
    // Bevy adds them to all shaders.
    let of_bevy = [
        ShaderDefVal::UInt("AVAILABLE_STORAGE_BUFFER_BINDINGS".into(), 8),
        "AVAILABLE_STORAGE_BUFFER_BINDINGS__GE_3".into(),
        "AVAILABLE_STORAGE_BUFFER_BINDINGS__GE_6".into(),
    ];
    let more: [&[&str]; 6] = [
        &[],
        &["BINDLESS"],
        &["VISIBILITY_RANGE_DITHER"],
        &["VERTEX_UVS_B", "STANDARD_MATERIAL_BASE_COLOR_UV_B"],
        &[
            "STANDARD_MATERIAL_NORMAL_MAP",
            "STANDARD_MATERIAL_NORMAL_MAP_UV_B",
            "VERTEX_UVS_B",
        ],
        &["MESH_COLORS", "BINDLESS", "STANDARD_MATERIAL_NORMAL_MAP"],
    ];
    let of_shadows = ["UNCLIPPED_DEPTH_ORTHO_EMULATION", "PREPASS_FRAGMENT"];
    let of_main = ["OIT_ENABLED", "MATERIAL_OIT_ENABLED"];
    for (name, last, min) in [
        ("tint_pbr.wesl", &of_main[..], 4),
        ("tint_prepass.wesl", &of_shadows[..], 4),
    ] {
        let used = used_defs(&stage, name);
        // Sets and meshes, in two passes.
        assert!(used.len() >= min, "{name}: {}", used.len());
        for (shader, defs) in used {
            for more in more.iter().copied().chain([last]) {
                let is_deferred = defs.contains(&"PREPASS_PIPELINE".into());
                if more == of_main && is_deferred {
                    continue;
                }
                let mut defs = defs.clone();
                defs.extend(more.iter().map(|def| ShaderDefVal::from(*def)));
                defs.extend(of_bevy.clone());
                let built = cache.get(0, shader, &defs);
                let error = built.err().map(|error| error.to_string());
                assert_eq!(error, None, "{name} with {defs:?}");
            }
        }
    }
}
