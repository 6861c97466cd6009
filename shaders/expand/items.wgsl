// Pass 2. Workgroups stride over chunks of threads, whether the dispatch has enough workgroups to
// fill the GPU or as many as pass 1 asked for. The solution finds the items of a thread
// (`expand_chunk`), and calls the caller's body with each of them.
//
// Hooks: expand_chunk.

import package::expand::body::expand_done;
import package::expand::layout::{
    EXPAND_BUCKETS, EXPAND_CHUNK, ExpandBucket, ExpandSlice, state,
};

@group(0) @binding(5) var<uniform> slice: ExpandSlice;

fn bucket_chunks(bucket: ExpandBucket) -> u32 {
    let threads = bucket.entry_count << bucket.lanes;
    return threads / EXPAND_CHUNK + select(0u, 1u, threads % EXPAND_CHUNK != 0u);
}

@compute @workgroup_size(EXPAND_CHUNK)
fn expand(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    var chunk = workgroup.y * workgroups.x + workgroup.x;
    var end = state.chunks;
    if (slice.bucket < EXPAND_BUCKETS) {
        let first = state.buckets[slice.bucket].first_chunk;
        chunk += first;
        end = min(end, first + bucket_chunks(state.buckets[slice.bucket]));
    }
    for (; chunk < end; chunk += workgroups.x * workgroups.y) {
        expand_chunk(chunk, thread);
    }
    expand_done();
}

// The bucket of the current chunk.
var<private> bucket_index: u32;
var<private> this_bucket: ExpandBucket;
// Chunks before this one belong to this bucket or to a bucket before it.
var<private> bucket_end: u32;

// Finds the bucket of a chunk: the last one that begins at or before it and is not empty. Uniform
// over a workgroup, whose chunks only go up: the search is repeated only after the end of the
// bucket.
fn find_bucket(chunk: u32) {
    if (chunk < bucket_end) {
        return;
    }
    bucket_index = 0u;
    for (var step = 16u; step > 0u; step /= 2u) {
        if (state.buckets[bucket_index + step].first_chunk <= chunk) {
            bucket_index += step;
        }
    }
    this_bucket = state.buckets[bucket_index];
    bucket_end = this_bucket.first_chunk + bucket_chunks(this_bucket);
}
