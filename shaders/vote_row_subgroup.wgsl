// Votes by ballot, at any subgroup size from 4 to 128.
//
// A subgroup of S lanes owns S * 8 instances in a row and asks 8 times, each time about S instances that
// lie side by side; that makes S / 4 words, of which lane w keeps word w:
//     S =   8: ballot k holds bits 8k.. of the subgroup's 64: word k / 4, shifted by 8 * (k % 4)
//     S =  32: ballot k is word k
//     S = 128: ballot k is words 4k .. 4k + 3, its four components

// Those lanes keep the ballots as words.
fn keep_ballot(word: u32, k: u32, ballot: vec4<u32>, lane: u32, size: u32) -> u32 {
    let words_each = size >> 5u;
    let bit = k * size;
    // The lane's, if the size is 32 or more; a part of the lane's, if it is less.
    let whole = component(ballot, lane & (max(words_each, 1u) - 1u));
    let is_whole = (lane >> firstTrailingBit(max(words_each, 1u))) == k;
    let part = select(0u, ballot.x << (bit & 31u), lane == (bit >> 5u));
    return select(word | part, select(word, whole, is_whole), words_each > 0u);
}

// Whether the subgroup can do without what few chunks need: scales, a centre off the origin, a last instance. Then
// positions are all there is to load. `vote` has two ways, each with an array of its own, so that compilers keep the fast
// one's in registers (in memory it took twice as long).
fn is_fast(chunk: Chunk, first: u32, lane: u32, size: u32) -> bool {
    return INSTANCE_IS_RIGID & (chunk.flags == 0u) & (first - lane + size * BLOCK_ITEMS <= chunk.instance_count);
}

// The word of this lane for one row; of lanes from size / 4 on: nothing of meaning.
fn vote_centres(
    chunk: Chunk,
    row: Row,
    centres: ptr<function, array<vec3<f32>, BLOCK_ITEMS>>,
    lane: u32,
    size: u32,
) -> u32 {
    let wide = widened(row, chunk.sphere.w);
    var word = 0u;
    if ((row.reach.w < 0.0) & (size == 32u)) {
        // What most GPUs run: a ballot is a word.
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            let ballot = subgroupBallot(centre_in_view(wide, (*centres)[k]));
            word = select(word, ballot.x, lane == k);
        }
    } else if (row.reach.w < 0.0) {
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            let ballot = subgroupBallot(centre_in_view(wide, (*centres)[k]));
            word = keep_ballot(word, k, ballot, lane, size);
        }
    } else {
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            let centre = (*centres)[k];
            let in_reach = sphere_in_reach(row, chunk, vec4<f32>(centre, chunk.sphere.w));
            let ballot = subgroupBallot(centre_in_view(wide, centre) & in_reach);
            word = keep_ballot(word, k, ballot, lane, size);
        }
    }
    return word;
}

// The same for a row whose planes are paired and that has no reach.
fn vote_pairs(wide: Pairs, centres: ptr<function, array<vec3<f32>, BLOCK_ITEMS>>, lane: u32, size: u32) -> u32 {
    var word = 0u;
    if (size == 32u) {
        // What most GPUs run: a ballot is a word.
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            let ballot = subgroupBallot(centre_in_pairs(wide, (*centres)[k]));
            word = select(word, ballot.x, lane == k);
        }
    } else {
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            let ballot = subgroupBallot(centre_in_pairs(wide, (*centres)[k]));
            word = keep_ballot(word, k, ballot, lane, size);
        }
    }
    return word;
}

// The same from bounding spheres; `first` is the lane's first instance, counted from the start of the chunk.
fn vote_spheres(
    chunk: Chunk,
    row: Row,
    spheres: ptr<function, array<vec4<f32>, BLOCK_ITEMS>>,
    first: u32,
    lane: u32,
    size: u32,
) -> u32 {
    var word = 0u;
    for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
        let ballot = subgroupBallot(is_visible(chunk, row, (*spheres)[k], first + k * size));
        word = keep_ballot(word, k, ballot, lane, size);
    }
    return word;
}
