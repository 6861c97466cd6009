//! An entity with a set, as an extraction read it.

use super::{
    animation::SetAnimation,
    lods::{InstanceShare, SetLod, SetRange},
    wind::SlotWind,
};
use crate::cull::{BoundingSphere, SetId};
use crate::instance::InstanceSet;
use bevy::{math::Affine3A, prelude::*, render::sync_world::MainEntity};
use core::ops::Range;
use std::sync::Arc;

/// One entity's use of a set.
pub(super) struct ExtractedSet {
    pub entity: MainEntity,
    pub asset: AssetId<InstanceSet>,
    pub set: SetId,
    /// The sphere around all that an instance may be drawn as, behind the offset.
    pub sphere: BoundingSphere,
    /// The sphere around the full mesh alone, behind the offset; `None` with a
    /// [`CullingRadius`](super::components::CullingRadius).
    pub full_sphere: Option<BoundingSphere>,
    /// See [`InstanceOffset`](super::offset::InstanceOffset); `None` if it moves nothing.
    pub offset: Option<Affine3A>,
    pub world_from_local: Affine3A,
    /// The entity has `NoFrustumCulling`: every view that sees it keeps every instance.
    pub keep_all: bool,
    /// The entity has `NoInstanceSorting`: its instances are drawn in the order of the set.
    pub is_unsorted: bool,
    /// The entity has `NoOcclusionCulling`.
    pub is_never_hidden: bool,
    /// The entity may be drawn by meshlets.
    pub has_meshlets: bool,
    /// The levels of detail that are loaded.
    pub lods: Option<Arc<[SetLod]>>,
    /// See [`InstanceLods::fade`](super::lods::InstanceLods::fade).
    pub fade: f32,
    /// See [`InstanceLods::full`](super::lods::InstanceLods::full).
    pub full: Option<Range<u32>>,
    /// The distances at which instances are drawn.
    pub range: Option<SetRange>,
    /// See [`AggregateDetail`](super::lods::AggregateDetail), in pixels; 0 without.
    pub thin_below: f32,
    /// See [`Wind`](super::wind::Wind); `None` if it bends nothing.
    pub wind: Option<SlotWind>,
    /// See [`InstanceAnimation`](super::animation::InstanceAnimation).
    pub animation: Option<SetAnimation>,
    /// Which of the set's instances the entity draws.
    pub share: InstanceShare,
    /// The number of the extraction that changed it last.
    pub changed_in: u64,
}
