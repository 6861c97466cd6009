//! `cargo xtask wgsl`: writes the composed kernels to `target/wgsl/`.

#[path = "../../build/compose.rs"]
mod compose;

use std::fs;

use anyhow::{Result, anyhow};

use crate::project::Project;

/// A kernel on one tier.
pub struct Kernel {
    /// Such as `vote.subgroup.wgsl`.
    pub name: String,
    /// Its WGSL.
    pub text: String,
    /// The files that it is made of.
    files: Vec<String>,
}

#[cfg(test)]
impl Kernel {
    pub fn new(name: &str, text: &str) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
            files: Vec::new(),
        }
    }
}

/// Composes every kernel on both tiers.
pub fn kernels(project: &Project) -> Result<Vec<Kernel>> {
    let files = compose::read(&project.root.join("shaders")).map_err(|error| anyhow!(error))?;
    let mut kernels = Vec::new();
    for kernel in compose::kernels() {
        for (is_subgroup, tier) in [(true, "subgroup"), (false, "workgroup")] {
            let features = compose::features(kernel, is_subgroup);
            let composed =
                compose::compose(&files, kernel, &features).map_err(|error| anyhow!(error))?;
            kernels.push(Kernel {
                name: format!("{}.{tier}.wgsl", kernel.name),
                text: composed.text,
                files: composed.files,
            });
        }
    }
    Ok(kernels)
}

/// Composes the kernels, prints the size and the files of each, and returns the exit code.
pub fn run(project: &Project) -> Result<i32> {
    let folder = project.root.join("target/wgsl");
    fs::create_dir_all(&folder)?;
    for Kernel { name, text, files } in kernels(project)? {
        fs::write(folder.join(&name), &text)?;
        println!(
            "{name}: {} lines of {}",
            text.lines().count(),
            files.join(", ")
        );
    }
    println!("in {}", folder.display());
    Ok(0)
}
