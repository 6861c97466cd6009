// Scan: counts the bits of the cells. The counts, row after row and meshlet after meshlet, become
// exclusive prefixes in two levels, as in cull/scan.wgsl. The place of cell c is counts[c] +
// partials[c / 256]. A closing entry holds the sum of all.

import package::meshlets::layout::{CELL_TILE, MeshletSpan, MeshletTotals};

@group(0) @binding(6) var<storage, read> spans: MeshletSpans;
@group(0) @binding(8) var<storage, read> words: array<vec4<u32>>; // CELL_WORDS each
@group(0) @binding(9) var<storage, read_write> counts: array<u32>;
@group(0) @binding(10) var<storage, read_write> partials: array<u32>;

struct MeshletSpans {
    totals: MeshletTotals,
    rows: array<MeshletSpan>,
}

// The survivors that show the cell's meshlet.
fn count_of(cell: u32) -> u32 {
    let ones = countOneBits(words[cell]);
    return ones.x + ones.y + ones.z + ones.w;
}

var<workgroup> sums: array<u32, CELL_TILE>;

// Inclusive sums (Hillis and Steele).
fn scan_sums(value: u32, thread: u32) -> u32 {
    var inclusive = value;
    sums[thread] = inclusive;
    workgroupBarrier();
    for (var reach = 1u; reach < CELL_TILE; reach *= 2u) {
        var before = 0u;
        if (thread >= reach) {
            before = sums[thread - reach];
        }
        workgroupBarrier();
        inclusive += before;
        sums[thread] = inclusive;
        workgroupBarrier();
    }
    return inclusive;
}

@compute @workgroup_size(CELL_TILE)
fn scan(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let cells = spans.totals.cell_count;
    // Up to and including the tile of the closing entry.
    for (var tile = workgroup.x; tile <= cells / CELL_TILE; tile += workgroups.x) {
        let cell = tile * CELL_TILE + thread;
        var count = 0u;
        if (cell < cells) {
            count = count_of(cell);
        }
        let inclusive = scan_sums(count, thread);
        if (cell <= cells) {
            counts[cell] = inclusive - count;
        }
        if (thread == CELL_TILE - 1u) {
            partials[tile] = inclusive;
        }
        workgroupBarrier();
    }
}

@compute @workgroup_size(CELL_TILE)
fn spine(@builtin(local_invocation_index) thread: u32) {
    let tiles = spans.totals.cell_count / CELL_TILE + 1u;
    var carry = 0u;
    for (var first = 0u; first < tiles; first += CELL_TILE) {
        let tile = first + thread;
        var total = 0u;
        if (tile < tiles) {
            total = partials[tile];
        }
        let inclusive = scan_sums(total, thread);
        if (tile < tiles) {
            partials[tile] = carry + inclusive - total;
        }
        carry += sums[CELL_TILE - 1u];
        workgroupBarrier();
    }
}
