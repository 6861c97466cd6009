//! Which views see which sets: Bevy's list of each view is walked once.

use crate::render::{
    extracted_set::ExtractedSet,
    views::{FrameView, SetView, view_order},
};
use bevy::render::{
    sync_world::MainEntity,
    view::{RenderVisibleEntitiesClass, RetainedViewEntity},
};

/// The views that see each set of a frame. Its lists are used again in the next frame.
#[derive(Default)]
pub(in crate::render) struct SeenSets {
    /// Names the list of sets.
    listed_in: Option<u64>,
    /// The sets' entities in ascending order, each with the place of its set.
    by_entity: Vec<(MainEntity, u32)>,
    /// Places of sets and indices of views that see them, view after view.
    pairs: Vec<(u32, u32)>,
    /// By the place of a set: the end of its views.
    ends: Vec<u32>,
    /// The views of the first set in ascending order, then of the second one, and so on.
    views: Vec<u32>,
}

impl SeenSets {
    /// Finds out which views see which sets of the list that `listed_in` names. Entities are
    /// compared by their place in the main world: Bevy lists those that are in the render world,
    /// too, under both.
    pub fn find(&mut self, (listed_in, sets): (u64, &[ExtractedSet]), views: &[SetView]) {
        if self.listed_in.replace(listed_in) != Some(listed_in) {
            self.sort(sets);
        }
        self.pairs.clear();
        for (index, view) in (0..).zip(views) {
            let Some(visible) = view.visible else {
                continue;
            };
            let pairs = &mut self.pairs;
            each_seen(&self.by_entity, visible, |place| pairs.push((place, index)));
        }
        self.group(sets.len());
    }

    /// The views that see the set at a place, in ascending order.
    pub fn views_of(&self, place: usize) -> &[u32] {
        let end = |place: usize| self.ends.get(place).map_or(0, |end| *end as usize);
        let start = place.checked_sub(1).map_or(0, end);
        &self.views[start..end(place)]
    }

    /// Puts the places of the sets that some view sees into a list.
    pub fn list(&self, places: &mut Vec<usize>) {
        let mut start = 0;
        for (place, end) in self.ends.iter().enumerate() {
            if core::mem::replace(&mut start, *end) < *end {
                places.push(place);
            }
        }
    }

    /// Sorts the entities.
    fn sort(&mut self, sets: &[ExtractedSet]) {
        self.by_entity.clear();
        let entities = sets.iter().map(|set| set.entity);
        self.by_entity.extend(entities.zip(0..));
        self.by_entity.sort_unstable();
    }

    /// Sorts the pairs by their sets, and keeps the order of the views.
    fn group(&mut self, sets: usize) {
        self.ends.clear();
        self.ends.resize(sets, 0);
        for (place, _) in &self.pairs {
            self.ends[*place as usize] += 1;
        }
        // First they are the starts, and each view that is written moves one on.
        let mut start = 0;
        for end in &mut self.ends {
            start += core::mem::replace(end, start);
        }
        self.views.clear();
        self.views.resize(self.pairs.len(), 0);
        for (place, view) in &self.pairs {
            let end = &mut self.ends[*place as usize];
            self.views[*end as usize] = *view;
            *end += 1;
        }
    }
}

/// Calls `found` with the place of each set that a view sees, once.
fn each_seen(
    sets: &[(MainEntity, u32)],
    visible: &RenderVisibleEntitiesClass,
    mut found: impl FnMut(u32),
) {
    each_common(sets, &visible.entities_cpu_culling, &mut found);
    // Entities with `NoCpuCulling`: few, or all.
    let others = &visible.entities_gpu_culling;
    if others.len() < sets.len() {
        for entity in others.keys() {
            if let Ok(place) = sets.binary_search_by_key(entity, |(entity, _)| *entity) {
                found(sets[place].1);
            }
        }
    } else if !others.is_empty() {
        for (_, place) in sets
            .iter()
            .filter(|(entity, _)| others.contains_key(entity))
        {
            found(*place);
        }
    }
}

/// Calls `found` with the place of each set in a list of visible entities. Both are in ascending
/// order of the main entities. Runs that only one of them has are skipped by bisection, so a short
/// list costs little beside a long one.
fn each_common<T>(
    mut sets: &[(MainEntity, u32)],
    mut visible: &[(T, MainEntity)],
    mut found: impl FnMut(u32),
) {
    while let (Some((set, place)), Some((_, entity))) = (sets.first(), visible.first()) {
        if set == entity {
            found(*place);
            (sets, visible) = (&sets[1..], &visible[1..]);
        } else if set < entity {
            sets = skip(sets, |(set, _)| set < entity);
        } else {
            visible = skip(visible, |(_, entity)| entity < set);
        }
    }
}

/// The list without its first items, for which `is_before` holds: it holds for the very first.
fn skip<T>(list: &[T], is_before: impl Fn(&T) -> bool) -> &[T] {
    let mut step = 1;
    while list.get(step).is_some_and(&is_before) {
        step *= 2;
    }
    let (start, end) = (step / 2, step.min(list.len()));
    let within = list[start..end].partition_point(is_before);
    &list[start + within..]
}

/// The place of the view with this key in a request's views. `views` are the frame's, by
/// [`view_order`]. A request's indices increase, and all of them lie in `views` or all behind it.
pub(super) fn place_of_view(
    views: &[FrameView],
    request: &[u32],
    key: &RetainedViewEntity,
) -> Option<usize> {
    let first = match *request.first()? as usize {
        index if index < views.len() => 0,
        _ => views.len(),
    };
    let wanted = view_order(key);
    let index = views.binary_search_by_key(&wanted, |view| view_order(&view.key));
    request.binary_search(&((first + index.ok()?) as u32)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy::prelude::Entity;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn main(index: u32) -> MainEntity {
        Entity::from_raw_u32(index)
            .unwrap_or(Entity::PLACEHOLDER)
            .into()
    }

    /// Entities in ascending order, whose order is not the order of their indices.
    fn sorted(indices: &BTreeSet<u32>) -> Vec<MainEntity> {
        let mut entities: Vec<_> = indices.iter().map(|index| main(*index)).collect();
        entities.sort_unstable();
        entities
    }

    proptest! {
        #[test]
        fn the_common_entities_of_two_lists_are_found_once(
            sets in prop::collection::btree_set(0u32..300, 0..60),
            visible in prop::collection::btree_set(0u32..300, 0..200),
        ) {
            let of_sets: Vec<_> = sorted(&sets).into_iter().zip(0..).collect();
            let list: Vec<_> = sorted(&visible).into_iter().map(|entity| ((), entity)).collect();
            let mut found = Vec::new();
            each_common(&of_sets, &list, |place| found.push(place));
            let expected = of_sets.iter().filter(|(set, _)| list.contains(&((), *set)));
            prop_assert_eq!(found, expected.map(|(_, place)| *place).collect::<Vec<_>>());
        }

        #[test]
        fn each_set_has_its_views_in_order(
            pairs in prop::collection::vec((0u32..9, 0u32..64), 0..80),
        ) {
            let mut pairs = pairs;
            pairs.sort_by_key(|(_, view)| *view);
            let mut seen = SeenSets { pairs: pairs.clone(), ..Default::default() };
            seen.group(9);
            for place in 0..9 {
                let of = pairs.iter().filter(|(set, _)| *set == place);
                let of: Vec<_> = of.map(|(_, view)| *view).collect();
                prop_assert_eq!(seen.views_of(place as usize), of);
            }
            let mut places = Vec::new();
            seen.list(&mut places);
            prop_assert!(places.is_sorted() && places.iter().all(|place| *place < 9));
            for place in 0..9 {
                let is_seen = !seen.views_of(place).is_empty();
                prop_assert_eq!(places.contains(&place), is_seen);
            }
        }
    }
}
