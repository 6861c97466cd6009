// What the kernels of pass 1 read and write.

@group(0) @binding(0) var<uniform> params: ExpandParams;
@group(0) @binding(1) var<storage, read> source_words: array<u32>;
@group(0) @binding(3) var<storage, read_write> state: ExpandState;
@group(0) @binding(4) var<storage, read_write> arena: array<u32>;

fn source_count() -> u32 {
    var count = params.source_capacity;
    if (params.source_word != EXPAND_KNOWN) {
        count = min(count, source_words[params.source_word]);
    }
    return count;
}

fn tile_count() -> u32 {
    // The sum could wrap.
    let sources = source_count();
    return sources / EXPAND_TILE + select(0u, 1u, sources % EXPAND_TILE != 0u);
}

fn add_saturated(a: u32, b: u32) -> u32 {
    let sum = a + b;
    return select(sum, 0xffffffffu, sum < a);
}

// A sum of values, known as `total` modulo 2^32, with `high` as the sum of their upper halves: the sum, or the
// greatest u32. At most 65,536 values.
fn saturated(total: u32, high: u32) -> u32 {
    let low = total - (high << 16u);
    return select(total, 0xffffffffu, high + (low >> 16u) >= 65536u);
}

// Place of value i of a scan in two levels whose tiles have EXPAND_TILE values.
fn place_of(i: u32) -> u32 {
    return arena[params.prefix_at + i] + arena[params.partials_at + i / EXPAND_TILE];
}
