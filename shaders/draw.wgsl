// Totals and indirect commands, clamped to the arena; shared by the kernels that write them.

@group(0) @binding(10) var<storage, read_write> args: Args;

struct Args {
    totals: Totals,
    draws: array<DrawArgs>,
}

// The row's survivors have the places from `first_place` up to `end_place`; those beyond the arena found no room.
fn write_command(
    row: u32,
    element_count: u32,
    first_element: u32,
    base_vertex: i32,
    indexed: u32,
    first_place: u32,
    end_place: u32,
) {
    let first = min(first_place, batch.survivor_capacity);
    let end = min(end_place, batch.survivor_capacity);
    let instances = end - first;
    if (indexed != 0u) {
        args.draws[row] = DrawArgs(element_count, instances, first_element, bitcast<u32>(base_vertex), first);
    } else {
        args.draws[row] = DrawArgs(element_count, instances, first_element, first, 0u);
    }
}

// A dense arena: all survivors need as many places as they are.
fn write_totals(survivors: u32, crossed: u32) {
    let overflow = max(survivors, batch.survivor_capacity) - batch.survivor_capacity;
    args.totals = Totals(survivors, overflow, 1u, survivors, crossed);
}
