//! Files of `src/` do not import each other in a loop, and each can be read in one sitting.
//!
//! The sources are read as text. An import counts for the file that declares what it names, also if
//! it goes through a re-export of a parent module. `mod x;` and `pub use` alone are no imports.
//! Modules of tests are left out.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    path::Path,
};

/// Most lines of a file that does not say why it is longer.
const MAX_LINES: usize = 400;

#[test]
fn no_files_import_each_other_in_a_loop() {
    let circles = circles(&sources());
    assert!(circles.is_empty(), "\n{}\n", circles.join("\n"));
}

/// Rooms of the engine: the files and folders of `src/cull/`.
#[test]
fn no_rooms_of_the_engine_import_each_other_in_a_loop() {
    let circles = room_circles(&sources());
    assert!(circles.is_empty(), "\n{}\n", circles.join("\n"));
}

#[test]
fn a_circle_of_rooms_is_found_if_its_files_have_none() {
    let mut sources = BTreeMap::new();
    for (path, text) in [
        ("lib.rs", "mod cull;"),
        ("cull.rs", "mod low; mod high; pub use low::Low;"),
        ("cull/low.rs", "mod top; pub struct Low;"),
        (
            "cull/low/top.rs",
            "use crate::cull::high::High; fn f(_: High) {}",
        ),
        (
            "cull/high.rs",
            "use crate::cull::Low; pub struct High(Low);",
        ),
    ] {
        sources.insert(path.to_owned(), text.to_owned());
    }
    assert_eq!(circles(&sources), Vec::<String>::new());
    assert_eq!(room_circles(&sources), ["high -> low -> high"]);
}

/// Every circle of rooms of the engine.
fn room_circles(sources: &BTreeMap<String, String>) -> Vec<String> {
    let imports = imports(sources);
    let room = |module: &str| {
        let inside = module.strip_prefix("cull::")?;
        Some(inside.split("::").next()?.to_owned())
    };
    let mut rooms: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, imported) in &imports {
        let Some(from) = room(module) else { continue };
        let to = imported.iter().filter_map(|module| room(module));
        let others: Vec<_> = to.filter(|to| *to != from).collect();
        rooms.entry(from).or_default().extend(others);
    }
    let rooms = rooms.iter().map(|(room, to)| (room.as_str(), to.clone()));
    shortest_circles(&rooms.collect())
}

#[test]
fn files_of_src_fit_a_sitting() {
    let long = too_long(&sources());
    let advice = format!("split it, or say in its header \"long because\": {long:#?}");
    assert!(long.is_empty(), "more than {MAX_LINES} lines: {advice}");
}

/// The sources of the crate, by path.
fn sources() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = BTreeMap::new();
    read(&root, "", &mut sources);
    sources
}

/// The files with more than [`MAX_LINES`] lines whose header does not say `long because`.
fn too_long(sources: &BTreeMap<String, String>) -> Vec<String> {
    let says_why = |text: &str| {
        let header = text.lines().map_while(|line| line.strip_prefix("//!"));
        let words: Vec<_> = header.flat_map(str::split_whitespace).collect();
        words.windows(2).any(|pair| pair == ["long", "because"])
    };
    let long = sources.iter().filter_map(|(path, text)| {
        let lines = text.lines().count();
        (lines > MAX_LINES && !says_why(text)).then(|| format!("{path}: {lines}"))
    });
    long.collect()
}

#[test]
fn a_long_file_says_why_in_its_header() {
    let file = |header: &str, lines: usize, end: &str| {
        let rest = lines - header.lines().count() - end.lines().count();
        format!("{header}{}{end}", "code();\n".repeat(rest))
    };
    let why = "//! A file.\n//!\n//! This file is long\n//! because it is.\n";
    for (text, is_refused) in [
        (file("//! A file.\n", MAX_LINES, ""), false),
        (file("//! A file.\n", MAX_LINES + 1, ""), true),
        (file(why, MAX_LINES + 1, ""), false),
        (
            file("//! A file.\n", MAX_LINES + 9, "//! long because\n"),
            true,
        ),
    ] {
        let sources = BTreeMap::from([("a.rs".to_owned(), text)]);
        assert_eq!(too_long(&sources).len(), usize::from(is_refused));
    }
}

/// The sources below a folder, by path.
fn read(folder: &Path, prefix: &str, sources: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            read(&entry.path(), &format!("{name}/"), sources);
        } else if name.ends_with(".rs") {
            sources.insert(name, fs::read_to_string(entry.path()).unwrap());
        }
    }
}

/// Every circle of files, as a line that names its files.
fn circles(sources: &BTreeMap<String, String>) -> Vec<String> {
    let imports = imports(sources);
    let imports = imports.iter().map(|(from, to)| (from.as_str(), to.clone()));
    shortest_circles(&imports.collect())
}

/// The modules that each module imports from. Modules of tests are left out.
fn imports(sources: &BTreeMap<String, String>) -> BTreeMap<String, BTreeSet<String>> {
    let files = sources
        .iter()
        .map(|(path, text)| (module_of(path), File::parse(text)));
    let sources = Sources(files.collect());
    let modules = sources.0.keys().filter(|module| !sources.is_test(module));
    modules
        .map(|module| (module.clone(), sources.imports(module)))
        .collect()
}

/// Circles that share nothing, as lines.
fn shortest_circles(imports: &BTreeMap<&str, BTreeSet<String>>) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for start in imports.keys() {
        if seen.contains(*start) {
            continue;
        }
        if let Some(circle) = shortest_circle(start, imports) {
            found.push(circle.join(" -> "));
            seen.extend(circle);
        }
    }
    found
}

/// The shortest way from a module back to itself.
fn shortest_circle(start: &str, imports: &BTreeMap<&str, BTreeSet<String>>) -> Option<Vec<String>> {
    let mut came_from: BTreeMap<String, String> = BTreeMap::new();
    let mut queue = VecDeque::from([start.to_owned()]);
    while let Some(module) = queue.pop_front() {
        for next in imports.get(module.as_str()).into_iter().flatten() {
            if next == start {
                let mut circle = vec![start.to_owned(), module.clone()];
                while let Some(before) = came_from.get(&circle[circle.len() - 1]) {
                    circle.push(before.clone());
                }
                circle.reverse();
                return Some(circle);
            }
            if !came_from.contains_key(next) {
                came_from.insert(next.clone(), module.clone());
                queue.push_back(next.clone());
            }
        }
    }
    None
}

/// The path of a file's module, without `crate`; empty for `lib.rs`.
fn module_of(path: &str) -> String {
    let module = path.trim_end_matches(".rs").replace('/', "::");
    if module == "lib" {
        String::new()
    } else {
        module
    }
}

/// What a file says, as far as imports are concerned.
#[derive(Default)]
struct File {
    /// Its `mod x;`, and whether they are for tests.
    modules: BTreeMap<String, bool>,
    /// What it declares itself.
    items: BTreeSet<String>,
    uses: Vec<Use>,
    /// Paths of more than one name in its code.
    paths: Vec<Vec<String>>,
    /// All names in its code.
    words: BTreeSet<String>,
}

/// One name of a `use`.
struct Use {
    path: Vec<String>,
    /// The name in this file; `*` for all names of a module.
    name: String,
    is_public: bool,
}

/// The files, by module path.
struct Sources(BTreeMap<String, File>);

/// What a path names.
#[derive(Clone)]
enum Named {
    Module(String),
    /// Something that this module declares.
    ItemOf(String),
}

impl Sources {
    /// Whether a module or one that contains it is for tests.
    fn is_test(&self, module: &str) -> bool {
        let Some((parent, name)) = split(module) else {
            return false;
        };
        let declared = self.0.get(parent).and_then(|file| file.modules.get(name));
        declared.is_some_and(|is_test| *is_test) || self.is_test(parent)
    }

    /// The modules that a module imports from.
    fn imports(&self, module: &str) -> BTreeSet<String> {
        let file = &self.0[module];
        let used = file
            .uses
            .iter()
            .filter(|used| !used.is_public || file.words.contains(&used.name))
            .map(|used| &used.path);
        used.chain(&file.paths)
            .filter_map(|path| self.resolve(module, path, 0))
            .map(|named| match named {
                Named::Module(of) | Named::ItemOf(of) => of,
            })
            .filter(|of| of != module)
            .collect()
    }

    /// What a path in a module names; `None` for another crate's.
    fn resolve(&self, module: &str, path: &[String], depth: u32) -> Option<Named> {
        if depth > 16 {
            return None;
        }
        let mut at = module.to_owned();
        let mut rest = path;
        let mut is_ours = false;
        while let [first, others @ ..] = rest {
            at = match first.as_str() {
                "crate" => String::new(),
                "self" => at,
                "super" => split(&at)?.0.to_owned(),
                _ => break,
            };
            is_ours = true;
            rest = others;
        }
        let mut named = Named::Module(at);
        for name in rest {
            let Named::Module(at) = &named else { break };
            named = match self.lookup(at, name, depth + 1) {
                Some(named) => named,
                // A macro has declared it.
                None if is_ours => Named::ItemOf(at.clone()),
                None => return None,
            };
            is_ours = true;
        }
        Some(named)
    }

    /// What a name stands for in a module.
    fn lookup(&self, module: &str, name: &str, depth: u32) -> Option<Named> {
        let file = self.0.get(module)?;
        if file.modules.contains_key(name) {
            let separator = if module.is_empty() { "" } else { "::" };
            return Some(Named::Module(format!("{module}{separator}{name}")));
        }
        if file.items.contains(name) {
            return Some(Named::ItemOf(module.to_owned()));
        }
        let used = file.uses.iter().find(|used| used.name == name);
        if let Some(used) = used {
            return self.resolve(module, &used.path, depth);
        }
        let globs = file.uses.iter().filter(|used| used.name == "*");
        globs
            .filter_map(|glob| self.resolve(module, &glob.path, depth + 1))
            .find_map(|named| match named {
                Named::Module(of) if of != module && depth < 16 => {
                    self.lookup(&of, name, depth + 1)
                }
                _ => None,
            })
    }
}

/// The parent of a module, and its name in it.
fn split(module: &str) -> Option<(&str, &str)> {
    if module.is_empty() {
        return None;
    }
    Some(module.rsplit_once("::").unwrap_or(("", module)))
}

impl File {
    fn parse(text: &str) -> Self {
        let mut file = Self::default();
        let tokens = tokens(text);
        let mut at = 0;
        let mut depth = 0;
        // Of the item that comes.
        let (mut is_test, mut is_public) = (false, false);
        while at < tokens.len() {
            let token = tokens[at].as_str();
            let next = tokens.get(at + 1).map_or("", String::as_str);
            match token {
                "#" => {
                    let end = group_end(&tokens, at + 1);
                    let attribute = &tokens[at..end];
                    let says = |word: &str| attribute.iter().any(|token| token == word);
                    is_test |= says("cfg") && says("test") && !says("not");
                    at = end;
                    continue;
                }
                "pub" => {
                    is_public = true;
                    at = if next == "(" {
                        group_end(&tokens, at + 1)
                    } else {
                        at + 1
                    };
                    continue;
                }
                "use" => {
                    let end = tokens[at..].iter().position(|token| token == ";");
                    let end = at + end.unwrap_or(tokens.len() - at);
                    if !is_test {
                        let mut tree = &tokens[at + 1..end];
                        file.add_use(&mut tree, &mut Vec::new(), is_public);
                    }
                    at = end + 1;
                    (is_test, is_public) = (false, false);
                    continue;
                }
                "mod" if depth == 0 => {
                    if tokens.get(at + 2).is_some_and(|token| token == "{") {
                        // Tests, or a prelude: names for others.
                        at = group_end(&tokens, at + 2);
                    } else {
                        file.modules.insert(next.to_owned(), is_test);
                        at += 3;
                    }
                    (is_test, is_public) = (false, false);
                    continue;
                }
                "struct" | "enum" | "union" | "trait" | "type" | "const" | "static" | "fn"
                    if depth == 0 && next != "fn" =>
                {
                    file.items.insert(next.to_owned());
                    (is_test, is_public) = (false, false);
                }
                "macro_rules" => {
                    file.items.extend(tokens.get(at + 2).cloned());
                }
                "{" => depth += 1,
                "}" => depth -= 1,
                ";" => (is_test, is_public) = (false, false),
                _ => {}
            }
            let is_path_start = is_name(token) && (at == 0 || tokens[at - 1] != "::");
            if is_path_start {
                file.words.insert(token.to_owned());
                let mut path = vec![token.to_owned()];
                while tokens.get(at + 1).is_some_and(|token| token == "::")
                    && tokens.get(at + 2).is_some_and(|token| is_name(token))
                {
                    path.push(tokens[at + 2].clone());
                    at += 2;
                }
                if path.len() > 1 {
                    file.paths.push(path);
                }
            }
            at += 1;
        }
        file
    }

    /// Adds the names of a `use` tree behind a prefix, up to its end or a comma.
    fn add_use(&mut self, tree: &mut &[String], prefix: &mut Vec<String>, is_public: bool) {
        let outer = prefix.len();
        while let [token, rest @ ..] = *tree {
            *tree = rest;
            match token.as_str() {
                "," | "}" => break,
                "::" => {}
                "{" => {
                    let end = tree.len() - after_group(tree);
                    let mut inner = &tree[..end];
                    *tree = &tree[end..];
                    while !inner.is_empty() {
                        self.add_use(&mut inner, prefix, is_public);
                    }
                    // The braces ended the tree: there is no name behind them.
                    prefix.truncate(outer);
                    if tree.first().is_some_and(|token| token == "}") {
                        *tree = &tree[1..];
                    }
                    if tree.first().is_some_and(|token| token == ",") {
                        *tree = &tree[1..];
                    }
                    return;
                }
                "*" => {
                    self.push_use(prefix.clone(), "*", is_public);
                    prefix.truncate(outer);
                }
                "as" => {
                    if let [alias, rest @ ..] = *tree {
                        self.push_use(prefix.clone(), alias, is_public);
                        *tree = rest;
                    }
                    prefix.truncate(outer);
                }
                "self" if !prefix.is_empty() => {}
                name => prefix.push(name.to_owned()),
            }
            let ends = tree.first().is_none_or(|token| token == ",");
            let is_named = prefix.len() > outer || token == "self";
            if ends && is_named && token != "*" && token != "as" {
                let name = prefix.last().cloned().unwrap_or_default();
                self.push_use(prefix.clone(), &name, is_public);
            }
        }
        prefix.truncate(outer);
    }

    fn push_use(&mut self, path: Vec<String>, name: &str, is_public: bool) {
        let name = name.to_owned();
        self.uses.push(Use {
            path,
            name,
            is_public,
        });
    }
}

/// The place after the group of brackets that starts at `at`.
fn group_end(tokens: &[String], at: usize) -> usize {
    let at = if tokens.get(at).is_some_and(|token| token == "!") {
        at + 1
    } else {
        at
    };
    let mut depth = 0;
    for (place, token) in tokens.iter().enumerate().skip(at) {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return place + 1;
        }
    }
    tokens.len()
}

/// Tokens from the brace on that closes the group whose opening brace has just been taken.
fn after_group(tokens: &[String]) -> usize {
    let mut depth = 1;
    for (place, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return tokens.len() - place;
        }
    }
    0
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Names, `::` and single signs, without comments and literals.
fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    let char_at = |at: usize| chars.get(at).copied().unwrap_or('\0');
    while at < chars.len() {
        let char = chars[at];
        if char == '/' && char_at(at + 1) == '/' {
            while at < chars.len() && chars[at] != '\n' {
                at += 1;
            }
        } else if char == '/' && char_at(at + 1) == '*' {
            at += 2;
            while at < chars.len() && !(chars[at] == '*' && char_at(at + 1) == '/') {
                at += 1;
            }
            at += 2;
        } else if char == 'r'
            && (char_at(at + 1) == '"' || char_at(at + 1) == '#' && char_at(at + 2) == '"')
        {
            let hashes = usize::from(char_at(at + 1) == '#');
            at += 2 + hashes;
            while at < chars.len() && !(chars[at] == '"' && (hashes == 0 || char_at(at + 1) == '#'))
            {
                at += 1;
            }
            at += 1 + hashes;
        } else if char == '"' {
            at += 1;
            while at < chars.len() && chars[at] != '"' {
                at += if chars[at] == '\\' { 2 } else { 1 };
            }
            at += 1;
        } else if char == '\'' && (char_at(at + 1) == '\\' || char_at(at + 2) == '\'') {
            at += if char_at(at + 1) == '\\' { 3 } else { 2 };
            while at < chars.len() && chars[at] != '\'' {
                at += 1;
            }
            at += 1;
        } else if char.is_alphanumeric() || char == '_' {
            let start = at;
            while at < chars.len() && (chars[at].is_alphanumeric() || chars[at] == '_') {
                at += 1;
            }
            tokens.push(chars[start..at].iter().collect());
        } else if char == ':' && char_at(at + 1) == ':' {
            tokens.push("::".to_owned());
            at += 2;
        } else {
            if !char.is_whitespace() {
                tokens.push(char.to_string());
            }
            at += 1;
        }
    }
    tokens
}

/// The circles of a made-up crate.
fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
    let sources = files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
        .collect();
    circles(&sources)
}

#[test]
fn circles_are_found_however_they_are_imported() {
    let crates: [&[(&str, &str)]; 6] = [
        // Plainly.
        &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B; pub struct A(B);"),
            ("b.rs", "use super::a::{self, A}; pub struct B;"),
        ],
        // Through a re-export of the parent.
        &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod inner; pub use inner::A;"),
            (
                "a/inner.rs",
                "use crate::b::{other, B as C}; pub struct A(C);",
            ),
            (
                "b.rs",
                "use crate::a::A; pub fn other(a: A) {} pub struct B;",
            ),
        ],
        // By a path in the code, and by one that starts with an imported module.
        &[
            ("lib.rs", "mod a; mod b;"),
            (
                "a.rs",
                "use crate::b; pub struct A; fn f() { b::inner::g(); }",
            ),
            ("b.rs", "pub mod inner;"),
            ("b/inner.rs", "pub fn g() { let a = crate::a::A; }"),
        ],
        // A child that imports from its parent, which uses what it passes on.
        &[
            ("lib.rs", "mod a;"),
            (
                "a.rs",
                "mod child; pub use child::Child; pub struct A(Child);",
            ),
            ("a/child.rs", "use super::A; pub struct Child(Box<A>);"),
        ],
        // Over three files.
        &[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "use crate::c::C; pub struct B;"),
            ("c.rs", "use crate::a::*; pub struct C(A);"),
        ],
        // By a function.
        &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub const fn a() { crate::b::b() }"),
            ("b.rs", "use {crate::a::a, std::fmt}; pub fn b() { a() }"),
        ],
    ];
    for files in crates {
        assert_eq!(circles_of(files).len(), 1, "{files:?}");
    }
}

#[test]
fn what_is_no_import_is_no_circle() {
    let crates: [&[(&str, &str)]; 4] = [
        // A parent declares and passes on what imports from it.
        &[
            ("lib.rs", "mod a;"),
            ("a.rs", "mod child; pub use child::Child; pub struct A;"),
            ("a/child.rs", "use super::A; pub struct Child(A);"),
        ],
        // Comments, text and tests.
        &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B; pub struct A(B);"),
            (
                "b.rs",
                "/// [`crate::a::A`]\n/* use crate::a::A; */ pub struct B; const T: &str = \"crate::a::A\";
                #[cfg(test)] mod tests { use crate::a::A; }",
            ),
        ],
        // A file of tests.
        &[
            ("lib.rs", "mod a;"),
            ("a.rs", "#[cfg(test)] mod tests; pub struct A; pub fn f() {}"),
            ("a/tests.rs", "use super::*; use crate::a::A;"),
        ],
        // Neighbors that a third one joins.
        &[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "pub struct A;"),
            ("b.rs", "use crate::{a::A, c::C}; pub struct B(A, C);"),
            ("c.rs", "use crate::a::A; pub struct C(A);"),
        ],
    ];
    for files in crates {
        assert_eq!(circles_of(files), Vec::<String>::new(), "{files:?}");
    }
}
