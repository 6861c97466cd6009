//! Which shaders read instances.

use bevy::{
    material::MaterialProperties,
    pbr::{DeferredVertexShader, MaterialVertexShader, PrepassVertexShader},
    platform::collections::{HashMap, HashSet},
    prelude::*,
    render::Extract,
    shader::{ShaderImport, Source},
};

/// The module by which a vertex stage reads instances: `shaders/draw/instance.wesl`.
const MODULE: &str = "bevy_gpu_culling::draw_instance";
/// The module by which a vertex stage says how instances fade: `shaders/draw/fade.wesl`.
const FADE_MODULE: &str = "bevy_gpu_culling::draw_fade";

/// The imports of all shaders that are loaded.
#[derive(Resource, Default)]
pub(in crate::render) struct InstancedShaders {
    shaders: HashMap<AssetId<Shader>, Imports>,
    /// Shaders by the name under which others import them.
    names: HashMap<ShaderImport, AssetId<Shader>>,
}

/// What a shader imports.
struct Imports {
    /// The name under which others import it.
    name: ShaderImport,
    /// Whether its source names [`MODULE`], in an import or in a path.
    names_module: bool,
    /// The same for [`FADE_MODULE`].
    names_fade: bool,
    imports: Vec<ShaderImport>,
    /// The files among them.
    files: Vec<AssetId<Shader>>,
}

/// The vertex stage of a material.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::render) enum VertexStage {
    /// Not the material's own, but ours or Bevy's.
    Default,
    /// The material's own, which reads instances.
    Instanced,
    /// The same, and it says how they fade.
    Fading,
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
        let own = own.iter().flatten();
        let known: Vec<_> = (own.clone())
            .map(|shader| self.reads_instances(shader.id()))
            .collect();
        let fades = |shader: &Handle<Shader>| {
            self.reaches(shader.id(), |known| known.names_fade) == Some(true)
        };
        match (known.contains(&Some(true)), known.contains(&Some(false))) {
            _ if known.contains(&None) => VertexStage::Loading,
            (true, true) => VertexStage::Mixed,
            (true, false) if own.clone().all(fades) => VertexStage::Fading,
            (true, false) => VertexStage::Instanced,
            (false, true) => VertexStage::Foreign,
            (false, false) => VertexStage::Default,
        }
    }

    /// Whether a shader imports the module, itself or through other shaders; `None` if that is not
    /// known yet, because a file that it imports is not loaded.
    fn reads_instances(&self, shader: AssetId<Shader>) -> Option<bool> {
        self.reaches(shader, |known| known.names_module)
    }

    /// Whether a shader or one that it imports is of a kind; `None` if that is not known yet.
    fn reaches(&self, shader: AssetId<Shader>, is_kind: fn(&Imports) -> bool) -> Option<bool> {
        let mut met = HashSet::from([shader]);
        let mut open = vec![shader];
        let mut is_whole = true;
        while let Some(shader) = open.pop() {
            let Some(known) = self.shaders.get(&shader) else {
                is_whole = false;
                continue;
            };
            if is_kind(known) {
                return Some(true);
            }
            // Bevy lists an imported item beside its module, so not all of them are shaders.
            let modules = known.imports.iter();
            let modules = modules.filter_map(|import| self.names.get(import));
            for next in known.files.iter().chain(modules) {
                if met.insert(*next) {
                    open.push(*next);
                }
            }
        }
        is_whole.then_some(false)
    }

    fn insert(&mut self, id: AssetId<Shader>, shader: &Shader) {
        self.remove(id);
        self.names.insert(shader.import_path.clone(), id);
        let files = shader.file_dependencies.iter();
        let names_module = |module| {
            shader.imports.iter().any(|import| is_of(import, module))
                || matches!(&shader.source, Source::Wesl(source) if names(source, module))
        };
        let imports = Imports {
            name: shader.import_path.clone(),
            names_module: names_module(MODULE),
            names_fade: names_module(FADE_MODULE),
            imports: shader.imports.clone(),
            files: files.map(Handle::id).collect(),
        };
        self.shaders.insert(id, imports);
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
                    warn_of_wgsl(shader);
                }
            }
            AssetEvent::Removed { id } => {
                instanced.remove(*id);
            }
            AssetEvent::Unused { .. } | AssetEvent::LoadedWithDependencies { .. } => {}
        }
    }
}

/// Tells that Bevy reads no imports in a file of WGSL.
fn warn_of_wgsl(shader: &Shader) {
    if let Source::Wgsl(source) = &shader.source
        && names(source, "bevy_gpu_culling::")
    {
        let path = &shader.path;
        error!(
            "the shader {path} imports modules of bevy_gpu_culling, but Bevy reads imports and conditions only in \
             WESL: rename it to .wesl (in Rust, Shader::from_wesl), and write `import` for `#import` and `@if` for `#ifdef`"
        );
    }
}

/// Whether it imports a module, or an item of it.
fn is_of(import: &ShaderImport, module: &str) -> bool {
    let ShaderImport::Custom(path) = import else {
        return false;
    };
    let rest = path.strip_prefix(module);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Whether a source has this path outside of comments to the end of a line. Bevy lists no paths
/// that are written without an import.
fn names(source: &str, path: &str) -> bool {
    let mut code = source.lines().filter_map(|line| line.split("//").next());
    code.any(|line| line.contains(path))
}

#[cfg(test)]
mod any_shaders;

#[cfg(test)]
mod tests {
    use super::*;
    use bevy::asset::uuid_handle;

    /// Whether a shader of this source reads instances.
    fn reads(source: &str) -> bool {
        let mut shaders = InstancedShaders::default();
        let source = format!("{source}\nfn f() {{ }}\n");
        shaders.insert(id_of(1), &Shader::from_wesl(source, "test.wesl"));
        shaders.reads_instances(id_of(1)) == Some(true)
    }

    #[test]
    fn the_vertex_stages_of_a_material_are_of_one_kind_or_mixed() {
        let reads: Handle<Shader> = uuid_handle!("b2f0a7c4-7a4e-4a3b-9a53-0d8c4a5e6f01");
        let foreign: Handle<Shader> = uuid_handle!("b2f0a7c4-7a4e-4a3b-9a53-0d8c4a5e6f02");
        let missing: Handle<Shader> = uuid_handle!("b2f0a7c4-7a4e-4a3b-9a53-0d8c4a5e6f03");
        let mut shaders = InstancedShaders::default();
        let source = "import bevy_gpu_culling::draw_instance;\nfn f() { draw_instance::load(0u); }";
        shaders.insert(reads.id(), &Shader::from_wesl(source, "reads.wesl"));
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

    /// A file of the tests below: number, path, source, and the numbers of the files that it
    /// imports.
    type File = (u32, &'static str, &'static str, &'static [u32]);

    fn shader_of((_, path, source, files): &File) -> Shader {
        let mut shader = Shader::from_wesl(*source, *path);
        let handle = |number: &u32| Handle::Uuid(uuid_of(*number), core::marker::PhantomData);
        shader.file_dependencies = files.iter().map(handle).collect();
        shader
    }

    fn uuid_of(number: u32) -> bevy::asset::uuid::Uuid {
        bevy::asset::uuid::Uuid::from_u128(u128::from(number))
    }

    fn id_of(number: u32) -> AssetId<Shader> {
        AssetId::Uuid {
            uuid: uuid_of(number),
        }
    }

    #[test]
    fn a_shader_reads_instances_through_those_that_it_imports() {
        const OURS: File = (
            1,
            "embedded://game/ours.wesl",
            "import bevy_gpu_culling::draw_instance;\nfn g() { draw_instance::load(0u); }",
            &[],
        );
        const FILES: [File; 10] = [
            OURS,
            (
                2,
                "embedded://game/middle.wesl",
                "import package::ours;\nfn h() { ours::g(); }",
                &[],
            ),
            (
                3,
                "by_name.wesl",
                "import game::middle;\nfn f() { middle::h(); }",
                &[],
            ),
            (
                4,
                "by_item.wesl",
                "import game::middle::h;\nfn f() { h(); }",
                &[],
            ),
            (
                5,
                "by_path.wesl",
                "import package::helper;\nfn f() { helper::h(); }",
                &[6],
            ),
            (
                6,
                "helper.wesl",
                "import game::ours;\nfn h() { ours::g(); }",
                &[],
            ),
            (7, "embedded://game/other.wesl", "fn g() {}", &[]),
            (
                8,
                "embedded://game/a.wesl",
                "import game::b;\nfn f() { b::f(); }",
                &[],
            ),
            (
                9,
                "embedded://game/b.wesl",
                "import game::a;\nfn f() { a::f(); }",
                &[],
            ),
            (
                10,
                "of_other.wesl",
                "import game::{other, a};\nfn f() { other::g(); a::f(); }",
                &[],
            ),
        ];
        let mut shaders = InstancedShaders::default();
        for file in &FILES {
            shaders.insert(id_of(file.0), &shader_of(file));
        }
        let reads = |shaders: &InstancedShaders, number| shaders.reads_instances(id_of(number));
        for (number, path, ..) in FILES {
            assert_eq!(reads(&shaders, number), Some(number <= 6), "{path}");
        }
        // A file that is not loaded yet may read instances.
        shaders.remove(id_of(6));
        assert_eq!(reads(&shaders, 5), None);
        assert_eq!(reads(&shaders, 11), None);
        // A module that nobody has may be behind a condition.
        shaders.remove(id_of(1));
        assert_eq!(reads(&shaders, 3), Some(false));
        shaders.insert(id_of(1), &shader_of(&OURS));
        assert_eq!(reads(&shaders, 3), Some(true));
    }

    #[test]
    fn every_way_to_name_the_module_counts() {
        assert!(reads("import bevy_gpu_culling::draw_instance;"));
        assert!(reads("import bevy_gpu_culling::draw_instance as d;"));
        assert!(reads(
            "import bevy_gpu_culling::draw_instance::{load, position_to_set};"
        ));
        assert!(reads("import bevy_gpu_culling::draw_instance::load;"));
        assert!(reads("import bevy_gpu_culling::{draw_instance::{load}};"));
        assert!(reads(
            "fn g() { bevy_gpu_culling::draw_instance::load(0u); }"
        ));
        assert!(!reads("// As bevy_gpu_culling::draw_instance does."));
        assert!(!reads("import bevy_gpu_culling::instance;"));
        assert!(!reads("import bevy_pbr::render::mesh_functions;"));
        assert!(!reads(""));
    }
}
