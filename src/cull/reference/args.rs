//! Twin of `shaders/shared/survivors.wesl`.

use crate::cull::layout::{Batch, ChunkView, DrawCommand, NOT_INDEXED, Totals};

/// Writes the indirect command of each row, the survivors of its siblings, and the totals. `draws`
/// has the commands of the rows, then the siblings as the plan has them.
pub fn write_args(
    batch: &Batch,
    chunk_views: &[ChunkView],
    places: &[u32],
    (totals, draws): (&mut Totals, &mut [DrawCommand]),
) {
    for (row, draw) in chunk_views[..batch.row_count as usize].iter().enumerate() {
        let place_of =
            |cell: u32| places[(cell * batch.block_units()) as usize].min(batch.survivor_capacity);
        let first = place_of(draw.first_count);
        let end = place_of(draw.first_count + draw.block_count);
        let command = DrawCommand {
            element_count: draw.element_count,
            instance_count: end - first,
            first_element: draw.first_element,
            ..DrawCommand::default()
        };
        draws[row] = if draw.is_indexed() {
            DrawCommand {
                base_vertex_or_first_instance: draw.base_vertex.cast_unsigned(),
                first_instance: first,
                ..command
            }
        } else {
            DrawCommand {
                base_vertex_or_first_instance: first,
                ..command
            }
        };
        let siblings = draws.iter_mut().skip(draw.first_sibling as usize);
        for sibling in siblings.take(draw.sibling_count as usize) {
            sibling.instance_count = end - first;
            if sibling.first_instance == NOT_INDEXED {
                sibling.base_vertex_or_first_instance = first;
            } else {
                sibling.first_instance = first;
            }
        }
    }
    let survivors = places[batch.rank_count() as usize];
    *totals = Totals {
        survivors,
        overflow: survivors.saturating_sub(batch.survivor_capacity),
        draw_count: 1,
        needed: survivors,
        crossed: 0,
        in_frustum: 0,
        too_small: 0,
    };
}
