//! Documents name what exists: paths, identifiers, flags and links, and the map of the tree.
//!
//! `UPDATE_DOCS=1` rewrites the map in `CONTRIBUTING.md`.

use crate::common::generated::assert_generated;
use std::{
    collections::HashSet,
    fmt::Write as _,
    path::{Path, PathBuf},
};

/// Folders of code. A name in a document must occur in one of them.
const SOURCES: [&str; 6] = ["src", "shaders", "examples", "tests", "benches", "xtask"];

/// Documents that are not held to the tree: they tell of the past.
const PAST: [&str; 2] = ["docs/history", "CHANGELOG.md"];

/// Names of Bevy, wgpu, cargo and the system that the code does not use itself.
const FOREIGN: &[&str] = &[
    "FILE.png",
    "IGNORE",
    "JOINT_INDEX",
    "JOINT_WEIGHT",
    "MeshRayCast",
    "ParamSet",
    "Pickable",
    "Recover",
    "VisibilityRange",
    "RenderErrorPolicy",
    "cfg",
    "debug",
    "define_import_path",
    "endif",
    "exr",
    "mesh_compression",
    "mesh_position_local_to_clip",
    "pbr_deferred_functions",
    "prepass_io",
    "prepass_utils",
    "webgpu",
    "with_filter",
    "write_buffer",
];

/// Flags of cargo and of its test harness.
const FOREIGN_FLAGS: [&str; 9] = [
    "bench",
    "example",
    "features",
    "help",
    "no-default-features",
    "no-run",
    "profile",
    "release",
    "test",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files below a folder with one of these extensions, as paths from the root, sorted.
fn files(folder: &str, extensions: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten();
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|end| extensions.iter().any(|extension| end == *extension))
            {
                found.push(from_root(&path));
            }
        }
    }
    found.sort();
    found
}

fn from_root(path: &Path) -> String {
    let path = path.strip_prefix(root()).unwrap();
    path.to_string_lossy().replace('\\', "/")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
        .replace("\r\n", "\n")
}

/// The documents of today.
fn documents() -> Vec<String> {
    let mut all: Vec<String> = ["README.md", "CONTRIBUTING.md"].map(Into::into).into();
    all.extend(files("docs", &["md"]));
    all.retain(|path| !PAST.iter().any(|past| path.starts_with(past)));
    all
}

/// Text with the number of its line.
type Line = (usize, String);

/// The lines of a document without blocks of code.
fn prose(path: &str) -> Vec<Line> {
    let mut code = false;
    let mut lines = Vec::new();
    for (index, line) in read(path).lines().enumerate() {
        if line.trim_start().starts_with("```") {
            code = !code;
        } else if !code {
            lines.push((index + 1, line.to_string()));
        }
    }
    lines
}

/// The comment at the top of a shader.
fn header(path: &str) -> Vec<Line> {
    let text = read(path);
    let comment = text.lines().map_while(|line| line.strip_prefix("//"));
    comment
        .map(str::to_string)
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .collect()
}

/// What is in backticks in a line.
fn spans(line: &str) -> Vec<&str> {
    line.split('`')
        .skip(1)
        .step_by(2)
        .filter(|span| !span.is_empty())
        .collect()
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric()
}

/// What the code has.
struct Tree {
    /// All text of the sources.
    text: String,
    words: HashSet<String>,
    /// Flags that clap knows, without dashes.
    flags: HashSet<String>,
    /// Tasks of xtask.
    tasks: HashSet<String>,
}

impl Tree {
    fn read() -> Self {
        let mut text = read("Cargo.toml");
        let mut flags = HashSet::new();
        for folder in SOURCES {
            for path in files(folder, &["rs", "wgsl", "wesl", "toml"]) {
                // The list of foreign names above must not make them known.
                if path == "tests/project/docs.rs" {
                    continue;
                }
                let source = read(&path);
                if source.contains("clap") {
                    flags.extend(flags_of(&source));
                }
                text.push_str(&source);
            }
        }
        let words = text.split(|c| !is_word(c)).map(Into::into).collect();
        let tasks = read("xtask/src/main.rs");
        let tasks = tasks.split("enum Task {").nth(1).unwrap();
        let tasks = tasks.split("\n}").next().unwrap().lines();
        let tasks = tasks
            .filter_map(|line| line.strip_prefix("    "))
            .filter(|line| line.starts_with(char::is_uppercase))
            .map(|line| line.split(|c| !is_word(c)).next().unwrap().to_lowercase());
        Self {
            words,
            flags,
            tasks: tasks.collect(),
            text,
        }
    }

    /// What of a span does not exist, if anything.
    fn missing(&self, span: &str, document: &str) -> Option<String> {
        if let Some(command) = span.strip_prefix("cargo ") {
            let task = command.strip_prefix("xtask ")?.split(' ').next()?;
            let known = task.starts_with(['-', '<']) || self.tasks.contains(task);
            return (!known).then(|| format!("task {task}"));
        }
        let mut flags = span
            .split(' ')
            .filter(|part| part.starts_with("--"))
            .peekable();
        if flags.peek().is_some() {
            let name = |flag: &str| flag[2..].split('=').next().unwrap_or_default().to_string();
            let unknown = |name: &String| {
                !name.is_empty()
                    && !self.flags.contains(name)
                    && !FOREIGN_FLAGS.contains(&name.as_str())
            };
            return flags
                .map(name)
                .find(unknown)
                .map(|name| format!("flag --{name}"));
        }
        span.split_whitespace().find_map(|part| {
            let part = part.trim_matches(|c| "(),;".contains(c));
            self.missing_part(part, document)
        })
    }

    fn missing_part(&self, part: &str, document: &str) -> Option<String> {
        // What a build leaves behind is not in the tree.
        if FOREIGN.contains(&part) || part.starts_with("target/") {
            return None;
        }
        let first = part.split('/').next().unwrap_or_default();
        let in_tree = SOURCES.contains(&first) || ["docs", "assets"].contains(&first);
        let file_name = part.rsplit_once('.').is_some_and(|(stem, end)| {
            !stem.is_empty() && ["rs", "wgsl", "wesl", "md", "toml", "png"].contains(&end)
        });
        if part.contains('/') && in_tree || file_name {
            // `shaders/<name>.wesl`, `shaders/*.wesl`: the folder must exist.
            let part = match part.find(['<', '*', '{']) {
                Some(open) => part[..open]
                    .rsplit_once('/')
                    .map_or("", |(folder, _)| folder),
                None => part,
            };
            let beside = Path::new(document).parent().unwrap_or(Path::new(""));
            let bases = [PathBuf::new(), beside.into(), "shaders".into()];
            let exists = bases
                .iter()
                .any(|base| root().join(base).join(part).exists());
            let anywhere = !part.contains('/') && self.has_file(part);
            return (!exists && !anywhere).then(|| format!("path {part}"));
        }
        if part.contains('/') || part.contains('-') && part.chars().any(char::is_lowercase) {
            // A diagnostic path or a name with dashes: as it stands, without a wildcard.
            let text = part.trim_end_matches('*');
            let code = part.contains("->") || part.contains("://") || part.starts_with('-');
            return (!code && !self.text.contains(text)).then(|| format!("name {text}"));
        }
        part.split(|c| !is_word(c))
            .filter(|word| word.len() > 2 && word.starts_with(|c: char| c.is_ascii_alphabetic()))
            .find(|word| !self.words.contains(*word) && !FOREIGN.contains(word))
            .map(|word| format!("name {word}"))
    }

    fn has_file(&self, name: &str) -> bool {
        let all = SOURCES.iter().chain(["docs", "assets"].iter());
        let ends = ["rs", "wgsl", "wesl", "md", "toml", "png"];
        let is = |path: &String| path.rsplit('/').next() == Some(name);
        root().join(name).exists()
            || all
                .flat_map(|folder| files(folder, &ends))
                .any(|path| is(&path))
    }
}

/// The long flags of clap's derived parsers: named, or after their field.
fn flags_of(source: &str) -> Vec<String> {
    let mut flags = Vec::new();
    for argument in source.split("#[arg(").skip(1) {
        // The attribute's end, then other attributes and comments, then the field.
        let field = argument.lines().map(str::trim).find(|line| {
            let line = line.strip_prefix("pub ").unwrap_or(line);
            line.split_once(": ")
                .is_some_and(|(name, _)| name.chars().all(is_word))
        });
        if let Some(named) = argument.split("long = \"").nth(1)
            && argument.find("long = \"") < argument.find(")]")
        {
            flags.extend(named.split('"').next().map(Into::into));
        } else if let Some(field) = field {
            let field = field.strip_prefix("pub ").unwrap_or(field);
            flags.extend(field.split(':').next().map(|name| name.replace('_', "-")));
        }
    }
    flags
}

/// What the lines of a document name that does not exist.
fn wrong_names(tree: &Tree, document: &str, lines: &[Line]) -> Vec<String> {
    lines
        .iter()
        .flat_map(|(number, line)| {
            spans(line)
                .into_iter()
                .filter_map(|span| tree.missing(span, document))
                .map(move |missing| format!("{document}:{number}: no {missing}"))
        })
        .collect()
}

#[test]
fn docs_name_what_exists() {
    let tree = Tree::read();
    let mut wrong = Vec::new();
    for document in documents() {
        wrong.extend(wrong_names(&tree, &document, &prose(&document)));
    }
    for shader in files("shaders", &["wgsl", "wesl"]) {
        wrong.extend(wrong_names(&tree, &shader, &header(&shader)));
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn names_that_do_not_exist_are_seen() {
    let tree = Tree::read();
    let seen = |line: &str| wrong_names(&tree, "README.md", &[(1, line.into())]).len();
    let wrong = [
        "`src/cull/no_such_file.rs`",
        "`no_such_shader.wgsl`",
        "`shaders/no_such_folder/<name>.wesl`",
        "`InstanceSet::no_such_function`",
        "`NoSuchType`",
        "`--no-such-flag N`",
        "`cargo xtask nosuchtask`",
        "`gpu_culling/no_such_path`",
        "`no-such-compaction`",
    ];
    for line in wrong {
        assert_eq!(seen(line), 1, "{line}");
    }
    let right = [
        "`src/lib.rs` `src/` `Cargo.toml` `F` `16`",
        "`InstanceSet::from_transforms` `GpuInstances(sets.add(set))`",
        "`--count N` `--meshlets=whole` `orbs --upload-budget 8`",
        "`cargo xtask ci` `cargo test --test app oracle`",
        "`look-back` no_such_name",
    ];
    for line in right {
        assert_eq!(seen(line), 0, "{line}");
    }
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().replace(' ', "-")
}

/// The targets of a line's links, and of a definition of a link.
fn links(line: &str) -> Vec<&str> {
    let parts = line.split("](").skip(1);
    let inline = parts.filter_map(|part| part.split(')').next());
    let definition = line.split_once("]: ").filter(|_| line.starts_with('['));
    inline.chain(definition.map(|(_, target)| target)).collect()
}

fn wrong_links(document: &str, lines: &[Line]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, line) in lines {
        for link in links(line) {
            if link.contains("://") {
                continue;
            }
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let beside = root().join(document);
            let target = match path {
                "" => beside,
                path => beside.parent().unwrap().join(path),
            };
            let there = target.exists()
                && (heading.is_empty() || {
                    let text = std::fs::read_to_string(&target).unwrap_or_default();
                    let mut headings = text.lines().filter(|line| line.starts_with('#'));
                    headings.any(|line| anchor(line) == heading)
                });
            if !there {
                wrong.push(format!("{document}:{number}: no link {link}"));
            }
        }
    }
    wrong
}

#[test]
fn links_between_documents_resolve() {
    let wrong: Vec<String> = documents()
        .iter()
        .flat_map(|document| wrong_links(document, &prose(document)))
        .collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn links_that_do_not_resolve_are_seen() {
    let seen = |line: &str| wrong_links("README.md", &[(1, line.into())]).len();
    assert_eq!(
        seen("[a](docs/no_such.md) [b](#no-such-heading) [c](CONTRIBUTING.md#nothing)"),
        3
    );
    assert_eq!(seen("[a]: docs/no_such.md"), 1);
    assert_eq!(
        seen("[a](CONTRIBUTING.md) [b](https://example.org/x) [c](docs)"),
        0
    );
}

/// The documents that a line of code names.
fn named_documents(line: &str) -> Vec<&str> {
    let names = line.split(|c: char| !is_word(c) && !"/.-".contains(c));
    let names = names.map(|name| name.trim_end_matches('.').trim_start_matches('/'));
    names
        .filter(|name| name.starts_with("docs/") && name.ends_with(".md"))
        .collect()
}

#[test]
fn code_names_documents_that_exist() {
    let mut wrong = Vec::new();
    for folder in SOURCES {
        for path in files(folder, &["rs", "wgsl", "wesl", "toml"]) {
            // The tests here and in xtask make names up.
            if path == "tests/project/docs.rs" || path.starts_with("xtask/src/prose") {
                continue;
            }
            for (number, line) in read(&path).lines().enumerate() {
                let missing = |name: &&str| !root().join(name).exists();
                let names = named_documents(line).into_iter().filter(missing);
                wrong.extend(names.map(|name| format!("{path}:{}: no {name}", number + 1)));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

const CONTRIBUTING: &str = "CONTRIBUTING.md";
const BEGIN: &str = "<!-- rooms: begin -->\n";
const END: &str = "<!-- rooms: end -->";

/// The first sentence of a file's documentation.
fn first_sentence(path: &str) -> String {
    let text = read(path);
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    let lines = lines.map(str::trim).take_while(|line| !line.is_empty());
    let paragraph = lines.collect::<Vec<_>>().join(" ");
    let sentence = paragraph
        .find(". ")
        .map_or(&*paragraph, |end| &paragraph[..end]);
    // Links inside the crate say nothing here.
    let mut plain = String::new();
    let mut rest = sentence.trim_end_matches(['.', ':']);
    while let Some(end) = rest.find("](") {
        plain.push_str(&rest[..end]);
        rest = rest[end..].split_once(')').map_or("", |(_, rest)| rest);
    }
    plain.push_str(rest);
    plain.replace(['[', ']'], "").replace('|', "\\|")
}

/// The modules in a folder: files, and folders with their own file.
fn modules(folder: &str) -> Vec<(String, String)> {
    // They describe the folder itself.
    const OWN: [&str; 3] = ["/lib.rs", "/main.rs", "/mod.rs"];
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join(folder)).unwrap() {
        let path = entry.unwrap().path();
        let name = from_root(&path);
        if path.is_dir() {
            let own = [format!("{name}/mod.rs"), format!("{name}/main.rs")];
            if let Some(own) = own.into_iter().find(|own| root().join(own).exists()) {
                found.push((format!("{name}/"), own));
            }
        } else if name.ends_with(".rs") && !OWN.iter().any(|own| name.ends_with(own)) {
            let folder = path.with_extension("");
            let shown = if folder.is_dir() {
                format!("{}/", from_root(&folder))
            } else {
                name.clone()
            };
            found.push((shown, name));
        }
    }
    found.sort();
    found
}

/// The map of the tree, from the first sentences of its files.
fn rooms() -> String {
    let mut text = String::new();
    let folders = [
        ("The library", "src"),
        ("The engine", "src/cull"),
        ("The Bevy half", "src/render"),
        ("Examples", "examples"),
        ("Tests", "tests"),
        ("Tests of the engine", "tests/engine"),
        ("Tests of apps", "tests/app"),
        ("Tests of pictures", "tests/picture"),
        ("Tests of the log", "tests/logged"),
        ("Tests of the project", "tests/project"),
        ("Benchmarks", "benches"),
        ("Tasks", "xtask/src"),
    ];
    for (title, folder) in folders {
        let _ = write!(
            text,
            "\n### {title}: `{folder}/`\n\n| room | what is in it |\n| --- | --- |\n"
        );
        for (name, file) in modules(folder) {
            let _ = writeln!(text, "| `{name}` | {} |", first_sentence(&file));
        }
    }
    text.push('\n');
    text
}

/// The files of the product's kernels, without folder and ending. Variants count as one.
fn kernels() -> HashSet<String> {
    let all = files("shaders", &["wesl"]);
    let shipped = all.iter().filter(|file| !file.starts_with("shaders/study"));
    let kernels = shipped.filter(|file| read(file).contains("@compute"));
    let name = |file: &String| {
        let stem = Path::new(file).file_stem().unwrap().to_string_lossy();
        let stem = stem.trim_end_matches("_tier");
        stem.split("_crossed").next().unwrap().to_owned()
    };
    kernels.map(name).collect()
}

#[test]
fn the_diagram_of_the_frame_has_every_kernel() {
    let text = read("docs/internals/architecture.md");
    let (_, rest) = text.split_once("<!-- frame: begin -->").unwrap();
    let (diagram, _) = rest.split_once("<!-- frame: end -->").unwrap();
    let words: HashSet<&str> = diagram.split(|c| !is_word(c)).collect();
    let kernels = kernels();
    assert!(kernels.len() > 15, "{kernels:?}");
    let missing: Vec<_> = (kernels.iter())
        .filter(|kernel| !words.contains(kernel.as_str()))
        .collect();
    assert!(missing.is_empty(), "not in the diagram: {missing:?}");
}

#[test]
fn the_map_of_the_tree_is_true() {
    assert_generated(CONTRIBUTING, [BEGIN, END], &rooms(), "project docs");
}
