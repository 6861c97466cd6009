// Pass 2: workgroups stride over chunks of threads, whether the dispatch has as many as fill the GPU or as many as
// pass 1 asked for. The strategy finds the items of a thread (`expand_chunk`); the caller's body is given each of
// them (`expand_item(source, item)`) and is called once more by every thread, at the end (`expand_done()`).

@group(0) @binding(3) var<storage, read> state: ExpandState;
@group(0) @binding(4) var<storage, read> arena: array<u32>;
@group(0) @binding(0) var<uniform> params: ExpandParams;
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
