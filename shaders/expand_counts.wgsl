// The items of a source, from a buffer. A caller may bring another file with this function.

@group(0) @binding(2) var<storage, read> counts: array<u32>;

fn items_of(source: u32) -> u32 {
    return counts[source];
}
