// Stage 3. The words of each block and row become ids, in instance order, at the place that its count has: the
// sum of all counts before it. It also writes the commands of the rows, and empties the list of crossed blocks.
//
// Few counts (batch.is_scanned is 0): a workgroup has COUNTS_EACH counts side by side and adds up all before them.
// Many: `scan` has added up tiles; a workgroup adds up the tiles' totals once, and strides over the counts.
//
// The tier's file (compact_subgroup.wgsl, compact_workgroup.wgsl) says who writes the ids of a block, and adds up over a
// workgroup.

@group(0) @binding(2) var<storage, read> words: array<u32>;
@group(0) @binding(6) var<storage, read> counts: array<u32>;
@group(0) @binding(8) var<storage, read> partials: array<u32>;

// Survivors before each tile.
var<workgroup> tile_places: array<u32, MOST_TILES>;

fn add_up_tiles(own: Own) {
    let tiles = batch.count_len / SCAN_TILE + 1u;
    // Tiles side by side belong to a thread.
    let each = (tiles + BLOCK_THREADS - 1u) / BLOCK_THREADS;
    let first = own.thread * each;
    let end = min(first + each, tiles);
    var sum = 0u;
    for (var tile = first; tile < end; tile += 1u) {
        sum += partials[tile];
    }
    var place = scan_up(own, sum);
    for (var tile = first; tile < end; tile += 1u) {
        tile_places[tile] = place;
        place += partials[tile];
    }
    workgroupBarrier();
}

fn place_of(count: u32) -> u32 {
    return counts[count] + tile_places[count / SCAN_TILE];
}

// Survivors before `a`, before `b` and before `c`, where counts are few.
fn sums_before(own: Own, a: u32, b: u32, c: u32) -> vec3<u32> {
    var sum = vec3<u32>(0u);
    for (var i = own.thread; i < max(a, c); i += BLOCK_THREADS) {
        let survivors = counts[i];
        sum += vec3<u32>(select(0u, survivors, i < a), select(0u, survivors, i < b), select(0u, survivors, i < c));
    }
    return add_up(own, sum);
}

// Commands of the rows `row`, `row` + step and so on; the last row ends where all end.
fn write_row(row: u32, place: u32, end: u32) {
    write_draw(row, place, end);
    if (row + 1u == batch.row_count) {
        let overflow = max(end, batch.survivor_capacity) - batch.survivor_capacity;
        args.totals = Totals(end, overflow, 1u, end);
    }
}

fn compact_all(workgroup: u32, workgroups: u32, own: Own) {
    if (workgroup == 0u && own.thread == 0u) {
        atomicStore(&crossed.count, 0u);
    }
    if (batch.is_scanned != 0u) {
        add_up_tiles(own);
        for (var row = workgroup * BLOCK_THREADS + own.thread; row < batch.row_count; row += workgroups * BLOCK_THREADS) {
            let first = row_draws[row].first_count;
            write_row(row, place_of(first), place_of(first + row_draws[row].block_count));
        }
        compact_many(workgroup, workgroups, own);
        return;
    }
    let first_count = workgroup * COUNTS_EACH;
    var place = 0u;
    // A row a workgroup, in the same sum as the workgroup's own place.
    for (var row = workgroup; row == workgroup || row < batch.row_count; row += workgroups) {
        var first = 0u;
        var end = 0u;
        if (row < batch.row_count) {
            first = row_draws[row].first_count;
            end = first + row_draws[row].block_count;
        }
        let sums = sums_before(own, first_count, first, end);
        place = sums.x;
        if (own.thread == 0u && row < batch.row_count) {
            write_row(row, sums.y, sums.z);
        }
    }
    compact_few(first_count, min(first_count + COUNTS_EACH, batch.count_len), place, own);
}

// The last chunk whose first count is not after `count`.
fn chunk_of_count(count: u32) -> u32 {
    var low = 0u;
    var high = batch.chunk_count;
    while (high - low > 1u) {
        let middle = (low + high) / 2u;
        if (chunks[middle].first_count <= count) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}
