//! Vulkan's validation layer, with synchronization checks, over the demo and the small examples: the
//! plugin may add no message.
//!
//! Bevy alone is not free of messages on every driver, so the same scene without the plugin (the
//! peer) says which ones are not ours. Both runs write three things: wgpu's log, the layer's own
//! log file (wgpu keeps some messages to itself), and the loader's word that the layer was there.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::examples;
use crate::project::{Demo, Project, exit_code};
use crate::setup::{self, Apt, Wants};
use crate::steps::Outcome;

const LAYER: &str = "VK_LAYER_KHRONOS_validation";
const MANIFEST: &str = "VkLayer_khronos_validation.json";
const DEBIAN_LAYER: &str = "vulkan-validationlayers";

/// Small: the layer is slow, and a message about one orb comes for five thousand too.
const SCENE: [&str; 5] = ["--headless", "--count", "5000", "--frames", "4"];

/// The runs with the plugin: as it comes, and the tiers that it may not choose by itself.
const PLUGIN_RUNS: [(&str, &[&str]); 3] = [
    ("plugin", &[]),
    ("plugin-workgroup", &["--tier", "workgroup"]),
    ("plugin-cpu", &["--tier", "cpu"]),
];

/// A warning about speed. Vertex stages of sets pass on tag, index and data of the instance
/// (locations 13 and 14) to fragment stages of apps, and Bevy's do not read them. Vulkan allows
/// that, and drivers leave out such outputs when they link the stages.
const UNREAD_OUTPUTS: &str = "UNASSIGNED-CoreValidation-Shader-OutputNotConsumed";

/// How the identifiers of the layer's messages begin.
const IDENTIFIERS: [&str; 5] = [
    "VUID-",
    "UNASSIGNED-",
    "SYNC-HAZARD-",
    "WARNING-",
    "BestPractices-",
];

/// `cargo xtask validate`: the demo and the small examples.
pub fn run(project: &Project) -> Result<i32> {
    let demo = project.build_demo()?;
    let wants = Wants {
        window: false,
        verbose: false,
    };
    setup::make_ready(&demo, wants)?;
    for check in [check, check_examples] {
        if let Outcome::Skipped(reason) = check(project, &demo)? {
            println!("skipped: {reason}");
        }
    }
    Ok(0)
}

/// Runs the demo under the layer, with the plugin and without, and compares what was said.
pub fn check(project: &Project, demo: &Demo) -> Result<Outcome> {
    if let Some(skipped) = without_layer() {
        return Ok(skipped);
    }
    let folder = project.output_folder()?.join("validation");
    let peer = run_demo(demo, &folder, "peer", &["--peer", "bevy"])?;
    print!("peer (the same scene without the plugin):\n{peer}");
    let mut complaints = Vec::new();
    for (name, flags) in PLUGIN_RUNS {
        let plugin = run_demo(demo, &folder, name, flags)?;
        complaints.extend(compare(name, &plugin, &peer));
    }
    all_clear(&complaints, &folder)
}

/// Draws each small example under the layer. What they may say is what the demo's scene says without
/// the plugin.
pub fn check_examples(project: &Project, demo: &Demo) -> Result<Outcome> {
    if let Some(skipped) = without_layer() {
        return Ok(skipped);
    }
    let folder = project.output_folder()?.join("validation");
    let peer = run_demo(demo, &folder, "peer", &["--peer", "bevy"])?;
    examples::build(project)?;
    let mut complaints = Vec::new();
    for name in examples::small(project)? {
        let picture = folder.join(format!("{name}.png"));
        let said = run_under_layer(
            examples::gallery(project, &name, &picture),
            &folder.join(&name),
        )?;
        complaints.extend(compare(&name, &said, &peer));
    }
    all_clear(&complaints, &folder)
}

/// Prints what a run said, and returns what the peer did not say.
fn compare(name: &str, said: &Messages, peer: &Messages) -> Vec<String> {
    print!("{name}:\n{said}");
    let found = said.complaints(peer);
    found
        .iter()
        .map(|complaint| format!("{name}: {complaint}"))
        .collect()
}

fn all_clear(complaints: &[String], folder: &Path) -> Result<Outcome> {
    ensure!(
        complaints.is_empty(),
        "{} (logs in {})",
        complaints.join("; "),
        folder.display()
    );
    Ok(Outcome::Passed)
}

/// Installs the layer if it is not there. Why not, if it cannot be had.
fn without_layer() -> Option<Outcome> {
    if !cfg!(target_os = "linux") {
        return Some(Outcome::Skipped("it runs on Linux only".into()));
    }
    if layer_is_installed() {
        return None;
    }
    let Some(apt) = Apt::here() else {
        let reason = format!("{LAYER} is not installed (Debian and Ubuntu: {DEBIAN_LAYER} has it)");
        return Some(Outcome::Skipped(reason));
    };
    let error = apt.install(&[DEBIAN_LAYER]).err()?;
    Some(Outcome::Skipped(format!("{error:#}")))
}

/// Runs the demo once under the layer.
fn run_demo(demo: &Demo, folder: &Path, name: &str, flags: &[&str]) -> Result<Messages> {
    let folder = folder.join(name);
    let mut command = demo.command();
    command
        .args(SCENE)
        .arg("--out")
        .arg(folder.join("orbs.png"))
        .args(flags);
    run_under_layer(command, &folder)
}

/// Runs a program under the layer. What it said stays in the folder, whose last part names it.
fn run_under_layer(mut command: Command, folder: &Path) -> Result<Messages> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let (said, layer_log) = (folder.join("stderr.log"), folder.join("layer.log"));
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    std::fs::write(
        folder.join("vk_layer_settings.txt"),
        layer_settings(&layer_log),
    )?;

    let output = command
        .envs([("WGPU_VALIDATION", "1"), ("WGPU_DEBUG", "1")])
        .envs([("RUST_LOG", "warn,wgpu=warn,naga=warn"), ("NO_COLOR", "1")])
        // The loader says which layers it put in, on stderr.
        .env("VK_LOADER_DEBUG", "layer")
        .env("VK_LAYER_SETTINGS_PATH", folder)
        .output()
        .context("the program does not start")?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    std::fs::write(&said, &text)?;

    let layer_text = std::fs::read_to_string(&layer_log);
    // Silence is only worth something from a layer that was there.
    if layer_text.is_err() && !names_layer(&text) {
        bail!("{name}: {LAYER} was not loaded (see {})", said.display());
    }
    let messages = Messages::read(&(text + &layer_text.unwrap_or_default()));
    let code = exit_code(output.status);
    if code != 0 {
        print!("{name}:\n{messages}");
        bail!(
            "{name}: it ended with exit code {code} (see {})",
            said.display()
        );
    }
    Ok(messages)
}

/// The layer's settings: errors and warnings into a separate file, and hazards of memory that
/// commands share. GPU-assisted validation stays off: the layer of Debian 12 (1.3.239) cannot
/// instrument shaders whose source is WGSL.
fn layer_settings(log: &Path) -> String {
    format!(
        "khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG\n\
         khronos_validation.report_flags = error,warn\n\
         khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT\n\
         khronos_validation.log_filename = {}\n",
        log.display()
    )
}

/// Whether the loader's lines name the layer.
fn names_layer(text: &str) -> bool {
    text.lines()
        .any(|line| line.starts_with("LAYER") && line.contains(LAYER))
}

/// Whether one of the loader's folders has the layer's manifest.
fn layer_is_installed() -> bool {
    let variable = |name| std::env::var_os(name);
    layer_folders(variable)
        .iter()
        .any(|folder| folder.join(MANIFEST).is_file())
}

/// Where the Vulkan loader looks for explicit layers.
fn layer_folders(variable: impl Fn(&'static str) -> Option<OsString>) -> Vec<PathBuf> {
    let paths = |name: &'static str, default: &str| -> Vec<PathBuf> {
        std::env::split_paths(&variable(name).unwrap_or_else(|| default.into())).collect()
    };
    let mut folders = [paths("VK_LAYER_PATH", ""), paths("VK_ADD_LAYER_PATH", "")].concat();
    let home = variable("HOME").map(PathBuf::from).unwrap_or_default();
    let mut data = vec![PathBuf::from("/etc"), PathBuf::from("/usr/local/etc")];
    data.extend(paths("XDG_CONFIG_DIRS", "/etc/xdg"));
    data.extend(paths("XDG_DATA_DIRS", "/usr/local/share:/usr/share"));
    data.extend([home.join(".local/share"), home.join(".config")]);
    folders.extend(
        data.iter()
            .map(|folder| folder.join("vulkan/explicit_layer.d")),
    );
    folders
}

/// What a run said, the harmless left out.
#[derive(Debug, Default)]
struct Messages {
    /// Identifiers of the layer's messages.
    identifiers: BTreeSet<String>,
    /// wgpu's own validation errors, each with the lines that follow it.
    wgpu_errors: Vec<String>,
}

impl Messages {
    /// Collects the messages of a log.
    fn read(text: &str) -> Self {
        let mut messages = Self::default();
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            messages
                .identifiers
                .extend(identifiers(line).map(str::to_owned));
            if is_wgpu_error(line) {
                let causes = lines[number + 1..]
                    .iter()
                    .filter(|line| !line.trim().is_empty())
                    .take(6);
                let excerpt: Vec<&str> = std::iter::once(line)
                    .chain(causes)
                    .map(|line| line.trim())
                    .collect();
                messages.wgpu_errors.push(excerpt.join("\n      "));
            }
        }
        messages
    }

    /// What is wrong with a run of the plugin, given the peer's.
    fn complaints(&self, peer: &Self) -> Vec<String> {
        let mut complaints = Vec::new();
        if !self.wgpu_errors.is_empty() {
            complaints.push(format!(
                "wgpu validation errors: {}",
                self.wgpu_errors.len()
            ));
        }
        let new = self.identifiers.difference(&peer.identifiers);
        let new = new.filter(|id| *id != UNREAD_OUTPUTS);
        complaints.extend(new.map(|id| format!("{id}, which the peer does not give")));
        complaints
    }
}

impl fmt::Display for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.identifiers.is_empty() && self.wgpu_errors.is_empty() {
            return writeln!(f, "  no message");
        }
        for identifier in &self.identifiers {
            writeln!(f, "  layer: {identifier}")?;
        }
        for error in &self.wgpu_errors {
            writeln!(f, "  wgpu:  {error}")?;
        }
        Ok(())
    }
}

/// The layer's identifiers in a line.
fn identifiers(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))
        .filter(|word| {
            IDENTIFIERS
                .iter()
                .any(|start| word.len() > start.len() && word.starts_with(start))
        })
}

/// Whether wgpu reports an error in this line. The layer's own lines begin alike, with the
/// identifier in brackets.
fn is_wgpu_error(line: &str) -> bool {
    line.contains("wgpu error")
        || line.contains("Caught rendering error")
        || line.contains("Validation Error") && !line.contains("Validation Error: [")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYER_LINES: &str = "\
2026-01-01T00:00:00.0Z ERROR wgpu_hal::vulkan::instance: VALIDATION [VUID-VkShaderModuleCreateInfo-pCode-08737 (0xa5625282)]
\tValidation Error: [ VUID-VkShaderModuleCreateInfo-pCode-08737 ] Object 0: handle = 0x1; | MessageID = 0xa5625282 | vkCreateShaderModule(): (https://www.khronos.org/registry/vulkan/specs/1.3-extensions/html/vkspec.html#VUID-VkShaderModuleCreateInfo-pCode-08737)
UNASSIGNED-GeneralParameterError-RequiredParameter(ERROR / SPEC): msgNum: -1711571459 - Validation Error: [ UNASSIGNED-GeneralParameterError-RequiredParameter ] Object 0
";

    const WGPU_LINES: &str = "\
2026-01-01T00:00:00.0Z ERROR bevy_render::error_handler: Caught rendering error: Validation Error

Caused by:
  In a CommandEncoder, label = 'vote'
    Buffer usages do not match

2026-01-01T00:00:01.0Z  INFO app: done
";

    #[test]
    fn the_layers_messages_are_known_by_identifier() {
        let messages = Messages::read(LAYER_LINES);
        let identifiers: Vec<_> = messages.identifiers.iter().map(String::as_str).collect();
        assert_eq!(
            identifiers,
            [
                "UNASSIGNED-GeneralParameterError-RequiredParameter",
                "VUID-VkShaderModuleCreateInfo-pCode-08737"
            ]
        );
        assert!(messages.wgpu_errors.is_empty(), "{messages}");
    }

    #[test]
    fn wgpus_errors_come_with_their_cause() {
        let messages = Messages::read(WGPU_LINES);
        assert_eq!(messages.wgpu_errors.len(), 1, "{messages}");
        assert!(messages.wgpu_errors[0].contains("Buffer usages do not match"));
        let panic =
            Messages::read("thread 'main' panicked at wgpu:\nwgpu error: Validation Error\n");
        assert_eq!(panic.wgpu_errors.len(), 1, "{panic}");
    }

    #[test]
    fn ordinary_lines_say_nothing() {
        let text = "LAYER: Insert instance layer VK_LAYER_KHRONOS_validation\nVUID-\n WARN bevy: slow\n0 validation errors\n";
        let messages = Messages::read(text);
        assert!(
            messages.identifiers.is_empty() && messages.wgpu_errors.is_empty(),
            "{messages}"
        );
        assert_eq!(messages.to_string(), "  no message\n");
    }

    #[test]
    fn only_what_the_peer_lacks_is_a_complaint() {
        let (layer, wgpu) = (Messages::read(LAYER_LINES), Messages::read(WGPU_LINES));
        assert_eq!(layer.complaints(&Messages::read(LAYER_LINES)).len(), 0);
        assert_eq!(layer.complaints(&Messages::default()).len(), 2);
        // A wgpu error is never excused by the peer's.
        assert_eq!(wgpu.complaints(&Messages::read(WGPU_LINES)).len(), 1);
    }

    #[test]
    fn outputs_that_no_stage_reads_are_no_complaint() {
        let id = UNREAD_OUTPUTS;
        let messages = Messages::read(&format!("PERFORMANCE [{id} (0x609a13b)]\nVUID-other-1\n"));
        let complaints = messages.complaints(&Messages::default());
        assert_eq!(complaints, ["VUID-other-1, which the peer does not give"]);
    }

    #[test]
    fn the_loaders_word_is_understood() {
        assert!(names_layer(
            "LAYER:                 ||\nLAYER:               VK_LAYER_KHRONOS_validation\n"
        ));
        assert!(!names_layer(
            "LAYER:               VK_LAYER_MESA_device_select\nVK_LAYER_KHRONOS_validation missing\n"
        ));
    }

    #[test]
    fn the_layers_settings_name_its_log() {
        let settings = layer_settings(Path::new("/t/layer.log"));
        assert_eq!(settings.lines().count(), 4);
        assert!(settings.contains("khronos_validation.log_filename = /t/layer.log\n"));
    }

    #[test]
    fn layers_are_looked_for_where_the_loader_does() {
        let folders = layer_folders(|name| match name {
            "VK_LAYER_PATH" => Some("/sdk/layers:/more".into()),
            "HOME" => Some("/home/me".into()),
            _ => None,
        });
        for folder in [
            "/sdk/layers",
            "/more",
            "/usr/share/vulkan/explicit_layer.d",
            "/etc/vulkan/explicit_layer.d",
            "/home/me/.local/share/vulkan/explicit_layer.d",
        ] {
            assert!(
                folders.contains(&PathBuf::from(folder)),
                "{folder} is not among {folders:?}"
            );
        }
    }
}
