// A workgroup writes the ids of a block's words, in instance order, from a given place on. Ids count from the
// start of the page.
//
//     words of a block (4 bits each here)    0110 1001
//     survivors before each word             0    2
//     bit 4 of the block: 2 + bits below it in its word (0) = place 2 in the block

@group(0) @binding(2) var<storage, read> words: array<u32>;

var<workgroup> block_words: array<u32, BLOCK_WORDS>;
// Survivors of the block before each word.
var<workgroup> before_word: array<u32, BLOCK_WORDS>;

fn write_survivors(place: u32, first_id: u32, thread: u32) {
    for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
        let i = k * BLOCK_THREADS + thread;
        let word = block_words[i / 32u];
        let bit = 1u << (i % 32u);
        let at = place + before_word[i / 32u] + countOneBits(word & (bit - 1u));
        if ((word & bit) != 0u) {
            store(at, first_id + i);
        }
    }
}
