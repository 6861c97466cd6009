// A row's indirect command, clamped to the arena; shared by the kernels that write commands. Comes after
// block_tables.wgsl.

@group(0) @binding(3) var<storage, read> row_draws: array<RowDraw>;
@group(0) @binding(4) var<storage, read_write> args: Args;

struct Args {
    totals: Totals,
    draws: array<DrawArgs>,
}

// The row's survivors have the places from `first` up to `end`; those beyond the arena found no room.
fn write_draw(row: u32, first_place: u32, end_place: u32) {
    let draw = row_draws[row];
    let first = min(first_place, batch.survivor_capacity);
    let end = min(end_place, batch.survivor_capacity);
    let instances = end - first;
    if (draw.indexed != 0u) {
        args.draws[row] = DrawArgs(draw.element_count, instances, draw.first_element, bitcast<u32>(draw.base_vertex), first);
    } else {
        args.draws[row] = DrawArgs(draw.element_count, instances, draw.first_element, first, 0u);
    }
}
