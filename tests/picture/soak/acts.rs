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
    Move(u8, Place, bool),
    Toggle(u8, Part),
    Detach(u8, u16),
    Attach(u8),
    Look(u8),
    Switch(Thing),
    Tier(u8),
    Setting(u8),
    Frames(u8),
    Check,
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

/// What a set has or has not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Part {
    Hidden,
    OtherLayer,
    Levels,
    NoSorting,
}

/// What an app has or has not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Thing {
    Occlusion,
    Prepass,
    SecondCamera,
    SunShadows,
    LampShadows,
    Viewport,
    Interface,
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

/// Any of them.
fn act() -> impl Strategy<Value = Act> {
    let parts = [
        Part::Hidden,
        Part::OtherLayer,
        Part::Levels,
        Part::NoSorting,
    ];
    let things = [
        Thing::Occlusion,
        Thing::Prepass,
        Thing::SecondCamera,
        Thing::SunShadows,
        Thing::LampShadows,
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
        4 => spawn,
        1 => (CROWD as u8..140, place()).prop_map(|(count, place)| Act::Crowd(count, place)),
        1 => any::<u8>().prop_map(Act::Despawn),
        6 => (any::<u8>(), edits()).prop_map(|(set, edit)| Act::Edit(set, edit)),
        3 => (any::<u8>(), place(), any::<bool>()).prop_map(|(set, at, is_flat)| Act::Move(set, at, is_flat)),
        3 => (any::<u8>(), prop::sample::select(parts.to_vec())).prop_map(|(set, part)| Act::Toggle(set, part)),
        2 => (any::<u8>(), any::<u16>()).prop_map(|(set, id)| Act::Detach(set, id)),
        1 => any::<u8>().prop_map(Act::Attach),
        3 => any::<u8>().prop_map(Act::Look),
        2 => prop::sample::select(things.to_vec()).prop_map(Act::Switch),
        1 => any::<u8>().prop_map(Act::Tier),
        1 => any::<u8>().prop_map(Act::Setting),
        4 => (1u8..4).prop_map(Act::Frames),
        1 => Just(Act::Check),
    ]
}

/// The acts of the app from a seed.
pub fn of_seed(seed: u64) -> Vec<Act> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let acts = vec(act(), 12..40).new_tree(&mut runner);
    acts.unwrap().current()
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
    // No random act draws so many frames.
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
