//! Composes kernels from the files of `shaders/`, which say what they need of each other.
//!
//! The files are WGSL with two extensions, both as in [WESL](https://wesl-lang.dev):
//! `import package::cull::lists::lists;`, and `@if(subgroup)` or `@if(!subgroup)` in front of an
//! import or a declaration. A kernel is an entry point of a file, with a set of features. It is
//! made of the declarations that the entry point reaches through imports, verbatim and with their
//! comments, so names and lines stay as they are. Above each run of lines the text names its place:
//!
//! ```text
//! // shaders/cull/vote.wgsl:12
//! ```
//!
//! A file may call what the kernel declares: its header lists such names as `// Hooks: a, b.`. They
//! are looked up in the kernel's file, then in all files that it reaches.
//!
//! A line that begins with `// ----` may split a file: the host's constants end or begin there.
//! The build script, the test `shaders` and `cargo xtask wgsl` use this file.

#![allow(dead_code, reason = "no user of this file needs all of it")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// A kernel: entry points of a file, composed with features. `subgroup` is added on its tier.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    pub name: &'static str,
    /// The file that has the entry points, or imports them.
    pub file: &'static str,
    pub entries: &'static [&'static str],
    pub features: &'static [&'static str],
}

const fn kernel(
    name: &'static str,
    file: &'static str,
    entries: &'static [&'static str],
    features: &'static [&'static str],
) -> Kernel {
    Kernel {
        name,
        file,
        entries,
        features,
    }
}

/// All kernels of the engine.
#[rustfmt::skip]
pub const KERNELS: &[Kernel] = &[
    kernel("bound", "cull/bound", &["bound"], &[]),
    kernel("classify", "cull/classify", &["classify"], &[]),
    kernel("order_rings", "cull/order", &["order_rings"], &[]),
    kernel("order", "cull/order", &["order"], &[]),
    kernel("order_strips", "cull/order", &["order"], &["strips", "subgroup"]),
    kernel("vote", "cull/vote", &["vote"], &["counted"]),
    kernel("vote_block_per_subgroup", "cull/vote", &["vote_block_per_subgroup"], &["counted", "subgroup"]),
    kernel("vote_words", "cull/vote", &["vote"], &[]),
    kernel("vote_crossed_subgroup", "cull/vote_crossed_subgroup", &["vote"], &["subgroup"]),
    kernel("vote_crossed_workgroup", "cull/vote_crossed_workgroup", &["vote"], &[]),
    kernel("vote_crossed_block_per_subgroup", "cull/vote_crossed_block_per_subgroup", &["vote"], &["subgroup"]),
    kernel("recall", "occlusion/recall", &["recall"], &[]),
    kernel("occlude_words", "occlusion/occlude", &["occlude_words"], &[]),
    kernel("occlude", "occlusion/occlude", &["occlude"], &[]),
    kernel("scan", "cull/scan", &["scan"], &[]),
    kernel("compact", "cull/compact", &["compact"], &[]),
    kernel("look_back", "cull/look_back", &["cull"], &["subgroup"]),
    kernel("look_back_near_first", "cull/look_back", &["cull"], &["near_first", "subgroup"]),
    kernel("far_first_spans", "cull/far_first", &["make_spans"], &["makes_spans"]),
    kernel("far_first_keys", "cull/far_first", &["make_keys"], &[]),
    kernel("far_first_count", "cull/far_first", &["count_digits"], &[]),
    kernel("far_first_scan", "cull/far_first", &["scan_counts"], &[]),
    kernel("far_first_scatter", "cull/far_first", &["scatter"], &[]),
    kernel("pyramid", "occlusion/pyramid", &["reduce"], &["from_depth", "single_sampled"]),
    kernel("pyramid_multisampled", "occlusion/pyramid", &["reduce"], &["from_depth", "multisampled"]),
    kernel("pyramid_second", "occlusion/pyramid", &["reduce"], &["second"]),
    kernel("pyramid_third", "occlusion/pyramid", &["reduce"], &["third"]),
    // The functions of a depth test; kernels import them.
    kernel("footprint", "occlusion/footprint", &["occlusion_of", "is_hidden"], &[]),
    kernel("naive_atomic", "study/naive_atomic", &["compact"], &[]),
    kernel("subgroup_atomic", "study/subgroup_atomic", &["compact"], &["subgroup"]),
    kernel("workgroup_atomic", "study/workgroup_atomic", &["compact"], &[]),
    kernel("hillis_steele", "study/hillis_steele", &["scan", "compact"], &[]),
    kernel("args_sums", "study/hillis_steele", &["write_args"], &[]),
    kernel("workgroup_scan", "study/workgroup_scan", &["compact"], &[]),
    kernel("ballot_scan", "study/ballot_scan", &["compact"], &["subgroup"]),
    kernel("flags", "study/flags", &["vote_flags"], &[]),
    kernel("regions", "study/regions", &["clear_rows", "write_args"], &[]),
    kernel("meshlet_expand", "meshlets/expand", &["expand"], &[]),
    kernel("meshlet_vote", "meshlets/vote", &["vote"], &[]),
    // WGSL for the kernels of an expansion.
    kernel("meshlet_vote_items", "meshlets/vote_items", &["items_of", "expand_item", "expand_done"], &[]),
    kernel("meshlet_clear", "meshlets/clear", &["clear"], &[]),
    kernel("meshlet_scan", "meshlets/scan", &["scan", "spine"], &[]),
    kernel("meshlet_scan_bits", "meshlets/scan", &["scan"], &["bits"]),
    kernel("meshlet_compact", "meshlets/compact", &["compact"], &[]),
    kernel("meshlet_args", "meshlets/args", &["write_args"], &[]),
    // No kernel of the engine packs instances; callers join the file to their own.
    kernel("instance_pack", "shared/instance_pack", &["hidden", "pack", "unpack"], &[]),
    kernel("mesh_uniforms", "draw/mesh_uniforms", &["mesh_uniforms"], &[]),
    kernel("expand_scan_items", "expand/scan", &["scan"], &[]),
    kernel("expand_scan_groups", "expand/scan", &["scan"], &["groups"]),
    kernel("expand_scan_table", "expand/scan_table", &["scan_table"], &[]),
    kernel("expand_list", "expand/list", &["list"], &[]),
    kernel("expand_list_groups", "expand/list", &["list"], &["groups"]),
    kernel("expand_measure", "expand/fixed_max", &["measure", "plan_fixed"], &[]),
    kernel("expand_items_fixed", "expand/fixed_max", &["expand"], &["items"]),
    kernel("expand_spine_list", "expand/item_list", &["spine"], &[]),
    kernel("expand_items_list", "expand/item_list", &["expand"], &["items"]),
    kernel("expand_spine_groups", "expand/workgroup_items", &["spine"], &[]),
    kernel("expand_items_groups", "expand/workgroup_items", &["expand"], &["items"]),
    kernel("expand_spine_items", "expand/prefix_search", &["spine"], &[]),
    kernel("expand_items_search", "expand/prefix_search", &["expand"], &["items"]),
    kernel("expand_spine_spans", "expand/workgroup_search", &["spine"], &[]),
    kernel("expand_items_spans", "expand/workgroup_search", &["expand"], &["items"]),
    kernel("expand_pack", "expand/packed_atomic", &["clear_packed", "pack", "plan_packed"], &[]),
    kernel("expand_items_packed", "expand/packed_atomic", &["expand"], &["items"]),
    kernel("expand_bits_po2_buckets", "expand/po2_buckets", &["count", "write"], &[]),
    kernel("expand_few_po2_buckets", "expand/po2_buckets", &["count_few", "write_few"], &[]),
    kernel("expand_spine_po2_buckets", "expand/po2_buckets", &["spine"], &[]),
    kernel("expand_items_po2_buckets", "expand/po2_buckets", &["expand"], &["items"]),
    kernel("expand_bits_one_bucket", "expand/one_bucket", &["count", "write"], &[]),
    kernel("expand_few_one_bucket", "expand/one_bucket", &["count_few", "write_few"], &[]),
    kernel("expand_spine_one_bucket", "expand/one_bucket", &["spine"], &[]),
    kernel("expand_items_one_bucket", "expand/one_bucket", &["expand"], &["items"]),
];

/// Files whose declarations stay together. WGSL of a caller, joined at run time, may use them all.
const WHOLE: [Whole; 2] = [
    Whole {
        file: "shared/instance",
        reached_by: Part::Second,
        keeps: &[Part::First, Part::Second],
    },
    Whole {
        file: "expand/layout",
        reached_by: Part::First,
        keeps: &[Part::First],
    },
];

struct Whole {
    file: &'static str,
    /// The part of which one reached declaration is enough.
    reached_by: Part,
    keeps: &'static [Part],
}

/// What comes before the first `// ----` of a file, and what comes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    First,
    Second,
}

/// A composed kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composed {
    pub text: String,
    /// The files that it takes declarations from; the kernel's own comes last.
    pub files: Vec<String>,
}

/// `@if(feature)`, or `@if(!feature)`.
#[derive(Clone, Debug)]
struct Condition {
    feature: String,
    is_wanted: bool,
}

impl Condition {
    fn holds(condition: &Option<Self>, features: &[&str]) -> bool {
        condition.as_ref().is_none_or(|condition| {
            features.contains(&condition.feature.as_str()) == condition.is_wanted
        })
    }
}

/// One imported name.
#[derive(Clone, Debug)]
pub struct Import {
    pub file: String,
    pub name: String,
    condition: Option<Condition>,
}

/// A declaration, or an assertion without a name.
#[derive(Clone, Debug)]
struct Item {
    name: Option<String>,
    condition: Option<Condition>,
    part: Part,
    /// Its lines with the comments above it, counted from 0.
    first: usize,
    end: usize,
    /// Names that it mentions and does not declare.
    names: BTreeSet<String>,
}

/// A parsed file.
#[derive(Clone, Debug)]
pub struct File {
    lines: Vec<String>,
    pub imports: Vec<Import>,
    hooks: BTreeSet<String>,
    items: Vec<Item>,
    /// The line of the first `// ----`.
    split: Option<usize>,
    /// Lines of import statements.
    import_lines: BTreeSet<usize>,
}

/// All files by name: `shared/layout`.
pub type Files = BTreeMap<String, File>;

/// Reads and parses the files of a folder, without those of Bevy's preprocessor.
pub fn read(folder: &Path) -> Result<Files, String> {
    let mut files = Files::new();
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for room in fs::read_dir(folder).map_err(failed)? {
        let room = room.map_err(failed)?.path();
        if !room.is_dir() {
            continue;
        }
        for file in fs::read_dir(&room).map_err(failed)? {
            let path = file.map_err(failed)?.path();
            let text = fs::read_to_string(&path).map_err(failed)?;
            if text.contains("\n#import") {
                continue;
            }
            let (Some(room), Some(stem)) = (room.file_name(), path.file_stem()) else {
                continue;
            };
            let name = format!("{}/{}", room.to_string_lossy(), stem.to_string_lossy());
            let parsed = parse(&text).map_err(|error| format!("shaders/{name}.wgsl{error}"))?;
            files.insert(name, parsed);
        }
    }
    Ok(files)
}

/// A token: a name, or a character of punctuation.
struct Token<'a> {
    text: &'a str,
    line: usize,
}

/// Names and punctuation of a text, without comments and white space.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for (line, content) in text.lines().enumerate() {
        let code = content.split("//").next().unwrap_or_default();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut rest = code;
        while let Some(c) = rest.chars().next() {
            let len = match is_word(c) {
                true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                false => c.len_utf8(),
            };
            let (text, after) = rest.split_at(len);
            if !c.is_whitespace() {
                tokens.push(Token { text, line });
            }
            rest = after;
        }
    }
    tokens
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Parses a file. An error begins with its line.
pub fn parse(text: &str) -> Result<File, String> {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let is_comment = |line: &String| line.starts_with("//");
    let split = lines.iter().position(|line| line.starts_with("// ----"));
    let hooks = lines
        .iter()
        .take_while(|line| is_comment(line))
        .filter_map(|line| line.strip_prefix("// Hooks: "))
        .flat_map(|names| names.split('.').next().unwrap_or_default().split(", "))
        .map(str::to_owned)
        .collect();
    let mut file = File {
        lines,
        imports: Vec::new(),
        hooks,
        items: Vec::new(),
        split,
        import_lines: BTreeSet::new(),
    };
    let tokens = tokens(text);
    let mut rest = &tokens[..];
    while let Some(first) = rest.first() {
        let len = item_len(rest).ok_or(format!(":{}: no end", first.line + 1))?;
        let (item, after) = rest.split_at(len);
        file.add(item)
            .map_err(|error| format!(":{}: {error}", first.line + 1))?;
        rest = after;
    }
    Ok(file)
}

/// Tokens up to the end of a statement: `;`, or the brace that closes a function or a struct.
fn item_len(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0;
    let mut has_body = false;
    for (index, token) in tokens.iter().enumerate() {
        match token.text {
            "fn" | "struct" if depth == 0 => has_body = true,
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        let ends = if has_body { "}" } else { ";" };
        if depth == 0 && token.text == ends {
            return Some(index + 1);
        }
    }
    None
}

impl File {
    fn add(&mut self, tokens: &[Token<'_>]) -> Result<(), String> {
        let texts: Vec<_> = tokens.iter().map(|token| token.text).collect();
        let (condition, skipped) = match texts[..] {
            ["@", "if", "(", "!", feature, ")", ..] => (Some((feature, false)), 6),
            ["@", "if", "(", feature, ")", ..] => (Some((feature, true)), 5),
            _ => (None, 0),
        };
        let condition = condition.map(|(feature, is_wanted)| Condition {
            feature: feature.to_owned(),
            is_wanted,
        });
        let (line, end) = (tokens[0].line, tokens[tokens.len() - 1].line + 1);
        let texts = &texts[skipped..];
        if texts.first() == Some(&"import") {
            self.import_lines.extend(line..end);
            return self.add_imports(texts, condition);
        }
        let mut first = line;
        while first > 0
            && self.lines[first - 1].starts_with("//")
            && !self.lines[first - 1].starts_with("// ----")
        {
            first -= 1;
        }
        let is_second = self.split.is_some_and(|split| split < line);
        self.items.push(Item {
            name: declared(texts).map(str::to_owned),
            condition,
            part: if is_second { Part::Second } else { Part::First },
            first,
            end,
            names: mentioned(texts),
        });
        Ok(())
    }

    fn add_imports(&mut self, texts: &[&str], condition: Option<Condition>) -> Result<(), String> {
        let names: Vec<_> = texts.iter().filter(|text| is_name(text)).copied().collect();
        let is_list = texts.contains(&"{");
        let ["import", "package", room, stem, ref names @ ..] = names[..] else {
            return Err("write `import package::room::file::name;`".into());
        };
        if names.is_empty() || (!is_list && names.len() > 1) {
            return Err("write `import package::room::file::{name, other};`".into());
        }
        self.imports.extend(names.iter().map(|name| Import {
            file: format!("{room}/{stem}"),
            name: (*name).to_owned(),
            condition: condition.clone(),
        }));
        Ok(())
    }

    fn item(&self, name: &str, features: &[&str]) -> Option<&Item> {
        self.items.iter().find(|item| {
            item.name.as_deref() == Some(name) && Condition::holds(&item.condition, features)
        })
    }

    /// The text of a part as plain WGSL: what the constants of the host hold.
    pub fn part(&self, part: Part) -> String {
        let split = self.split.unwrap_or(self.lines.len());
        let lines = match part {
            Part::First => 0..split,
            // Without the comment that splits the file.
            Part::Second => {
                let rest = self.lines.iter().skip(split);
                split + rest.take_while(|line| line.starts_with("//")).count()..self.lines.len()
            }
        };
        let kept = lines.filter(|line| !self.import_lines.contains(line));
        let text: String = kept.flat_map(|line| [&self.lines[line], "\n"]).collect();
        format!("{}\n", text.trim().replace("\n\n\n", "\n\n"))
    }
}

/// The name that a declaration declares.
fn declared<'a>(texts: &[&'a str]) -> Option<&'a str> {
    let keywords = ["fn", "struct", "const", "override", "alias", "var"];
    let at = texts.iter().position(|text| keywords.contains(text))?;
    let mut rest = texts[at + 1..].iter();
    let mut next = *rest.next()?;
    if next == "<" {
        // The address space of a variable.
        rest.find(|text| **text == ">")?;
        next = rest.next()?;
    }
    Some(next)
}

/// The names that a declaration mentions: no members, no attributes, no names that it declares
/// itself.
fn mentioned(texts: &[&str]) -> BTreeSet<String> {
    let before = |index: usize| index.checked_sub(1).and_then(|at| texts.get(at)).copied();
    let after = |index: usize| texts.get(index + 1).copied();
    let mut names = BTreeSet::new();
    let mut locals = BTreeSet::new();
    for (index, text) in texts.iter().enumerate().filter(|(_, text)| is_name(text)) {
        match before(index) {
            Some("." | "@") => {}
            Some("let" | "var" | "const") => drop(locals.insert(*text)),
            // A parameter or a member.
            _ if after(index) == Some(":") => drop(locals.insert(*text)),
            _ => drop(names.insert((*text).to_owned())),
        }
    }
    names.retain(|name| !locals.contains(name.as_str()));
    names
}

/// Composes a kernel with `features`.
pub fn compose(files: &Files, kernel: &Kernel, features: &[&str]) -> Result<Composed, String> {
    Composer {
        files,
        kernel,
        features,
        reached: reached_files(files, kernel.file, features)?,
        kept: BTreeMap::new(),
    }
    .run()
    .map_err(|error| format!("kernel {}: {error}", kernel.name))
}

/// The features of a kernel on a tier.
pub fn features(kernel: &Kernel, is_subgroup: bool) -> Vec<&'static str> {
    let mut features = kernel.features.to_vec();
    if is_subgroup && !features.contains(&"subgroup") {
        features.push("subgroup");
    }
    features
}

fn file<'a>(files: &'a Files, name: &str) -> Result<&'a File, String> {
    let missing = || format!("there is no shaders/{name}.wgsl");
    files.get(name).ok_or_else(missing)
}

/// The files that `from` imports, directly or not: those without further imports first.
fn reached_files(files: &Files, from: &str, features: &[&str]) -> Result<Vec<String>, String> {
    fn visit(
        files: &Files,
        name: &str,
        features: &[&str],
        seen: &mut BTreeSet<String>,
        order: &mut Vec<String>,
    ) -> Result<(), String> {
        if !seen.insert(name.to_owned()) {
            return Ok(());
        }
        for import in &file(files, name)?.imports {
            if Condition::holds(&import.condition, features) {
                visit(files, &import.file, features, seen, order)?;
            }
        }
        order.push(name.to_owned());
        Ok(())
    }
    let mut order = Vec::new();
    visit(files, from, features, &mut BTreeSet::new(), &mut order)?;
    Ok(order)
}

struct Composer<'a> {
    files: &'a Files,
    kernel: &'a Kernel,
    features: &'a [&'a str],
    reached: Vec<String>,
    /// Names of the declarations that are kept, by file.
    kept: BTreeMap<String, BTreeSet<String>>,
}

impl Composer<'_> {
    fn run(mut self) -> Result<Composed, String> {
        let mut queue = Vec::new();
        for entry in self.kernel.entries {
            let found = self.find(self.kernel.file, entry)?;
            queue.push(found.ok_or(format!("no entry point {entry}"))?);
        }
        while let Some((name, declaration)) = self.next(&mut queue)? {
            let kept = self.kept.entry(name.clone()).or_default();
            if !kept.insert(declaration.clone()) {
                continue;
            }
            let file = file(self.files, &name)?;
            let Some(item) = file.item(&declaration, self.features) else {
                return Err(format!("{name} declares no {declaration}"));
            };
            queue.extend(self.together(&name, file, item));
            for mentioned in &item.names {
                queue.extend(self.find(&name, mentioned)?);
            }
        }
        self.check_names()?;
        self.text()
    }

    /// The next declaration to keep. When there are no others, what assertions mention that belong
    /// to the kernel.
    fn next(&self, queue: &mut Vec<(String, String)>) -> Result<Option<(String, String)>, String> {
        let next = queue.pop();
        if next.is_some() {
            return Ok(next);
        }
        for name in self.kept.keys() {
            for item in &file(self.files, name)?.items {
                if item.name.is_some() || !self.keeps(name, item) {
                    continue;
                }
                for mentioned in &item.names {
                    let found = self.find(name, mentioned)?;
                    queue.extend(found.filter(|(file, name)| !self.has(file, name)));
                }
            }
        }
        Ok(queue.pop())
    }

    /// What stays together with `item`.
    fn together(&self, name: &str, file: &File, item: &Item) -> Vec<(String, String)> {
        let whole = WHOLE.iter().find(|whole| whole.file == name);
        let Some(whole) = whole.filter(|whole| whole.reached_by == item.part) else {
            return Vec::new();
        };
        let all = file
            .items
            .iter()
            .filter(|item| whole.keeps.contains(&item.part));
        all.filter_map(|item| Some((name.to_owned(), item.name.clone()?)))
            .collect()
    }

    /// The file that declares what `from` calls `name`. Names that no file declares are WGSL's.
    fn find(&self, from: &str, name: &str) -> Result<Option<(String, String)>, String> {
        let scope = file(self.files, from)?;
        if scope.item(name, self.features).is_some() {
            return Ok(Some((from.to_owned(), name.to_owned())));
        }
        let import = scope.imports.iter().find(|import| {
            import.name == name && Condition::holds(&import.condition, self.features)
        });
        if let Some(import) = import {
            return Ok(Some((import.file.clone(), name.to_owned())));
        }
        if scope.hooks.contains(name) {
            return self.hook(from, name).map(Some);
        }
        let declares = |file: &&String| {
            let file = self.files.get(*file);
            file.is_some_and(|file| file.item(name, self.features).is_some())
        };
        match self.reached.iter().find(declares) {
            Some(other) => Err(format!(
                "{from} uses {name} of {other} and does not import it"
            )),
            None => Ok(None),
        }
    }

    /// The declaration of a hook: the kernel's, or the only one of all files that it reaches.
    fn hook(&self, from: &str, name: &str) -> Result<(String, String), String> {
        let root = file(self.files, self.kernel.file)?;
        if root.item(name, self.features).is_some() {
            return Ok((self.kernel.file.to_owned(), name.to_owned()));
        }
        let imports = &mut root.imports.iter();
        if let Some(import) = imports.find(|import| import.name == name) {
            return Ok((import.file.clone(), name.to_owned()));
        }
        let has_it = |file: &&String| {
            let file = self.files.get(*file);
            file.is_some_and(|file| file.item(name, self.features).is_some())
        };
        let found: Vec<_> = self.reached.iter().filter(has_it).collect();
        match found[..] {
            [file] => Ok((file.clone(), name.to_owned())),
            _ => Err(format!("{from} wants one {name}, found {found:?}")),
        }
    }

    fn check_names(&self) -> Result<(), String> {
        let mut owners = BTreeMap::new();
        for (file, names) in &self.kept {
            for name in names {
                if let Some(other) = owners.insert(name, file) {
                    return Err(format!("{file} and {other} both declare {name}"));
                }
            }
        }
        Ok(())
    }

    fn has(&self, file: &str, name: &str) -> bool {
        self.kept.get(file).is_some_and(|kept| kept.contains(name))
    }

    /// Whether an item is part of the kernel. An assertion is if all names of its file are that it
    /// mentions.
    fn keeps(&self, name: &str, item: &Item) -> bool {
        if !Condition::holds(&item.condition, self.features) {
            return false;
        }
        if let Some(declared) = &item.name {
            return self.has(name, declared);
        }
        let is_declared = |mentioned: &&String| {
            let file = self.files.get(name);
            file.is_some_and(|file| file.item(mentioned, self.features).is_some())
        };
        let mut declared = item.names.iter().filter(is_declared);
        declared.all(|mentioned| self.has(name, mentioned))
    }

    fn text(&self) -> Result<Composed, String> {
        let is_used = |name: &&String| self.kept.contains_key(*name);
        let files: Vec<_> = self.reached.iter().filter(is_used).cloned().collect();
        let tier = self.features.join(", ");
        let mut text = format!(
            "// Kernel {} ({tier}), made of {}.\n",
            self.kernel.name,
            files.join(", ")
        );
        for name in &files {
            self.append(name, &mut text)?;
        }
        Ok(Composed { text, files })
    }

    /// Appends the kept lines of a file: runs of them, each below the place that it comes from.
    fn append(&self, name: &str, text: &mut String) -> Result<(), String> {
        let file = file(self.files, name)?;
        // Where the last run ended, if nothing was left out since.
        let mut run_end = None;
        for item in &file.items {
            if !self.keeps(name, item) {
                run_end = None;
                continue;
            }
            let from = match run_end {
                Some(end) => end,
                None => {
                    text.push_str(&format!("\n// shaders/{name}.wgsl:{}\n", item.first + 1));
                    item.first
                }
            };
            for line in &file.lines[from..item.end] {
                // A condition that holds stays as a comment, so that lines stay as they are.
                match line
                    .strip_prefix("@if(")
                    .and_then(|rest| rest.split_once(')'))
                {
                    Some((_, "")) => text.push_str(&format!("// {line}\n")),
                    Some((_, code)) => text.push_str(&format!("{}\n", code.trim_start())),
                    None => text.push_str(&format!("{line}\n")),
                }
            }
            run_end = Some(item.end);
        }
        Ok(())
    }
}
