// Stage 4. A thread a row writes its indirect command; the first thread writes the totals.

@group(0) @binding(0) var<uniform> batch: Batch;
@group(0) @binding(1) var<storage, read> row_draws: array<RowDraw>;
@group(0) @binding(2) var<storage, read> counts: array<u32>;
@group(0) @binding(3) var<storage, read> partials: array<u32>;
@group(0) @binding(4) var<storage, read_write> args: Args;

struct Args {
    totals: Totals,
    draws: array<DrawArgs>,
}

fn place_of(count: u32) -> u32 {
    return counts[count] + partials[count / SCAN_TILE];
}

@compute @workgroup_size(64)
fn write_args(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x;
    if (row < batch.row_count) {
        let draw = row_draws[row];
        let first = min(place_of(draw.first_count), batch.survivor_capacity);
        let end = min(place_of(draw.first_count + draw.block_count), batch.survivor_capacity);
        let instances = end - first;
        if (draw.indexed != 0u) {
            args.draws[row] = DrawArgs(draw.element_count, instances, draw.first_element, bitcast<u32>(draw.base_vertex), first);
        } else {
            args.draws[row] = DrawArgs(draw.element_count, instances, draw.first_element, first, 0u);
        }
    }
    if (row == 0u) {
        let survivors = place_of(batch.count_len);
        args.totals = Totals(survivors, max(survivors, batch.survivor_capacity) - batch.survivor_capacity, 1u, 0u);
    }
}
