// The row, the tile and the meshlets of a work item. All survivors of a row have as many meshlets
// as the row's level: a division finds tile and meshlets, a search among the rows finds the row.
//
// Hooks: spans. The kernel declares it, because the vote adds to it atomically.

import package::meshlets::layout::{ITEM_MESHLETS, MeshletRow, MeshletSizes};

@group(0) @binding(0) var<uniform> sizes: MeshletSizes;
@group(0) @binding(1) var<storage, read> meshlet_rows: array<MeshletRow>;

// The row of a work item: the last one whose first item is not after it. A row without items has
// the same first item as the next row, and the next row comes after it.
fn row_of(item: u32) -> u32 {
    var low = 0u;
    var high = sizes.row_count;
    while (high - low > 1u) {
        let middle = (low + high) / 2u;
        if (spans.rows[middle].first_item <= item) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// Some meshlets of the survivors of one tile.
struct Item {
    tile: u32,
    // The first of ITEM_MESHLETS meshlets, and the end of the mesh's.
    first: u32,
    end: u32,
}

// Item `item` of a row with `meshlet_count` meshlets. All items of a tile are contiguous.
fn item_of(item: u32, meshlet_count: u32) -> Item {
    let groups = (meshlet_count + ITEM_MESHLETS - 1u) / ITEM_MESHLETS;
    return Item(item / groups, item % groups * ITEM_MESHLETS, meshlet_count);
}
