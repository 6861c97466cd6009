//! The declarations that an entry point reaches, as one text.

use super::{
    file::{Condition, File, Files, Item, Part},
    kernels::Kernel,
};
use std::collections::{BTreeMap, BTreeSet};

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

/// A composed kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composed {
    pub text: String,
    /// The files that it takes declarations from; the kernel's own comes last.
    pub files: Vec<String>,
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

fn file<'a>(files: &'a Files, name: &str) -> Result<&'a File, String> {
    let missing = || format!("there is no shaders/{name}.wesl");
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
                    text.push_str(&format!("\n// shaders/{name}.wesl:{}\n", item.first + 1));
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
