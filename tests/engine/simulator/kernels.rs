//! Every kernel is one that the machine can run, or is named here with the reason.

use super::machine::lower::lower;
use bevy_gpu_culling::cull::policy::OVERRIDES;
use std::path::Path;

#[path = "../../../build/compose.rs"]
mod compose;

/// The WGSL of a kernel.
pub fn text(name: &str, is_subgroup: bool) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders");
    let files = compose::read(&folder).unwrap();
    let kernel = compose::kernels()
        .find(|kernel| kernel.name == name)
        .unwrap();
    let features = compose::features(kernel, is_subgroup);
    compose::compose(&files, kernel, &features).unwrap().text
}

/// Kernels that the machine does not know: words of their errors.
const UNKNOWN: [(&str, &str); 5] = [
    // They read textures.
    ("pyramid", "ImageLoad"),
    ("pyramid_multisampled", "ImageLoad"),
    ("scatter", "Image "),
    // It multiplies matrices.
    ("mesh_uniforms", "matrices"),
    // For study. It needs integers of 64 bits.
    ("expand_pack", "width: 8"),
];

#[test]
fn the_machine_knows_every_kernel() {
    let mut unknown = Vec::new();
    for kernel in compose::kernels() {
        for tier in [true, false] {
            let text = text(kernel.name, tier);
            for entry in kernel.entries {
                match lower(&text, entry, OVERRIDES) {
                    Ok(_) => {}
                    // Functions for other kernels.
                    Err(error) if error.starts_with("no compute kernel") => {}
                    Err(error) => unknown.push((kernel.name, error)),
                }
            }
        }
    }
    for (name, error) in &unknown {
        let is_listed = UNKNOWN
            .iter()
            .any(|(other, word)| other == name && error.contains(word));
        assert!(is_listed, "{name}: {error}");
    }
    for (name, _) in UNKNOWN {
        assert!(
            unknown.iter().any(|(other, _)| *other == name),
            "{name} is known"
        );
    }
}
