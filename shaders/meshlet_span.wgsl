// Which row, tile and meshlets a work item is about. Survivors of a row all have as many meshlets as the row's mesh:
// a division finds tile and meshlets, a search among the rows the row.

@group(0) @binding(1) var<storage, read> meshlet_rows: array<MeshletRow>;

// The last row whose first item is not after `item`. A row without items starts where the next one does, which comes after it.
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

struct Item {
    tile: u32,
    // The first of ITEM_MESHLETS meshlets, and the end of the mesh's.
    first: u32,
    end: u32,
}

// Item `item` of a row with `meshlet_count` meshlets: all meshlets of a tile follow each other.
fn item_of(item: u32, meshlet_count: u32) -> Item {
    let groups = (meshlet_count + ITEM_MESHLETS - 1u) / ITEM_MESHLETS;
    return Item(item / groups, item % groups * ITEM_MESHLETS, meshlet_count);
}
