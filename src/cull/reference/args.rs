//! Twin of `shaders/shared/survivors.wgsl`.

use crate::cull::layout::{Batch, DrawArgs, RowDraw, Totals};

/// Writes the indirect command of each row, and the totals.
pub fn write_args(
    batch: &Batch,
    row_draws: &[RowDraw],
    places: &[u32],
    (totals, draws): (&mut Totals, &mut [DrawArgs]),
) {
    for (draw, args) in row_draws[..batch.row_count as usize].iter().zip(draws) {
        let place_of = |count: u32| places[count as usize].min(batch.survivor_capacity);
        let first = place_of(draw.first_count);
        let end = place_of(draw.first_count + draw.block_count);
        let (a, b, c) = (draw.element_count, end - first, draw.first_element);
        *args = if draw.indexed != 0 {
            DrawArgs {
                a,
                b,
                c,
                d: draw.base_vertex.cast_unsigned(),
                e: first,
            }
        } else {
            DrawArgs {
                a,
                b,
                c,
                d: first,
                e: 0,
            }
        };
    }
    let survivors = places[batch.count_len as usize];
    *totals = Totals {
        survivors,
        overflow: survivors.saturating_sub(batch.survivor_capacity),
        draw_count: 1,
        needed: survivors,
        crossed: 0,
    };
}
