//! Composes the kernels of `shaders/` at build time: start-up only compiles them, and an import
//! without a declaration is a build error.

#[path = "build/compose.rs"]
mod compose;

use compose::{Files, KERNELS, Part};
use std::{env, fmt::Write, fs, path::Path};

/// Text that the host exposes as a constant: file, part, name.
const CONSTANTS: [(&str, Part, &str); 12] = [
    ("shared/layout", Part::First, "LAYOUT"),
    ("shared/instance", Part::First, "INSTANCE"),
    ("shared/instance", Part::Second, "INSTANCE_PACKED"),
    ("shared/instance_pack", Part::First, "INSTANCE_PACK"),
    ("shared/thin", Part::First, "THIN"),
    ("occlusion/span", Part::First, "SPAN"),
    ("occlusion/footprint", Part::First, "FOOTPRINT"),
    ("expand/layout", Part::First, "EXPAND_LAYOUT"),
    ("expand/counts", Part::Second, "EXPAND_COUNTS"),
    ("expand/body", Part::Second, "EXPAND_BODY"),
    ("scatter/layout", Part::First, "SCATTER_LAYOUT"),
    ("scatter/rule", Part::Second, "SCATTER_RULE"),
];

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed=shaders");
    println!("cargo::rerun-if-changed=build");
    let root = env::var("CARGO_MANIFEST_DIR").map_err(|error| error.to_string())?;
    let out = env::var("OUT_DIR").map_err(|error| error.to_string())?;
    let files = compose::read(&Path::new(&root).join("shaders"))?;
    for (file, part, name) in CONSTANTS {
        let file = files.get(file).ok_or(format!("no shaders/{file}.wesl"))?;
        write(&out, &format!("{name}.wgsl"), &file.part(part))?;
    }
    write(&out, "kernels.rs", &kernels(&files, &out)?)
}

fn write(out: &str, name: &str, text: &str) -> Result<(), String> {
    fs::write(Path::new(out).join(name), text).map_err(|error| format!("{name}: {error}"))
}

/// Writes the kernels, and returns the Rust that includes them.
fn kernels(files: &Files, out: &str) -> Result<String, String> {
    let mut rust = String::new();
    let mut errors = Vec::new();
    let with_study = env::var_os("CARGO_FEATURE_STUDY").is_some();
    let count = if with_study {
        usize::MAX
    } else {
        KERNELS.len()
    };
    for kernel in compose::kernels().take(count) {
        let mut names = Vec::new();
        for (is_subgroup, tier) in [(true, "subgroup"), (false, "workgroup")] {
            let features = compose::features(kernel, is_subgroup);
            match compose::compose(files, kernel, &features) {
                Ok(composed) => names.push((format!("{}.{tier}.wgsl", kernel.name), composed)),
                Err(error) => errors.push(error),
            }
        }
        let [(subgroup, first), (workgroup, second)] = &names[..] else {
            continue;
        };
        // One text for both tiers if they differ in nothing but the first line.
        let code = |text: &str| text.split_once('\n').map(|(_, code)| code.to_owned());
        let is_same = code(&first.text) == code(&second.text);
        let workgroup = if is_same { subgroup } else { workgroup };
        write(out, subgroup, &first.text)?;
        if !is_same {
            write(out, workgroup, &second.text)?;
        }
        let constant = kernel.name.to_uppercase();
        let include = |name: &str| format!("include_str!(concat!(env!(\"OUT_DIR\"), \"/{name}\"))");
        writeln!(
            rust,
            "/// `shaders/{}.wesl`: {}.\npub const {constant}: Composed = Composed {{ subgroup: {}, workgroup: {} }};",
            kernel.file,
            kernel.entries.join(", "),
            include(subgroup),
            include(workgroup)
        )
        .map_err(|error| error.to_string())?;
    }
    if errors.is_empty() {
        Ok(rust)
    } else {
        Err(errors.join("\n"))
    }
}
