//! The counters of each set's entity.

use crate::{
    cull::{DrawList, RowCount},
    render::{history::FrameScene, views::ViewKind},
};
use bevy::{prelude::*, render::sync_world::MainEntity};

/// Counters of the instances of one entity.
///
/// Entities that are tested together, for example the primitives of a tree, have the counters of
/// the test that they share.
#[derive(Reflect, Clone, Copy, Debug, PartialEq, Eq)]
#[reflect(Clone, Debug, PartialEq)]
pub struct SetReport {
    /// The entity in the main world.
    pub entity: MainEntity,
    /// Number of instances tested, summed over cameras. An
    /// [`InstanceImpostor`](crate::render::InstanceImpostor) has 0: its parent tests them.
    pub tested: u64,
    /// Number of instances drawn in the main pass, summed over cameras. One that fades between two
    /// levels of detail counts twice.
    pub visible: u64,
    /// Number of instances tested, summed over shadow views: cascades, cube faces and spot lights.
    pub shadow_tested: u64,
    /// Number of instances drawn, summed over shadow views.
    pub shadow_visible: u64,
}

impl SetReport {
    /// No instances yet of the entity with these bits; `None` if there is no such entity.
    fn new(bits: u64) -> Option<Self> {
        Some(Self {
            entity: Entity::try_from_bits(bits)?.into(),
            tested: 0,
            visible: 0,
            shadow_tested: 0,
            shadow_visible: 0,
        })
    }

    fn add(&mut self, other: &Self) {
        self.tested += other.tested;
        self.visible += other.visible;
        self.shadow_tested += other.shadow_tested;
        self.shadow_visible += other.shadow_visible;
    }
}

/// The sums of a frame's rows. A request has the key of its first entity, and most of its rows
/// follow each other, so that no row needs to look its sum up.
#[derive(Default)]
pub(super) struct SetSums {
    sums: Vec<SetReport>,
    /// The request of the last sum.
    last: Option<u64>,
    /// The reports of entities that joined another's request.
    joined: Vec<SetReport>,
}

impl SetSums {
    /// No rows yet. `list` becomes the report.
    pub fn start(&mut self, list: Vec<SetReport>) {
        self.sums = list;
        self.sums.clear();
        self.last = None;
    }

    /// Adds a row, of a view of this kind.
    pub fn add(&mut self, row: &RowCount, kind: ViewKind) {
        if self.last != Some(row.request) {
            let Some(sum) = SetReport::new(row.request) else {
                return;
            };
            self.last = Some(row.request);
            self.sums.push(sum);
        }
        let Some(sum) = self.sums.last_mut() else {
            return;
        };
        let (tested, visible) = match kind {
            ViewKind::Camera => (&mut sum.tested, &mut sum.visible),
            _ => (&mut sum.shadow_tested, &mut sum.shadow_visible),
        };
        *tested += u64::from(row.tested);
        // What is drawn early or late is part of what is visible.
        if [DrawList::Kept, DrawList::Visible].contains(&row.list) {
            *visible += u64::from(row.visible);
        }
    }

    /// The report of each entity of the frame, by entity.
    pub fn finish(&mut self, scene: &FrameScene) -> Vec<SetReport> {
        let mut sums = core::mem::take(&mut self.sums);
        // A request with rows in several batches has several sums.
        sums.sort_unstable_by_key(|sum| sum.entity);
        sums.dedup_by(|other, sum| {
            let is_same = other.entity == sum.entity;
            if is_same {
                sum.add(other);
            }
            is_same
        });
        // Both lists nearly always have the same order, so that most are found at once.
        let mut next = 0;
        self.joined.clear();
        self.joined
            .extend(scene.joined.iter().filter_map(|(entity, of)| {
                let is_next = sums.get(next).is_some_and(|sum| sum.entity == *of);
                let place = match is_next {
                    true => next,
                    false => sums.binary_search_by_key(of, |sum| sum.entity).ok()?,
                };
                next = place + 1;
                Some(SetReport {
                    entity: *entity,
                    ..sums[place]
                })
            }));
        self.joined.sort_unstable_by_key(|sum| sum.entity);
        merge(&mut sums, &self.joined);
        sums
    }
}

/// Merges a sorted list into another one, from the end on.
fn merge(into: &mut Vec<SetReport>, from: &[SetReport]) {
    let (mut left, mut more) = (into.len(), from.len());
    into.extend_from_slice(from);
    while let Some(next) = from[..more].last() {
        let at = left + more - 1;
        match into[..left].last() {
            Some(last) if last.entity > next.entity => {
                into[at] = *last;
                left -= 1;
            }
            _ => {
                into[at] = *next;
                more -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(index: u32) -> MainEntity {
        let entity = Entity::from_raw_u32(index);
        entity.unwrap_or(Entity::PLACEHOLDER).into()
    }

    fn row(index: u32, tested: u32, visible: u32, list: DrawList) -> RowCount {
        RowCount {
            request: entity(index).to_bits(),
            view: 0,
            level: 0,
            tested,
            visible,
            list,
            element_count: 3,
        }
    }

    #[test]
    fn rows_are_summed_per_entity_in_any_order() {
        use DrawList::{Early, Kept, Late, Visible};
        let mut sums = SetSums::default();
        sums.add(&row(5, 100, 7, Kept), ViewKind::Camera);
        sums.add(&row(5, 0, 3, Kept), ViewKind::Camera);
        sums.add(&row(2, 50, 20, Early), ViewKind::Camera);
        sums.add(&row(2, 50, 1, Kept), ViewKind::Cascade);
        sums.add(&row(5, 100, 9, Kept), ViewKind::Spot);
        sums.add(&row(2, 50, 2, Kept), ViewKind::PointFace);
        sums.add(&row(2, 0, 4, Late), ViewKind::Camera);
        sums.add(&row(2, 0, 24, Visible), ViewKind::Camera);
        let scene = FrameScene {
            joined: [(entity(9), entity(2)), (entity(1), entity(5))].into(),
            ..FrameScene::default()
        };
        let report = |index, numbers: [u64; 4]| {
            let [tested, visible, shadow_tested, shadow_visible] = numbers;
            SetReport {
                entity: entity(index),
                tested,
                visible,
                shadow_tested,
                shadow_visible,
            }
        };
        let (two, five) = ([50, 24, 100, 3], [100, 10, 100, 9]);
        let mut expected = vec![
            report(1, five),
            report(2, two),
            report(5, five),
            report(9, two),
        ];
        expected.sort_by_key(|report| report.entity);
        assert_eq!(sums.finish(&scene), expected);
    }
}
