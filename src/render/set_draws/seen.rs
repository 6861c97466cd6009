//! Which views see which sets, by Bevy's lists. A list is walked once; then Bevy's notes of what
//! came and went are followed.

use crate::render::{
    extract::SetLists,
    views::{FrameView, SetView, view_order},
};
use bevy::render::{
    sync_world::MainEntity,
    view::{RenderVisibleEntitiesClass, RetainedViewEntity},
};

/// The views that see each set of a frame.
#[derive(Default)]
pub(in crate::render) struct SeenSets {
    /// Names the list of sets.
    listed_in: Option<u64>,
    /// The number of the extraction that was followed last.
    extracted_in: u64,
    /// The sets' entities in ascending order, each with the place of its set.
    by_entity: Vec<(MainEntity, u32)>,
    /// Number of places.
    count: usize,
    /// The bits of the views that see each set: `words` for the first set, and so on.
    bits: Vec<u64>,
    words: usize,
    /// The views, and the length of Bevy's list of each.
    views: Vec<(RetainedViewEntity, usize)>,
    /// The sets that other views see than in the previous frame.
    pub changed: Vec<ChangedSet>,
    /// Whether `changed` has all of them. Otherwise all lists were walked.
    pub is_followed: bool,
}

/// A set that other views see than in the previous frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::render) struct ChangedSet {
    pub place: usize,
    /// Whether some view saw it in the previous frame.
    pub was_seen: bool,
}

impl SeenSets {
    /// Finds out which views see which sets of the lists, in the extraction with this number.
    /// Entities are compared by their place in the main world: Bevy lists those that are in the
    /// render world, too, under both.
    pub fn find(&mut self, lists: &SetLists, extracted_in: u64, views: &[SetView]) {
        let listed_in = lists.listed_in;
        let has_list = self.listed_in.replace(listed_in) == Some(listed_in);
        let is_next = core::mem::replace(&mut self.extracted_in, extracted_in) + 1 == extracted_in;
        let entity_at = |place: usize| Some(lists.sets.get(place)?.as_ref()?.entity);
        let visible = views.iter().map(|view| (view.view.key, view.visible));
        if has_list && is_next {
            self.see(true, &lists.changed, entity_at, visible);
            return;
        }
        let places = 0..lists.sets.len();
        self.sort(places.filter_map(|place| Some((entity_at(place)?, place as u32))));
        self.count = lists.sets.len();
        self.see(false, &[], entity_at, visible);
    }

    /// Follows Bevy's lists of all views, if `may_follow`, or walks them. `places` may have another
    /// entity than before, or none.
    fn see<'a>(
        &mut self,
        may_follow: bool,
        places: &[usize],
        entity_at: impl Fn(usize) -> Option<MainEntity>,
        lists: impl ExactSizeIterator<
            Item = (RetainedViewEntity, Option<&'a RenderVisibleEntitiesClass>),
        > + Clone,
    ) {
        self.changed.clear();
        let came = self.change_places(places, entity_at);
        // If Bevy has made a list again, its length does not follow from its notes.
        let stays = |(known, (key, visible)): (&(RetainedViewEntity, usize), _)| {
            let (before, gone, new) = match visible {
                Some(visible) => notes_of(visible),
                None => (0, 0, 0),
            };
            *known == (key, before + gone - new)
        };
        self.is_followed = may_follow
            && self.views.len() == lists.len()
            && self.views.iter().zip(lists.clone()).all(stays);
        self.views.clear();
        let length = |visible| notes_of(visible).0;
        let lengths = lists.clone();
        let lengths = lengths.map(|(key, visible)| (key, visible.map_or(0, length)));
        self.views.extend(lengths);
        if !self.is_followed {
            self.words = lists.len().div_ceil(64);
            self.bits.clear();
        }
        self.bits.resize(self.count * self.words, 0);
        for (view, (_, visible)) in lists.enumerate() {
            let Some(visible) = visible else {
                continue;
            };
            if self.is_followed {
                for (_, entity) in &visible.removed_entities {
                    self.note(*entity, view, false);
                }
                for (_, entity) in &visible.added_entities {
                    self.note(*entity, view, true);
                }
                // Bevy may have noted these long ago.
                let came = came.iter().map(|(entity, _)| *entity);
                for entity in came.filter(|entity| is_visible(visible, *entity)) {
                    self.note(entity, view, true);
                }
            } else {
                let (bits, words) = (&mut self.bits, self.words);
                each_seen(&self.by_entity, visible, |place| {
                    bits[place as usize * words + view / 64] |= 1 << (view % 64);
                });
            }
        }
        // The first note of a set says whether it was seen.
        self.changed.sort_by_key(|changed| changed.place);
        self.changed.dedup_by_key(|changed| changed.place);
    }

    /// Follows the list of sets, which may have other entities at these places. Returns the
    /// entities that are there now, and their places.
    fn change_places(
        &mut self,
        places: &[usize],
        entity_at: impl Fn(usize) -> Option<MainEntity>,
    ) -> Vec<(MainEntity, u32)> {
        let Some(last) = places.last() else {
            return Vec::new();
        };
        self.count = self.count.max(last + 1);
        self.by_entity
            .retain(|(_, place)| places.binary_search(&(*place as usize)).is_err());
        for place in places {
            let was_seen = self.is_seen(*place);
            self.changed.push(ChangedSet {
                place: *place,
                was_seen,
            });
            let words = place * self.words..(place + 1) * self.words;
            if let Some(bits) = self.bits.get_mut(words) {
                bits.fill(0);
            }
        }
        let came = places
            .iter()
            .filter_map(|place| Some((entity_at(*place)?, *place as u32)));
        let came: Vec<_> = came.collect();
        self.by_entity.extend(&came);
        self.by_entity.sort_unstable();
        came
    }

    /// Notes that a view sees an entity, or sees it no more.
    fn note(&mut self, entity: MainEntity, view: usize, is_seen: bool) {
        let Some(place) = self.place_of(entity) else {
            return;
        };
        let was_seen = self.is_seen(place);
        self.changed.push(ChangedSet { place, was_seen });
        let bits = &mut self.bits[place * self.words + view / 64];
        let bit = 1 << (view % 64);
        *bits = if is_seen { *bits | bit } else { *bits & !bit };
    }

    /// The place of an entity's set in the list.
    pub fn place_of(&self, entity: MainEntity) -> Option<usize> {
        let found = (self.by_entity).binary_search_by_key(&entity, |(entity, _)| *entity);
        found.ok().map(|index| self.by_entity[index].1 as usize)
    }

    fn bits_of(&self, place: usize) -> &[u64] {
        let bits = self.bits.get(place * self.words..(place + 1) * self.words);
        bits.unwrap_or_default()
    }

    /// The views that see the set at a place, in ascending order.
    pub fn views_of(&self, place: usize) -> impl Iterator<Item = u32> {
        let words = (0..).step_by(64).zip(self.bits_of(place));
        words.flat_map(|(first, word)| {
            let mut left = *word;
            core::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(first + bit)
            })
        })
    }

    /// Whether a view sees the set at a place.
    pub fn sees(&self, view: usize, place: usize) -> bool {
        let word = self.bits_of(place).get(view / 64);
        word.is_some_and(|word| word >> (view % 64) & 1 == 1)
    }

    /// Whether some view sees the set at a place.
    pub fn is_seen(&self, place: usize) -> bool {
        self.bits_of(place).iter().any(|word| *word != 0)
    }

    /// Whether no view sees any set.
    pub fn is_empty(&self) -> bool {
        self.bits.iter().all(|word| *word == 0)
    }

    /// The places of the sets that some view sees, in ascending order.
    pub fn places(&self) -> Vec<usize> {
        (0..self.count)
            .filter(|place| self.is_seen(*place))
            .collect()
    }

    /// Sorts the entities of the list.
    fn sort(&mut self, entities: impl Iterator<Item = (MainEntity, u32)>) {
        self.by_entity.clear();
        self.by_entity.extend(entities);
        self.by_entity.sort_unstable();
    }
}

/// The length of Bevy's list of a view; then how many came and went since the previous frame.
fn notes_of(visible: &RenderVisibleEntitiesClass) -> (usize, usize, usize) {
    let len = visible.entities_cpu_culling.len() + visible.entities_gpu_culling.len();
    let (new, gone) = (&visible.added_entities, &visible.removed_entities);
    (len, gone.len(), new.len())
}

/// Whether an entity is in Bevy's list of a view.
fn is_visible(visible: &RenderVisibleEntitiesClass, entity: MainEntity) -> bool {
    let tested = &visible.entities_cpu_culling;
    let found = tested.binary_search_by_key(&entity, |(_, main)| *main);
    found.is_ok() || visible.entities_gpu_culling.contains_key(&entity)
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
mod tests;
