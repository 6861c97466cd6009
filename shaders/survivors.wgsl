// The arena of survivor ids.

@group(0) @binding(5) var<storage, read_write> survivors: array<u32>;

fn store(place: u32, id: u32) {
    // An arena that is too small loses survivors; the totals count them.
    if (place < batch.survivor_capacity) {
        survivors[place] = id;
    }
}

// Of `len` survivors from `place` on, how many find room.
fn room_for(place: u32, len: u32) -> u32 {
    return min(len, max(place, batch.survivor_capacity) - place);
}

// Where it is known that there is room.
fn put(place: u32, id: u32) {
    survivors[place] = id;
}
