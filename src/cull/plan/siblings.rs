//! Sibling commands: what else a row's survivors draw.
//!
//! ```text
//! rows                 0            1
//! shapes               trunk crown  rock
//! commands    0 trunk  1 rock   2 crown      (rows first, then siblings)
//! ```
//!
//! The CPU writes a sibling with its mesh when the plan changes. With the command of a row, the
//! kernels write the row's survivors into its siblings (`shaders/shared/survivors.wesl`).

use super::BatchPlan;
use crate::cull::layout::{ChunkView, DrawCommand, NOT_INDEXED};
use crate::cull::request::DrawShape;

impl DrawShape {
    /// A command that draws the shape, still without survivors.
    fn to_sibling(self) -> DrawCommand {
        match self {
            Self::Indexed {
                index_count,
                first_index,
                base_vertex,
            } => DrawCommand {
                element_count: index_count,
                first_element: first_index,
                base_vertex_or_first_instance: base_vertex.cast_unsigned(),
                ..DrawCommand::default()
            },
            Self::NonIndexed {
                vertex_count,
                first_vertex,
            } => DrawCommand {
                element_count: vertex_count,
                first_element: first_vertex,
                first_instance: NOT_INDEXED,
                ..DrawCommand::default()
            },
        }
    }
}

impl BatchPlan {
    /// Number of commands: one per row, and the siblings.
    #[must_use]
    pub fn command_count(&self) -> u32 {
        self.batch.row_count + self.siblings.len() as u32
    }

    /// Index of the command of a row's `shape`-th shape; `None` if the row has fewer.
    #[must_use]
    pub fn command_of(&self, row: u32, shape: usize) -> Option<u32> {
        let Some(sibling) = shape.checked_sub(1) else {
            return Some(row);
        };
        let view = self.chunk_views.get(row as usize)?;
        let sibling = sibling as u32;
        (sibling < view.sibling_count).then(|| view.first_sibling + sibling)
    }

    /// Whether a command draws a mesh with indices.
    pub(in crate::cull) fn is_indexed(&self, command: u32) -> bool {
        match self.chunk_views.get(command as usize) {
            Some(view) => view.is_indexed(),
            None => {
                let sibling = command as usize - self.chunk_views.len();
                let sibling = self.siblings.get(sibling);
                sibling.is_some_and(|command| command.first_instance != NOT_INDEXED)
            }
        }
    }

    /// Number of indices or vertices that a row's siblings draw per survivor.
    pub(in crate::cull) fn sibling_elements(&self, row: u32) -> u32 {
        let view = &self.chunk_views[row as usize];
        let first = view.first_sibling.saturating_sub(self.batch.row_count) as usize;
        let of_row = self.siblings[first..].iter();
        let of_row = of_row.take(view.sibling_count as usize);
        of_row.fold(0, |sum, command| sum.saturating_add(command.element_count))
    }

    /// Adds a row that draws `shapes` besides its own.
    pub(super) fn push_row(&mut self, view: ChunkView, shapes: &[DrawShape]) {
        self.chunk_views.push(ChunkView {
            // Counted from the first sibling until the number of rows is known.
            first_sibling: self.siblings.len() as u32,
            sibling_count: shapes.len() as u32,
            ..view
        });
        let siblings = shapes.iter().map(|shape| shape.to_sibling());
        self.siblings.extend(siblings);
        if !self.resting.is_empty() {
            self.resting.push(false);
        }
    }

    /// Numbers the siblings, after all rows are added.
    pub(super) fn number_siblings(&mut self) {
        for view in &mut self.chunk_views {
            view.first_sibling = match view.sibling_count {
                0 => 0,
                _ => view.first_sibling + self.batch.row_count,
            };
        }
    }
}
