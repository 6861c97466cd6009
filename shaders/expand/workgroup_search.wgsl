// `workgroup-search`: one workgroup per span of items. In pass 2 two threads search for the sources
// of its first and last item. The prefixes between these go to workgroup memory. Each thread
// searches there for its items.

import package::expand::body::expand_item;
import package::expand::items::expand;
import package::expand::layout::{EXPAND_CHUNK, EXPAND_SPAN, state};
import package::expand::prefix_search::{first_item_of, source_of};
import package::expand::sources::{tile_count, write_plan};
import package::expand::spine::spine;

fn partial_count() -> u32 {
    return tile_count();
}

fn plan(total: u32, thread: u32) {
    if (thread == 0u) {
        let spans = total / EXPAND_SPAN + select(0u, 1u, total % EXPAND_SPAN != 0u);
        write_plan(total, 0u, total, spans, 0u);
    }
}

// Sources of a span that fit into workgroup memory. More, most of them without items, are searched
// in the arena.
const SPAN_ROOM: u32 = EXPAND_SPAN;

var<workgroup> span_ends: array<u32, 2>;
var<workgroup> span_firsts: array<u32, SPAN_ROOM>;

fn expand_chunk(chunk: u32, thread: u32) {
    let begin = chunk * EXPAND_SPAN;
    let end = begin + min(EXPAND_SPAN, state.width - begin);
    if (thread < 2u) {
        span_ends[thread] = source_of(select(begin, end - 1u, thread == 1u));
    }
    workgroupBarrier();
    let first = span_ends[0];
    let count = span_ends[1] - first + 1u;
    let fits = count <= SPAN_ROOM;
    if (fits) {
        for (var k = thread; k < count; k += EXPAND_CHUNK) {
            span_firsts[k] = first_item_of(first + k);
        }
    }
    workgroupBarrier();
    // A thread's items only go up, so their sources do, too.
    var low = 0u;
    for (var i = begin + thread; i < end; i += EXPAND_CHUNK) {
        var high = count;
        while (high - low > 1u) {
            let middle = (low + high) / 2u;
            var before = 0u;
            if (fits) {
                before = span_firsts[middle];
            } else {
                before = first_item_of(first + middle);
            }
            if (before <= i) {
                low = middle;
            } else {
                high = middle;
            }
        }
        expand_item(first + low, i - first_item_of(first + low));
    }
    // The next span overwrites workgroup memory.
    workgroupBarrier();
}
