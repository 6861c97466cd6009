//! The files of `shaders/` are standard WESL: the crate `wesl` parses them, and links each kernel
//! to the declarations that the project's composer takes.

use crate::compose::{self, Files, Kernel, compose, features, kernels};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};
use wesl::{
    CompileOptions, Features, ManglerKind,
    resolver::VirtualResolver,
    syntax::{GlobalDeclaration, GlobalDeclarationNode, ModulePath, PathOrigin, TranslationUnit},
};

/// Files whose declarations the composer keeps together, because a caller's WGSL may use them all.
/// `wesl` keeps those that the kernel reaches.
const WHOLE: [&str; 2] = ["shared/instance", "expand/layout"];
/// The module that mentions a kernel's entry points, and its function that does.
const ROOT: &str = "root";
/// The module that files import their hooks from.
const HOOKS: &str = "hooks";

/// Texts of `shaders/` by name, without ending: `cull/vote`.
type Texts = BTreeMap<String, String>;

fn files() -> (Files, Texts) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders");
    let rooms = fs::read_dir(&folder).unwrap();
    let paths = rooms.flat_map(|room| fs::read_dir(room.unwrap().path()).unwrap());
    let named = paths.map(|file| {
        let path = file.unwrap().path();
        assert_eq!(path.extension().unwrap(), "wesl", "{}", path.display());
        let name = path.strip_prefix(&folder).unwrap().with_extension("");
        let name = name.to_str().unwrap().replace('\\', "/");
        (name, fs::read_to_string(&path).unwrap())
    });
    (compose::read(&folder).unwrap(), named.collect())
}

fn parse(text: &str) -> Result<TranslationUnit, String> {
    text.parse().map_err(|error| format!("{error}"))
}

fn module(name: &str) -> ModulePath {
    let components = name.split('/').map(str::to_owned).collect();
    ModulePath::new(PathOrigin::Absolute, components)
}

fn import(file: &str, names: &str) -> String {
    format!(
        "import package::{}::{{{names}}};\n",
        file.replace('/', "::")
    )
}

/// The hooks of a file, as its header lists them.
fn hooks(text: &str) -> Option<&str> {
    let names = text
        .lines()
        .find_map(|line| line.strip_prefix("// Hooks: "))?;
    names.split('.').next()
}

/// The modules that `wesl` links a kernel from: the files, a root, and what is said outside of
/// WESL. A file imports its hooks from a module which imports them
/// from the kernel's file, or from the only one of the kernel's files that declares them.
fn modules(
    texts: &Texts,
    kernel: &Kernel,
    files: &[String],
) -> Result<VirtualResolver<'static>, String> {
    let mut modules = VirtualResolver::new();
    for (name, text) in texts {
        let imports = hooks(text).map_or(String::new(), |names| import(HOOKS, names));
        modules.add_module(module(name), format!("{imports}{text}").into());
    }
    let mut imports = String::new();
    let all_hooks = files.iter().filter_map(|file| hooks(&texts[file]));
    for hook in all_hooks
        .flat_map(|names| names.split(", "))
        .collect::<BTreeSet<_>>()
    {
        let declares = |file: &&String| {
            parse(&texts[*file]).is_ok_and(|unit| declarations(&unit).any(|(name, _)| name == hook))
        };
        let found: Vec<_> = files.iter().filter(declares).map(String::as_str).collect();
        match found[..] {
            [file] => imports += &import(file, hook),
            _ if found.contains(&kernel.file) => imports += &import(kernel.file, hook),
            // Nothing that the kernel reaches mentions it.
            [] => {}
            _ => return Err(format!("{found:?} declare the hook {hook}")),
        }
    }
    modules.add_module(module(HOOKS), imports.into());
    let import = import(kernel.file, &kernel.entries.join(", "));
    let mentions = kernel.entries.join("; _ = ");
    let root = format!("{import}fn {ROOT}() {{ _ = {mentions}; }}\n");
    modules.add_module(module(ROOT), root.into());
    Ok(modules)
}

/// The kernel, linked by `wesl`.
fn link(modules: &VirtualResolver<'_>, features: &[&str]) -> Result<TranslationUnit, String> {
    let flags = features
        .iter()
        .map(|name| ((*name).to_owned(), true.into()));
    let options = CompileOptions {
        mangler: ManglerKind::None,
        keep: Some(vec![ROOT.into()]),
        features: Features {
            flags: flags.collect(),
            ..Features::default()
        },
        ..CompileOptions::default()
    };
    let linked = wesl::compile(&module(ROOT), &options, modules);
    linked
        .map(|linked| linked.syntax)
        .map_err(|error| error.to_string())
}

/// The declarations of a text in order, each by its name. An assertion is named by its code.
fn declarations(unit: &TranslationUnit) -> impl Iterator<Item = (String, &GlobalDeclarationNode)> {
    let named = |declaration: &GlobalDeclaration| match declaration {
        GlobalDeclaration::Declaration(declaration) => declaration.ident.to_string(),
        GlobalDeclaration::TypeAlias(alias) => alias.ident.to_string(),
        GlobalDeclaration::Struct(structure) => structure.ident.to_string(),
        GlobalDeclaration::Function(function) => function.ident.to_string(),
        other => other.to_string(),
    };
    unit.global_declarations
        .iter()
        .map(move |declaration| (named(declaration), declaration))
}

/// The names of what only `wesl` keeps: the assertions of all files that it loads, and the
/// constants that they mention. The composer keeps an assertion if the kernel needs all constants
/// of the assertion's file that it mentions.
fn asserted(theirs: &[(String, String)], is_ours: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let only_theirs = || theirs.iter().filter(|(name, _)| !is_ours(name));
    let mut queue: Vec<_> = only_theirs()
        .filter(|(_, code)| code.starts_with("const_assert "))
        .collect();
    let mut asserted = BTreeSet::new();
    while let Some((name, code)) = queue.pop() {
        if asserted.insert(name.clone()) {
            let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
            let words: BTreeSet<_> = words.collect();
            queue.extend(only_theirs().filter(|(name, code)| {
                code.starts_with("const ") && words.contains(name.as_str())
            }));
        }
    }
    asserted
}

/// naga's module, without places in the text.
fn module_of(text: &str) -> Result<String, String> {
    let parsed = naga::front::wgsl::parse_str(text);
    let parsed = parsed.map_err(|error| error.emit_to_string(text))?;
    let printed = format!("{parsed:#?}");
    let mut parts = printed.split("span_info: [");
    let first = parts.next().unwrap_or_default().to_owned();
    Ok(parts.fold(first, |text, part| text + part.split_once(']').unwrap().1))
}

/// Compares what the composer and `wesl` make of a kernel.
fn compare(files: &Files, texts: &Texts, kernel: &Kernel, features: &[&str]) -> Result<(), String> {
    let composed = compose(files, kernel, features)?;
    let text = &composed.text;
    let unit = parse(text)?;
    let linked = link(&modules(texts, kernel, &composed.files)?, features)?;
    let mut ours: BTreeMap<_, _> = declarations(&unit).collect();
    let mut theirs: Vec<_> = declarations(&linked)
        .map(|(name, declaration)| (name, declaration.to_string()))
        .collect();
    let asserted = asserted(&theirs, |name| ours.contains_key(name));
    theirs.retain(|(name, _)| name != ROOT && !asserted.contains(name));

    // The same names and syntax. For naga: our code unchanged, theirs as `wesl` prints it, in the
    // same order.
    let (mut our_text, mut their_text) = (String::new(), String::new());
    for (name, theirs) in theirs {
        let Some(declaration) = ours.remove(&name) else {
            return Err(format!("only wesl has {name}"));
        };
        let ours = declaration.to_string();
        if ours != theirs {
            return Err(format!("{name} is\n{ours}\nand for wesl\n{theirs}"));
        }
        our_text += &format!("{}\n", &text[declaration.span().range()]);
        their_text += &format!("{theirs}\n");
    }
    for file in composed
        .files
        .iter()
        .filter(|file| WHOLE.contains(&file.as_str()))
    {
        for (name, _) in declarations(&parse(&texts[file])?) {
            ours.remove(&name);
        }
    }
    if !ours.is_empty() {
        return Err(format!("only we have {:?}", ours.keys()));
    }

    // The same types, constants, overrides, bindings, functions and entry points for naga.
    let (ours, theirs) = (module_of(&our_text)?, module_of(&their_text)?);
    let mut lines = ours.lines().zip(theirs.lines());
    match lines.find(|(ours, theirs)| ours != theirs) {
        Some((ours, theirs)) => Err(format!("naga reads {ours}, and of wesl's text {theirs}")),
        None if ours.len() != theirs.len() => Err("naga reads more of one text".into()),
        None => Ok(()),
    }
}

#[test]
fn every_file_parses() {
    for (name, text) in files().1 {
        assert_eq!(parse(&text).err(), None, "{name}");
    }
}

#[test]
fn wesl_links_each_kernel_to_the_declarations_that_the_composer_takes() {
    let (files, texts) = files();
    let mut errors = Vec::new();
    for kernel in kernels() {
        for features in [true, false].map(|tier| features(kernel, tier)) {
            if let Err(error) = compare(&files, &texts, kernel, &features) {
                errors.push(format!("{} with {features:?}: {error}", kernel.name));
            }
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n\n"));
}

/// `wesl` gets one file with a change, and the comparison names it.
#[test]
fn a_difference_is_found() {
    let (files, texts) = files();
    let cases = [
        (
            "compact",
            "cull/compact",
            "binding(6)",
            "binding(77)",
            "words is",
        ),
        (
            "vote",
            "shared/visibility",
            "reach * reach",
            "reach",
            "is\nfn ",
        ),
        ("vote", "cull/vote", "is_visible,", "", "`is_visible`"),
        (
            "look_back",
            "cull/look_back",
            "override SPINS: u32",
            "const SPINS: u32 = 9",
            "SPINS is",
        ),
        (
            "expand_bits_po2_buckets",
            "expand/po2_buckets",
            "fn bits_of",
            "fn bits",
            "bits_of",
        ),
    ];
    for (kernel, file, from, to, reason) in cases {
        let kernel = kernels().find(|other| other.name == kernel).unwrap();
        let mut changed = texts.clone();
        let text = changed.get_mut(file).unwrap();
        assert!(text.contains(from), "{file} has no {from}");
        *text = text.replace(from, to);
        let features = features(kernel, true);
        assert_eq!(compare(&files, &texts, kernel, &features), Ok(()));
        let error = compare(&files, &changed, kernel, &features).unwrap_err();
        assert!(error.contains(reason), "{file}, {to}: {error}");
    }
}
