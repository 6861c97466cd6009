// Stage 3. A workgroup turns the words of its block into ids, in instance order, at the place that the scan
// gave to the block (write_words.wgsl). The entry points (compact_subgroup.wgsl, compact_workgroup.wgsl) differ
// only in how the survivors before each word are added up.

@group(0) @binding(3) var<storage, read> counts: array<u32>;
@group(0) @binding(4) var<storage, read> partials: array<u32>;

fn place_of(count: u32) -> u32 {
    return counts[count] + partials[count / SCAN_TILE];
}
