//! Which poses there are, and the clock, for both worlds.

use super::{playing::Moment, poses::AnimationPoses};
use bevy::{
    platform::collections::HashMap,
    prelude::*,
    render::{Extract, RenderApp, extract_resource::ExtractResource},
};

/// Both worlds: all poses, and their places in the texture's directory.
#[derive(Resource, ExtractResource, Clone, Default)]
#[extract_app(RenderApp)]
pub(in crate::render) struct PoseTable {
    /// By their places: place 1 comes first.
    entries: Vec<PoseEntry>,
    /// The place of each asset. One that went keeps it until another needs it, so that it finds it
    /// again if it comes back at once.
    places: HashMap<AssetId<AnimationPoses>, u32>,
    /// Bumped with each change.
    pub(super) version: u64,
}

/// A place in the directory.
#[derive(Clone)]
pub(super) struct PoseEntry {
    pub id: AssetId<AnimationPoses>,
    /// The table's version when the poses came.
    pub version: u64,
    /// `None` if the asset is gone.
    pub poses: Option<AnimationPoses>,
}

impl PoseTable {
    /// The place of poses in the directory, and how much they stretch lengths at most; `None` if
    /// they are not there.
    pub fn placed(&self, id: AssetId<AnimationPoses>) -> Option<(u32, f32)> {
        let place = *self.places.get(&id)?;
        let entry = &self.entries[place as usize - 1];
        Some((place, entry.poses.as_ref()?.stretch()))
    }

    /// What is at each place, from 1 on.
    pub(super) fn entries(&self) -> &[PoseEntry] {
        &self.entries
    }

    fn insert(&mut self, id: AssetId<AnimationPoses>, poses: AnimationPoses) {
        self.version += 1;
        let entry = PoseEntry {
            id,
            version: self.version,
            poses: Some(poses),
        };
        let own = self.places.get(&id).map(|place| *place as usize - 1);
        let free = || self.entries.iter().position(|entry| entry.poses.is_none());
        match own.or_else(free) {
            Some(at) => {
                self.places.remove(&self.entries[at].id);
                self.places.insert(id, at as u32 + 1);
                self.entries[at] = entry;
            }
            None => {
                self.entries.push(entry);
                self.places.insert(id, self.entries.len() as u32);
            }
        }
    }

    fn remove(&mut self, id: AssetId<AnimationPoses>) {
        if let Some(place) = self.places.get(&id) {
            self.version += 1;
            self.entries[*place as usize - 1].poses = None;
        }
    }
}

/// Notes the poses that came, changed or went.
pub(in crate::render) fn find_poses(
    mut events: MessageReader<AssetEvent<AnimationPoses>>,
    assets: Res<Assets<AnimationPoses>>,
    mut table: ResMut<PoseTable>,
) {
    for event in events.read() {
        match event {
            AssetEvent::Added { id } | AssetEvent::Modified { id } => {
                if let Some(poses) = assets.get(*id) {
                    table.insert(*id, poses.clone());
                }
            }
            AssetEvent::Removed { id } => table.remove(*id),
            _ => {}
        }
    }
}

/// The moment of a frame, and of the frame before, as the vertex stage reads them.
#[derive(Resource, Clone, Copy, Default)]
pub(in crate::render) struct AnimationClock {
    now: Moment,
    before: Moment,
}

impl AnimationClock {
    /// The first texel.
    pub(super) fn texel(self) -> [u32; 4] {
        let Self { now, before } = self;
        [
            now.ticks,
            now.rest.to_bits(),
            before.ticks,
            before.rest.to_bits(),
        ]
    }
}

/// Takes the time from the main world.
pub(in crate::render) fn extract_clock(
    time: Extract<Option<Res<Time>>>,
    mut clock: ResMut<AnimationClock>,
) {
    let now = time
        .as_ref()
        .map_or(Moment::default(), |time| time.elapsed().into());
    *clock = AnimationClock {
        now,
        before: clock.now,
    };
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::render::animation::PoseClip;
    use bevy::{asset::uuid::Uuid, math::Affine3A};

    #[test]
    fn poses_keep_their_places_and_the_place_of_one_that_went_is_anothers() {
        let id = |number| AssetId::Uuid {
            uuid: Uuid::from_u128(number),
        };
        let poses = |count| {
            let clip = PoseClip {
                poses: vec![vec![Affine3A::IDENTITY]; count],
                seconds: 1.0,
                loops: true,
            };
            AnimationPoses::new([clip]).unwrap()
        };
        let mut table = PoseTable::default();
        for number in 0..3 {
            table.insert(id(number), poses(1));
        }
        let places = |table: &PoseTable| {
            [0, 1, 2, 3].map(|number| table.placed(id(number)).map(|(place, _)| place))
        };
        assert_eq!(places(&table), [Some(1), Some(2), Some(3), None]);
        table.remove(id(1));
        table.remove(id(9));
        table.insert(id(2), poses(4));
        assert_eq!(places(&table), [Some(1), None, Some(3), None]);
        table.insert(id(3), poses(2));
        assert_eq!(places(&table), [Some(1), None, Some(3), Some(2)]);
        let entries = table.entries().iter();
        let counts = entries.filter_map(|entry| Some(entry.poses.as_ref()?.pose_count()));
        assert_eq!(counts.collect::<Vec<_>>(), [1, 2, 4]);
        // One that comes back has its place again, if it is free.
        table.remove(id(0));
        table.remove(id(3));
        assert_eq!(places(&table), [None, None, Some(3), None]);
        table.insert(id(3), poses(1));
        assert_eq!(places(&table), [None, None, Some(3), Some(2)]);
        table.insert(id(4), poses(1));
        assert_eq!(table.placed(id(4)), Some((1, 1.0)));
        table.insert(id(0), poses(1));
        assert_eq!(places(&table), [Some(4), None, Some(3), Some(2)]);
    }
}
