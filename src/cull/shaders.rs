//! The shipped WGSL. `build.rs` composes each kernel from the files of `shaders/` that it imports
//! (`build/compose.rs`); here are the results.

use crate::cull::CullingTier;

/// Text that `build.rs` takes from a file of `shaders/`.
macro_rules! composed_text {
    ($name:literal) => {
        include_str!(concat!(env!("OUT_DIR"), "/", $name, ".wgsl"))
    };
}

/// Shapes and constants that the host shares.
#[cfg(feature = "testing")]
pub const LAYOUT: &str = composed_text!("LAYOUT");
/// Decoding of an instance.
pub const INSTANCE: &str = composed_text!("INSTANCE");
/// Encoding of an instance, for kernels that write instances. Join it with [`INSTANCE`], which
/// decodes. In a Bevy app both are the module `bevy_gpu_culling::instance`.
pub const INSTANCE_PACK: &str = composed_text!("INSTANCE_PACK");
/// How kernels read an instance of 16 bytes. Other WGSL with the same declarations makes them read
/// another encoding ([`Compactor`](crate::cull::Compactor)).
pub const INSTANCE_PACKED: &str = composed_text!("INSTANCE_PACKED");
/// Which of many small instances are kept, and how large they are drawn. In a Bevy app this is the
/// module `bevy_gpu_culling::thin`.
pub const THIN: &str = composed_text!("THIN");
/// Where a sphere is in a view. Join it with [`LAYOUT`].
#[cfg(feature = "testing")]
pub const SPAN: &str = composed_text!("SPAN");
/// Whether the depth pyramid at the bindings 18 and 19 of group 0 hides a sphere. Join it with
/// [`SPAN`].
#[cfg(feature = "testing")]
pub const FOOTPRINT: &str = composed_text!("FOOTPRINT");
/// Shapes and constants of the expansions.
pub const EXPAND_LAYOUT: &str = composed_text!("EXPAND_LAYOUT");
/// The items of a source, from a buffer. A caller may bring other WGSL with the same function
/// ([`ExpanderOptions`](crate::cull::expand::ExpanderOptions)).
pub const EXPAND_COUNTS: &str = composed_text!("EXPAND_COUNTS");
/// What an expansion does with an item: nothing.
pub(crate) const EXPAND_BODY: &str = composed_text!("EXPAND_BODY");

/// Shapes and constants of the scatter.
#[cfg(feature = "testing")]
pub const SCATTER_LAYOUT: &str = composed_text!("SCATTER_LAYOUT");

/// What decides which share of the candidates of a scatter grows: `scatter_share`. A caller may
/// bring other WGSL with the same function
/// ([`ScatterKernel`](crate::cull::scatter::ScatterKernel)).
pub const SCATTER_RULE: &str = composed_text!("SCATTER_RULE");

/// What the WGSL of a pass depends on.
pub(crate) struct Sources<'a> {
    /// With or without subgroup operations.
    pub tier: CullingTier,
    /// WGSL that reads an instance ([`INSTANCE_PACKED`]).
    pub encoding: &'a str,
}

impl Sources<'static> {
    pub fn new(tier: CullingTier) -> Self {
        Self {
            tier,
            encoding: INSTANCE_PACKED,
        }
    }
}

/// A kernel on both tiers.
pub(crate) struct Composed {
    subgroup: &'static str,
    workgroup: &'static str,
}

/// One constant per kernel.
#[allow(
    dead_code,
    reason = "generated: `MESH_UNIFORMS` is not used without the feature `bevy`"
)]
pub(crate) mod kernels {
    use super::Composed;

    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

impl Composed {
    /// The WGSL on `tier` (the `Cpu` tier has none and gets the one of `Workgroup`).
    pub fn on(&self, tier: CullingTier) -> &'static str {
        match tier {
            CullingTier::Subgroup => self.subgroup,
            _ => self.workgroup,
        }
    }

    /// The WGSL on the tier of `sources`, with its reading of an instance.
    pub fn source(&self, sources: &Sources<'_>) -> String {
        let text = self.on(sources.tier);
        text.replace(INSTANCE_PACKED, sources.encoding)
    }
}

/// The place in `shaders/` that line `line` of a composed kernel comes from, both counted from 1.
///
/// Above each run of lines stands the place of its first one:
/// `// shaders/shared/visibility.wesl:12`.
pub(crate) fn origin(source: &str, line: usize) -> Option<String> {
    let above: Vec<_> = source.lines().take(line).enumerate().collect();
    above.into_iter().rev().find_map(|(index, text)| {
        let (file, first) = text.strip_prefix("// ")?.split_once(".wesl:")?;
        let first: usize = first.parse().ok()?;
        let below = (line - 1).checked_sub(index + 1)?;
        let file = file.strip_prefix("shaders/")?;
        Some(format!("shaders/{file}.wesl:{}", first + below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_place_that_stands_above_its_run() {
        let source = "// Kernel x\n\n// shaders/a/b.wesl:7\nfn f() {\n}\n\n// shaders/c/d.wesl:1\nfn g() {}\n";
        let places: Vec<_> = (1..=8).map(|line| origin(source, line)).collect();
        let [b7, b8, d1] = [
            "shaders/a/b.wesl:7",
            "shaders/a/b.wesl:8",
            "shaders/c/d.wesl:1",
        ];
        let expected = [
            None,
            None,
            None,
            Some(b7),
            Some(b8),
            Some("shaders/a/b.wesl:9"),
            None,
            Some(d1),
        ];
        assert_eq!(
            places[3..6],
            expected[3..6]
                .iter()
                .map(|place| place.map(str::to_owned))
                .collect::<Vec<_>>()
        );
        assert_eq!(
            (&places[..2], &places[7]),
            (&[None, None][..], &Some(d1.to_owned()))
        );
    }

    #[test]
    fn what_a_caller_may_replace_is_a_part_of_the_kernels() {
        use kernels::{
            BOUND, EXPAND_BITS_ONE_BUCKET, EXPAND_ITEMS_ONE_BUCKET, LOOK_BACK, SCATTER, VOTE,
        };
        for tier in [CullingTier::Subgroup, CullingTier::Workgroup] {
            for kernel in [&BOUND, &LOOK_BACK, &VOTE] {
                assert!(kernel.on(tier).contains(INSTANCE_PACKED));
            }
            for kernel in [&EXPAND_BITS_ONE_BUCKET, &EXPAND_ITEMS_ONE_BUCKET] {
                assert!(kernel.on(tier).contains(EXPAND_COUNTS));
                // A caller's text may use every shape and constant.
                let code = |line: &&str| !line.trim_start().starts_with("//");
                let mut lines = EXPAND_LAYOUT.lines().filter(code);
                assert!(lines.all(|line| kernel.on(tier).contains(line)));
            }
            assert!(EXPAND_ITEMS_ONE_BUCKET.on(tier).contains(EXPAND_BODY));
            assert!(SCATTER.on(tier).contains(SCATTER_RULE));
        }
    }
}
