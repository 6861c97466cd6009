//! This crate's WESL modules.

use crate::cull::shaders;
use bevy::{
    asset::io::{embedded::EmbeddedAssetRegistry, memory::Value},
    prelude::*,
};
use std::path::Path;

/// Our shaders.
#[derive(Resource, Clone)]
pub(in crate::render) struct DrawShaders {
    /// Vertex stage of the main passes.
    pub mesh: Handle<Shader>,
    /// Vertex stage of prepasses and shadow maps.
    pub prepass: Handle<Shader>,
    /// Fragment stage of prepasses that write nothing but depth, for sets that fade.
    pub fade_depth: Handle<Shader>,
}

impl DrawShaders {
    /// Registers the shaders. An instance is decoded by the engine's own source.
    pub fn load(app: &App) -> Self {
        let decode = [shaders::INSTANCE, shaders::INSTANCE_PACK].join("\n");
        add_module(app, "instance", decode.into_bytes());
        for (name, source) in [
            ("thin", shaders::THIN),
            (
                "draw_instance",
                include_str!("../../../shaders/draw/instance.wesl"),
            ),
            ("draw_fade", include_str!("../../../shaders/draw/fade.wesl")),
            ("draw_wind", include_str!("../../../shaders/draw/wind.wesl")),
            (
                "draw_animation",
                include_str!("../../../shaders/draw/animation.wesl"),
            ),
        ] {
            add_module(app, name, source.as_bytes());
        }
        let stage = |name, source: &'static str| add_module(app, name, source.as_bytes());
        Self {
            mesh: stage("draw_mesh", include_str!("../../../shaders/draw/mesh.wesl")),
            prepass: stage(
                "draw_prepass",
                include_str!("../../../shaders/draw/prepass.wesl"),
            ),
            fade_depth: stage(
                "fade_depth",
                include_str!("../../../shaders/draw/fade_depth.wesl"),
            ),
        }
    }
}

/// Registers a WESL module as Bevy registers its own: as an embedded asset, which stays loaded.
/// Others import it as `bevy_gpu_culling::{name}`.
pub(in crate::render) fn add_module(
    app: &App,
    name: &str,
    source: impl Into<Value>,
) -> Handle<Shader> {
    let file = format!("bevy_gpu_culling/{name}.wesl");
    let registry = app.world().resource::<EmbeddedAssetRegistry>();
    registry.insert_asset(file.clone().into(), Path::new(&file), source);
    let server = app.world().resource::<AssetServer>();
    let shader = server.load(format!("embedded://{file}"));
    core::mem::forget(shader.clone());
    shader
}
