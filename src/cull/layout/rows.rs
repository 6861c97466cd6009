//! Rows that share their views: what differs from row to row, and from view to view.

use super::{
    Chunk, ChunkView, DistanceBand, PlanePairs, ROUNDING, ROW_IS_NEAR_FIRST, ViewOrder, ViewPlanes,
    exact_dot,
};
use bytemuck::{Pod, Zeroable};
use glam::{Vec3, Vec4, Vec4Swizzles};

/// What differs from row to row, if rows share views. `fill_rows` makes a [`ChunkView`] of it,
/// of the row's view, and of its chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct RowSource {
    /// [`ChunkView::element_count`].
    pub element_count: u32,
    /// [`ChunkView::first_element`].
    pub first_element: u32,
    /// [`ChunkView::base_vertex`].
    pub base_vertex: i32,
    /// [`ChunkView::flags`], and [`ROW_IS_NEAR_FIRST`].
    pub flags: u32,
    /// [`ChunkView::first_sibling`].
    pub first_sibling: u32,
    /// [`ChunkView::sibling_count`].
    pub sibling_count: u32,
    /// [`DistanceBand::flags`]. 0 also has no eye.
    pub band_flags: u32,
    /// [`DistanceBand::low`].
    pub low: f32,
    /// [`DistanceBand::high`].
    pub high: f32,
    /// [`DistanceBand::start`].
    pub start: f32,
    /// [`DistanceBand::end`].
    pub end: f32,
    /// [`DistanceBand::thin`].
    pub thin: f32,
    /// [`ViewOrder::first_step`], if the view has an eye point.
    pub first_step: i32,
    /// Index of its chunk in the batch.
    pub chunk: u32,
}

/// A view, in the world. As many are uploaded when a camera moves as there are views, however many
/// sets they see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct ViewSource {
    /// Left, right, top, bottom, near, far. Normals have length one and point inwards, or are zero
    /// if the plane keeps everything or nothing.
    pub planes: [Vec4; 6],
    /// [`ViewPlanes::reach`], without rounding.
    pub reach: Vec4,
    /// The planes as pairs.
    pub pairs: PlanePairs,
    /// The eye, and 1; or the direction along which a view without an eye point is deep, and 0; or
    /// zero.
    pub eye: Vec4,
    /// The depth of a point, of a view without an eye point, is `dot(eye, point) + depth_offset`.
    pub depth_offset: f32,
    /// Number of steps per unit of depth.
    pub depth_steps: f32,
    /// 0 if the view keeps nothing.
    pub is_near_first: u32,
    /// Padding.
    pub pad_a: u32,
    /// The point that the levels of detail of the view are measured from.
    pub lod_eye: Vec3,
    /// Padding.
    pub pad_b: u32,
}

/// Length up to which a normal has no direction.
const MIN_NORMAL: f32 = 1e-20;
/// Slope of planes that face each other: one f32 rounding of a unit vector.
const MAX_SLOPE: f32 = 4e-7;
/// Number of steps of a depth per ring (`shaders/cull/order.wesl`).
pub(crate) const RING_STEPS: u32 = 64;
/// Far more rings than there are, and few enough to be added up.
const MAX_RINGS: f32 = (1 << 28) as f32;

impl RowSource {
    /// The source of a row of the `chunk`-th chunk, of a mesh whose sphere has this radius.
    pub(crate) fn of(row: &ChunkView, chunk: u32, radius: f32) -> Self {
        let near_first = match row.planes.order.is_near_first {
            0 => 0,
            _ => ROW_IS_NEAR_FIRST,
        };
        let mut source = Self {
            element_count: row.element_count,
            first_element: row.first_element,
            base_vertex: row.base_vertex,
            flags: row.flags | near_first,
            first_sibling: row.first_sibling,
            sibling_count: row.sibling_count,
            first_step: ViewOrder::step_at(radius),
            chunk,
            ..Self::default()
        };
        source.set_distances(&row.planes.band);
        source
    }

    /// Takes the distances that a row keeps.
    pub(crate) fn set_distances(&mut self, band: &DistanceBand) {
        (self.band_flags, self.thin) = (band.flags, band.thin);
        (self.low, self.high) = (band.low, band.high);
        (self.start, self.end) = (band.start, band.end);
    }

    /// The `row`-th row of the batch, which is of this chunk, in a view
    /// (`shaders/cull/fill_rows.wesl`).
    #[must_use]
    pub fn fill(&self, row: u32, view: &ViewSource, chunk: &Chunk) -> ChunkView {
        let is_near_first = self.flags & ROW_IS_NEAR_FIRST != 0 && view.is_near_first != 0;
        let mut order = view.order_in(chunk);
        order.is_near_first = u32::from(is_near_first);
        if order.eye.w != 0.0 {
            order.first_step = self.first_step;
        }
        ChunkView {
            planes: ViewPlanes {
                order,
                band: DistanceBand {
                    eye: match self.band_flags {
                        0 => Vec3::ZERO,
                        _ => view.lod_eye,
                    },
                    flags: self.band_flags,
                    low: self.low,
                    high: self.high,
                    start: self.start,
                    end: self.end,
                    thin: self.thin,
                    ..DistanceBand::default()
                },
                ..view.planes_in(chunk)
            },
            element_count: self.element_count,
            first_element: self.first_element,
            base_vertex: self.base_vertex,
            flags: self.flags & !ROW_IS_NEAR_FIRST,
            first_count: chunk.first_count + (row - chunk.first_row) * chunk.block_count,
            block_count: chunk.block_count,
            first_sibling: self.first_sibling,
            sibling_count: self.sibling_count,
        }
    }
}

impl ViewSource {
    /// The planes and the reach of the view in the space of a set, without order and band. The
    /// source of the bounds is [`CullView::planes_in`](crate::cull::CullView::planes_in).
    fn planes_in(&self, chunk: &Chunk) -> ViewPlanes {
        let rounded = chunk.translation().abs().element_sum() * ROUNDING;
        let in_set = |plane: Vec4| {
            let normal = chunk.axis_in_set(plane.xyz());
            let distance = plane.xyz().dot(chunk.translation()) + plane.w + rounded;
            let stretch = normal.length();
            match stretch > MIN_NORMAL {
                true => normal.extend(distance) * (1.0 / stretch),
                false if distance >= 0.0 => Vec3::ZERO.extend(f32::MAX),
                false => Vec3::ZERO.extend(-f32::MAX),
            }
        };
        let widened = if self.reach.w < 0.0 { 0.0 } else { rounded };
        let reach = self.reach + Vec4::W * widened;
        ViewPlanes {
            pairs: self.pairs_in(chunk, rounded),
            ..ViewPlanes::of_planes(self.planes.map(in_set), reach)
        }
    }

    /// The pairs in the space of a set, if they are pairs there, too.
    fn pairs_in(&self, chunk: &Chunk, rounded: f32) -> PlanePairs {
        let pairs = &self.pairs;
        let halves = [pairs.x, pairs.y, pairs.depth];
        let axes = halves.map(|half| chunk.axis_in_set(half.xyz()));
        let shrinks = match chunk.inverse_scale {
            // Planes that face each other stay so. In other pairs, normals have different lengths.
            0.0 => axes.map(|axis| 1.0 / axis.length()),
            shrink => [shrink; 3],
        };
        let is_parallel = pairs.slopes.x.abs().max(pairs.slopes.z.abs()) <= MAX_SLOPE;
        let is_flat = axes.iter().any(|axis| axis.length() <= MIN_NORMAL);
        let stays = chunk.inverse_scale != 0.0 || is_parallel && !is_flat;
        if pairs.is_paired == 0 || !stays {
            return PlanePairs::default();
        }
        let half = |at: usize| {
            let distance = halves[at].xyz().dot(chunk.translation()) + halves[at].w;
            axes[at].extend(distance) * shrinks[at]
        };
        let widen = |limit: f32, at: usize| match limit.abs() < f32::MAX {
            true => (limit + rounded) * shrinks[at],
            // Keeps everything or nothing, in any space.
            false => limit,
        };
        let slopes = pairs.slopes;
        PlanePairs {
            x: half(0),
            y: half(1),
            depth: half(2),
            slopes: Vec4::new(slopes.x, widen(slopes.y, 0), slopes.z, widen(slopes.w, 1)),
            low: -widen(-pairs.low, 2),
            high: widen(pairs.high, 2),
            is_paired: 1,
            pad: 0,
        }
    }

    /// The order of a set's instances in the view: near first, by rings that begin at a distance of
    /// zero. Set order if the view has no eye, or if the set has no inverse. Every device gets the
    /// same numbers.
    pub(crate) fn order_in(&self, chunk: &Chunk) -> ViewOrder {
        let mut order = ViewOrder {
            is_near_first: 1,
            ..ViewOrder::default()
        };
        if self.eye.w != 0.0 {
            let rows = [chunk.local_x, chunk.local_y, chunk.local_z];
            if rows != [Vec3::ZERO; 3] {
                let away = self.eye.xyz() - chunk.translation();
                order.eye = Vec3::from(rows.map(|row| exact_dot(row, away))).extend(1.0);
            }
        } else if self.eye != Vec4::ZERO {
            let rows = [chunk.world_x, chunk.world_y, chunk.world_z];
            let columns = [0, 1, 2].map(|at| Vec3::from(rows.map(|row| row[at])));
            let axis = Vec3::from(columns.map(|column| exact_dot(column, self.eye.xyz())));
            let offset = exact_dot(self.eye.xyz(), chunk.translation()) + self.depth_offset;
            let first = -offset * self.depth_steps * (1.0 / RING_STEPS as f32);
            order.eye = (axis * self.depth_steps).extend(0.0);
            order.first_step = first.clamp(-MAX_RINGS, MAX_RINGS) as i32;
        }
        order
    }
}

impl Chunk {
    fn translation(&self) -> Vec3 {
        Vec3::new(self.world_x.w, self.world_y.w, self.world_z.w)
    }

    /// The normal of a plane of the world, in the set's space. It is as long as the set is
    /// stretched along it.
    fn axis_in_set(&self, normal: Vec3) -> Vec3 {
        self.world_x.xyz() * normal.x
            + self.world_y.xyz() * normal.y
            + self.world_z.xyz() * normal.z
    }
}
