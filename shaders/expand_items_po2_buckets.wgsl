// `po2-buckets`: a thread's entry is its number over the threads of an entry; no search. Bit b of N stands for the
// 2^b items after those of the higher bits.

// Index of set bit n of the mask.
fn set_bit(mask: u32, n: u32) -> u32 {
    var bits = mask;
    var left = n;
    var bit = 0u;
    for (var width = 16u; width > 0u; width /= 2u) {
        let below = countOneBits(bits & ((1u << width) - 1u));
        if (left >= below) {
            left -= below;
            bit += width;
            bits >>= width;
        }
    }
    return bit;
}

// The bits above bit b: where its items begin.
fn higher_bits(items: u32, b: u32) -> u32 {
    return items & ~((2u << b) - 1u);
}

fn expand_chunk(chunk: u32, thread: u32) {
    find_bucket(chunk);
    let b = own_bucket;
    let bucket = own;
    let i = (chunk - bucket.first_chunk) * EXPAND_CHUNK + thread;
    let entry = i >> bucket.lanes;
    if (entry >= bucket.entry_count) {
        return;
    }
    let lanes = 1u << bucket.lanes;
    let lane = i & (lanes - 1u);
    let size = 1u << b;
    let at = params.entries_at + 2u * (bucket.first_entry + entry);
    let word = arena[at];
    let mask = arena[at + 1u];
    if (size >= lanes) {
        // Every thread has a part of every set bit.
        for (var left = mask; left != 0u; left &= left - 1u) {
            let source = word * 32u + countTrailingZeros(left);
            let first = higher_bits(items_of(source), b);
            for (var k = lane; k < size; k += lanes) {
                expand_item(source, first + k);
            }
        }
    } else {
        let end = countOneBits(mask) << b;
        for (var k = lane; k < end; k += lanes) {
            let source = word * 32u + set_bit(mask, k >> b);
            let first = higher_bits(items_of(source), b);
            expand_item(source, first + (k & (size - 1u)));
        }
    }
}
