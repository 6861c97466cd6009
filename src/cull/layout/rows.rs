//! Rows that share their planes: what differs from row to row.

use super::{ChunkView, DistanceBand, ViewOrder, ViewPlanes};
use bytemuck::{Pod, Zeroable};

/// What differs from row to row, if rows share their planes. `fill_rows` makes a [`ChunkView`] of it
/// and of the row's planes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct RowSource {
    /// [`ChunkView::element_count`].
    pub element_count: u32,
    /// [`ChunkView::first_element`].
    pub first_element: u32,
    /// [`ChunkView::base_vertex`].
    pub base_vertex: i32,
    /// [`ChunkView::flags`].
    pub flags: u32,
    /// [`ChunkView::first_count`].
    pub first_count: u32,
    /// [`ChunkView::block_count`].
    pub block_count: u32,
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
    /// [`ViewOrder::first_step`], if the planes have an eye point.
    pub first_step: i32,
    /// [`ViewOrder::is_near_first`].
    pub is_near_first: u32,
}

impl RowSource {
    /// The source of a row, of a mesh whose sphere has this radius.
    pub(crate) fn of(row: &ChunkView, radius: f32) -> Self {
        let mut source = Self {
            element_count: row.element_count,
            first_element: row.first_element,
            base_vertex: row.base_vertex,
            flags: row.flags,
            first_count: row.first_count,
            block_count: row.block_count,
            first_sibling: row.first_sibling,
            sibling_count: row.sibling_count,
            ..Self::default()
        };
        source.measure(&row.planes.band);
        source.first_step = ViewOrder::step_at(radius);
        source.is_near_first = row.planes.order.is_near_first;
        source
    }

    /// Takes the distances that a row keeps.
    pub(crate) fn measure(&mut self, band: &DistanceBand) {
        (self.band_flags, self.thin) = (band.flags, band.thin);
        (self.low, self.high) = (band.low, band.high);
        (self.start, self.end) = (band.start, band.end);
    }

    /// The row, with these planes (`shaders/cull/fill_rows.wesl`).
    #[must_use]
    pub fn fill(&self, planes: &ViewPlanes) -> ChunkView {
        let has_eye_point = planes.order.eye.w != 0.0;
        ChunkView {
            planes: ViewPlanes {
                order: ViewOrder {
                    first_step: match has_eye_point {
                        true => self.first_step,
                        false => planes.order.first_step,
                    },
                    // A row that keeps nothing has no order.
                    is_near_first: planes.order.is_near_first & self.is_near_first,
                    ..planes.order
                },
                band: DistanceBand {
                    eye: match self.band_flags {
                        0 => glam::Vec3::ZERO,
                        _ => planes.band.eye,
                    },
                    flags: self.band_flags,
                    low: self.low,
                    high: self.high,
                    start: self.start,
                    end: self.end,
                    thin: self.thin,
                    ..DistanceBand::default()
                },
                ..*planes
            },
            element_count: self.element_count,
            first_element: self.first_element,
            base_vertex: self.base_vertex,
            flags: self.flags,
            first_count: self.first_count,
            block_count: self.block_count,
            first_sibling: self.first_sibling,
            sibling_count: self.sibling_count,
        }
    }
}
