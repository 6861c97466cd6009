// Places from the prefixes that `scan` wrote.

@group(0) @binding(2) var<storage, read> counts: array<u32>;
@group(0) @binding(3) var<storage, read> partials: array<u32>;

fn place_of(count: u32) -> u32 {
    return counts[count] + partials[count / SCAN_TILE];
}
