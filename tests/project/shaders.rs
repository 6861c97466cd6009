//! The files of `shaders/` and the kernels that are composed of them.

use crate::{
    common::gpu,
    compose::{self, Composed, Files, Kernel, compose, features},
};
use bevy_gpu_culling::cull::{
    Compaction, CullError, Culler, CullerOptions, CullingTier, policy::OVERRIDES,
};
use std::{collections::BTreeSet, fs, path::Path};

/// Most files of `shaders/`.
const MAX_FILES: usize = 80;
/// Most files of one kernel. `occlude` reaches the most: it loads instances, projects them and
/// looks at depth.
const MAX_FILES_OF_A_KERNEL: usize = 8;

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders")
}

fn files() -> Files {
    compose::read(&folder()).unwrap()
}

/// Every kernel on both tiers, with its features.
fn kernels() -> impl Iterator<Item = (&'static Kernel, Vec<&'static str>)> {
    compose::kernels().flat_map(|kernel| [true, false].map(|tier| (kernel, features(kernel, tier))))
}

/// A kernel, parsed; or the error of one that does not compose or does not parse.
fn module(files: &Files, kernel: &Kernel, features: &[&str]) -> Result<naga::Module, String> {
    let composed = compose(files, kernel, features)?;
    let parsed = naga::front::wgsl::parse_str(&composed.text);
    parsed.map_err(|error| error.emit_to_string(&composed.text))
}

fn error(files: &Files, kernel: &Kernel, features: &[&str]) -> Option<String> {
    module(files, kernel, features).err()
}

#[test]
fn every_kernel_composes_and_parses_alone() {
    let files = files();
    for (kernel, features) in kernels() {
        let error = error(&files, kernel, &features);
        assert_eq!(error, None, "{} with {features:?}", kernel.name);
    }
}

#[test]
fn the_files_are_few_and_no_kernel_has_many() {
    let rooms = fs::read_dir(folder()).unwrap();
    let count = |room: fs::DirEntry| fs::read_dir(room.path()).unwrap().count();
    let all: usize = rooms.map(|room| count(room.unwrap())).sum();
    assert!(all <= MAX_FILES, "{all} files");
    let files = files();
    let mut used = BTreeSet::new();
    for (kernel, features) in kernels() {
        let Composed { files, .. } = compose(&files, kernel, &features).unwrap();
        let name = kernel.name;
        assert!(files.len() <= MAX_FILES_OF_A_KERNEL, "{name}: {files:?}");
        used.extend(files);
    }
    // Vertex and fragment stages are composed by Bevy.
    let stages = fs::read_dir(folder().join("draw")).unwrap();
    let stages: String = stages
        .map(|stage| fs::read_to_string(stage.unwrap().path()).unwrap())
        .collect();
    let is_used = |file: &String| {
        let stem = file.rsplit('/').next().unwrap();
        used.contains(file) || stages.contains(&format!("import package::{stem}"))
    };
    let unused: Vec<_> = files.keys().filter(|file| !is_used(file)).collect();
    assert!(unused.is_empty(), "no shader uses {unused:?}");
}

/// Without an import, some kernel that the file is a part of does not build.
#[test]
fn each_import_is_needed() {
    let all = files();
    let composed: Vec<_> = kernels()
        .map(|(kernel, features)| {
            let files = compose(&all, kernel, &features).unwrap().files;
            (kernel, features, files)
        })
        .collect();
    let mut unneeded = Vec::new();
    for (name, file) in &all {
        for (index, import) in file.imports.iter().enumerate() {
            let mut without = all.clone();
            without.get_mut(name).unwrap().imports.remove(index);
            let mut users = composed.iter().filter(|(_, _, files)| files.contains(name));
            let breaks =
                users.any(|(kernel, features, _)| error(&without, kernel, features).is_some());
            if !breaks {
                unneeded.push(format!("{name} imports {} of {}", import.name, import.file));
            }
        }
    }
    assert!(unneeded.is_empty(), "not needed: {unneeded:#?}");
}

/// A kernel without a value for an override has no pipeline, and a value that no kernel uses is a
/// threshold that decides nothing.
#[test]
fn every_override_has_a_value_in_the_policy_and_every_value_is_used() {
    let files = files();
    let values: BTreeSet<_> = OVERRIDES
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    assert_eq!(values.len(), OVERRIDES.len(), "a name is there twice");
    let mut used = BTreeSet::new();
    for (kernel, features) in kernels() {
        let module = module(&files, kernel, &features).unwrap();
        for (_, declared) in module.overrides.iter() {
            let name = declared.name.clone().unwrap();
            let place = format!("{name} of {}", kernel.name);
            assert!(values.contains(&name), "policy.rs has no value for {place}");
            assert!(declared.init.is_none(), "{place} has a second value");
            used.insert(name);
        }
    }
    assert_eq!(used, values, "of kernels, and of policy.rs");
}

#[test]
fn an_error_of_a_kernel_names_file_and_line() {
    let line = "    return dot(away, away) <= reach * reach;";
    // A name that does not exist, for the parser; a type that is wrong, for the validator.
    for (to, reason) in [
        ("    return missing;", "missing"),
        ("    return reach * 2.0;", "return"),
    ] {
        let (place, message) = place_and_error("shared/visibility", line, to);
        assert!(message.starts_with(&place), "{place}: {message}");
        assert!(message.contains(reason), "{message}");
    }
}

/// What the kernel is valid with, but the pass does not bind.
#[test]
fn a_binding_that_the_pass_lacks_is_named_with_file_and_line() {
    let line = "@group(0) @binding(6) var<storage, read> words: array<vec4<u32>>;";
    let to = line.replace("binding(6)", "binding(77)");
    let (place, message) = place_and_error("cull/compact", line, &to);
    assert!(message.starts_with(&place), "{place}: {message}");
    assert!(message.contains("words has binding 77"), "{message}");
}

/// The place of `line` in a file, and the error of kernels with `to` in its place.
fn place_and_error(file: &str, line: &str, to: &str) -> (String, String) {
    let options = CullerOptions {
        tier: Some(CullingTier::Workgroup),
        compaction: Compaction::Classify,
        ..CullerOptions::default()
    };
    let broken = |_: &str, source: String| source.replace(line, to);
    let error = Culler::with_sources(gpu().device, options, broken).err();
    let Some(CullError::Pipeline { message, .. }) = error else {
        panic!("{error:?}");
    };
    let text = fs::read_to_string(folder().join(format!("{file}.wesl"))).unwrap();
    let expected = text.lines().position(|found| found == line).unwrap() + 1;
    (format!("shaders/{file}.wesl:{expected}: "), message)
}

#[test]
fn a_file_that_uses_a_name_without_importing_it_is_refused() {
    let file = |text: &str| compose::parse(text).unwrap();
    let kernel = Kernel {
        name: "test",
        file: "a/main",
        entries: &["main"],
        features: &[],
    };
    let mut files = Files::new();
    files.insert("a/one".into(), file("const ONE: u32 = TWO;\n"));
    files.insert("a/two".into(), file("const TWO: u32 = 2u;\n"));
    let main = "import package::a::one::ONE;\n@if(!subgroup) import package::a::two::TWO;\n\nfn main() -> u32 { return ONE; }\n";
    files.insert("a/main".into(), file(main));
    let error = compose(&files, &kernel, &[]).unwrap_err();
    assert!(error.contains("a/one uses TWO of a/two"), "{error}");
    // A condition that does not hold imports nothing, so naga is the one to complain.
    assert!(compose(&files, &kernel, &["subgroup"]).is_ok());
    files.insert(
        "a/one".into(),
        file("import package::a::two::TWO;\nconst ONE: u32 = TWO;\n"),
    );
    let composed = compose(&files, &kernel, &["subgroup"]).unwrap();
    assert_eq!(composed.files, ["a/two", "a/one", "a/main"]);
    files.insert(
        "a/two".into(),
        file("const TWO: u32 = 2u;\nconst main: u32 = 1u;\n"),
    );
    files.insert(
        "a/one".into(),
        file("import package::a::two::{TWO, main};\nconst ONE: u32 = TWO + main;\n"),
    );
    let error = compose(&files, &kernel, &["subgroup"]).unwrap_err();
    assert!(error.contains("both declare main"), "{error}");
}
