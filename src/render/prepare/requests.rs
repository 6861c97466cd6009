//! The requests of the frame, one per entity or per group of entities that are tested together.

mod batch_set;
mod slots;

use crate::cull::{
    CoarserLevel, CullRequest, Culler, ErrorRange, Order, SetId, plan::greatest_stretch,
};
use crate::render::{
    batch_sets::member::Member,
    culler::ExtractedSet,
    draw_slots::DrawSlots,
    entity_uniforms::EntityUniforms,
    groups::{Joined, Joining},
    lods::{Fading, SetRange, ShadowPixels, Share, Thinning},
    materials::{DrawnFaces, MaterialAliases},
    occlusion::HidingViews,
    offset::stretch_of,
    set_draws::{Drawn, SetDraws, near_levels},
    set_meshes::Meshes,
    views::Views,
};
use bevy::{
    ecs::system::{StaticSystemParam, SystemParam},
    pbr::{MeshInputUniform, MeshPipeline, MeshUniform, PreparedMaterial, RenderMaterialInstances},
    platform::collections::HashSet,
    prelude::*,
    render::{
        batching::{GetBatchData, gpu_preprocessing::BatchedInstanceBuffers},
        erased_render_asset::ErasedRenderAssets,
        sync_world::{MainEntity, MainEntityHashSet},
        view::RenderVisibilityRanges,
    },
};
use std::sync::Arc;

/// What the requests of the frame are made from.
#[derive(SystemParam)]
pub(in crate::render) struct Scene<'w, 's> {
    pub(super) aliases: Res<'w, MaterialAliases>,
    views: Views<'w, 's>,
    pub(super) hiding: Hiding<'w, 's>,
    pub(super) meshes: Meshes<'w>,
    uniform_inputs: Option<Res<'w, BatchedInstanceBuffers<MeshUniform, MeshInputUniform>>>,
    uniform_data: StaticSystemParam<'w, 's, <MeshPipeline as GetBatchData>::Param>,
    ranges: Option<Res<'w, RenderVisibilityRanges>>,
}

/// What decides which sets are hidden, and in which views.
#[derive(SystemParam)]
pub(super) struct Hiding<'w, 's> {
    pub views: HidingViews<'w, 's>,
    faces: Res<'w, DrawnFaces>,
    materials: Res<'w, RenderMaterialInstances>,
    prepared: Res<'w, ErasedRenderAssets<PreparedMaterial>>,
}

impl Hiding<'_, '_> {
    /// Whether the instances of an entity may be hidden, as far as its material says.
    fn may_hide(&self, entity: MainEntity) -> bool {
        let material = self.materials.instances.get(&entity);
        let material = material.and_then(|material| self.prepared.get(material.asset_id));
        material.is_some_and(|material| self.faces.test_depth(&material.properties))
    }
}

/// Fills the frame with its views and the requests of its sets. `hides` if some view may hide
/// instances.
pub(super) fn add_requests(
    draws: &mut SetDraws,
    slots: &mut DrawSlots,
    (culler, sets, shared): (&Culler, &[ExtractedSet], &HashSet<SetId>),
    scene: Scene,
    hides: bool,
) {
    let views = scene.views.collect();
    draws.seen.find(sets, &views);
    draws.frame.views.extend(views.iter().map(|view| view.cull));
    draws
        .views
        .extend(views.iter().map(|view| view.view.clone()));
    // For sets without frustum culling the views come once more, and keep everything.
    if sets.iter().any(|set| set.keep_all) {
        let keep_all = views.iter().map(|view| view.cull.keeping_everything());
        draws.frame.views.extend(keep_all);
    }
    let version = culler.store().sets_version();
    draws.sets_stay = draws.sets_version.replace(version) == Some(version);
    draws.groups.clear();
    // The lists of the previous frame are used again, so that they need not be allocated.
    core::mem::swap(&mut draws.frame.requests, &mut draws.spare);
    draws.frame.requests.clear();
    let mut requests = Requests {
        culler,
        shared,
        views: views.len() as u32,
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
        hides,
        lod_pixels: scene.views.lod_pixels(),
        least_pixels: scene.views.least_pixels(),
        shadow_pixels: scene.views.shadow_pixels(),
        colors_occlusion: scene.views.colors_occlusion(),
        impostors: MainEntityHashSet::default(),
        ranges: scene.ranges.as_deref(),
    };
    // Impostors come first: without its impostor, an entity draws all instances itself.
    let is_impostor = |(_, set): &(usize, &ExtractedSet)| matches!(set.share, Share::Far { .. });
    let all = || sets.iter().enumerate();
    let others = all().filter(|set| !is_impostor(set));
    for (place, set) in all().filter(is_impostor).chain(others) {
        requests.add(place, set);
    }
    draws.number_entities();
}

/// The requests of the frame, while they are collected.
struct Requests<'a, 'w: 'a, 's: 'a> {
    culler: &'a Culler,
    /// Sets that several entities use.
    shared: &'a HashSet<SetId>,
    /// Number of views.
    views: u32,
    meshes: &'a Meshes<'w>,
    aliases: &'a MaterialAliases,
    uniforms: EntityUniforms<'a, 'w, 's>,
    draws: &'a mut SetDraws,
    slots: &'a mut DrawSlots,
    hiding: &'a Hiding<'w, 's>,
    /// Whether some view hides instances.
    hides: bool,
    /// The greatest error with which cameras draw levels of detail, in pixels.
    lod_pixels: f32,
    /// The least diameter that is drawn, in pixels.
    least_pixels: f32,
    /// How shadow views see instances that are thinned out.
    shadow_pixels: ShadowPixels,
    /// Whether draws are colored by their list.
    colors_occlusion: bool,
    /// Impostors that are drawn.
    impostors: MainEntityHashSet,
    ranges: Option<&'a RenderVisibilityRanges>,
}

impl Requests<'_, '_, '_> {
    /// Adds the request of the entity at a place of the frame's sets, or the entity to another's
    /// request, if a view sees it and Bevy has prepared its mesh.
    fn add(&mut self, place: usize, set: &ExtractedSet) {
        let entity = set.entity;
        if self.draws.seen.views_of(place).is_empty() {
            return;
        }
        let Some(instance) = self.meshes.instances.render_mesh_queue_data(entity) else {
            return;
        };
        let mesh_id = instance.mesh_asset_id();
        let mesh = self.draws.place_of(self.meshes, mesh_id);
        if mesh.is_some_and(|mesh| self.draws.meshes[mesh].is_deformed) {
            self.draws.refuse_deformed(entity, mesh_id);
            return;
        }
        let (Some(mesh), Some(uniform)) = (mesh, self.uniforms.get(entity, &instance)) else {
            return;
        };
        let whole = self.draws.meshes[mesh].shape;
        let full = set.full.as_ref().and_then(|part| {
            let place = (mesh_id, mesh);
            self.draws
                .part_of(self.meshes, entity, place, ("full", part))
        });
        let is_blended = self.aliases.blended.contains(&entity);
        // What blends is drawn in one order, not level after level.
        let has_levels = || !is_blended && !self.draws.expanded.contains(&entity);
        let stretch = stretch_of(set.offset.as_ref());
        let own_lods = self.draws.own_lods_of(entity, (mesh_id, mesh), stretch);
        let lods = match own_lods {
            Some(own) => has_levels().then_some(own),
            None => set
                .lods
                .as_ref()
                .filter(|_| has_levels())
                .and_then(|levels| {
                    self.draws
                        .lods_of(self.meshes, entity, (mesh_id, mesh), (levels, stretch))
                }),
        };
        let coarser = lods.as_ref().map(|lods| lods.coarser.clone());
        let errors = self.errors_of(set);
        let fading = self.fading_of(set, coarser.clone(), errors);
        let fades = fading.as_ref().is_some_and(|fading| fading.levels_fade);
        let thin_below = self.thin_below(set);
        let thinning = (thin_below > 0.0).then(|| {
            let stretch = greatest_stretch(&set.world_from_local.matrix3);
            Thinning::new(thin_below, set.sphere.radius, stretch, self.shadow_pixels)
        });
        let may_be_hidden = self.hides
            && thinning.is_none()
            && !set.keep_all
            && !set.is_never_hidden
            && !is_blended
            && !self.draws.expanded.contains(&entity)
            && self.draws.meshes[mesh].has_triangles
            && self.hiding.may_hide(entity);
        let first_slot = self.slots.len();
        let (placed, blocks) = self.add_slots(set, &uniform, fading.as_ref(), thinning);
        let (mut views, mut more) = match self.draws.spare.pop() {
            Some(spare) => (spare.views, spare.more),
            None => (Vec::new(), Vec::new()),
        };
        more.clear();
        views.clear();
        let first = if set.keep_all { self.views } else { 0 };
        let seeing = self.draws.seen.views_of(place).iter();
        views.extend(seeing.map(|view| first + view));
        let request = CullRequest {
            key: entity.to_bits(),
            set: set.set,
            world_from_local: set.world_from_local,
            sphere: set.sphere,
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
            views,
        };
        let is_alone = is_blended
            || set.has_meshlets
            || !matches!(set.share, Share::All)
            || !self.shared.contains(&set.set)
            || self.draws.expanded.contains(&entity);
        let of = self.place(request, may_be_hidden, is_alone);
        if of.shape > 0 {
            let first = self.first_of(of.request);
            self.draws.joined.extend(first.map(|first| (entity, first)));
        }
        let is_simple = fading.is_none() && thinning.is_none() && !is_blended && !set.has_meshlets;
        let member = blocks.filter(|_| is_simple).and_then(|blocks| {
            let key = self.batch_set_key(entity, &instance, mesh, lods.as_ref(), may_be_hidden)?;
            Some(Member { key, blocks })
        });
        let levels = lods.as_ref().map_or(1, |lods| lods.coarser.len() + 1);
        // Expanded and blended sets have no levels; an impostor's are all far.
        let is_far = matches!(set.share, Share::Far { .. });
        let near_levels = near_levels(levels).filter(|_| !set.is_unsorted && !is_far);
        if near_levels.is_some() {
            self.draws.leveled.sets += 1;
            let instances = self.culler.store().set_len(set.set);
            self.draws.leveled.instances += u64::from(instances.unwrap_or(0));
        }
        self.draws.drawn.push(Drawn {
            entity,
            of,
            set: set.set,
            placed,
            first_slot,
            slots: self.slots.len() - first_slot,
            is_colored: self.colors_occlusion,
            mesh_id,
            mesh,
            lods,
            near_levels,
            fading,
            thinning,
            may_be_hidden,
            blocks,
            member,
        });
        if matches!(set.share, Share::Far { .. }) && self.aliases.can_draw(entity) {
            self.impostors.insert(entity);
        }
    }

    /// Adds the request to the frame, or what it draws to one that tests the same, unless it
    /// `is_alone`.
    fn place(&mut self, request: CullRequest, may_be_hidden: bool, is_alone: bool) -> Joined {
        let SetDraws { groups, frame, .. } = &mut *self.draws;
        let joining = Joining {
            may_be_hidden,
            has_least_size: self.least_pixels > 0.0,
        };
        if !is_alone && let Some(joined) = groups.join(&mut frame.requests, &request, joining) {
            self.draws.spare.push(request);
            return joined;
        }
        frame.requests.push(request);
        Joined {
            request: frame.requests.len() - 1,
            shape: 0,
        }
    }

    /// The entity whose key a request has.
    fn first_of(&self, request: usize) -> Option<MainEntity> {
        let request = self.draws.frame.requests.get(request)?;
        Entity::try_from_bits(request.key).map(MainEntity::from)
    }

    /// The levels that the entity draws of its set.
    fn errors_of(&self, set: &ExtractedSet) -> ErrorRange {
        match set.share {
            Share::Near { impostor, error } if self.impostors.contains(&impostor) => ErrorRange {
                end: Some(error),
                ..ErrorRange::default()
            },
            Share::Near { .. } | Share::All => ErrorRange::default(),
            Share::Far {
                full,
                error,
                levels,
            } => ErrorRange {
                start: Some(error),
                end: None,
                levels_before: levels.max(self.meshes.own_levels(full)),
            },
        }
    }

    /// How the set fades; `None` if it does not.
    fn fading_of(
        &self,
        set: &ExtractedSet,
        coarser: Option<Arc<[CoarserLevel]>>,
        errors: ErrorRange,
    ) -> Option<Fading> {
        let does_fade = |entity: &MainEntity| self.aliases.fading.contains(entity);
        if !does_fade(&set.entity) {
            return None;
        }
        let is_number = |value: f32| value.is_finite() && value > 0.0;
        let stretch = greatest_stretch(&set.world_from_local.matrix3);
        let radius = set.sphere.radius;
        // As the engine's bands: otherwise all instances are drawn.
        let fades = set.fade > 0.0 && is_number(stretch) && radius > 0.0;
        let has_levels = is_number(self.lod_pixels);
        let levels_fade = fades
            && has_levels
            && match set.share {
                // It fades in only if what it replaces fades out.
                Share::Far { full, .. } => does_fade(&full),
                Share::Near { .. } | Share::All => true,
            };
        // Sizes are measured in errors, also if no error is allowed.
        let pixels = if has_levels { self.lod_pixels } else { 1.0 };
        let too_small = 2.0 * radius * pixels / self.least_pixels;
        let none = ErrorRange::default();
        Some(Fading {
            fades,
            levels_fade,
            coarser: coarser.filter(|_| levels_fade),
            errors: if levels_fade { errors } else { none },
            share: set.fade,
            range: set.range,
            sphere: set.sphere,
            too_small: if fades { too_small } else { f32::INFINITY },
            stretch,
            pixels,
        })
    }

    /// The diameter in pixels below which the set is thinned out; 0 if it is not.
    fn thin_below(&mut self, set: &ExtractedSet) -> f32 {
        let is_expanded = self.draws.expanded.contains(&set.entity);
        let has_size = set.sphere.radius > 0.0;
        if set.thin_below <= 0.0 || !has_size {
            return 0.0;
        }
        if !set.has_meshlets && !is_expanded {
            return set.thin_below;
        }
        let drawn = match is_expanded {
            true => {
                "from a MeshUniform per survivor (InstanceMeshUniforms, or a vertex shader for meshes)"
            }
            false => "by meshlets (MeshletMesh3d)",
        };
        self.draws.refuse_thinning(set.entity, drawn);
        0.0
    }
}
