// `workgroup-search`: a workgroup a span of items. Two threads search for the sources of its first and last item; the
// prefixes in between go to workgroup memory, where each thread searches for its items.

// More sources than this in a span, most of them without items, are searched where they lie.
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
    // A thread's items only go up, and so do their sources.
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
    // The next span overwrites all of it.
    workgroupBarrier();
}
