// Survivors of a block as `classify` and `vote` have counted them.

fn count_survivors(count: u32) -> u32 {
    var survivors = 0u;
    if (count < batch.count_len) {
        survivors = counts[count];
    }
    return survivors;
}
