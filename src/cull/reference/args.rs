//! Twin of `shaders/shared/survivors.wgsl`.

use crate::cull::layout::{Batch, ChunkView, DrawCommand, Totals};

/// Writes the indirect command of each row, and the totals.
pub fn write_args(
    batch: &Batch,
    chunk_views: &[ChunkView],
    places: &[u32],
    (totals, draws): (&mut Totals, &mut [DrawCommand]),
) {
    for (draw, args) in chunk_views[..batch.row_count as usize].iter().zip(draws) {
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
        *args = if draw.is_indexed() {
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
    }
    let survivors = places[batch.rank_count() as usize];
    *totals = Totals {
        survivors,
        overflow: survivors.saturating_sub(batch.survivor_capacity),
        draw_count: 1,
        needed: survivors,
        crossed: 0,
    };
}
