// Bits of a word's sources: an atomic in workgroup memory a source.

fn gather(bits: u32, word: u32, thread: Thread) {
    atomicOr(&words[word], bits);
}
