// Bits to masks: an atomic in workgroup memory for each.

fn transpose(bits: u32, place: u32, thread: Thread) {
    var left = bits;
    while (left != 0u) {
        let bucket = countTrailingZeros(left);
        left &= left - 1u;
        atomicOr(&masks[place / 32u * EXPAND_BUCKETS + bucket], 1u << (place % 32u));
    }
}
