// Places from inclusive sums of single votes.

@group(0) @binding(2) var<storage, read> sums: array<u32>;

fn place_of(count: u32) -> u32 {
    var place = 0u;
    if (count > 0u) {
        place = sums[count * BLOCK - 1u];
    }
    return place;
}
