// Survivors of a block from its words.

@group(0) @binding(1) var<storage, read> words: array<vec4<u32>>;

fn count_survivors(count: u32) -> u32 {
    var survivors = 0u;
    if (count < batch.count_len) {
        let first = count * (BLOCK_WORDS / 4u);
        for (var k = 0u; k < BLOCK_WORDS / 4u; k += 1u) {
            let bits = countOneBits(words[first + k]);
            survivors += bits.x + bits.y + bits.z + bits.w;
        }
    }
    return survivors;
}
