//! The requests of the frame, one per entity or per group of entities that are tested together.

mod batch_set;
mod detail;
mod keep;
mod rest;
mod scene;
mod slots;
mod take_over;

pub(super) use scene::FrameSets;
pub(in crate::render) use scene::Scene;

use crate::cull::{CullRequest, Culler, CullingTier, Order, layout::greatest_stretch};
use crate::render::{
    animation::PoseTable,
    batch_sets::member::Member,
    draw_slots::DrawSlots,
    entity_uniforms::EntityUniforms,
    extracted_set::ExtractedSet,
    groups::{JoinRule, RequestShape},
    lods::{InstanceShare, SetRange, Thinning},
    materials::MaterialAliases,
    names::AssetNames,
    set_draws::{BevyInstance, Drawn, FrameInputs, Moves, SetDraws, many_rest, near_levels},
    set_meshes::{Deformation, Meshes},
    views::{SetView, follow_views},
};
use bevy::{
    pbr::RenderMeshQueueData,
    prelude::*,
    render::{
        sync_world::{MainEntity, MainEntityHashSet},
        view::RenderVisibilityRanges,
    },
};
use scene::Hiding;

/// Fills the frame with its views and the requests of its sets. `hides` if some view may hide
/// instances.
pub(super) fn add_requests(
    draws: &mut SetDraws,
    slots: &mut DrawSlots,
    culler: &Culler,
    sets: &FrameSets<'_>,
    mut scene: Scene,
    hides: bool,
) {
    let spare = scene.views.start_frame();
    let views = scene.views.collect(spare);
    draws.seen.find(sets.lists, sets.extracted_in, &views);
    draws.frame.views.extend(views.iter().map(|view| view.cull));
    follow_views(&mut draws.views, views.iter().map(|view| view.view));
    // For sets without frustum culling the views come once more, and keep everything.
    if sets.lists.keep_all() {
        let keep_all = views.iter().map(|view| view.cull.keeping_everything());
        draws.frame.views.extend(keep_all);
    }
    let view_count = views.len();
    let spare = SetView::emptied(views);
    scene.views.give_back(spare);
    let made_for = FrameInputs {
        hides,
        lod_pixels: scene.views.detail().max_error(false),
        min_pixels: scene.views.detail().min_pixels(),
        has_min_size: scene.views.have_min_size(),
        shadow_pixels: scene.views.shadow_pixels(),
        colors_occlusion: scene.views.colors_occlusion(),
        // Devices without draw counts, and the tier `Cpu`, pay for rows that rest.
        rests: draws.counted
            && culler.tier() != CullingTier::Cpu
            && many_rest(sets.lists.len(), view_count),
        views: view_count as u32,
    };
    let before = core::mem::replace(&mut draws.made_for, made_for);
    draws.follow_sets(culler.store());
    let stays = before == made_for;
    let is_next = draws.notes.start(sets.extracted_in);
    let faces = scene.hiding.faces.changes();
    let faces_stay = core::mem::replace(&mut draws.notes.faces, faces) == faces;
    let mut requests = Requests {
        culler,
        sets,
        stays,
        is_next,
        hides_alike: !hides || faces_stay,
        views: view_count as u32,
        meshes: &scene.meshes,
        aliases: &scene.aliases,
        uniforms: EntityUniforms {
            inputs: scene.uniform_inputs.as_deref(),
            instances: &scene.meshes.instances,
            cpu: &scene.uniform_data.into_inner(),
        },
        draws,
        slots,
        hiding: &scene.hiding,
        made_for,
        impostors: MainEntityHashSet::default(),
        ranges: scene.ranges.as_deref(),
        poses: &scene.poses,
        touched: scene.touched.entities(),
        views_now: Vec::new(),
    };
    if !requests.keep() {
        requests.make_all();
    }
    draws.count_leveled(culler.store());
    draws.number_entities();
    scene.touched.clear();
}

/// The requests of the frame, while they are collected.
struct Requests<'a, 'w: 'a, 's: 'a> {
    culler: &'a Culler,
    sets: &'a FrameSets<'a>,
    /// What is in [`FrameInputs`] is as in the previous frame.
    stays: bool,
    /// All changes since the previous frame are known.
    is_next: bool,
    /// As in the previous frame, materials say which sets views may hide.
    hides_alike: bool,
    /// Number of views.
    views: u32,
    meshes: &'a Meshes<'w>,
    aliases: &'a MaterialAliases,
    uniforms: EntityUniforms<'a, 'w, 's>,
    draws: &'a mut SetDraws,
    slots: &'a mut DrawSlots,
    hiding: &'a Hiding<'w, 's>,
    made_for: FrameInputs,
    /// Impostors that are drawn.
    impostors: MainEntityHashSet,
    ranges: Option<&'a RenderVisibilityRanges>,
    poses: &'a PoseTable,
    /// The entities whose instance Bevy has written again; `None` if that is not known.
    touched: Option<&'a MainEntityHashSet>,
    /// The views of a request, while they are compared.
    views_now: Vec<u32>,
}

/// A request that was made, and what its entity draws. It has no place in the frame yet.
struct NewRequest {
    request: CullRequest,
    drawn: Drawn,
    /// Whether it joins no other request.
    is_alone: bool,
}

impl Requests<'_, '_, '_> {
    /// Makes the requests of all sets that some view sees.
    fn make_all(&mut self) {
        self.draws.start_requests(self.sets.lists.listed_in);
        self.slots.start_again();
        self.start_to_look();
        self.impostors.clear();
        let places = self.draws.seen.places();
        let sets = self.sets;
        let seen = places
            .iter()
            .filter_map(|place| Some((*place, sets.at(*place)?)));
        // Impostors come first: without its impostor, an entity draws all instances itself.
        let is_impostor =
            |(_, set): &(usize, &ExtractedSet)| matches!(set.share, InstanceShare::Far { .. });
        let impostors = seen.clone().filter(is_impostor);
        for (place, set) in impostors.chain(seen.filter(|seen| !is_impostor(seen))) {
            self.add(place, set);
        }
        self.end_look(&places);
    }

    /// Adds the request of the entity at a place of the frame's sets, or the entity to another's
    /// request, if a view sees it and Bevy has prepared its mesh.
    fn add(&mut self, place: usize, set: &ExtractedSet) {
        let entity = set.entity;
        let Some(instance) = self.meshes.instances.render_mesh_queue_data(entity) else {
            return;
        };
        let of_bevy = self.instance_of(entity, &instance);
        if self.stays && self.take_over(place, set, &instance, of_bevy) {
            return;
        }
        let Some(NewRequest {
            request,
            mut drawn,
            is_alone,
        }) = self.make(place, set, &instance, of_bevy)
        else {
            return;
        };
        drawn.of = self.place(request, drawn.may_be_hidden, is_alone);
        if drawn.of.shape > 0 {
            let first = self.first_of(drawn.of.request);
            self.draws.joined.extend(first.map(|first| (entity, first)));
        }
        self.draws.add(place, drawn);
        if matches!(set.share, InstanceShare::Far { .. }) && self.aliases.can_draw(entity) {
            self.impostors.insert(entity);
        }
    }

    /// Makes the request of the entity at a place of the frame's sets, and what it draws; `None` if
    /// Bevy has not prepared its mesh.
    fn make(
        &mut self,
        place: usize,
        set: &ExtractedSet,
        instance: &RenderMeshQueueData<'_>,
        of_bevy: BevyInstance,
    ) -> Option<NewRequest> {
        let entity = set.entity;
        self.draws.requests_made += 1;
        let mesh_id = instance.mesh_asset_id();
        let own = self.draws.mesh_of(self.meshes, place, mesh_id)?;
        let mesh = own.index;
        let animation = self.animation(set);
        let has_pose =
            animation.is_some() && self.draws.meshes[mesh].deformation == Deformation::ByJoints;
        if self.draws.meshes[mesh].deformation != Deformation::No && !has_pose {
            let names = AssetNames(self.meshes.server.as_deref());
            (self.draws.warnings).refuse_deformed(entity, mesh_id, &names);
            return None;
        }
        let moves = Moves {
            wind: self.wind(set),
            animation,
        };
        let uniform = self.uniforms.get(entity, instance)?;
        let whole = self.draws.meshes[mesh].shape;
        let full = set.full.as_ref();
        let full =
            full.and_then(|part| (self.draws).part_of(self.meshes, entity, own, "full", part));
        let is_blended = self.aliases.blended.contains(&entity);
        // What blends is drawn in one order, not level after level.
        let has_levels = !is_blended && !self.draws.expanded.contains(&entity);
        let lods = match self.draws.own_lods_of(place, set, own) {
            _ if !has_levels => None,
            None => self.draws.lods_of(self.meshes, place, set, own),
            own_lods => own_lods,
        };
        let coarser = lods.as_ref().map(|lods| moves.around(&lods.coarser));
        let errors = self.errors_of(set);
        let fading = self.fading_of(set, coarser.clone(), errors);
        let fades = fading.as_ref().is_some_and(|fading| fading.levels_fade);
        let thin_below = self.thin_below(set);
        let thinning = (thin_below > 0.0).then(|| {
            let stretch = greatest_stretch(&set.world_from_local.matrix3);
            Thinning::new(
                thin_below,
                set.sphere.radius,
                stretch,
                self.made_for.shadow_pixels,
            )
        });
        let may_be_hidden = self.may_be_hidden(set, mesh, thinning);
        let slots = self.fill_slots(place, set, &uniform, fading.as_ref(), thinning, moves);
        let (mut views, mut more) = match self.draws.spare.pop() {
            Some(spare) => (spare.views, spare.more),
            None => (Vec::new(), Vec::new()),
        };
        more.clear();
        let mut request = CullRequest {
            key: entity.to_bits(),
            set: set.set,
            world_from_local: set.world_from_local,
            sphere: set.sphere,
            full_sphere: set.full_sphere,
            shape: full.unwrap_or(whole),
            coarser,
            more,
            fade: if fades { set.fade } else { 0.0 },
            range: set.range.map(SetRange::distances),
            thin_below,
            errors,
            order: if set.is_unsorted {
                Order::Set
            } else if is_blended {
                Order::FarFirst
            } else {
                Order::NearFirst
            },
            views: Vec::new(),
            resting: 0,
        };
        let is_alone = is_blended
            || set.has_meshlets
            || !matches!(set.share, InstanceShare::All)
            || !self.sets.are_shared(set.set)
            || self.draws.expanded.contains(&entity);
        let levels = lods.as_ref().map_or(1, |lods| lods.coarser.len() + 1);
        // Expanded and blended sets have no levels; all levels of an impostor are far.
        let is_far = matches!(set.share, InstanceShare::Far { .. });
        let near_levels = near_levels(levels).filter(|_| !set.is_unsorted && !is_far);
        let is_simple = fading.is_none() && thinning.is_none() && !is_blended && !set.has_meshlets;
        let member = slots.granules.filter(|_| is_simple).and_then(|granules| {
            let (lods, has_near) = (lods.as_ref(), near_levels.is_some());
            let key = self.batch_set_key(entity, of_bevy, mesh, lods, has_near, may_be_hidden)?;
            let batch_set = self.draws.meshes.batch_sets.of(key);
            Some(Member {
                batch_set,
                granules,
            })
        });
        let is_own = matches!(set.share, InstanceShare::All)
            && !self.sets.are_shared(set.set)
            && !self.draws.expanded.contains(&entity);
        let drawn = Drawn {
            entity,
            place,
            is_gone: false,
            made_in: self.sets.extracted_in,
            looked_at: self.sets.extracted_in,
            bevy: of_bevy,
            material: self.aliases.used_by(entity),
            is_own,
            of: RequestShape {
                request: usize::MAX,
                shape: 0,
            },
            set: set.set,
            placed: slots.placed,
            first_slot: slots.first,
            slots: slots.count,
            is_colored: self.made_for.colors_occlusion,
            mesh_id,
            mesh,
            lods,
            near_levels,
            fading: fading.map(Box::new),
            thinning,
            moves,
            may_be_hidden,
            granules: slots.granules,
            member,
            may_rest: self.made_for.rests
                && is_own
                && !set.keep_all
                && member.is_some_and(|member| member.granules.are_few()),
        };
        request.resting = self.list_views(place, set, drawn.may_rest, &mut views);
        request.views = views;
        Some(NewRequest {
            request,
            drawn,
            is_alone,
        })
    }

    /// Whether views may hide instances of a set that draws the mesh at a place.
    fn may_be_hidden(&self, set: &ExtractedSet, mesh: usize, thinning: Option<Thinning>) -> bool {
        self.made_for.hides
            && thinning.is_none()
            && !set.keep_all
            && !set.is_never_hidden
            && !self.aliases.blended.contains(&set.entity)
            && !self.draws.expanded.contains(&set.entity)
            && self.draws.meshes[mesh].has_triangles
            && self.hiding.may_hide(set.entity)
    }

    /// Adds the request to the frame, or what it draws to one that tests the same, unless it
    /// `is_alone`.
    fn place(&mut self, request: CullRequest, may_be_hidden: bool, is_alone: bool) -> RequestShape {
        let SetDraws { groups, frame, .. } = &mut *self.draws;
        let rule = JoinRule {
            may_be_hidden,
            has_min_size: self.made_for.has_min_size,
        };
        if !is_alone && let Some(joined) = groups.join(&mut frame.requests, &request, rule) {
            self.draws.spare.push(request);
            return joined;
        }
        frame.requests.push(request);
        RequestShape {
            request: frame.requests.len() - 1,
            shape: 0,
        }
    }

    /// The entity whose key a request has.
    fn first_of(&self, request: usize) -> Option<MainEntity> {
        let request = self.draws.frame.requests.get(request)?;
        Entity::try_from_bits(request.key).map(MainEntity::from)
    }
}
