//! What an extraction reads of an entity with a set.

use crate::cull::SetId;
use crate::render::{
    animation::InstanceAnimation,
    bounds::SetSphere,
    components::{GpuInstances, InstanceMeshUniforms, NoInstanceSorting},
    extracted_set::ExtractedSet,
    lods::{
        AggregateDetail, ImpostorOf, InstanceShare, InstanceVisibilityRange, SetImpostor, SetLods,
        SetRange,
    },
    meshlets::MeshletMesh3d,
    occlusion::NoOcclusionCulling,
    offset::{InstanceOffset, stretch_of},
    wind::Wind,
};
use bevy::{
    camera::visibility::NoFrustumCulling, ecs::query::QueryData, math::Affine3A, pbr::Lightmap,
    prelude::*,
};

/// An entity with a set.
///
/// An extraction reads only those that are new, or have changed:
/// [`SetTable`](super::roster::SetTable) names the components with values.
#[derive(QueryData)]
pub(super) struct SetEntity {
    pub entity: Entity,
    pub instances: &'static GpuInstances,
    pub sphere: Option<&'static SetSphere>,
    pub offset: Option<&'static InstanceOffset>,
    pub transform: &'static GlobalTransform,
    pub keep_all: Has<NoFrustumCulling>,
    is_unsorted: Has<NoInstanceSorting>,
    is_never_hidden: Has<NoOcclusionCulling>,
    lods: Option<&'static SetLods>,
    range: Option<&'static InstanceVisibilityRange>,
    detail: Option<&'static AggregateDetail>,
    wind: Option<&'static Wind>,
    animation: Option<&'static InstanceAnimation>,
    impostor: Option<&'static SetImpostor>,
    impostor_of: Option<&'static ImpostorOf>,
    pub asks_expanded: Has<InstanceMeshUniforms>,
    pub is_lightmapped: Has<Lightmap>,
    has_meshlets: Has<MeshletMesh3d>,
}

impl SetEntityItem<'_, '_> {
    /// Whether the entity is an impostor, or has one.
    pub fn has_impostor(&self) -> bool {
        self.impostor.is_some() || self.impostor_of.is_some()
    }
}

/// The entity whose set an impostor draws; `None` if the entity is none.
pub(super) fn parent_of<'a>(
    item: &SetEntityItem,
    entities: &'a Query<SetEntity>,
) -> Option<SetEntityItem<'a, 'a>> {
    entities.get(item.impostor_of?.0).ok()
}

/// Whether the entity's instances fade. `parent` is the entity whose impostor it is.
pub(super) fn fades(item: &SetEntityItem, parent: Option<&SetEntityItem>) -> bool {
    fade_of(item, parent) > 0.0 || range_of(item, parent).is_some_and(SetRange::fades)
}

/// The entity's use of a set with bounds. An impostor is tested as the instances of `parent` are.
pub(super) fn use_of(
    item: &SetEntityItem,
    parent: Option<&SetEntityItem>,
    set: SetId,
    sphere: &SetSphere,
    changed_in: u64,
) -> ExtractedSet {
    ExtractedSet {
        entity: item.entity.into(),
        asset: item.instances.id(),
        set,
        sphere: sphere.all,
        // An impostor's own sphere knows nothing of what it has from `parent`.
        full_sphere: (item.sphere)
            .filter(|own| parent.is_none() && !own.is_by_radius)
            .and_then(|own| own.full),
        offset: offset_of(item, parent),
        world_from_local: parent
            .map_or(item.transform, |parent| parent.transform)
            .affine(),
        keep_all: item.keep_all,
        is_unsorted: item.is_unsorted,
        is_never_hidden: item.is_never_hidden
            || parent.is_some_and(|parent| parent.is_never_hidden),
        has_meshlets: item.has_meshlets,
        lods: item.lods.map(|lods| lods.levels.clone()),
        full: item.lods.and_then(|lods| lods.full.clone()),
        fade: fade_of(item, parent),
        range: range_of(item, parent),
        thin_below: thin_below(item, parent),
        wind: item
            .wind
            .or(parent.and_then(|parent| parent.wind))
            .and_then(Wind::in_slot),
        animation: item.animation.map(InstanceAnimation::extracted),
        share: share_of(item, parent),
        changed_in,
    }
}

/// The entity's own offset, or the offset of the entity whose impostor it is.
fn offset_of(item: &SetEntityItem, parent: Option<&SetEntityItem>) -> Option<Affine3A> {
    let inherited = parent.and_then(|parent| parent.offset);
    item.offset.or(inherited)?.checked()
}

/// How long the entity's instances fade from level to level.
fn fade_of(item: &SetEntityItem, parent: Option<&SetEntityItem>) -> f32 {
    let lods = match parent {
        Some(parent) => parent.lods,
        None => item.lods,
    };
    lods.map_or(0.0, |lods| lods.fade)
}

/// The entity's own range, or the range of the entity whose impostor it is.
fn range_of(item: &SetEntityItem, parent: Option<&SetEntityItem>) -> Option<SetRange> {
    let own = item.range.and_then(InstanceVisibilityRange::checked);
    let of_parent = parent.and_then(|parent| parent.range?.checked());
    own.or(of_parent)
}

/// The diameter in pixels below which instances are thinned out: the entity's own, or of the entity
/// whose impostor it is.
fn thin_below(item: &SetEntityItem, parent: Option<&SetEntityItem>) -> f32 {
    let of_parent = parent.and_then(|parent| parent.detail);
    let detail = item.detail.or(of_parent);
    detail.map_or(0.0, |detail| detail.checked())
}

/// Which of the set's instances the entity draws. Errors are in the units of the parent's mesh.
fn share_of(item: &SetEntityItem, parent: Option<&SetEntityItem>) -> InstanceShare {
    let offset = match parent {
        Some(parent) => parent.offset,
        None => item.offset,
    };
    let offset = offset.and_then(InstanceOffset::checked);
    let stretch = stretch_of(offset.as_ref());
    match (parent, item.impostor) {
        (Some(parent), _) => InstanceShare::Far {
            parent: parent.entity.into(),
            error: parent
                .impostor
                .map_or(f32::INFINITY, |known| known.error * stretch),
            levels: 1 + parent.lods.map_or(0, |lods| lods.levels.len()) as u32,
        },
        (None, Some(impostor)) => InstanceShare::Near {
            impostor: impostor.entity.into(),
            error: impostor.error * stretch,
        },
        (None, None) => InstanceShare::All,
    }
}
