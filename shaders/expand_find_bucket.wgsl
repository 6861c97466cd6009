// The bucket of a chunk: the last that begins at or before it and is not empty. The same for the whole workgroup,
// whose chunks only go up: it is looked for again only behind its end.

var<private> own_bucket: u32;
var<private> own: ExpandBucket;
// Chunks before this one are of the bucket, or of one before it.
var<private> own_end: u32;

fn find_bucket(chunk: u32) {
    if (chunk < own_end) {
        return;
    }
    own_bucket = 0u;
    for (var step = 16u; step > 0u; step /= 2u) {
        if (state.buckets[own_bucket + step].first_chunk <= chunk) {
            own_bucket += step;
        }
    }
    own = state.buckets[own_bucket];
    own_end = own.first_chunk + bucket_chunks(own);
}
