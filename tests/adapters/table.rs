//! The part of `docs/guide/compatibility.md` on devices.

use crate::{
    devices::{DEVICES, Expected},
    generated::assert_generated,
};
use bevy_gpu_culling::prelude::CullingTier;
use std::fmt::Write as _;

const PATH: &str = "docs/guide/compatibility.md";
/// Where the part begins; what is above is made by `tests/app/oracle`.
const HEADING: &str = "\n## Devices\n";

fn generate() -> String {
    let mut text = String::from(
        "\nWhat `tests/adapters` has drawn on devices that lack things, simulated by asking an adapter for\n\
         fewer features and lower limits. On each, the app runs on, unless Bevy itself ends it, and sets\n\
         look like Bevy's own entities there. `UPDATE_DOCS=1 cargo test --test adapters` rewrites this\n\
         table.\n\
         \n\
         | device | tier | sets |\n\
         | --- | --- | --- |\n",
    );
    for device in DEVICES {
        let (tier, sets) = match device.expected {
            Expected::Drawn(CullingTier::Cpu) => (
                "`Cpu`",
                "drawn; not those that the GPU writes, nor with vertex shaders for single meshes"
                    .to_owned(),
            ),
            Expected::Drawn(tier) => (
                match tier {
                    CullingTier::Subgroup => "`Subgroup`",
                    _ => "`Workgroup`",
                },
                "drawn".to_owned(),
            ),
            Expected::Refused(limit) => (
                "none",
                format!("not drawn; one error in the log names `{limit}`"),
            ),
            Expected::BevyEnds(_) => (
                "-",
                "Bevy 0.20.1 ends the app itself, with or without sets".to_owned(),
            ),
        };
        let _ = writeln!(text, "| {} | {tier} | {sets} |", device.name);
    }
    text
}

#[test]
fn the_table_is_what_the_devices_do() {
    assert_generated(PATH, [HEADING, ""], &generate(), "adapters");
}
