//! Random shaders that import each other.

use super::*;
use proptest::{prelude::*, test_runner::FileFailurePersistence};

/// A part of a shader's text: mostly what decides whether it names the module.
fn part() -> impl Strategy<Value = String> {
    let parts = [
        MODULE,
        MODULE,
        "bevy_gpu_culling",
        "::",
        "draw_instance",
        "import ",
        "//",
        "/*",
        "*/",
        "\n",
        "\r\n",
        "\u{2028}",
        ";",
        "{",
        "}",
        "\"",
    ];
    prop_oneof![
        3 => prop::sample::select(parts.to_vec()).prop_map(str::to_owned),
        1 => "\\PC{0,6}",
    ]
}

/// A shader: its text, and the numbers of those that it imports by name, and as files.
type Parts = (Vec<String>, Vec<u32>, Vec<u32>);

fn parts() -> impl Strategy<Value = Parts> {
    let others = || prop::collection::vec(0u32..8, 0..4);
    (prop::collection::vec(part(), 0..8), others(), others())
}

fn handle(number: u32) -> Handle<Shader> {
    let uuid = bevy::asset::uuid::Uuid::from_u128(u128::from(number));
    Handle::Uuid(uuid, core::marker::PhantomData)
}

/// A shader with a name, and without text.
fn named(number: u32) -> Shader {
    Shader::from_wesl("", format!("{number}.wesl"))
}

/// What is left of a text without its comments to the end of a line.
fn code(text: &[String]) -> String {
    let text = text.concat();
    let lines = text.split('\n');
    let code = lines.map(|line| match line.find("//") {
        Some(end) => &line[..end],
        None => line,
    });
    code.collect::<Vec<_>>().join("\n")
}

/// As [`InstancedShaders::reads_instances`].
fn reads(all: &[Parts], shader: u32) -> Option<bool> {
    let mut met = vec![shader];
    let mut is_whole = true;
    let mut at = 0;
    while at < met.len() {
        match all.get(met[at] as usize) {
            Some((text, ..)) if code(text).contains(MODULE) => return Some(true),
            Some((_, imports, files)) => {
                // A name that no shader has may be an item of a module.
                let shaders = imports
                    .iter()
                    .filter(|number| (**number as usize) < all.len());
                for next in shaders.chain(files) {
                    if !met.contains(next) {
                        met.push(*next);
                    }
                }
            }
            None => is_whole = false,
        }
        at += 1;
    }
    is_whole.then_some(false)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(1000),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(concat!(
            env!("CARGO_MANIFEST_DIR"), "/tests/hostile/seeds/shaders.txt"
        )))),
        ..Default::default()
    })]

    /// Whatever is in shaders, and however they import each other, those read instances that reach
    /// one which names the module; also after others have come and gone.
    #[test]
    fn any_shaders_read_instances_or_not(
        all in prop::collection::vec(parts(), 1..7),
        gone in prop::collection::vec(parts(), 0..7),
    ) {
        let mut shaders = InstancedShaders::default();
        for (number, (text, imports, files)) in (0..).zip(&gone).chain((0..).zip(&all)) {
            let mut shader = named(number);
            shader.source = Source::Wesl(text.concat().into());
            shader.imports = imports.iter().map(|number| named(*number).import_path).collect();
            shader.file_dependencies = files.iter().map(|number| handle(*number)).collect();
            shaders.insert(handle(number).id(), &shader);
        }
        for number in all.len()..gone.len() {
            shaders.remove(handle(number as u32).id());
        }
        for number in 0..8 {
            let found = shaders.reads_instances(handle(number).id());
            prop_assert_eq!(found, reads(&all, number), "{}", number);
        }
    }
}
