// The bucket of a chunk: the last that begins at or before it and is not empty. The same for the whole workgroup.

fn bucket_of(chunk: u32) -> u32 {
    var bucket = 0u;
    for (var step = 16u; step > 0u; step /= 2u) {
        if (state.buckets[bucket + step].first_chunk <= chunk) {
            bucket += step;
        }
    }
    return bucket;
}
