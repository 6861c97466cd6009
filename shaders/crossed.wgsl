// The blocks that some view crosses, in any order: `classify` makes the list, `vote` strides over it, so that a
// dispatch needs no count from the GPU. `compact` empties it for the next frame.

struct Crossed {
    count: atomic<u32>,
    // Blocks of the batch.
    blocks: array<u32>,
}

@group(0) @binding(7) var<storage, read_write> crossed: Crossed;
