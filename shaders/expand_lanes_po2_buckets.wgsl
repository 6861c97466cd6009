// At least 32 threads for the 32 sources of an entry.

fn lanes_of(bucket: u32, share: u32) -> u32 {
    return max(bucket, 5u + share) - share;
}
