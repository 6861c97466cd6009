// Votes by ballot, at any subgroup size from 4 to 128.
//
// A subgroup of S lanes owns S * 8 instances in a row and asks 8 times, each time about S instances that
// lie side by side; that makes S / 4 words, of which lane w keeps word w:
//     S =   8: ballot k holds bits 8k.. of the subgroup's 64: word k / 4, shifted by 8 * (k % 4)
//     S =  32: ballot k is word k
//     S = 128: ballot k is words 4k .. 4k + 3, its four components

// The word of this lane for one row; of lanes from size / 4 on: nothing.
fn vote_row(
    chunk: Chunk,
    row: Row,
    spheres: ptr<function, array<vec4<f32>, BLOCK_ITEMS>>,
    first: u32,
    lane: u32,
    size: u32,
) -> u32 {
    let words_each = size >> 5u;
    let words_log = firstTrailingBit(max(words_each, 1u));
    var word = 0u;
    for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
        let ballot = subgroupBallot(is_visible(chunk, row, (*spheres)[k], first + k * size));
        if (words_each == 0u) {
            let bit = k * size;
            word |= select(0u, ballot.x << (bit & 31u), lane == (bit >> 5u));
        } else if ((lane >> words_log) == k) {
            word = component(ballot, lane & (words_each - 1u));
        }
    }
    return word;
}
