//! The order of rows that share views.

use crate::cull::layout::ViewPlanes;

/// In which order rows list their survivors, as far as it differs from request to request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowRings {
    /// Radius of the mesh's sphere.
    pub radius: f32,
    /// Whether near instances come first.
    pub is_near_first: bool,
}

impl RowRings {
    /// The planes of a row with this order.
    pub(crate) fn of(self, planes: &ViewPlanes) -> ViewPlanes {
        let mut planes = *planes;
        planes.order.begin_at(self.radius);
        // Also if the view has no eye. It may get one, and the tables of the batch stay.
        planes.order.is_near_first = u32::from(self.is_near_first);
        planes
    }
}
