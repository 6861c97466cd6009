// Stage 4. A thread a row writes its indirect command; the first thread writes the totals. `place_of` comes with
// the strategy: the arena is dense, and the place of a count is the sum of all before it.

@compute @workgroup_size(64)
fn write_args(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x;
    if (row < batch.row_count) {
        let draw = row_draws[row];
        write_draw(row, place_of(draw.first_count), place_of(draw.first_count + draw.block_count));
    }
    if (row == 0u) {
        write_totals(place_of(batch.count_len), 0u);
    }
}
