// Pass 1, last step of the lists: each source writes its entries (source, number of the entry). A
// source with few entries has one thread in a loop. A source with many has the whole workgroup.

import package::expand::counts::items_of;
import package::expand::layout::{EXPAND_THREADS, EXPAND_TOO_MANY_ITEMS, arena, params, state};
import package::expand::sources::{place_of, source_count, weight_of};

// Entries of a source from which on the whole workgroup writes them.
override LONG_SOURCE: u32;

var<workgroup> long_count: atomic<u32>;
var<workgroup> long_sources: array<u32, EXPAND_THREADS>;

fn write_entry(place: u32, source: u32, k: u32) {
    let at = params.entries_at + 2u * (place + k);
    arena[at] = source;
    arena[at + 1u] = k;
}

// Entries of a source that fit.
fn entry_count(source: u32, place: u32) -> u32 {
    let room = params.entry_capacity - min(place, params.entry_capacity);
    return min(weight_of(items_of(source)), room);
}

@compute @workgroup_size(EXPAND_THREADS)
fn list(
    @builtin(local_invocation_index) thread: u32,
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
) {
    // The prefixes of a refused total may have wrapped.
    let refused = (state.status & EXPAND_TOO_MANY_ITEMS) != 0u;
    let sources = select(source_count(), 0u, refused);
    let stride = workgroups.x * EXPAND_THREADS;
    for (var first = workgroup.x * EXPAND_THREADS; first < sources; first += stride) {
        let source = first + thread;
        if (source < sources) {
            let place = place_of(source);
            let count = entry_count(source, place);
            if (count < LONG_SOURCE) {
                for (var k = 0u; k < count; k += 1u) {
                    write_entry(place, source, k);
                }
            } else {
                long_sources[atomicAdd(&long_count, 1u)] = source;
            }
        }
        workgroupBarrier();
        let long = atomicLoad(&long_count);
        for (var i = 0u; i < long; i += 1u) {
            let place = place_of(long_sources[i]);
            let count = entry_count(long_sources[i], place);
            for (var k = thread; k < count; k += EXPAND_THREADS) {
                write_entry(place, long_sources[i], k);
            }
        }
        workgroupBarrier();
        if (thread == 0u) {
            atomicStore(&long_count, 0u);
        }
        workgroupBarrier();
    }
}
