//! `cargo xtask wgsl`: writes the composed kernels to `target/wgsl/`.

#[path = "../../build/compose.rs"]
mod compose;

use std::fs;

use anyhow::{Result, anyhow};

use crate::project::Project;

/// Composes every kernel on both tiers, prints its size and its files, and returns the exit code.
pub fn run(project: &Project) -> Result<i32> {
    let folder = project.root.join("target/wgsl");
    fs::create_dir_all(&folder)?;
    let files = compose::read(&project.root.join("shaders")).map_err(|error| anyhow!(error))?;
    for kernel in compose::kernels() {
        for (is_subgroup, tier) in [(true, "subgroup"), (false, "workgroup")] {
            let features = compose::features(kernel, is_subgroup);
            let composed =
                compose::compose(&files, kernel, &features).map_err(|error| anyhow!(error))?;
            let name = format!("{}.{tier}.wgsl", kernel.name);
            fs::write(folder.join(&name), &composed.text)?;
            let lines = composed.text.lines().count();
            println!("{name}: {lines} lines of {}", composed.files.join(", "));
        }
    }
    println!("in {}", folder.display());
    Ok(0)
}
