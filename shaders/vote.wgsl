// Stage 1. A workgroup loads its block of 1,024 instances once and tests each against every view of the
// chunk. The answer is one bit an instance and row: bit i % 32 of word i / 32, written to
//     words[(first_count + row * block_count + block) * BLOCK_WORDS + i / 32].
// The entry points (vote_subgroup.wgsl, vote_workgroup.wgsl) differ only in how 32 answers become a word.

@group(0) @binding(0) var<uniform> batch: Batch;
@group(0) @binding(1) var<storage, read> chunks: array<Chunk>;
@group(0) @binding(2) var<storage, read> rows: array<Row>;
@group(0) @binding(3) var<storage, read> instances: array<PackedInstance>;
@group(0) @binding(4) var<storage, read> scales: array<f32>;
@group(0) @binding(5) var<storage, read_write> words: array<u32>;

// Bounding sphere, in the set's space, of instance `i` of the chunk (clamped to its last one).
fn load_sphere(chunk: Chunk, i: u32) -> vec4<f32> {
    let at = chunk.first_instance + min(i, chunk.instance_count - 1u);
    let instance = instances[at];
    var scale = 1.0;
    if ((chunk.flags & CHUNK_HAS_SCALE) != 0u) {
        scale = scales[at];
    }
    var centre = instance.position;
    if ((chunk.flags & CHUNK_OFF_CENTRE) != 0u) {
        centre += rotate(unpack_quat(instance.rotation), chunk.sphere.xyz * scale);
    }
    return vec4<f32>(centre, chunk.sphere.w * scale);
}

fn is_visible(chunk: Chunk, row: Row, sphere: vec4<f32>, i: u32) -> bool {
    var visible = (i < chunk.instance_count) & sphere_in_view(row, sphere);
    if (row.reach.w >= 0.0) {
        visible = visible & sphere_in_reach(row, chunk, sphere);
    }
    return visible;
}

fn first_word(chunk: Chunk, row: u32, block: u32) -> u32 {
    return (chunk.first_count + row * chunk.block_count + block) * BLOCK_WORDS;
}
