//! `cargo xtask tint`: a browser takes every kernel, without an error and without a warning.
//!
//! Browsers compile WGSL by the whole standard. naga, which compiles it elsewhere, accepts more: it
//! does not check that barriers and subgroup operations are in uniform control flow. Chromium's
//! compiler is Tint. A page on localhost has it compile the composed kernels, and sends back what
//! it says. Chromium's software adapter is enough, so this needs no GPU.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use serde::{Deserialize, Serialize};

use crate::browser::{self, Running};
use crate::project::Project;
use crate::steps::Outcome;
use crate::{server, wgsl};

const PAGE: &str = include_str!("tint/page.html");

/// The kernels take two seconds; a browser that starts for the first time takes some more.
const PATIENCE: Duration = Duration::from_secs(120);

/// Types that WGSL of the standard does not have. Kernels with them need native features of wgpu
/// (here `SHADER_INT64`), which no browser has, so no browser is asked to compile them.
const NATIVE_TYPES: [&str; 2] = ["u64", "i64"];

/// The directive that browsers ask for before subgroup operations. naga knows them without it, and
/// does not know the directive. So it is no part of the kernels.
const ENABLE_SUBGROUPS: &str = "enable subgroups; ";

/// A kernel, as the page compiles it.
#[derive(Debug, PartialEq, Serialize)]
struct Source {
    name: String,
    code: String,
}

/// What the compiler says about a kernel.
#[derive(Debug, Deserialize)]
struct Answer {
    name: String,
    messages: Vec<Message>,
}

#[derive(Debug, Deserialize)]
struct Message {
    /// `error`, `warning` or `info`.
    kind: String,
    line: usize,
    text: String,
}

/// Compiles every kernel and returns the exit code.
pub fn run(project: &Project) -> Result<i32> {
    compile(project, &browser::find()?)?;
    Ok(0)
}

/// The same in CI, if there is a browser or one can be installed.
pub fn check(project: &Project) -> Result<Outcome> {
    match browser::find() {
        Ok(browser) => compile(project, &browser).map(|()| Outcome::Passed),
        Err(error) => Ok(Outcome::Skipped(format!("{error:#}"))),
    }
}

fn compile(project: &Project, browser: &Path) -> Result<()> {
    let (sources, native) = sources(wgsl::kernels(project)?);
    let answers = ask(project, browser, &sources)?;
    let complaints = complaints(&sources, &answers)?;
    complaints
        .iter()
        .for_each(|complaint| print!("{complaint}"));
    println!(
        "{} of {} kernels compile; left out, for types that no browser has: {}",
        sources.len() - complaints.len(),
        sources.len(),
        native.join(", ")
    );
    ensure!(
        complaints.is_empty(),
        "Tint does not take {} of the kernels as they are",
        complaints.len()
    );
    Ok(())
}

/// Has the browser compile the kernels.
fn ask(project: &Project, browser: &Path, sources: &[Source]) -> Result<Vec<Answer>> {
    let sources = serde_json::to_vec(sources)?;
    let served = server::serve(0, move |path| match path {
        "/" => Some(PAGE.into()),
        "/kernels.json" => Some(sources.clone()),
        _ => None,
    })?;
    let mut running = Running::open(project, browser, &served.address)?;
    let answer = running.next(&served.answers, PATIENCE)?;
    // The page sends a text instead of a list if it cannot compile.
    serde_json::from_slice(&answer)
        .map_err(|_| anyhow!("the page says: {}", String::from_utf8_lossy(&answer)))
}

/// What the page compiles, each text once, and the names of the kernels that no browser can.
fn sources(kernels: Vec<wgsl::Kernel>) -> (Vec<Source>, Vec<String>) {
    let mut seen = HashSet::new();
    let (mut sources, mut native) = (Vec::new(), Vec::new());
    for wgsl::Kernel { name, text, .. } in kernels {
        let words = |line: &str| {
            let code = line.split("//").next().unwrap_or_default();
            let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.map(str::to_owned).collect::<Vec<_>>()
        };
        let words: HashSet<_> = text.lines().flat_map(words).collect();
        if NATIVE_TYPES.iter().any(|native| words.contains(*native)) {
            native.push(name);
            continue;
        }
        // The first line names the tier.
        let code = text.split_once('\n').map_or(&*text, |(_, code)| code);
        if seen.insert(code.to_owned()) {
            let has_subgroups = words.iter().any(|word| word.starts_with("subgroup"));
            let enable = if has_subgroups { ENABLE_SUBGROUPS } else { "" };
            // On the first line, so that lines keep their numbers.
            let code = format!("{enable}{text}");
            sources.push(Source { name, code });
        }
    }
    (sources, native)
}

/// A kernel that does not compile, or only with a warning.
struct Complaint<'a> {
    source: &'a Source,
    messages: &'a [Message],
}

fn complaints<'a>(sources: &'a [Source], answers: &'a [Answer]) -> Result<Vec<Complaint<'a>>> {
    let mut complaints = Vec::new();
    ensure!(sources.len() == answers.len(), "the page left kernels out");
    for (source, answer) in sources.iter().zip(answers) {
        ensure!(
            source.name == answer.name,
            "the page answered for {}",
            answer.name
        );
        if answer.messages.iter().any(|message| message.kind != "info") {
            complaints.push(Complaint {
                source,
                messages: &answer.messages,
            });
        }
    }
    Ok(complaints)
}

impl fmt::Display for Complaint<'_> {
    /// The kernel, then each message with its line, in the file of `shaders/` and in the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:", self.source.name)?;
        for message in self.messages {
            let place = origin(&self.source.code, message.line);
            let line = self.source.code.lines().nth(message.line.saturating_sub(1));
            writeln!(
                f,
                "  {}: {place}: {}\n      {}",
                message.kind,
                message.text.trim().replace('\n', "\n      "),
                line.unwrap_or_default().trim()
            )?;
        }
        Ok(())
    }
}

/// The place of a line of a composed kernel. Above each run of lines stands the place of its first
/// one: `// shaders/shared/visibility.wesl:12`.
fn origin(code: &str, line: usize) -> String {
    let above: Vec<_> = code.lines().take(line).enumerate().collect();
    let found = above.into_iter().rev().find_map(|(index, text)| {
        let (file, first) = text.strip_prefix("// shaders/")?.split_once(".wesl:")?;
        let first: usize = first.parse().ok()?;
        Some(format!(
            "shaders/{file}.wesl:{}",
            (first + line).checked_sub(index + 2)?
        ))
    });
    found.unwrap_or_else(|| format!("line {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str, text: &str) -> wgsl::Kernel {
        wgsl::Kernel::new(name, text)
    }

    #[test]
    fn a_text_is_compiled_once_and_none_with_types_that_browsers_lack() {
        let (sources, native) = sources(vec![
            kernel("a.subgroup", "// a, subgroup\nlet x = subgroupAdd(1u);\n"),
            kernel("a.workgroup", "// a\nlet x = 1u; // not u64, no subgroup\n"),
            kernel("b.subgroup", "// b, subgroup\nlet y = 1u;\n"),
            kernel("b.workgroup", "// b\nlet y = 1u;\n"),
            kernel("c", "// c\nvar<storage> z: array<u64>;\n"),
        ]);
        let names: Vec<_> = sources.iter().map(|source| &*source.name).collect();
        assert_eq!(names, ["a.subgroup", "a.workgroup", "b.subgroup"]);
        assert_eq!(native, ["c"]);
        let enabled = sources
            .iter()
            .map(|source| source.code.starts_with("enable"));
        assert_eq!(enabled.collect::<Vec<_>>(), [true, false, false]);
        assert_eq!(sources[0].code.lines().count(), 2);
    }

    #[test]
    fn errors_and_warnings_are_complaints_with_their_place() -> Result<()> {
        let code = "// Kernel k\n\n// shaders/cull/k.wesl:7\nfn f() {\n    g();\n}\n";
        let source = |name: &str| Source {
            name: name.into(),
            code: code.into(),
        };
        let answers = r#"[
            {"name": "k", "messages": [{"kind": "error", "line": 5, "text": "no g\nat all"}]},
            {"name": "l", "messages": []},
            {"name": "m", "messages": [{"kind": "info", "line": 0, "text": "fine"}]},
            {"name": "n", "messages": [{"kind": "warning", "line": 1, "text": "odd"}]}
        ]"#;
        let answers: Vec<Answer> = serde_json::from_str(answers)?;
        let sources = ["k", "l", "m", "n"].map(source);
        let found = complaints(&sources, &answers)?;
        let text: String = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            text,
            "k:\n  error: shaders/cull/k.wesl:8: no g\n      at all\n      g();\n\
             n:\n  warning: line 1: odd\n      // Kernel k\n"
        );
        assert!(complaints(&sources[..3], &answers).is_err());
        assert!(complaints(&sources[1..], &answers[..3]).is_err());
        Ok(())
    }
}
