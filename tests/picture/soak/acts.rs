//! What may happen to a random app, as text, too, and the fewest acts with which it fails.

use proptest::{
    collection::vec,
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde::{Deserialize, Serialize};

/// A place near the origin, in tenths of a unit.
pub type Place = [i8; 3];

/// The fewest sets of a crowd.
pub const CROWD: usize = 90;

/// What happens to the app. Numbers of sets and instances wrap around: an act without the ones
/// before it is an act, too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Act {
    /// How the app starts. Without it, a frame is drawn before the next, and pipelines are compiled
    /// before they are needed.
    Start {
        is_pipelined: bool,
        compiles_behind: bool,
    },
    Spawn {
        count: u16,
        mesh: u8,
        paint: u8,
        kind: u8,
        at: Place,
    },
    /// Small sets. Their rows are more than have their own planes, so they share views.
    Crowd(u8, Place),
    Despawn(u8),
    Edit(u8, Edit),
    Swap(u8, Swap),
    Move(u8, Place, bool),
    Toggle(u8, Part),
    Detach(u8, u16),
    Attach(u8),
    /// The cameras go to another place.
    Look(u8),
    /// The lights go to another place.
    Shine(u8),
    Switch(Thing),
    Tier(u8),
    Setting(Setting),
    /// The next acts happen in one frame. After others, a frame is drawn.
    AtOnce(u8),
    Frames(u8),
}

impl Act {
    /// If this is the app's start: whether it is pipelined, and whether it compiles pipelines in
    /// the background.
    pub fn start(&self) -> Option<[bool; 2]> {
        match *self {
            Self::Start {
                is_pipelined,
                compiles_behind,
            } => Some([is_pipelined, compiles_behind]),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Edit {
    Push(Place),
    Extend(u16),
    Set(u16, Place),
    Hide(u16),
    Show(u16),
    SwapRemove(u16),
    Truncate(u16),
    Sort,
    Replace(u16),
}

/// What a set gets in place of what it has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Swap {
    Mesh(u8),
    Paint(u8),
    /// A new asset with this number of instances.
    Asset(u16),
    /// The asset of another set, which both draw then.
    Share(u8),
}

/// What a set has or has not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Part {
    Hidden,
    OtherLayer,
    Levels,
    NoSorting,
    /// Its entity is an ordinary mesh.
    NoInstances,
}

/// What an app has or has not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Thing {
    Occlusion,
    Prepass,
    SecondCamera,
    Orthographic,
    /// Four samples per pixel.
    Samples,
    SunShadows,
    LampShadows,
    /// A spot light with shadows.
    Spot,
    Viewport,
    Interface,
}

/// A setting that changes. Not among them are the source of tunings, which depends on the machine,
/// and the colors of what hides, which Bevy's entities do not have.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Setting {
    ShaderChecks,
    SelfTest,
    NearLevels,
    Compaction(u8),
    Expansion(u8),
    LodPixels,
    MinPixels,
    UploadBudget,
    SurvivorCapacity,
}

fn place() -> impl Strategy<Value = Place> {
    [-60i8..60, -25i8..25, -60i8..60]
}

fn edits() -> impl Strategy<Value = Edit> {
    prop_oneof![
        place().prop_map(Edit::Push),
        (1u16..700).prop_map(Edit::Extend),
        (any::<u16>(), place()).prop_map(|(id, place)| Edit::Set(id, place)),
        any::<u16>().prop_map(Edit::Hide),
        any::<u16>().prop_map(Edit::Show),
        any::<u16>().prop_map(Edit::SwapRemove),
        any::<u16>().prop_map(Edit::Truncate),
        Just(Edit::Sort),
        (1u16..700).prop_map(Edit::Replace),
    ]
}

fn swaps() -> impl Strategy<Value = Swap> {
    prop_oneof![
        any::<u8>().prop_map(Swap::Mesh),
        any::<u8>().prop_map(Swap::Paint),
        (1u16..700).prop_map(Swap::Asset),
        any::<u8>().prop_map(Swap::Share),
    ]
}

fn settings() -> impl Strategy<Value = Setting> {
    let plain = [
        Setting::ShaderChecks,
        Setting::SelfTest,
        Setting::NearLevels,
        Setting::LodPixels,
        Setting::MinPixels,
        Setting::UploadBudget,
        Setting::SurvivorCapacity,
    ];
    prop_oneof![
        7 => prop::sample::select(plain.to_vec()),
        1 => any::<u8>().prop_map(Setting::Compaction),
        1 => any::<u8>().prop_map(Setting::Expansion),
    ]
}

fn start() -> impl Strategy<Value = Act> {
    let both = [any::<bool>(), any::<bool>()];
    both.prop_map(|[is_pipelined, compiles_behind]| Act::Start {
        is_pipelined,
        compiles_behind,
    })
}

/// Any but the start.
fn act() -> impl Strategy<Value = Act> {
    let parts = [
        Part::Hidden,
        Part::OtherLayer,
        Part::Levels,
        Part::NoSorting,
        Part::NoInstances,
    ];
    let things = [
        Thing::Occlusion,
        Thing::Prepass,
        Thing::SecondCamera,
        Thing::Orthographic,
        Thing::Samples,
        Thing::SunShadows,
        Thing::LampShadows,
        Thing::Spot,
        Thing::Viewport,
        Thing::Interface,
    ];
    let looks = [any::<u8>(), any::<u8>(), any::<u8>()];
    let spawn = (1u16..600, looks, place());
    let spawn = spawn.prop_map(|(count, [mesh, paint, kind], at)| Act::Spawn {
        count,
        mesh,
        paint,
        kind,
        at,
    });
    prop_oneof![
        5 => spawn,
        1 => (CROWD as u8..140, place()).prop_map(|(count, place)| Act::Crowd(count, place)),
        1 => any::<u8>().prop_map(Act::Despawn),
        6 => (any::<u8>(), edits()).prop_map(|(set, edit)| Act::Edit(set, edit)),
        3 => (any::<u8>(), swaps()).prop_map(|(set, swap)| Act::Swap(set, swap)),
        3 => (any::<u8>(), place(), any::<bool>()).prop_map(|(set, at, is_flat)| Act::Move(set, at, is_flat)),
        3 => (any::<u8>(), prop::sample::select(parts.to_vec())).prop_map(|(set, part)| Act::Toggle(set, part)),
        2 => (any::<u8>(), any::<u16>()).prop_map(|(set, id)| Act::Detach(set, id)),
        1 => any::<u8>().prop_map(Act::Attach),
        3 => any::<u8>().prop_map(Act::Look),
        2 => any::<u8>().prop_map(Act::Shine),
        2 => prop::sample::select(things.to_vec()).prop_map(Act::Switch),
        1 => any::<u8>().prop_map(Act::Tier),
        2 => settings().prop_map(Act::Setting),
        2 => (2u8..6).prop_map(Act::AtOnce),
        2 => (1u8..4).prop_map(Act::Frames),
    ]
}

/// The acts of the app from a seed: its start, and what happens then.
pub fn of_seed(seed: u64) -> Vec<Act> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let tree = (start(), vec(act(), 12..40)).new_tree(&mut runner);
    let (start, acts) = tree.unwrap().current();
    [start].into_iter().chain(acts).collect()
}

/// The acts as lines of text, which [`read`] reads. A later version, to which a seed is another
/// app, reads them, too.
pub fn to_text(acts: &[Act]) -> String {
    let line = |act: &Act| serde_json::to_string(act).unwrap() + "\n";
    acts.iter().map(line).collect()
}

/// The acts that [`to_text`] wrote.
pub fn read(text: &str) -> Vec<Act> {
    let act = |line: &str| {
        serde_json::from_str::<Act>(line).unwrap_or_else(|error| panic!("{line}: {error}"))
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(act).collect()
}

/// Leaves out acts as long as the others fail: halves, then quarters, and so on to single ones. An
/// app takes so long that to try each act alone would take hours.
pub fn shrunk(acts: &[Act], mut fails: impl FnMut(&[Act]) -> bool) -> Vec<Act> {
    let mut left = acts.to_vec();
    let mut part = left.len().div_ceil(2);
    while part > 0 {
        let mut at = 0;
        while at < left.len() {
            let end = left.len().min(at + part);
            let fewer = [&left[..at], &left[end..]].concat();
            if fails(&fewer) {
                left = fewer;
            } else {
                at = end;
            }
        }
        part /= 2;
    }
    left
}

#[test]
fn the_acts_that_an_app_needs_to_fail_are_found() {
    // No random act draws that number of frames.
    let needed = [Act::Frames(200), Act::Frames(201)];
    for seed in 0..20 {
        let mut acts = of_seed(seed);
        acts.insert(acts.len() / 3, needed[0].clone());
        for count in 1..=2 {
            let needed = &needed[..count];
            let mut tries = 0;
            let left = shrunk(&acts, |acts| {
                tries += 1;
                needed.iter().all(|act| acts.contains(act))
            });
            assert_eq!(left, needed, "seed {seed}");
            assert!(tries < 20, "{tries} tries for {} acts", acts.len());
            acts.push(Act::Frames(201));
        }
    }
}

#[test]
fn acts_are_read_as_they_were_written() {
    for seed in 0..200 {
        let acts = of_seed(seed);
        assert_eq!(acts, of_seed(seed));
        assert_eq!(read(&to_text(&acts)), acts, "seed {seed}");
    }
}
