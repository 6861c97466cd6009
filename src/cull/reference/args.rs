//! Twin of `shaders/args.wgsl`.

use crate::cull::{
    layout::{Batch, DrawArgs, RowDraw, Totals},
    reference::place_of,
};

/// The indirect command of each row, and the totals.
pub fn write_args(
    batch: &Batch,
    row_draws: &[RowDraw],
    counts: &[u32],
    partials: &[u32],
    (totals, draws): (&mut Totals, &mut [DrawArgs]),
) {
    for (draw, args) in row_draws[..batch.row_count as usize].iter().zip(draws) {
        let first = place_of(counts, partials, draw.first_count).min(batch.survivor_capacity);
        let end = place_of(counts, partials, draw.first_count + draw.block_count)
            .min(batch.survivor_capacity);
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
    let survivors = place_of(counts, partials, batch.count_len);
    *totals = Totals {
        survivors,
        overflow: survivors.saturating_sub(batch.survivor_capacity),
        draw_count: 1,
        needed: survivors,
    };
}
