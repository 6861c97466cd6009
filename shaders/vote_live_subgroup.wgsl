// Stage 1 on crossed blocks, by ballot, at any subgroup size from 4 to 128. Subgroups do not wait for each other.
//
// With 32 lanes a subgroup has a block of its own, and lane w its word w: the more subgroups wait for memory side by
// side, the better. With another size S, or so few blocks that there are workgroups enough, a workgroup shares a block,
// and a subgroup owns S / 4 of its words.

@group(0) @binding(6) var<storage, read_write> counts: array<atomic<u32>>;

// Up to so many blocks are shared: 14 us instead of 28 for ten of them, as fast at a thousand (docs/internals/tried.md).
const FEW_CROSSED: u32 = 512u;

@compute @workgroup_size(BLOCK_THREADS)
fn vote(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {
    let count = min(atomicLoad(&lists.crossed_count), batch.block_count);
    let is_own = size == 32u && count > FEW_CROSSED;
    let shares = select(1u, BLOCK_THREADS / 32u, is_own);
    for (var item = workgroup.x * shares + subgroup % shares; item < count; item += workgroups.x * shares) {
        // In bounds also where an earlier frame, which ended before `compact`, has left something else.
        let block_in_batch = min(lists.entries[item].x, batch.block_count - 1u);
        let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
        let block = block_in_batch - chunk.first_block;
        for (var group = 0u; group < chunk.row_count; group += ROW_GROUP) {
            if (is_own) {
                vote_block(chunk, block, group, lane);
            } else {
                vote_part(chunk, block, group, subgroup, lane, size);
            }
        }
    }
}

// The rows of the group that cross the block, a row a lane.
fn crossing_rows(chunk: Chunk, first_row: u32, row_count: u32, at: u32, lane: u32, size: u32) -> u32 {
    if (chunk.row_count == 1u) {
        // Else the block were not in the list.
        return 1u;
    }
    var crossing = 0u;
    for (var first = 0u; first < row_count; first += size) {
        let r = first + lane;
        var crosses = false;
        if (r < row_count) {
            crosses = row_crosses_block(chunk, first_row + r, at);
        }
        crossing |= subgroupBallot(crosses).x << first;
    }
    return crossing;
}

// All words of a block, one a lane, in rows from `group` on.
fn vote_block(chunk: Chunk, block: u32, group: u32, lane: u32) {
    let at = chunk.first_instance / BLOCK + block;
    let row_count = min(chunk.row_count - group, ROW_GROUP);
    let crossing = crossing_rows(chunk, chunk.first_row + group, row_count, at, lane, 32u);
    let by_positions = INSTANCE_IS_RIGID & (chunk.flags == 0u) & (block_len(chunk, block) == BLOCK);
    let first = block * BLOCK + lane;
    for (var r = 0u; (crossing >> r) != 0u; r += 4u) {
        let four = (crossing >> r) & 15u;
        if (four == 0u) {
            continue;
        }
        let first_row = chunk.first_row + group + r;
        var states = vec4<u32>(OUTSIDE);
        for (var k = 0u; k < 4u; k += 1u) {
            if (((four >> k) & 1u) != 0u) {
                states[k] = word_state(chunk, first_row + k, at, lane);
            }
        }
        // Bit w: one of the four rows crosses word w.
        let asked = subgroupBallot(any(states == vec4<u32>(PARTIAL))).x;
        var voted: vec4<u32>;
        if (by_positions) {
            voted = vote_asked_words(chunk, first_row, four, chunk.first_instance + first, asked, lane);
        } else {
            voted = vote_asked_spheres(chunk, first_row, four, first, asked, lane);
        }
        for (var k = 0u; k < 4u; k += 1u) {
            if (((four >> k) & 1u) != 0u) {
                store_word(chunk, block, group + r + k, voted[k], states[k], 0u, lane, 32u);
            }
        }
    }
}

// The words of a block that a subgroup has, in rows from `group` on.
fn vote_part(chunk: Chunk, block: u32, group: u32, subgroup: u32, lane: u32, size: u32) {
    let at = chunk.first_instance / BLOCK + block;
    let words_each = size >> 2u;
    let first_word = subgroup * words_each;
    let row_count = min(chunk.row_count - group, ROW_GROUP);
    let crossing = crossing_rows(chunk, chunk.first_row + group, row_count, at, lane, size);
    let first = block * BLOCK + first_word * 32u + lane;
    for (var r = 0u; (crossing >> r) != 0u; r += 4u) {
        let four = (crossing >> r) & 15u;
        if (four == 0u) {
            continue;
        }
        // Four rows and a quarter of the lanes in words: a lane has a word in a row.
        let first_row = chunk.first_row + group + r;
        let own_word = lane % words_each;
        let own_row = lane / words_each;
        var own = OUTSIDE;
        if (((four >> own_row) & 1u) != 0u) {
            own = word_state(chunk, first_row + own_row, at, first_word + own_word);
        }
        // The word's in each row.
        var states = vec4<u32>(own, OUTSIDE, OUTSIDE, OUTSIDE);
        if (four != 1u) {
            states = vec4<u32>(
                subgroupShuffle(own, own_word),
                subgroupShuffle(own, own_word + words_each),
                subgroupShuffle(own, own_word + 2u * words_each),
                subgroupShuffle(own, own_word + 3u * words_each));
        }
        // Bit w: one of the four rows crosses word w of the subgroup.
        let is_asked = (lane < words_each) & any(states == vec4<u32>(PARTIAL));
        let asked = subgroupBallot(is_asked).x;
        let voted = vote_asked(chunk, first_row, four, first, asked, lane, size);
        for (var k = 0u; k < 4u; k += 1u) {
            if (((four >> k) & 1u) != 0u) {
                store_word(chunk, block, group + r + k, voted[k], states[k], first_word, lane, words_each);
            }
        }
    }
}

// Votes of four rows, of which `four` has a bit each. The loads are shared, and nobody stores before all ballots are
// cast. Where a word is a ballot and positions are all there is to load: only words that are asked for, four at a time.
fn vote_asked_words(chunk: Chunk, first_row: u32, four: u32, at: u32, asked: u32, lane: u32) -> vec4<u32> {
    var voted = vec4<u32>(0u);
    var left = asked;
    while (left != 0u) {
        let a = firstTrailingBit(left);
        left &= left - 1u;
        let b = select(a, firstTrailingBit(left), left != 0u);
        left &= left - 1u;
        let c = select(a, firstTrailingBit(left), left != 0u);
        left &= left - 1u;
        let d = select(a, firstTrailingBit(left), left != 0u);
        left &= left - 1u;
        let centres = Centres(
            load_instance(at + a * 32u).position,
            load_instance(at + b * 32u).position,
            load_instance(at + c * 32u).position,
            load_instance(at + d * 32u).position);
        let four_words = vec4<u32>(a, b, c, d);
        if ((four & 1u) != 0u) {
            voted.x = vote_centres_of(voted.x, chunk, rows[first_row], centres, four_words, lane);
        }
        if ((four & 2u) != 0u) {
            voted.y = vote_centres_of(voted.y, chunk, rows[first_row + 1u], centres, four_words, lane);
        }
        if ((four & 4u) != 0u) {
            voted.z = vote_centres_of(voted.z, chunk, rows[first_row + 2u], centres, four_words, lane);
        }
        if ((four & 8u) != 0u) {
            voted.w = vote_centres_of(voted.w, chunk, rows[first_row + 3u], centres, four_words, lane);
        }
    }
    return voted;
}

struct Centres {
    a: vec3<f32>,
    b: vec3<f32>,
    c: vec3<f32>,
    d: vec3<f32>,
}

// The ballots of one row on words `own`; the lanes of these keep them.
fn vote_centres_of(voted: u32, chunk: Chunk, row: Row, centres: Centres, own: vec4<u32>, lane: u32) -> u32 {
    var word = voted;
    if ((row.pairs.is_paired != 0u) & (row.reach.w < 0.0)) {
        let wide = widened_pairs(row.pairs, chunk.sphere.w);
        word = select(word, subgroupBallot(centre_in_pairs(wide, centres.a)).x, lane == own.x);
        word = select(word, subgroupBallot(centre_in_pairs(wide, centres.b)).x, lane == own.y);
        word = select(word, subgroupBallot(centre_in_pairs(wide, centres.c)).x, lane == own.z);
        word = select(word, subgroupBallot(centre_in_pairs(wide, centres.d)).x, lane == own.w);
        return word;
    }
    let wide = widened(row, chunk.sphere.w);
    word = select(word, subgroupBallot(keeps_centre(chunk, row, wide, centres.a)).x, lane == own.x);
    word = select(word, subgroupBallot(keeps_centre(chunk, row, wide, centres.b)).x, lane == own.y);
    word = select(word, subgroupBallot(keeps_centre(chunk, row, wide, centres.c)).x, lane == own.z);
    word = select(word, subgroupBallot(keeps_centre(chunk, row, wide, centres.d)).x, lane == own.w);
    return word;
}

// The same from bounding spheres; `first` is the lane's instance in the block's first word, counted from the start of the
// chunk.
fn vote_asked_spheres(chunk: Chunk, first_row: u32, four: u32, first: u32, asked: u32, lane: u32) -> vec4<u32> {
    var voted = vec4<u32>(0u);
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
        let sa = load_sphere(chunk, first + a * 32u);
        let sb = load_sphere(chunk, first + b * 32u);
        let sc = load_sphere(chunk, first + c * 32u);
        let sd = load_sphere(chunk, first + d * 32u);
        for (var r = 0u; r < 4u; r += 1u) {
            if (((four >> r) & 1u) != 0u) {
                let row = rows[first_row + r];
                var word = voted[r];
                word = select(word, subgroupBallot(is_visible(chunk, row, sa, first + a * 32u)).x, lane == a);
                word = select(word, subgroupBallot(is_visible(chunk, row, sb, first + b * 32u)).x, lane == b);
                word = select(word, subgroupBallot(is_visible(chunk, row, sc, first + c * 32u)).x, lane == c);
                word = select(word, subgroupBallot(is_visible(chunk, row, sd, first + d * 32u)).x, lane == d);
                voted[r] = word;
            }
        }
    }
    return voted;
}

// The same at any subgroup size, four ballots at a time; `first` is the lane's first instance,
// counted from the start of the chunk.
fn vote_asked(chunk: Chunk, first_row: u32, four: u32, first: u32, asked: u32, lane: u32, size: u32) -> vec4<u32> {
    var voted = vec4<u32>(0u);
    for (var k = 0u; k < BLOCK_ITEMS; k += 4u) {
        var spheres: array<vec4<f32>, 4>;
        for (var s = 0u; s < 4u; s += 1u) {
            if (((asked >> (((k + s) * size + lane) >> 5u)) & 1u) != 0u) {
                spheres[s] = load_sphere(chunk, first + (k + s) * size);
            }
        }
        for (var r = 0u; r < 4u; r += 1u) {
            if (((four >> r) & 1u) != 0u) {
                let row = rows[first_row + r];
                for (var s = 0u; s < 4u; s += 1u) {
                    let ballot = subgroupBallot(is_visible(chunk, row, spheres[s], first + (k + s) * size));
                    voted[r] = keep_ballot(voted[r], k + s, ballot, lane, size);
                }
            }
        }
    }
    return voted;
}

// `voted` counts where the row crosses the lane's word; else its state knows the answer.
fn store_word(
    chunk: Chunk,
    block: u32,
    row: u32,
    voted: u32,
    state: u32,
    first_word: u32,
    lane: u32,
    words_each: u32,
) {
    let count = chunk.first_count + row * chunk.block_count + block;
    var word = 0u;
    if (lane < words_each) {
        let own = first_word + lane;
        word = select(0u, voted, state == PARTIAL);
        if (state == INSIDE) {
            word = full_word(own, block_len(chunk, block));
        }
        words[count * BLOCK_WORDS + own] = word;
    }
    let survivors = subgroupAdd(countOneBits(word));
    if (lane == 0u && survivors > 0u) {
        atomicAdd(&counts[count], survivors);
    }
}
