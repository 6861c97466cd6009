//! The demo and the examples in headless Chromium: what they draw, against the pictures of native
//! adapters, their survivors against the CPU twin's, and no error in the console.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::build::Program;
use super::pages::{self, DEMO};
use crate::browser::{self, Running};
use crate::compare::{self, Picture};
use crate::examples;
use crate::project::{Demo, NO_LAYER, Project};
use crate::server;
use crate::steps::Outcome;

const PAGE: &str = include_str!("check.html");

/// Seconds that a page may take. Chromium draws by software here.
const PATIENCE: u64 = 180;

/// What is checked unless names are given: what was seen to be drawn well before [`PATIENCE`] ends,
/// on two cores.
const QUICK: [&str; 5] = [DEMO, "dynamic", "edit", "from_file", "minimal"];

/// Pixels in ten thousand that may differ from another rasterizer's, of a picture whose pixels are
/// means of squares: of examples, and of the demo, where much that glows is smaller than a pixel.
const IN_TEN_THOUSAND: [u64; 2] = [20, 100];

/// The demo's flags.
const DEMO_FLAGS: &str = "&count=20000";

/// Pages whose canvas is looked at, and the number of frames before.
const LIVE: [&str; 2] = [DEMO, "minimal"];
const FRAMES: u32 = 4;

/// The least number of colors of a canvas that shows something.
const COLORS: usize = 50;

/// A page to open.
#[derive(Serialize)]
struct Job {
    page: String,
    /// The canvas is looked at after this number of frames; 0 if the program tells what it drew.
    frames: u32,
    patience: u64,
}

/// What a page says.
#[derive(Deserialize)]
struct Said {
    page: String,
    /// The console's errors.
    errors: Vec<String>,
    /// Why there is nothing else.
    error: Option<String>,
    #[serde(default)]
    width: u32,
    #[serde(default)]
    height: u32,
    #[serde(flatten)]
    survivors: Option<Survivors>,
}

/// What the comparison with the CPU twin found.
#[derive(Deserialize)]
struct Survivors {
    tier: String,
    lists: usize,
    tested: u64,
    visible: u64,
    borderline: u64,
    wrong: Vec<String>,
}

/// Checks the examples with these names, or the quick ones. The demo is compared with what `demo`
/// draws.
pub fn run(
    project: &Project,
    names: &[String],
    demo: impl FnOnce() -> Result<Demo>,
) -> Result<Outcome> {
    let browser = match browser::find() {
        Ok(browser) => browser,
        Err(error) => return Ok(Outcome::Skipped(format!("{error:#}"))),
    };
    let all = pages::names(project)?;
    for name in names {
        ensure!(all.contains(name), "no example {name}");
    }
    let chosen = |name: &&String| match names {
        [] => QUICK.contains(&name.as_str()),
        _ => names.contains(name),
    };
    let jobs: Vec<_> = jobs(all.iter().filter(chosen)).collect();
    let native = match jobs.iter().any(|job| job.page.contains(DEMO_FLAGS)) {
        true => Some(draw(project, &demo()?)?),
        false => None,
    };
    let program = Program::build(project)?;
    let folder = project.target.join("web/checked");
    pages::write(project, &program, &folder)?;

    let list = serde_json::to_vec(&jobs)?;
    let served = server::serve(0, move |path| match path {
        "/check.html" => Some(PAGE.into()),
        "/jobs.json" => Some(list.clone()),
        _ => pages::read(&folder, path),
    })?;
    let page = format!("{}check.html", served.address);
    let mut running = Running::open(project, &browser, &page)?;
    let mut wrong = Vec::new();
    for _ in &jobs {
        let answer = running.next(&served.answers, Duration::from_secs(PATIENCE + 60))?;
        let (page, found) = judge(project, &answer, native.as_ref())?;
        match found {
            Ok(line) => println!("{page}: {line}"),
            Err(error) => {
                println!("{page}: WRONG: {error:#}");
                wrong.push(page);
            }
        }
    }
    wrong.extend(
        served
            .missing
            .try_iter()
            .map(|path| format!("no file {path}")),
    );
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    Ok(Outcome::Passed)
}

/// What the demo draws without a browser, [shrunk](examples::shrunk).
fn draw(project: &Project, demo: &Demo) -> Result<Picture> {
    let file = project.output_folder()?.join("native-orbs.png");
    let mut command = demo.command();
    command
        .args([
            "--headless",
            "--count=20000",
            "--size=640x360",
            "--frames=4",
            "--out",
        ])
        .arg(&file)
        .env(NO_LAYER.0, NO_LAYER.1)
        .stdout(Stdio::null());
    let status = command.status().context("the demo does not start")?;
    ensure!(status.success(), "the demo failed ({status})");
    Ok(examples::shrunk(&compare::read(&file)?))
}

fn jobs<'a>(names: impl Iterator<Item = &'a String>) -> impl Iterator<Item = Job> {
    let job = |page: String, frames| Job {
        page,
        frames,
        patience: PATIENCE,
    };
    names.flat_map(move |name| {
        let flags = if name == DEMO { DEMO_FLAGS } else { "" };
        let page = format!("view.html?example={name}{flags}");
        let live = LIVE.contains(&name.as_str());
        let live = live.then(|| job(page.clone(), FRAMES));
        [job(format!("{page}&check"), 0)].into_iter().chain(live)
    })
}

/// The page, and what is to be said about it.
fn judge(
    project: &Project,
    answer: &[u8],
    native: Option<&Picture>,
) -> Result<(String, Result<String>)> {
    let end = answer.iter().position(|byte| *byte == b'\n');
    let (said, pixels) = answer.split_at(end.context("the page sent no line")?);
    let said: Said = serde_json::from_slice(said)
        .with_context(|| format!("the page sent {}", String::from_utf8_lossy(said)))?;
    let found = judge_page(project, &said, &pixels[1..], native);
    Ok((said.page, found))
}

fn judge_page(
    project: &Project,
    said: &Said,
    pixels: &[u8],
    native: Option<&Picture>,
) -> Result<String> {
    if let Some(error) = &said.error {
        anyhow::bail!("{error}; the console: {}", said.errors.join("; "));
    }
    let (width, height) = (said.width, said.height);
    ensure!(
        pixels.len() == 4 * (width * height) as usize,
        "{} bytes are no picture of {width} by {height}",
        pixels.len()
    );
    let picture = Picture::from_fn(width, height, |x, y| {
        let at = 4 * (y * width + x) as usize;
        [pixels[at], pixels[at + 1], pixels[at + 2], pixels[at + 3]]
    });
    let (_, query) = said.page.split_once('=').context("no example")?;
    let name = query.split('&').next().unwrap_or_default();
    let kind = if said.survivors.is_some() {
        "web"
    } else {
        "canvas"
    };
    let drawn = project.output_folder()?.join(format!("{kind}-{name}.png"));
    picture.save(&drawn)?;
    ensure!(
        said.errors.is_empty(),
        "the console: {}",
        said.errors.join("; ")
    );
    let Some(survivors) = &said.survivors else {
        let colors = picture.colors();
        ensure!(
            colors >= COLORS,
            "the canvas has {colors} colors: see {}",
            drawn.display()
        );
        return Ok(format!("the canvas has {colors} colors"));
    };
    let line = survivors.check()?;
    let difference = match native {
        Some(native) if name == DEMO => compare::pictures(&examples::shrunk(&picture), native)?,
        _ => examples::difference(project, name, &picture)?,
    };
    ensure!(
        difference.is_within(IN_TEN_THOUSAND[usize::from(name == DEMO)]),
        "{difference}: see {}",
        drawn.display()
    );
    Ok(format!("{line}; {difference}"))
}

impl Survivors {
    /// An error if a list is wrong, or if there was none.
    fn check(&self) -> Result<String> {
        ensure!(
            self.wrong.is_empty(),
            "survivors differ from the CPU twin's: {}",
            self.wrong.join("; ")
        );
        ensure!(
            self.lists > 0 && self.visible > 0,
            "no survivors were compared"
        );
        Ok(format!(
            "tier {}, {} of {} instances in {} lists as the CPU twin's ({} borderline)",
            self.tier, self.visible, self.tested, self.lists, self.borderline
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a page says that drew one color.
    fn answer(said: &str) -> Vec<u8> {
        let mut answer = said.as_bytes().to_vec();
        answer.push(b'\n');
        answer.extend([7; 4 * 6]);
        answer
    }

    fn judged(said: &str) -> Result<String> {
        let project = Project::find()?;
        judge(&project, &answer(said), None)?.1
    }

    fn complaint(said: &str) -> String {
        judged(said).map_or_else(|error| format!("{error:#}"), |line| panic!("{line}"))
    }

    const SURVIVORS: &str = r#""tier": "workgroup", "lists": 1, "tested": 9, "visible": 4,
        "borderline": 0, "wrong": []"#;

    fn said(rest: &str) -> String {
        let said = format!(
            r#"{{"page": "view.html?example=minimal&check", "width": 3, "height": 2, {rest}}}"#
        );
        said.replace('\n', " ")
    }

    #[test]
    fn whatever_is_wrong_is_told() {
        let texts = [
            complaint(&said(r#""errors": [], "error": "no adapter""#)),
            complaint(&said(r#""errors": ["invalid shader"]"#)),
            complaint(&said(r#""errors": []"#)),
            complaint(&said(&format!(r#""errors": ["late"], {SURVIVORS}"#))),
            complaint(&said(&format!(
                r#""errors": [], {}"#,
                SURVIVORS.replace("[]", r#"["camera of set 3"]"#)
            ))),
            complaint(&said(&format!(
                r#""errors": [], {}"#,
                SURVIVORS.replace(r#""lists": 1"#, r#""lists": 0"#)
            ))),
            // The picture has another size than the stored one.
            complaint(&said(&format!(r#""errors": [], {SURVIVORS}"#))),
            complaint(&said(r#""errors": []"#).replace(r#""height": 2"#, r#""height": 3"#)),
        ];
        let expected = [
            "no adapter",
            "invalid shader",
            "the canvas has 1 colors",
            "the console: late",
            "camera of set 3",
            "no survivors were compared",
            "sizes differ",
            "no picture of 3 by 3",
        ];
        for (text, expected) in texts.iter().zip(expected) {
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn each_page_is_checked_and_some_are_looked_at() {
        let names = ["orbs", "city"].map(String::from);
        let pages: Vec<_> = jobs(names.iter())
            .map(|job| (job.page, job.frames))
            .collect();
        let expected = [
            ("view.html?example=orbs&count=20000&check", 0),
            ("view.html?example=orbs&count=20000", FRAMES),
            ("view.html?example=city&check", 0),
        ];
        assert_eq!(
            pages,
            expected.map(|(page, frames)| (page.to_owned(), frames))
        );
    }
}
