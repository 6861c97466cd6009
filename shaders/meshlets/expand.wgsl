// Expand: tiles of the survivors of each row, times meshlets. One workgroup goes through
// the rows and adds up.
//
//     meshlets, survivors of 3 rows      20 300 | 9 5 | 20 0
//     tiles of 128 survivors                  3 |   1 |    0
//     cells: tiles x meshlets                60 |   9 |    0
//     items: tiles x groups of 8         3 x 3  | 1x2 |    0
//     sources: survivors                    300 |   5 |    0
//
// From the first row on whose cells do not fit, rows have no tiles and are drawn whole.

import package::meshlets::layout::{
    ITEM_MESHLETS, MESHLET_TILE, MeshletSpan, MeshletTotals, meshlet_rows, sizes,
};
import package::shared::layout::{DrawCommand, Totals};

@group(0) @binding(2) var<storage, read> args: Args;
@group(0) @binding(6) var<storage, read_write> spans: MeshletSpans;

struct Args {
    totals: Totals,
    draws: array<DrawCommand>,
}

struct MeshletSpans {
    totals: MeshletTotals,
    rows: array<MeshletSpan>,
}

const EXPAND_THREADS: u32 = 256u;

// Running sums per thread: cells, items and sources.
var<workgroup> sums: array<vec3<u32>, EXPAND_THREADS>;
// Ends of the last row that fits.
var<workgroup> cell_end: atomic<u32>;
var<workgroup> item_end: atomic<u32>;
var<workgroup> source_end: atomic<u32>;

// Saturating: a row beyond the largest number does not fit.
fn add(a: vec3<u32>, b: vec3<u32>) -> vec3<u32> {
    return a + min(b, vec3<u32>(0xffffffffu) - a);
}

fn multiply(a: u32, b: u32) -> u32 {
    return select(a * b, 0xffffffffu, a > 0xffffffffu / max(b, 1u));
}

// Inclusive sums (Hillis and Steele).
fn scan_sums(value: vec3<u32>, thread: u32) -> vec3<u32> {
    var inclusive = value;
    sums[thread] = inclusive;
    workgroupBarrier();
    for (var reach = 1u; reach < EXPAND_THREADS; reach *= 2u) {
        var before = vec3<u32>(0u);
        if (thread >= reach) {
            before = sums[thread - reach];
        }
        workgroupBarrier();
        inclusive = add(before, inclusive);
        sums[thread] = inclusive;
        workgroupBarrier();
    }
    return inclusive;
}

@compute @workgroup_size(EXPAND_THREADS)
fn expand(@builtin(local_invocation_index) thread: u32) {
    var carry = vec3<u32>(0u);
    for (var first = 0u; first < sizes.row_count; first += EXPAND_THREADS) {
        let r = first + thread;
        var span = MeshletSpan();
        // Cells, items and sources.
        var needs = vec3<u32>(0u);
        if (r < sizes.row_count) {
            let row = meshlet_rows[r].draw_row;
            let meshlets = meshlet_rows[r].meshlet_count;
            span.survivor_count = args.draws[row].instance_count;
            span.first_survivor = args.draws[row].first_instance;
            span.tile_count = (span.survivor_count + MESHLET_TILE - 1u) / MESHLET_TILE;
            let groups = (meshlets + ITEM_MESHLETS - 1u) / ITEM_MESHLETS;
            needs = vec3<u32>(
                multiply(span.tile_count, meshlets),
                multiply(span.tile_count, groups),
                span.survivor_count);
        }
        let end = add(carry, scan_sums(needs, thread));
        span.first_cell = end.x - needs.x;
        span.first_item = end.y - needs.y;
        span.first_source = end.z - needs.z;
        // Ends rise, so the rows that fit come first.
        if (end.x <= sizes.cell_capacity) {
            atomicMax(&cell_end, end.x);
            atomicMax(&item_end, end.y);
            atomicMax(&source_end, end.z);
        } else {
            span.tile_count = 0u;
        }
        // Without cells, a place that exists.
        span.first_cell = select(0u, span.first_cell, span.tile_count > 0u);
        if (r < sizes.row_count) {
            spans.rows[r] = span;
        }
        carry = add(carry, sums[EXPAND_THREADS - 1u]);
        // The next rows overwrite the sums.
        workgroupBarrier();
    }
    workgroupBarrier();
    if (thread == 0u) {
        spans.totals = MeshletTotals(
            atomicLoad(&item_end), atomicLoad(&cell_end), carry.x, 0u, atomicLoad(&source_end));
    }
}
