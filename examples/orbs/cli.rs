//! The flags.

use bevy::math::UVec2;
use bevy_gpu_culling::prelude::{Compaction, CullingTier, GpuCullingSettings};
use clap::{Parser, ValueEnum, builder::PossibleValue};
use std::{path::PathBuf, sync::LazyLock};

/// The largest side of a picture, in pixels: the limit for textures on most devices.
const MAX_SIDE: u32 = 16_384;

/// A field of orbs, culled on the GPU.
///
/// Opens a window to fly through (H shows the keys). With --headless, draws some frames into a
/// picture and reports what was visible and what it cost.
#[derive(Parser, Debug)]
#[command(name = "orbs", version, after_help = EXIT_CODES)]
pub struct Cli {
    /// Number of orbs; more orbs make a larger field, not a denser one
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100_000,
        allow_negative_numbers = true
    )]
    pub count: u32,
    /// Seed of the scene; each scatters the orbs differently
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Draw without a window
    #[arg(long)]
    pub headless: bool,
    /// Frames to draw and to measure
    #[arg(long, value_name = "K", default_value_t = 8, requires = "headless", value_parser = clap::value_parser!(u32).range(1..))]
    pub frames: u32,
    /// Size of the picture or the window
    #[arg(long, value_name = "WxH", default_value = "1280x720", value_parser = parse_size)]
    pub size: UVec2,
    /// Write the last frame to this PNG file
    #[arg(long, value_name = "FILE.png", requires = "headless")]
    pub out: Option<PathBuf>,
    /// Print the report as one line of JSON, the last line of the output
    #[arg(long, requires = "headless")]
    pub json: bool,
    /// Compare the survivors with the CPU twin's, id by id; exit code 1 if any differ
    #[arg(long, requires = "headless", conflicts_with = "peer")]
    pub verify: bool,
    /// Culling tier [default: the best that the adapter supports]
    #[arg(long, value_enum, value_name = "TIER", conflicts_with = "peer")]
    pub tier: Option<Tier>,
    /// How the survivors become lists
    #[arg(
        long,
        value_enum,
        value_name = "C",
        default_value_t,
        conflicts_with = "peer"
    )]
    pub compaction: Packing,
    /// Which orbs of a set are drawn first; the picture stays the same
    #[arg(
        long,
        value_enum,
        value_name = "ORDER",
        default_value_t,
        conflicts_with = "peer"
    )]
    pub order: DrawOrder,
    /// Whether far orbs are drawn at coarser levels of detail
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        default_value_t,
        conflicts_with = "peer"
    )]
    pub lods: Lods,
    /// The greatest error, in pixels, with which levels are drawn
    #[arg(
        long,
        value_name = "PIXELS",
        default_value_t = 1.0,
        conflicts_with = "peer"
    )]
    pub lod_pixels: f32,
    /// Draw the near levels of all sets before far ones, from N orbs on
    #[arg(
        long,
        value_name = "N",
        default_value_t = GpuCullingSettings::default().near_levels_from,
        conflicts_with = "peer"
    )]
    pub near_levels_from: u32,
    /// Fade from level to level over this share of the distance at which the coarser one begins
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = 0.0,
        conflicts_with = "peer"
    )]
    pub lod_fade: f32,
    /// Leave out orbs that are seen with a smaller diameter than this, in pixels
    #[arg(
        long,
        value_name = "PIXELS",
        default_value_t = 0.0,
        conflicts_with = "peer"
    )]
    pub min_pixels: f32,
    /// Thin out orbs that are seen with a smaller diameter than this, in pixels, and draw what is
    /// kept of them larger (AggregateDetail)
    #[arg(
        long,
        value_name = "PIXELS",
        default_value_t = 0.0,
        conflicts_with = "peer"
    )]
    pub aggregate: f32,
    /// Whether orbs that are hidden behind others are left out; the picture stays the same
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        default_value_t,
        conflicts_with = "peer"
    )]
    occlusion: Occlusion,
    /// Draw each level of detail in its own color
    #[arg(long, conflicts_with_all = ["peer", "meshlets"])]
    pub color_lods: bool,
    /// Draw green what is drawn early, and orange what is late. Without a window, the camera turns
    /// a little before the picture, so that something is late
    #[arg(long, conflicts_with_all = ["peer", "meshlets", "color_lods"])]
    pub color_occlusion: bool,
    /// Freeze culling at frame K, then fly the camera out: the picture shows the frustum and what
    /// it kept
    #[arg(long, value_name = "K", requires = "headless", conflicts_with = "peer", value_parser = clap::value_parser!(u32).range(1..))]
    pub freeze_at: Option<u32>,
    /// Draw orbs of more than 10,000 triangles each, by meshlets, or whole to compare
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "parts")]
    pub meshlets: Option<Meshlets>,
    /// Draw each meshlet in its own color
    #[arg(long, requires = "meshlets")]
    pub color_meshlets: bool,
    /// Spread the orbs over at least N sets
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true,
        conflicts_with = "peer"
    )]
    pub sets: u32,
    /// Add N point lights with shadows
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub lights: u32,
    /// Number of cameras; those after the first draw small pictures from elsewhere
    #[arg(long, value_name = "N", default_value_t = 1, requires = "headless", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub views: u32,
    /// Narrow the camera's field of view until it sees about V orbs
    #[arg(long, value_name = "V", requires = "headless", value_parser = clap::value_parser!(u32).range(1..))]
    pub visible: Option<u32>,
    /// Draw only K of the orbs, those that the camera sees first; the picture stays the same
    #[arg(long, value_name = "K", requires = "headless")]
    pub keep: Option<u32>,
    /// Warm up with a small field, then report how fast the large one streams to the GPU, next to a
    /// plain buffer's rate
    #[arg(long, requires = "headless", conflicts_with = "peer")]
    pub upload: bool,
    /// The most MiB of new sets that a frame uploads
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = GpuCullingSettings::DEFAULT_UPLOAD_BUDGET >> 20,
        conflicts_with = "peer",
        value_parser = clap::value_parser!(u64).range(1..1 << 44)
    )]
    pub upload_budget: u64,
    /// Drop the orbs on the CPU once they are on the GPU
    #[arg(long, conflicts_with_all = ["peer", "verify"])]
    pub gpu_only: bool,
    /// Draw the same scene in another way, to compare
    #[arg(long, value_enum, value_name = "PEER")]
    pub peer: Option<Peer>,
    /// List the adapters, one per line; exit code 3 if there is none
    #[arg(long, hide = true)]
    pub probe: bool,
    /// End after K frames, without a report and while pipelines are being compiled: for tests of
    /// clean ends
    #[arg(long, value_name = "K", hide = true, requires = "headless")]
    pub end_after: Option<u32>,
}

/// The last part of the help.
const EXIT_CODES: &str = "\
Exit codes:
  0    all went well
  1    the work failed, or --verify found a difference
  2    the flags ask for something that cannot be done
  3    there is no GPU adapter
  130  Ctrl-C, after the current frame or five seconds; a second Ctrl-C ends at once";

impl Cli {
    /// The plugin's settings.
    pub fn settings(&self) -> GpuCullingSettings {
        GpuCullingSettings {
            tier: self.tier.map(|tier| tier.0),
            compaction: self.compaction.0,
            upload_budget: Some(self.upload_bytes()),
            lod_pixels: self.lod_pixels,
            min_pixels: self.min_pixels,
            near_levels_from: self.near_levels_from,
            color_occlusion: self.color_occlusion,
            ..Default::default()
        }
    }

    /// Whether the camera hides orbs.
    pub fn occlusion(&self) -> Occlusion {
        match self.occlusion {
            // What pauses has no colors.
            Occlusion::Auto if self.color_occlusion => Occlusion::On,
            occlusion => occlusion,
        }
    }

    /// The upload budget in bytes.
    pub fn upload_bytes(&self) -> u64 {
        self.upload_budget << 20
    }

    /// Checks what the parser cannot see in a single flag.
    pub fn check(&self) -> Result<(), String> {
        match self.freeze_at {
            Some(at) if at >= self.frames => Err(format!(
                "--freeze-at {at} leaves no frame to fly out: --frames is {}, it must be more than {at}",
                self.frames
            )),
            _ => Ok(()),
        }
    }
}

/// [`CullingTier`] as a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier(pub CullingTier);

impl ValueEnum for Tier {
    fn value_variants<'a>() -> &'a [Self] {
        const {
            &[
                Tier(CullingTier::ALL[0]),
                Tier(CullingTier::ALL[1]),
                Tier(CullingTier::ALL[2]),
            ]
        }
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0 {
            CullingTier::Subgroup => {
                PossibleValue::new("subgroup").help("Compute with subgroup ballots")
            }
            CullingTier::Workgroup => {
                PossibleValue::new("workgroup").help("Compute without subgroup operations")
            }
            CullingTier::Cpu => PossibleValue::new("cpu").help("No compute: cull on the CPU"),
        })
    }
}

/// [`Compaction`] as a flag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packing(pub Compaction);

impl ValueEnum for Packing {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<Packing>> = LazyLock::new(|| {
            let all = Compaction::ALL.iter().copied().chain([Compaction::Auto]);
            all.map(Packing).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}

/// Which instances of a set are drawn first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DrawOrder {
    /// Those near the camera: they hide others before these are shaded
    #[default]
    NearFirst,
    /// Those that come first in the set
    Set,
    /// Each instance before all that are farther from the first view: the CPU sorts the set once,
    /// for a camera that stays
    Nearest,
}

/// Whether sets have levels of detail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Lods {
    /// Far orbs have fewer triangles
    #[default]
    On,
    /// All orbs have all triangles
    Off,
}

/// Whether the camera hides orbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Occlusion {
    /// Orbs behind others are not drawn, while that pays
    #[default]
    Auto,
    /// Orbs behind others are not drawn
    On,
    /// The same by a depth prepass and Bevy's OcclusionCulling
    Prepass,
    /// All orbs in the frustum are drawn
    Off,
}

/// How orbs of many triangles are drawn.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meshlets {
    /// The meshlets of each visible orb that the view can see
    Parts,
    /// Each visible orb as a whole
    Whole,
}

/// Another way to draw the scene.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// One entity per orb, on Bevy's own path
    Bevy,
}

pub fn parse_size(text: &str) -> Result<UVec2, String> {
    let sides = text
        .split_once('x')
        .and_then(|(width, height)| Some(UVec2::new(width.parse().ok()?, height.parse().ok()?)));
    match sides {
        None => Err("write width and height in pixels, such as 1280x720".into()),
        Some(size) if size.min_element() == 0 => {
            Err("a picture needs at least one pixel on each side".into())
        }
        Some(size) if size.max_element() > MAX_SIDE => {
            Err(format!("a side may have at most {MAX_SIDE} pixels"))
        }
        Some(size) => Ok(size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, error::ErrorKind};
    use proptest::{prelude::*, test_runner::FileFailurePersistence};

    fn parse(flags: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(["orbs"].into_iter().chain(flags.split_whitespace()))
    }

    fn rejected(flags: &str) -> clap::Error {
        parse(flags).expect_err(flags)
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_defaults_are_a_hundred_thousand_orbs_at_720p() -> Result<(), clap::Error> {
        let cli = parse("")?;
        assert_eq!(
            (cli.count, cli.frames, cli.size),
            (100_000, 8, UVec2::new(1280, 720))
        );
        assert_eq!(
            (cli.tier, cli.compaction, cli.peer),
            (None, Packing::default(), None)
        );
        Ok(())
    }

    /// A word of a command line: mostly a flag, or a value that some flag takes or nearly takes.
    fn word() -> impl Strategy<Value = String> {
        let flags: Vec<_> = Cli::command()
            .get_arguments()
            .filter_map(|flag| Some(format!("--{}", flag.get_long()?)))
            .collect();
        let values = [
            "subgroup", "cpu", "auto", "classify", "bevy", "1x1", "a.png",
        ];
        prop_oneof![
            6 => prop::sample::select(flags),
            2 => any::<i64>().prop_map(|number| number.to_string()),
            2 => (0u64..70).prop_map(|bits| (1u128 << bits).to_string()),
            2 => any::<f32>().prop_map(|number| number.to_string()),
            2 => prop::sample::select(values.to_vec()).prop_map(str::to_owned),
            1 => "[-=x0-9a-z\\PC]{0,12}",
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: ProptestConfig::default().cases.max(2000),
            failure_persistence: Some(Box::new(FileFailurePersistence::Direct(concat!(
                env!("CARGO_MANIFEST_DIR"), "/tests/hostile/seeds/orbs.txt"
            )))),
            ..Default::default()
        })]

        /// Whatever is written, it is read or refused, and what is read are settings.
        #[test]
        fn any_words_are_read_or_refused(words in prop::collection::vec(word(), 0..9)) {
            let all = words.into_iter().flat_map(|word| match word.split_once('=') {
                Some((flag, value)) => vec![flag.to_owned(), value.to_owned()],
                None => vec![word],
            });
            match Cli::try_parse_from(core::iter::once("orbs".to_owned()).chain(all)) {
                Ok(cli) => {
                    let _ = (cli.check(), cli.settings(), cli.occlusion());
                    prop_assert!(cli.size.min_element() > 0 && cli.size.max_element() <= MAX_SIDE);
                }
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }

    #[test]
    fn sizes_are_two_numbers_within_bounds() {
        assert_eq!(parse_size("1x16384"), Ok(UVec2::new(1, 16_384)));
        for bad in [
            "",
            "x",
            "640",
            "640x",
            "x480",
            "640x480x3",
            "-1x5",
            "6.5x4",
            "0x720",
            "720x0",
            "16385x1",
        ] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = rejected("--tier warp");
        assert_eq!(error.kind(), ErrorKind::InvalidValue);
        let text = error.to_string();
        assert!(
            CullingTier::ALL
                .iter()
                .all(|tier| text.contains(&tier.to_string())),
            "{text}"
        );
        assert!(
            rejected("--compaction zip")
                .to_string()
                .contains("vote-scan-compact")
        );
        assert!(rejected("--peer unity").to_string().contains("bevy"));
    }

    #[test]
    fn numbers_out_of_range_are_rejected() {
        assert!(parse("--count 4294967295").is_ok());
        for flags in [
            "--count 4294967296",
            "--count -1",
            "--headless --frames 0",
            "--headless --freeze-at 0",
        ] {
            assert_eq!(
                rejected(flags).kind(),
                ErrorKind::ValueValidation,
                "{flags}"
            );
        }
    }

    #[test]
    fn flags_of_the_report_need_headless_and_those_of_the_plugin_no_peer() {
        for flag in [
            "--out a.png",
            "--json",
            "--verify",
            "--frames 3",
            "--freeze-at 3",
        ] {
            assert_eq!(
                rejected(flag).kind(),
                ErrorKind::MissingRequiredArgument,
                "{flag}"
            );
        }
        for flag in [
            "--verify",
            "--tier cpu",
            "--freeze-at 3",
            "--compaction vote-scan-compact",
        ] {
            let flags = format!("--headless --peer bevy {flag}");
            assert_eq!(
                rejected(&flags).kind(),
                ErrorKind::ArgumentConflict,
                "{flags}"
            );
        }
    }

    #[test]
    fn freezing_leaves_frames_to_fly_out() -> Result<(), clap::Error> {
        assert!(
            parse("--headless --frames 4 --freeze-at 3")?
                .check()
                .is_ok()
        );
        assert!(
            parse("--headless --frames 4 --freeze-at 4")?
                .check()
                .is_err()
        );
        Ok(())
    }

    #[test]
    fn meshlets_are_parts_unless_they_are_whole() -> Result<(), clap::Error> {
        assert_eq!(parse("")?.meshlets, None);
        assert_eq!(parse("--meshlets")?.meshlets, Some(Meshlets::Parts));
        assert_eq!(parse("--meshlets=whole")?.meshlets, Some(Meshlets::Whole));
        let colors = parse("--color-meshlets").map(|cli| cli.color_meshlets);
        assert!(colors.is_err());
        assert!(parse("--meshlets --color-meshlets")?.color_meshlets);
        Ok(())
    }

    #[test]
    fn levels_are_on_unless_they_are_off() -> Result<(), clap::Error> {
        assert_eq!(parse("")?.lods, Lods::On);
        assert_eq!(parse("--lods=off")?.lods, Lods::Off);
        assert!(parse("--peer bevy --lods=off").is_err());
        assert_eq!(parse("")?.occlusion(), Occlusion::Auto);
        assert_eq!(parse("--occlusion=on")?.occlusion(), Occlusion::On);
        assert_eq!(parse("--color-occlusion")?.occlusion(), Occlusion::On);
        assert_eq!(parse("--occlusion=off")?.occlusion(), Occlusion::Off);
        let prepass = parse("--occlusion=prepass")?.occlusion();
        assert_eq!(prepass, Occlusion::Prepass);
        assert!(parse("--color-lods --meshlets").is_err());
        assert!(parse("--color-occlusion")?.color_occlusion);
        assert!(parse("--color-occlusion --color-lods").is_err());
        assert!((parse("--lod-pixels 0.5")?.lod_pixels - 0.5).abs() < f32::EPSILON);
        Ok(())
    }

    #[test]
    fn every_compaction_has_its_name() -> Result<(), clap::Error> {
        for compaction in Compaction::ALL.iter().copied().chain([Compaction::Auto]) {
            let cli = parse(&format!("--compaction {compaction}"))?;
            assert_eq!(cli.compaction, Packing(compaction));
        }
        Ok(())
    }

    #[test]
    fn the_help_names_the_default_upload_budget() -> Result<(), clap::Error> {
        let budget = GpuCullingSettings::DEFAULT_UPLOAD_BUDGET;
        assert_eq!(parse("")?.upload_bytes(), budget);
        let help = Cli::command().render_help().to_string();
        let of_budget = help.split("--upload-budget").nth(1).unwrap_or_default();
        let text = of_budget.split("--").next().unwrap_or_default();
        let default = format!("[default: {}]", budget >> 20);
        assert!(text.contains(&default), "{text}");
        Ok(())
    }

    #[test]
    fn a_default_budget_is_no_flag_of_the_plugin() -> Result<(), clap::Error> {
        assert!(parse("--peer bevy").is_ok());
        assert!(parse("--peer bevy --upload-budget 8").is_err());
        assert_eq!(parse("--upload-budget 8")?.upload_bytes(), 8 << 20);
        Ok(())
    }

    #[test]
    fn names_of_tiers_are_the_librarys() {
        for tier in Tier::value_variants() {
            let value = tier.to_possible_value().expect("every tier has a name");
            assert_eq!(value.get_name(), tier.0.to_string());
        }
    }
}
