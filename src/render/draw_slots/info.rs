//! The part of a slot behind the mesh uniform.

use crate::cull::DrawList;
use crate::render::lods::SlotFade;
use bevy::{
    math::{UVec4, Vec4},
    render::render_resource::ShaderType,
};

/// [`SlotInfo::flags`]: the set has scales.
pub(in crate::render) const DRAW_HAS_SCALE: u32 = 1;
/// [`SlotInfo::flags`]: the wind bends the set's instances.
pub(in crate::render) const DRAW_HAS_WIND: u32 = 2;
/// [`SlotInfo::flags`]: the set's visibility range is of the centers of its instances' meshes.
pub(in crate::render) const DRAW_RANGE_OF_CENTERS: u32 = 4;
/// [`SlotInfo::flags`]: the set has an offset.
pub(in crate::render) const DRAW_HAS_OFFSET: u32 = 8;
/// [`SlotInfo::flags`], only with [`DRAW_HAS_SCALE`]: a scale is three numbers, one per axis of the
/// mesh.
pub(in crate::render) const DRAW_NON_UNIFORM_SCALE: u32 = 16;
/// [`SlotInfo::flags`]: the set is thinned out.
pub(in crate::render) const DRAW_IS_THINNED: u32 = 32;
/// [`SlotInfo::flags`]: the draw is colored as early.
pub(in crate::render) const DRAW_IS_EARLY: u32 = 64;
/// [`SlotInfo::flags`]: the draw is colored as late.
pub(in crate::render) const DRAW_IS_LATE: u32 = 128;
/// Position in [`SlotInfo::flags`] of the words of data per instance.
pub(in crate::render) const DRAW_DATA_WORDS: u32 = 8;

/// The color of a draw by its list, if occlusion is colored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::render) enum OcclusionColor {
    /// Its own.
    None,
    Early,
    Late,
}

impl OcclusionColor {
    /// The copies of an entity's slots, in order.
    pub const ALL: [Self; 3] = [Self::None, Self::Early, Self::Late];

    /// The color of a list.
    pub fn of(list: DrawList) -> Self {
        match list {
            DrawList::Kept | DrawList::Visible => Self::None,
            DrawList::Early => Self::Early,
            DrawList::Late => Self::Late,
        }
    }

    /// Its bit in [`SlotInfo::flags`].
    pub fn flag(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Early => DRAW_IS_EARLY,
            Self::Late => DRAW_IS_LATE,
        }
    }
}

/// The part of `DrawSlot` in `shaders/draw/instance.wesl` behind the `MeshUniform`.
#[derive(Clone, Copy, Default, PartialEq, ShaderType)]
pub(in crate::render) struct SlotInfo {
    /// The `DRAW_*` constants above, and from bit [`DRAW_DATA_WORDS`] on the words of data.
    pub flags: u32,
    /// Index of the region's first instance in its page.
    pub region_first: u32,
    /// Index of the region's first instance in its set.
    pub set_first: u32,
    /// Distance, in instances, from an instance to its copy of the previous frame; 0 if the set
    /// keeps none.
    pub previous_offset: u32,
    /// How instances fade.
    pub fade: SlotFade,
    /// How they are thinned out ([`Thinning`](crate::render::lods::Thinning)).
    pub thin: Vec4,
    /// How the wind bends them ([`SlotWind`](crate::render::wind::SlotWind)).
    pub wind: [Vec4; 2],
    /// How they move ([`SlotAnimation`](crate::render::animation::SlotAnimation)).
    pub animation: UVec4,
}
