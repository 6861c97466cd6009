// The items of a source, from a buffer: the constant `EXPAND_COUNTS`. Other WGSL with the same
// function can replace it (`ExpanderOptions::counting`).

// ---- What a caller may replace.

@group(0) @binding(2) var<storage, read> counts: array<u32>;

fn items_of(source: u32) -> u32 {
    return counts[source];
}
