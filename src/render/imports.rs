//! Which shaders can read instances: a material's own vertex stage must be one of them.

use bevy::{
    material::MaterialProperties,
    pbr::{DeferredVertexShader, MaterialVertexShader, PrepassVertexShader},
    platform::collections::HashMap,
    prelude::*,
    render::Extract,
    shader::ShaderImport,
};

/// The module by which a vertex stage reads instances: `shaders/draw_instance.wgsl`.
const MODULE: &str = "bevy_gpu_culling::draw_instance";

/// By shader: whether it imports the module.
#[derive(Resource, Default)]
pub(super) struct InstancedShaders(HashMap<AssetId<Shader>, bool>);

/// Who transforms the vertices of a material on a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VertexStage {
    /// Ours, or one of the material's own that reads instances.
    Instanced,
    /// One of the material's own that has not been loaded.
    Loading,
    /// One of the material's own that knows nothing of instances.
    Foreign,
}

impl InstancedShaders {
    /// The vertex stage of a material.
    pub fn vertex_stage(&self, material: &MaterialProperties) -> VertexStage {
        let own = [
            material.get_shader(MaterialVertexShader),
            material.get_shader(PrepassVertexShader),
            material.get_shader(DeferredVertexShader),
        ];
        let mut stage = VertexStage::Instanced;
        for shader in own.iter().flatten() {
            match self.0.get(&shader.id()) {
                Some(true) => {}
                Some(false) => return VertexStage::Foreign,
                None => stage = VertexStage::Loading,
            }
        }
        stage
    }
}

/// Looks at shaders that were added or changed.
pub(super) fn extract_imports(
    mut instanced: ResMut<InstancedShaders>,
    mut events: Extract<MessageReader<AssetEvent<Shader>>>,
    shaders: Extract<Res<Assets<Shader>>>,
) {
    for event in events.read() {
        match event {
            AssetEvent::Added { id } | AssetEvent::Modified { id } => {
                if let Some(shader) = shaders.get(*id) {
                    instanced
                        .0
                        .insert(*id, shader.imports.iter().any(is_module));
                }
            }
            AssetEvent::Removed { id } => {
                instanced.0.remove(id);
            }
            AssetEvent::Unused { .. } | AssetEvent::LoadedWithDependencies { .. } => {}
        }
    }
}

/// The module itself, or an item of it.
fn is_module(import: &ShaderImport) -> bool {
    let ShaderImport::Custom(path) = import else {
        return false;
    };
    let rest = path.strip_prefix(MODULE);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(source: &'static str) -> bool {
        Shader::from_wgsl(source, "test.wgsl")
            .imports
            .iter()
            .any(is_module)
    }

    #[test]
    fn every_way_to_import_the_module_counts() {
        assert!(imports("#import bevy_gpu_culling::draw_instance"));
        assert!(imports("#import bevy_gpu_culling::draw_instance as d"));
        assert!(imports(
            "#import bevy_gpu_culling::draw_instance::{load, SET}"
        ));
        assert!(imports(
            "#import bevy_gpu_culling::draw_instance::load\nfn f() {}"
        ));
        assert!(imports(
            "#import bevy_gpu_culling::{draw_instance::{load, SET}}"
        ));
        assert!(!imports("#import bevy_gpu_culling::instance"));
        assert!(!imports("#import bevy_pbr::mesh_functions"));
        assert!(!imports("fn f() {}"));
    }
}
