//! What the draws of the frame's sets look up.

mod drawn;
mod frame_meshes;
mod kept;
mod meshes;
mod moves;
mod notes;
mod places;
mod seen;
mod warnings;

pub(super) use drawn::{BevyInstance, Drawn, LeveledSets, near_levels, slot_levels};
pub(super) use moves::Moves;

use super::{
    bindings::BatchBinding,
    groups::Groups,
    history::SceneHistory,
    set_meshes::MeshBuffers,
    views::{FrameView, ViewFades, view_at},
};
use crate::cull::{
    CullFrame, CullRequest, Culler, DrawList, DrawPart, InstanceStore, OcclusionView, SetId,
    Version,
};
use bevy::{
    platform::collections::HashSet,
    prelude::*,
    render::{
        render_resource::BindGroup,
        sync_world::{MainEntity, MainEntityHashMap, MainEntityHashSet},
        view::RetainedViewEntity,
    },
};
use core::sync::atomic::AtomicU32;
use frame_meshes::FrameMeshes;
pub(super) use kept::{FrameInputs, many_rest, no_request};
use notes::FrameNotes;
use places::DrawnPlaces;
use seen::{SeenSets, place_of_view};
use warnings::DrawWarnings;

/// The draws of the frame's sets. `prepare` fills it, the draw functions look their draws up in it.
#[derive(Resource, Default)]
pub(super) struct SetDraws {
    /// The frame as the engine sees it. Its views are `views`; behind them, if a set keeps every
    /// instance, as many views that keep everything.
    pub frame: CullFrame,
    /// The requests of the previous frame.
    pub requests_before: Vec<CullRequest>,
    /// Requests whose lists can be used again.
    pub spare: Vec<CullRequest>,
    /// What the requests of the previous frame were made for.
    pub made_for: FrameInputs,
    /// Which views see which sets.
    pub seen: SeenSets,
    /// The frame noted all that it need not look at again.
    pub notes: FrameNotes,
    /// The views that hide instances.
    pub occlusion: Vec<OcclusionView>,
    /// By the index of a view in the frame: its place in `occlusion`.
    pub hiding_places: Vec<Option<usize>>,
    /// The views of the frame, by [`view_order`].
    pub views: Vec<FrameView>,
    /// The views of recent frames, as `frame` numbers them, and what was joined.
    pub history: SceneHistory,
    /// Entities that joined another's request, each with the first entity of that.
    pub joined: Vec<(MainEntity, MainEntity)>,
    /// The requests that several entities may share.
    pub groups: Groups,
    /// Index of each entity in `drawn`.
    places: MainEntityHashMap<usize>,
    /// Number of entities in `drawn` that were added to `places`.
    numbered: usize,
    /// What each entity draws. The request of one that no view sees has no views. The first
    /// entities of requests are in the order of the requests.
    pub drawn: Vec<Drawn>,
    /// Indices in `drawn` of entities that went since the previous frame.
    pub went: Vec<usize>,
    /// What each entity of the previous frame drew, unless `is_kept`.
    drawn_before: Vec<Drawn>,
    /// Indices in `drawn` and `drawn_before`.
    pub of_places: DrawnPlaces,
    /// Whether `drawn` and the requests are those of the previous frame, as far as they still hold.
    pub is_kept: bool,
    /// The sets whose near levels can be drawn before all others.
    pub leveled: LeveledSets,
    /// Whether there may be such sets.
    has_levels: bool,
    /// Version of the resident sets in the frame.
    pub sets_version: Option<Version>,
    /// The resident sets that changed since the previous frame; `None` if they are not known.
    pub changed_sets: Option<Vec<SetId>>,
    /// Number of entities whose request was not taken over from the previous frame.
    pub requests_made: u64,
    pub meshes: FrameMeshes,
    /// Whether indirect draws read their count from a buffer.
    pub counted: bool,
    /// Number of draw calls since the last report.
    pub calls: AtomicU32,
    /// Entities that are drawn from a `MeshUniform` per survivor.
    pub expanded: MainEntityHashSet,
    /// The bind group of each batch of the frame.
    pub bindings: Vec<BatchBinding>,
    pub warnings: DrawWarnings,
}

/// The draws of an entity.
pub(super) struct EntityDraws<'a> {
    /// Index of `drawn` in the frame.
    pub place: usize,
    pub drawn: &'a Drawn,
    pub mesh: &'a MeshBuffers,
}

/// The draw of one region in one view.
pub(super) struct PartDraw<'a> {
    pub part: &'a DrawPart,
    pub bind_group: &'a BindGroup,
    /// The mesh of the level of detail.
    pub mesh: &'a MeshBuffers,
    /// Index of the region's draw slot.
    pub slot: u32,
}

impl SetDraws {
    /// Starts a frame.
    pub fn start_frame(&mut self) {
        self.frame.views.clear();
        self.went.clear();
        self.requests_made = 0;
    }

    /// The frame has no set.
    pub fn clear(&mut self) {
        self.views.clear();
        self.occlusion.clear();
        self.frame.requests.clear();
        self.frame.changed = None;
        self.drawn.clear();
        self.of_places.forget();
        self.places.clear();
        self.bindings.clear();
    }

    /// Bevy has moved meshes, or dropped one that is drawn.
    pub fn forget_meshes(&mut self) {
        self.meshes.clear();
        // The mesh indices of the previous frame are stale, too.
        self.drawn.clear();
        self.of_places.forget();
    }

    /// The draws of an entity that is drawn.
    pub fn find(&self, entity: MainEntity) -> Option<EntityDraws<'_>> {
        let place = self.place_in_frame(entity)?;
        let drawn = self.drawn.get(place)?;
        let mesh = self.meshes.get(drawn.mesh)?;
        Some(EntityDraws { place, drawn, mesh })
    }

    /// Index of an entity in `drawn`.
    pub fn place_in_frame(&self, entity: MainEntity) -> Option<usize> {
        self.places.get(&entity).copied()
    }

    fn drawn_by(&self, entity: MainEntity) -> Option<&Drawn> {
        self.drawn.get(self.place_in_frame(entity)?)
    }

    /// Notes the place of each entity, unless the previous frame had the same.
    pub fn number_entities(&mut self) {
        let known = core::mem::replace(&mut self.numbered, self.drawn.len());
        if self.is_kept {
            let more = self.drawn.iter().zip(0..).skip(known);
            self.places
                .extend(more.map(|(drawn, index)| (drawn.entity, index)));
            return;
        }
        let entity = |drawn: &Drawn| drawn.entity;
        let before = self.drawn_before.iter().map(entity);
        let now = self.drawn.iter().map(entity);
        if now.len() == self.places.len() && now.clone().eq(before) {
            return;
        }
        self.places.clear();
        self.places.extend(now.zip(0..));
    }

    /// Starts to make all requests of a frame, with the list of sets that `listed_in` names: what
    /// the previous frame drew becomes `drawn_before`. Its lists are used again, so that they need
    /// not be allocated.
    pub fn start_requests(&mut self, listed_in: u64) {
        self.is_kept = false;
        self.requests_made = 0;
        self.went.clear();
        core::mem::swap(&mut self.drawn, &mut self.drawn_before);
        self.drawn.clear();
        self.has_levels = false;
        self.of_places.start_frame(listed_in);
        self.joined.clear();
        self.groups.clear();
        self.frame.changed = None;
        core::mem::swap(&mut self.frame.requests, &mut self.requests_before);
        let left = self.frame.requests.drain(..);
        self.spare
            .extend(left.filter(|request| request.views.capacity() > 0));
    }

    /// Adds what the entity at a place of the list of sets draws.
    pub fn add(&mut self, place: usize, drawn: Drawn) {
        self.has_levels |= drawn.near_levels.is_some();
        self.of_places.add(place, self.drawn.len());
        self.drawn.push(drawn);
    }

    /// Replaces what an entity draws.
    pub fn replace(&mut self, index: usize, drawn: Drawn) {
        self.has_levels |= drawn.near_levels.is_some();
        self.drawn[index] = drawn;
    }

    /// Forgets an entity that went. Its request stays, and keeps nothing.
    pub fn let_go(&mut self, index: usize) {
        let drawn = &mut self.drawn[index];
        drawn.is_gone = true;
        let (entity, place) = (drawn.entity, drawn.place);
        self.of_places.remove(place);
        if self.place_in_frame(entity) == Some(index) {
            self.places.remove(&entity);
        }
        self.went.push(index);
    }

    /// What the entity at a place of the list of sets drew in the previous frame.
    pub fn before(&self, place: usize) -> Option<&Drawn> {
        match self.is_kept {
            true => self.drawn.get(self.of_places.now(place)?),
            false => self.drawn_before.get(self.of_places.before(place)?),
        }
    }

    /// The draws of an entity in a view: level after level, region after region.
    pub fn parts<'a>(
        &'a self,
        culler: &'a Culler,
        drawn: &'a Drawn,
        view: RetainedViewEntity,
        list: DrawList,
    ) -> impl Iterator<Item = PartDraw<'a>> {
        let request = drawn.of.request;
        let views = &self.frame.requests[request].views;
        let place = place_of_view(&self.views, views, &view);
        let view_fades = place
            .and_then(|place| view_at(&self.views, *views.get(place)?))
            .map_or(ViewFades::Nothing, |view| view.fades);
        let parts = place.map_or(&[][..], |place| {
            culler.draw_parts_of(request, place, views[place], list)
        });
        parts.iter().filter_map(move |part| {
            let mesh = match part.level.checked_sub(1) {
                None => drawn.mesh,
                Some(coarser) => *drawn.lods.as_ref()?.meshes.get(coarser)?,
            };
            Some(PartDraw {
                part,
                bind_group: self.bind_group(part.batch)?,
                mesh: self.meshes.get(mesh)?,
                slot: drawn.slot(part.region, part.level, view_fades, list),
            })
        })
    }

    /// The bind group of a batch; `None` if there are no buffers to bind.
    pub fn bind_group(&self, batch: usize) -> Option<&BindGroup> {
        self.bindings.get(batch)?.bind_group.as_ref()
    }

    /// Whether no resident set changed since the previous frame.
    pub fn sets_stay(&self) -> bool {
        self.changed_sets.as_ref().is_some_and(Vec::is_empty)
    }

    /// Follows what changed of the resident sets.
    pub fn follow_sets(&mut self, store: &InstanceStore) {
        let before = self.sets_version.replace(store.sets_version());
        let changed = before.and_then(|before| store.sets_changed_since(before));
        self.changed_sets = changed.map(Iterator::collect);
    }

    /// Whether views may hide the entity's instances.
    pub fn may_be_hidden(&self, entity: MainEntity) -> bool {
        let drawn = self.drawn_by(entity);
        drawn.is_some_and(|drawn| drawn.may_be_hidden)
    }

    /// Whether the entity has levels that can be drawn before far levels of other sets.
    pub fn has_near_levels(&self, entity: MainEntity) -> bool {
        let drawn = self.drawn_by(entity);
        drawn.is_some_and(|drawn| drawn.near_levels.is_some())
    }

    /// Counts the sets that some view sees and that draw several levels near first.
    pub fn count_leveled(&mut self, store: &InstanceStore) {
        self.leveled = LeveledSets::default();
        if !self.has_levels {
            return;
        }
        let leveled = self
            .drawn
            .iter()
            .filter(|drawn| drawn.near_levels.is_some());
        let seen = leveled.filter(|drawn| self.seen.is_seen(drawn.place));
        for drawn in seen {
            self.leveled.sets += 1;
            self.leveled.instances += u64::from(store.set_len(drawn.set).unwrap_or(0));
        }
    }

    /// Whether the entity is drawn from a `MeshUniform` per survivor.
    pub fn is_expanded(&self, entity: MainEntity) -> bool {
        self.expanded.contains(&entity)
    }

    /// Whether a view sees what is drawn at an index of `drawn`. Bevy may list an entity that it
    /// cannot draw yet: then it rests.
    pub fn sees(&self, view: usize, drawn: usize) -> bool {
        let is_drawn = |drawn: &Drawn| {
            let request = self.frame.requests.get(drawn.of.request)?;
            let draws = !request.views.is_empty() && !request.rests_in(view);
            Some(draws && self.seen.sees(view, drawn.place))
        };
        self.drawn.get(drawn).and_then(is_drawn).unwrap_or(false)
    }

    /// The entities that some view sees.
    pub fn entities(&self) -> impl Iterator<Item = MainEntity> {
        let is_seen = |drawn: &&Drawn| {
            let request = self.frame.requests.get(drawn.of.request);
            request.is_some_and(CullRequest::is_tested)
        };
        self.drawn.iter().filter(is_seen).map(|drawn| drawn.entity)
    }

    /// The entities that draw what the requests with these keys test.
    pub fn entities_of(&self, keys: &HashSet<u64>) -> Vec<Entity> {
        let is_of = |drawn: &&Drawn| {
            let request = self.frame.requests.get(drawn.of.request);
            request.is_some_and(|request| keys.contains(&request.key))
        };
        let drawn = self.drawn.iter().filter(is_of);
        drawn.map(|drawn| drawn.entity.id()).collect()
    }
}

#[cfg(test)]
mod tests;
