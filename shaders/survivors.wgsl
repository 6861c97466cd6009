// The arena of survivor ids.

@group(0) @binding(5) var<storage, read_write> survivors: array<u32>;

fn store(place: u32, id: u32) {
    // An arena that is too small loses survivors; the totals count them.
    if (place < batch.survivor_capacity) {
        survivors[place] = id;
    }
}
