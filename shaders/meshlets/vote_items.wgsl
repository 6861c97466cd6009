// Vote by items: the body of an expansion (`cull::Expander`). Its sources are the survivors of all
// rows, row after row, and the items of a survivor are the meshlets of its row's level. Each item
// is one thread, and a visible one sets its bit. The twin is `reference::meshlet::vote_item`.
//
//     survivors of 3 rows        3 | 0 | 2
//     first_source               0 | 3 | 3
//     sources                0 1 2 |   | 3 4
//     items of each             20 |   | 5
//
// Source 4 is survivor 1 of row 2. Its item 3 is bit 1 of cell first_cell + 3 * tile_count.
//
// Before it, `clear` sets all bits to 0.

import package::meshlets::layout::{CELL_WORDS, MESHLET_TILE, meshlet_rows, sizes};
import package::meshlets::vote::{
    eye_in_mesh, load_survivor, meshlets, spans, survivors, test_meshlet,
};

@group(0) @binding(8) var<storage, read_write> cell_words: array<atomic<u32>>;

// The row of the thread's current source, and the row's sources. At first, there are none.
var<private> this_row: u32;
var<private> row_sources: vec2<u32>;
// Meshlets of the row's survivors that this thread found outside the view, and hidden.
var<private> row_outside: u32;
var<private> row_hidden: u32;

// Of the workgroup: the last row of some thread, counted from 1, and what is outside and what is
// hidden in it.
var<workgroup> group_row: atomic<u32>;
var<workgroup> group_outside: atomic<u32>;
var<workgroup> group_hidden: atomic<u32>;

// Finds the row of a source: the last one whose first source is not after it. A row without
// survivors has the same first source as the next row, and the next row comes after it.
fn find_row(source: u32) {
    if (source >= row_sources.x && source < row_sources.y) {
        return;
    }
    add_found();
    var low = 0u;
    var high = sizes.row_count;
    while (high - low > 1u) {
        let middle = (low + high) / 2u;
        if (spans.rows[middle].first_source <= source) {
            low = middle;
        } else {
            high = middle;
        }
    }
    this_row = low;
    let first = spans.rows[low].first_source;
    row_sources = vec2<u32>(first, first + spans.rows[low].survivor_count);
}

// Adds what the thread found to its row.
fn add_found() {
    if (row_outside > 0u) {
        atomicAdd(&spans.rows[this_row].outside, row_outside);
        row_outside = 0u;
    }
    if (row_hidden > 0u) {
        atomicAdd(&spans.rows[this_row].hidden, row_hidden);
        row_hidden = 0u;
    }
}

fn items_of(source: u32) -> u32 {
    find_row(source);
    return meshlet_rows[this_row].meshlet_count;
}

fn expand_item(source: u32, item: u32) {
    find_row(source);
    let r = this_row;
    let planes = meshlet_rows[r].planes;
    let chunk = meshlet_rows[r].chunk;
    let i = source - row_sources.x;
    let survivor = load_survivor(chunk.flags, survivors[spans.rows[r].first_survivor + i]);
    let meshlet = meshlets[meshlet_rows[r].first_meshlet + item];
    let eye = eye_in_mesh(survivor, meshlet_rows[r].eye);
    let found = test_meshlet(r, planes, chunk, eye, survivor, meshlet);
    row_outside += u32(found.outside);
    row_hidden += u32(found.hidden);
    if (found.visible) {
        let tile = i / MESHLET_TILE;
        let cell = spans.rows[r].first_cell + item * spans.rows[r].tile_count + tile;
        let bit = i % MESHLET_TILE;
        atomicOr(&cell_words[cell * CELL_WORDS + bit / 32u], 1u << (bit % 32u));
    }
}

// Threads of a workgroup mostly end in one row: one addition for all of them.
fn expand_done() {
    if (row_outside + row_hidden > 0u) {
        atomicMax(&group_row, this_row + 1u);
    }
    workgroupBarrier();
    if (this_row + 1u == atomicLoad(&group_row)) {
        atomicAdd(&group_outside, row_outside);
        atomicAdd(&group_hidden, row_hidden);
        row_outside = 0u;
        row_hidden = 0u;
    }
    add_found();
    workgroupBarrier();
    // The first thread takes the sums.
    row_outside = atomicExchange(&group_outside, 0u);
    row_hidden = atomicExchange(&group_hidden, 0u);
    if (row_outside + row_hidden > 0u) {
        this_row = atomicLoad(&group_row) - 1u;
        add_found();
    }
}
