// Bits of a word's sources: one atomic in workgroup memory a subgroup, where a subgroup is not more than a word.

fn gather(bits: u32, word: u32, thread: Thread) {
    let all = subgroupOr(bits);
    if (thread.size > 32u) {
        atomicOr(&words[word], bits);
    } else if (thread.lane == 0u) {
        atomicOr(&words[word], all);
    }
}
