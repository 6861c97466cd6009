fn lanes_of(bucket: u32, share: u32) -> u32 {
    return max(bucket, share) - share;
}
