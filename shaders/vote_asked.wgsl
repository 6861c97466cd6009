// The vote of one row on words that it crosses, where a ballot is a word and positions are all there is to load: four words
// at a time. The lanes of these words keep them.

fn vote_asked_words(chunk: Chunk, row: Row, asked: u32, at: u32, lane: u32) -> u32 {
    let wide = widened(row, chunk.sphere.w);
    var word = 0u;
    var left = asked;
    while (left != 0u) {
        // Behind the last one, the first of the four once more.
        let a = firstTrailingBit(left);
        left &= left - 1u;
        let b = select(a, firstTrailingBit(left), left != 0u);
        left &= left - 1u;
        let c = select(a, firstTrailingBit(left), left != 0u);
        left &= left - 1u;
        let d = select(a, firstTrailingBit(left), left != 0u);
        left &= left - 1u;
        let pa = load_instance(at + a * 32u).position;
        let pb = load_instance(at + b * 32u).position;
        let pc = load_instance(at + c * 32u).position;
        let pd = load_instance(at + d * 32u).position;
        word = select(word, subgroupBallot(keeps_centre(chunk, row, wide, pa)).x, lane == a);
        word = select(word, subgroupBallot(keeps_centre(chunk, row, wide, pb)).x, lane == b);
        word = select(word, subgroupBallot(keeps_centre(chunk, row, wide, pc)).x, lane == c);
        word = select(word, subgroupBallot(keeps_centre(chunk, row, wide, pd)).x, lane == d);
    }
    return word;
}
