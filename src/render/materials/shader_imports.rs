//! Which shaders read instances.

use bevy::{
    material::MaterialProperties,
    pbr::{DeferredVertexShader, MaterialVertexShader, PrepassVertexShader},
    platform::collections::{HashMap, HashSet},
    prelude::*,
    render::Extract,
    shader::ShaderImport,
};

/// The module by which a vertex stage reads instances: `shaders/draw/instance.wgsl`.
const MODULE: &str = "bevy_gpu_culling::draw_instance";

/// The imports of all shaders that are loaded.
#[derive(Resource, Default)]
pub(in crate::render) struct InstancedShaders {
    shaders: HashMap<AssetId<Shader>, Imports>,
    /// Shaders by the name under which others import them.
    names: HashMap<String, AssetId<Shader>>,
}

/// What a shader imports.
struct Imports {
    /// The name under which others import it.
    name: String,
    imports: Vec<ShaderImport>,
}

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
            .map(|shader| self.reads_instances(shader.id()))
            .collect();
        match (known.contains(&Some(true)), known.contains(&Some(false))) {
            _ if known.contains(&None) => VertexStage::Loading,
            (true, true) => VertexStage::Mixed,
            (true, false) => VertexStage::Instanced,
            (false, true) => VertexStage::Foreign,
            (false, false) => VertexStage::Default,
        }
    }

    /// Whether a shader imports the module, itself or through other shaders; `None` if that is not
    /// known yet, because a file that it imports is not loaded.
    fn reads_instances(&self, shader: AssetId<Shader>) -> Option<bool> {
        let mut met = HashSet::from([shader]);
        let mut open = vec![shader];
        let mut is_whole = true;
        while let Some(shader) = open.pop() {
            let Some(known) = self.shaders.get(&shader) else {
                is_whole = false;
                continue;
            };
            for import in &known.imports {
                if is_module(import) {
                    return Some(true);
                }
                match self.imported(import) {
                    Some(next) if met.insert(next) => open.push(next),
                    Some(_) => {}
                    // The others may be behind a condition, and then nobody needs them.
                    None => is_whole &= !matches!(import, ShaderImport::AssetPath(_)),
                }
            }
        }
        is_whole.then_some(false)
    }

    /// The shader that is imported: it has that name, or an item of it does.
    fn imported(&self, import: &ShaderImport) -> Option<AssetId<Shader>> {
        let name = import.module_name();
        let mut name: &str = &name;
        loop {
            if let Some(found) = self.names.get(name) {
                return Some(*found);
            }
            let (module, _) = name.rsplit_once("::")?;
            name = module;
        }
    }

    fn insert(&mut self, id: AssetId<Shader>, shader: &Shader) {
        self.remove(id);
        let name = shader.import_path.module_name().into_owned();
        self.names.insert(name.clone(), id);
        let imports = shader.imports.clone();
        self.shaders.insert(id, Imports { name, imports });
    }

    fn remove(&mut self, id: AssetId<Shader>) {
        if let Some(known) = self.shaders.remove(&id)
            && self.names.get(&known.name) == Some(&id)
        {
            self.names.remove(&known.name);
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
                    instanced.insert(*id, shader);
                }
            }
            AssetEvent::Removed { id } => {
                instanced.remove(*id);
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
        let mut shaders = InstancedShaders::default();
        let source = "#import bevy_gpu_culling::draw_instance\nfn f() { draw_instance::load(0u); }";
        shaders.insert(reads.id(), &Shader::from_wgsl(source, "reads.wgsl"));
        shaders.insert(
            foreign.id(),
            &Shader::from_wgsl("fn f() {}", "foreign.wgsl"),
        );
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

    /// The shaders of these files: a shader's name is the end of its source's first line, if it has
    /// one.
    fn shaders_of(files: &[(u32, &str, &str)]) -> InstancedShaders {
        let mut shaders = InstancedShaders::default();
        for (number, path, source) in files {
            let shader = Shader::from_wgsl((*source).to_owned(), (*path).to_owned());
            shaders.insert(id_of(*number), &shader);
        }
        shaders
    }

    fn id_of(number: u32) -> AssetId<Shader> {
        AssetId::Uuid {
            uuid: bevy::asset::uuid::Uuid::from_u128(u128::from(number)),
        }
    }

    #[test]
    fn a_shader_reads_instances_through_those_that_it_imports() {
        const OURS: &str = "#define_import_path game::ours\n#import bevy_gpu_culling::draw_instance\n\
                            fn g() { draw_instance::load(0u); }";
        const MIDDLE: &str = "#define_import_path game::middle\n#import game::ours\n\
                              fn h() { ours::g(); }";
        const BY_NAME: &str = "#import game::middle\nfn f() { middle::h(); }";
        const BY_ITEM: &str = "#import game::middle::h\nfn f() { h(); }";
        const BY_PATH: &str = "#import \"helper.wgsl\" as helper\nfn f() { helper::h(); }";
        const HELPER: &str = "#import game::ours\nfn h() { ours::g(); }";
        const OTHER: &str = "#define_import_path game::other\nfn g() {}";
        const LOOP_A: &str = "#define_import_path game::a\n#import game::b\nfn f() { b::f(); }";
        const LOOP_B: &str = "#define_import_path game::b\n#import game::a\nfn f() { a::f(); }";
        const OF_OTHER: &str =
            "#import game::other\n#import game::a\nfn f() { other::g(); a::f(); }";
        let files = [
            (1, "ours.wgsl", OURS),
            (2, "middle.wgsl", MIDDLE),
            (3, "by_name.wgsl", BY_NAME),
            (4, "by_item.wgsl", BY_ITEM),
            (5, "by_path.wgsl", BY_PATH),
            (6, "helper.wgsl", HELPER),
            (7, "other.wgsl", OTHER),
            (8, "a.wgsl", LOOP_A),
            (9, "b.wgsl", LOOP_B),
            (10, "of_other.wgsl", OF_OTHER),
        ];
        let mut shaders = shaders_of(&files);
        let reads = |shaders: &InstancedShaders, number| shaders.reads_instances(id_of(number));
        for number in 1..=6 {
            assert_eq!(
                reads(&shaders, number),
                Some(true),
                "{}",
                files[number as usize - 1].1
            );
        }
        for number in 7..=10 {
            assert_eq!(
                reads(&shaders, number),
                Some(false),
                "{}",
                files[number as usize - 1].1
            );
        }
        // A file that is not loaded yet may read instances.
        shaders.remove(id_of(6));
        assert_eq!(reads(&shaders, 5), None);
        assert_eq!(reads(&shaders, 11), None);
        // A module that nobody has may be behind a condition.
        shaders.remove(id_of(1));
        assert_eq!(reads(&shaders, 3), Some(false));
        shaders.insert(id_of(1), &Shader::from_wgsl(OURS, "ours.wgsl"));
        assert_eq!(reads(&shaders, 3), Some(true));
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
