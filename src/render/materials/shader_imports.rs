//! Which shaders read instances.

use bevy::{
    material::MaterialProperties,
    pbr::{DeferredVertexShader, MaterialVertexShader, PrepassVertexShader},
    platform::collections::HashMap,
    prelude::*,
    render::Extract,
    shader::ShaderImport,
};

/// The module by which a vertex stage reads instances: `shaders/draw/instance.wgsl`.
const MODULE: &str = "bevy_gpu_culling::draw_instance";

/// Whether each shader imports the module.
#[derive(Resource, Default)]
pub(in crate::render) struct InstancedShaders(HashMap<AssetId<Shader>, bool>);

/// The vertex stage of a material.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::render) enum VertexStage {
    /// Not the material's own, but ours or Bevy's.
    Default,
    /// The material's own, which reads instances.
    Instanced,
    /// The material's own, which is not loaded.
    Loading,
    /// The material's own, which does not read instances.
    Foreign,
    /// The material has several (main pass, prepass, deferred): one reads instances, another does
    /// not.
    Mixed,
}

impl InstancedShaders {
    /// The vertex stage of a material.
    pub fn vertex_stage(&self, material: &MaterialProperties) -> VertexStage {
        let own = [
            material.get_shader(MaterialVertexShader),
            material.get_shader(PrepassVertexShader),
            material.get_shader(DeferredVertexShader),
        ];
        let known: Vec<_> = own
            .iter()
            .flatten()
            .map(|shader| self.0.get(&shader.id()).copied())
            .collect();
        match (known.contains(&Some(true)), known.contains(&Some(false))) {
            _ if known.contains(&None) => VertexStage::Loading,
            (true, true) => VertexStage::Mixed,
            (true, false) => VertexStage::Instanced,
            (false, true) => VertexStage::Foreign,
            (false, false) => VertexStage::Default,
        }
    }
}

/// Reads the imports of shaders that were added or changed.
pub(in crate::render) fn extract_imports(
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

    /// Whether a shader with this import and call reads instances. An unused import does not count.
    fn imports(line: &str, call: &str) -> bool {
        let source = format!("{line}\nfn f() {{ let i = {call}(0u); }}\n");
        Shader::from_wgsl(source, "test.wgsl")
            .imports
            .iter()
            .any(is_module)
    }

    #[test]
    fn the_vertex_stages_of_a_material_are_of_one_kind_or_mixed() {
        use bevy::asset::uuid_handle;
        let reads: Handle<Shader> = uuid_handle!("b2f0a7c4-7a4e-4a3b-9a53-0d8c4a5e6f01");
        let foreign: Handle<Shader> = uuid_handle!("b2f0a7c4-7a4e-4a3b-9a53-0d8c4a5e6f02");
        let missing: Handle<Shader> = uuid_handle!("b2f0a7c4-7a4e-4a3b-9a53-0d8c4a5e6f03");
        let known = [(reads.id(), true), (foreign.id(), false)];
        let shaders = InstancedShaders(known.into_iter().collect());
        let stage = |main: Option<&Handle<Shader>>, prepass: Option<&Handle<Shader>>| {
            let mut material = MaterialProperties::default();
            if let Some(shader) = main {
                material.add_shader(MaterialVertexShader, shader.clone());
            }
            if let Some(shader) = prepass {
                material.add_shader(PrepassVertexShader, shader.clone());
            }
            shaders.vertex_stage(&material)
        };
        let (reads, foreign, missing) = (Some(&reads), Some(&foreign), Some(&missing));
        assert_eq!(stage(None, None), VertexStage::Default);
        assert_eq!(stage(reads, None), VertexStage::Instanced);
        assert_eq!(stage(reads, reads), VertexStage::Instanced);
        assert_eq!(stage(foreign, None), VertexStage::Foreign);
        assert_eq!(stage(None, foreign), VertexStage::Foreign);
        assert_eq!(stage(reads, foreign), VertexStage::Mixed);
        assert_eq!(stage(foreign, reads), VertexStage::Mixed);
        assert_eq!(stage(foreign, missing), VertexStage::Loading);
    }

    #[test]
    fn every_way_to_import_the_module_counts() {
        let module = "#import bevy_gpu_culling::draw_instance";
        assert!(imports(module, "draw_instance::load"));
        assert!(imports(&format!("{module} as d"), "d::load"));
        assert!(imports(
            &format!("{module}::{{load, position_to_set}}"),
            "load"
        ));
        assert!(imports(&format!("{module}::load"), "load"));
        assert!(imports(
            "#import bevy_gpu_culling::{draw_instance::{load}}",
            "load"
        ));
        assert!(!imports(
            "#import bevy_gpu_culling::instance",
            "instance::unpack_quat"
        ));
        assert!(!imports(
            "#import bevy_pbr::mesh_functions",
            "mesh_functions::get_tag"
        ));
        assert!(!imports("", "load"));
    }
}
