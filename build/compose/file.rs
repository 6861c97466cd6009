//! A file of `shaders/`: its imports, its hooks and its declarations.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// What comes before the first `// ----` of a file, and what comes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    First,
    Second,
}

/// `@if(feature)`, or `@if(!feature)`.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    feature: String,
    is_wanted: bool,
}

impl Condition {
    pub(super) fn holds(condition: &Option<Self>, features: &[&str]) -> bool {
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
    pub(super) condition: Option<Condition>,
}

/// A declaration, or an assertion without a name.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub name: Option<String>,
    pub condition: Option<Condition>,
    pub part: Part,
    /// Its lines with the comments above it, counted from 0.
    pub first: usize,
    pub end: usize,
    /// Names that it mentions and does not declare.
    pub names: BTreeSet<String>,
}

/// A parsed file.
#[derive(Clone, Debug)]
pub struct File {
    pub(super) lines: Vec<String>,
    pub imports: Vec<Import>,
    pub(super) hooks: BTreeSet<String>,
    pub(super) items: Vec<Item>,
    /// The line of the first `// ----`.
    split: Option<usize>,
    /// Lines of import statements.
    import_lines: BTreeSet<usize>,
}

/// All files by name: `shared/layout`.
pub type Files = BTreeMap<String, File>;

/// Reads and parses the files of a folder, without those that Bevy composes: they import modules of
/// Bevy, or of others that do.
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
            if text.contains("\nimport bevy_") || text.contains("\nimport package::draw_") {
                continue;
            }
            let (Some(room), Some(stem)) = (room.file_name(), path.file_stem()) else {
                continue;
            };
            let name = format!("{}/{}", room.to_string_lossy(), stem.to_string_lossy());
            let parsed = parse(&text).map_err(|error| format!("shaders/{name}.wesl{error}"))?;
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

    pub(super) fn item(&self, name: &str, features: &[&str]) -> Option<&Item> {
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
