//! The requests of the previous frame stay. Other views may see some of them than before, or none.
//! The few that changed are made again in their places.
//!
//! Most frames know which sets may have changed, and look at these alone: those that views see or
//! see no more, that moved, and whose mesh or material Bevy has touched.

use super::{NewRequest, Requests};
use crate::render::{extracted_set::ExtractedSet, groups::RequestShape, lods::InstanceShare};

impl Requests<'_, '_, '_> {
    /// Keeps the requests of the previous frame, and adds those of sets that views see for the
    /// first time.
    ///
    /// Returns false if all requests must be made again: the list of sets, a mesh or a setting is
    /// another one, or a set changed that shares its request or its instances with others.
    pub(super) fn keep(&mut self) -> bool {
        if !self.stays || !self.draws.of_places.are_of(self.sets.lists.listed_in) {
            return false;
        }
        self.draws.is_kept = true;
        let mut changed = Vec::new();
        let is_kept = match self.changes() {
            Some(places) => self.follow(&places, &mut changed),
            None => self.look_at_all(&mut changed),
        };
        changed.sort_unstable();
        changed.dedup();
        self.draws.frame.changed = Some(changed);
        is_kept.is_some()
    }

    /// The places of all sets that may have changed since the previous frame, or that other views
    /// see; `None` if they are not known. Each comes with whether some view saw it.
    fn changes(&self) -> Option<Vec<Change>> {
        let draws = &*self.draws;
        let notes = &draws.notes;
        let changed_sets = draws.changed_sets.as_ref()?;
        let is_known = self.is_next
            && draws.seen.is_followed
            && self.hides_alike
            && !self.slots.has_started_again()
            && (self.aliases.visited.is_empty() || !notes.has_impostors);
        let touched = self.touched.filter(|_| is_known)?;
        let seen = draws.seen.changed.iter();
        let mut changes: Vec<_> = seen
            .map(|changed| Change {
                place: changed.place,
                was_seen: changed.was_seen,
                is_set: false,
            })
            .collect();
        let entities = touched.iter().chain(&self.aliases.visited);
        // Bevy writes the instance of what moves. `moving` has what moved in the previous frame.
        let places = entities.filter_map(|entity| draws.seen.place_of(*entity));
        let others = notes.moving.iter().chain(&self.sets.lists.changed);
        let others = others.copied().chain(self.sets.places_of(changed_sets));
        let sets = places.chain(others);
        changes.extend(sets.map(|place| Change {
            place,
            was_seen: draws.seen.is_seen(place),
            is_set: true,
        }));
        // What other views see comes first: it knows whether it was seen.
        changes.sort_by_key(|change| (change.place, change.is_set));
        changes.dedup_by(|next, first| {
            let is_same = next.place == first.place;
            first.is_set |= is_same && next.is_set;
            is_same
        });
        Some(changes)
    }

    /// Looks at the sets that may have changed. `None` if all requests must be made again.
    fn follow(&mut self, changes: &[Change], changed: &mut Vec<usize>) -> Option<()> {
        self.slots.follow();
        self.draws.notes.moving.clear();
        for change in changes {
            let place = change.place;
            if change.was_seen {
                self.slots.draw_again(place);
            }
            if self.draws.seen.is_seen(place) {
                self.keep_one(place, changed)?;
                if !self.slots.rests(place) {
                    self.draws.notes.moving.push(place);
                }
            } else if let Some(index) = self.draws.of_places.now(place) {
                self.leave(index, changed)?;
                if change.is_set {
                    self.draws.drawn[index].looked_at = 0;
                    self.let_go(index);
                    self.drop_moved(index, changed);
                }
            }
        }
        Some(())
    }

    /// Looks at all sets. `None` if all requests must be made again.
    fn look_at_all(&mut self, changed: &mut Vec<usize>) -> Option<()> {
        self.leave_unseen(changed)?;
        let seen = self.draws.seen.places();
        self.start_to_look();
        for place in &seen {
            self.keep_one(*place, changed)?;
        }
        self.end_look(&seen);
        Some(())
    }

    /// Starts to look at all sets that views see.
    pub(super) fn start_to_look(&mut self) {
        self.draws.notes.moving.clear();
        self.draws.notes.has_impostors = false;
    }

    /// All sets that views see, at these places, were looked at.
    pub(super) fn end_look(&mut self, seen: &[usize]) {
        let mut all = self.sets.lists.sets.iter().flatten();
        let notes = &mut self.draws.notes;
        notes.complete_since = self.sets.extracted_in;
        let moving = seen.iter().filter(|place| !self.slots.rests(**place));
        notes.moving.extend(moving);
        notes.has_impostors = all.any(|set| !matches!(set.share, InstanceShare::All));
    }

    /// Takes the views from sets that no view sees, or has them rest in all.
    fn leave_unseen(&mut self, changed: &mut Vec<usize>) -> Option<()> {
        for index in 0..self.draws.drawn.len() {
            if !self.draws.seen.is_seen(self.draws.drawn[index].place) {
                self.leave(index, changed)?;
                self.let_go(index);
            }
        }
        if self.made_for.rests && !self.draws.sets_stay() {
            for index in 0..self.draws.drawn.len() {
                self.drop_moved(index, changed);
            }
        }
        Some(())
    }

    /// Takes the rows from a set that rests, if its instances moved on the GPU.
    fn drop_moved(&mut self, index: usize, changed: &mut Vec<usize>) {
        let all_rest = self.all_rest();
        let drawn = &self.draws.drawn[index];
        let request = &mut self.draws.frame.requests[drawn.of.request];
        let rests = drawn.may_rest && !drawn.is_gone && request.resting == all_rest;
        if rests
            && !request.views.is_empty()
            && self.culler.store().placed(drawn.set) != drawn.placed
        {
            request.views.clear();
            request.resting = 0;
            changed.push(drawn.of.request);
        }
    }

    /// No view sees the set of an entity. Its rows rest, if it has some.
    fn leave(&mut self, index: usize, changed: &mut Vec<usize>) -> Option<()> {
        let all_rest = self.all_rest();
        let drawn = &self.draws.drawn[index];
        let request = &mut self.draws.frame.requests[drawn.of.request];
        if !drawn.may_rest || request.views.is_empty() {
            return self.set_views(index, &[], 0, changed);
        }
        if core::mem::replace(&mut request.resting, all_rest) != all_rest {
            changed.push(drawn.of.request);
        }
        Some(())
    }

    /// Forgets the entity of a set that went. Its rows rest, if it has some, until the frame needs
    /// another plan.
    fn let_go(&mut self, index: usize) {
        let drawn = &self.draws.drawn[index];
        if !drawn.is_gone && self.sets.at(drawn.place).is_none() {
            self.slots.release(drawn.place);
            self.draws.let_go(index);
        }
    }

    /// Keeps what the set at a place draws, or makes it again. `None` if it cannot be made alone.
    fn keep_one(&mut self, place: usize, changed: &mut Vec<usize>) -> Option<()> {
        let Some(set) = self.sets.at(place) else {
            return Some(());
        };
        let is_shared_out = !matches!(set.share, InstanceShare::All);
        if is_shared_out && !self.aliases.visited.is_empty() {
            return None;
        }
        let meshes = self.meshes;
        let known = self.draws.of_places.now(place);
        if let Some(index) = known
            && self.is_untouched(index, set)
            && (self.slots).keep_as_before(place, self.draws.drawn[index].slots)
        {
            return self.see(index, place, set, changed);
        }
        let Some(instance) = meshes.instances.render_mesh_queue_data(set.entity) else {
            return match known {
                Some(index) => self.leave(index, changed),
                None => Some(()),
            };
        };
        let of_bevy = self.instance_of(set.entity, &instance);
        if let Some(index) = known {
            let drawn = &self.draws.drawn[index];
            let (slots, is_own) = (drawn.slots, drawn.is_own);
            let uniform = self.unchanged(drawn, set, &instance, of_bevy);
            if uniform.is_some_and(|uniform| self.keep_slots(place, set, slots, &uniform)) {
                return self.see(index, place, set, changed);
            }
            if !is_own {
                return None;
            }
        }
        let Some(made) = self.make(place, set, &instance, of_bevy) else {
            return match known {
                Some(index) => self.leave(index, changed),
                None => Some(()),
            };
        };
        let NewRequest {
            request, mut drawn, ..
        } = made;
        if !drawn.is_own {
            return None;
        }
        let draws = &mut *self.draws;
        let requests = &mut draws.frame.requests;
        drawn.of = RequestShape {
            request: known.map_or(requests.len(), |index| draws.drawn[index].of.request),
            shape: 0,
        };
        changed.push(drawn.of.request);
        match known {
            Some(index) => {
                let old = core::mem::replace(&mut requests[drawn.of.request], request);
                draws.spare.push(old);
                draws.replace(index, drawn);
            }
            None => {
                requests.push(request);
                draws.add(place, drawn);
            }
        }
        Some(())
    }

    /// Whether nothing of an entity can have changed since the previous frame looked at it, apart
    /// from its views.
    fn is_untouched(&self, index: usize, set: &ExtractedSet) -> bool {
        let drawn = &self.draws.drawn[index];
        self.touched
            .is_some_and(|touched| !touched.contains(&set.entity))
            && self.was_looked_at(drawn)
            && (self.draws.sets_stay() || self.culler.store().placed(set.set) == drawn.placed)
            && self.hides_alike
            && drawn.made_in >= set.changed_in
            && !self.aliases.visited.contains(&set.entity)
    }

    /// Some view sees the set of an entity, which is as it was.
    fn see(
        &mut self,
        index: usize,
        place: usize,
        set: &ExtractedSet,
        changed: &mut Vec<usize>,
    ) -> Option<()> {
        let drawn = &mut self.draws.drawn[index];
        drawn.looked_at = self.sets.extracted_in;
        let may_rest = drawn.may_rest;
        let mut views = core::mem::take(&mut self.views_now);
        let resting = self.list_views(place, set, may_rest, &mut views);
        let kept = self.set_views(index, &views, resting, changed);
        self.views_now = views;
        kept
    }

    /// Gives the request of an entity its views, and those in which it rests. `None` if it shares
    /// the request, or its instances with an impostor, and the views are others than before.
    fn set_views(
        &mut self,
        index: usize,
        views: &[u32],
        resting: u128,
        changed: &mut Vec<usize>,
    ) -> Option<()> {
        let drawn = &self.draws.drawn[index];
        let request = &mut self.draws.frame.requests[drawn.of.request];
        if request.views == views && request.resting == resting {
            return Some(());
        }
        if !drawn.is_own {
            return None;
        }
        request.views.clear();
        request.views.extend_from_slice(views);
        request.resting = resting;
        changed.push(drawn.of.request);
        Some(())
    }
}

/// A set that may have changed since the previous frame.
struct Change {
    place: usize,
    /// Whether some view saw it in the previous frame.
    was_seen: bool,
    /// Whether more than its views may have changed.
    is_set: bool,
}
