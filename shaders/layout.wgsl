// Every shape that both a kernel and the host see. `src/cull/layout.rs` holds the same shapes in the
// same order; the test `layout` compares names, offsets and sizes of the two.

// A workgroup of `vote` owns one block; every thread handles BLOCK_ITEMS instances.
const BLOCK: u32 = 1024u;
const BLOCK_THREADS: u32 = 128u;
const BLOCK_ITEMS: u32 = 8u;
// Visibility words of one block in one row: one bit an instance.
const BLOCK_WORDS: u32 = 32u;
// Blocks whose survivors are counted and scanned by one workgroup of `scan`.
const SCAN_TILE: u32 = 1024u;
// Threads of a workgroup of `scan`.
const SCAN_THREADS: u32 = 256u;
// Tiles of a batch: `compact` adds up those before each count's.
const MOST_TILES: u32 = 512u;
// Blocks of a workgroup of `vote_own`: one for each subgroup of 32 lanes.
const OWN_BLOCKS: u32 = 4u;
// Counts that a workgroup of `compact` handles at once: 32 threads each.
const COUNTS_EACH: u32 = 4u;
// Blocks of the largest strip: what a workgroup culls in one pass.
const MOST_STRIP_BLOCKS: u32 = 8u;
const MOST_STRIP_WORDS: u32 = MOST_STRIP_BLOCKS * BLOCK_WORDS;
// Turns in which the workgroup votes on the largest strip, BLOCK_THREADS words in each; fewer words on a strip below four blocks.
const MOST_STRIP_TURNS: u32 = MOST_STRIP_WORDS / BLOCK_THREADS;
// Threads of a workgroup of `classify`: a thread a block.
const CLASSIFY_THREADS: u32 = 256u;

// Chunk.flags
const CHUNK_HAS_SCALE: u32 = 1u;
const CHUNK_OFF_CENTRE: u32 = 2u;

// One member of a set. `rotation` is a smallest-three quaternion (see instance.wgsl).
struct PackedInstance {
    position: vec3<f32>,
    rotation: u32,
}

// What the stages of one batch need to know of its sizes.
struct Batch {
    // Blocks of all chunks: workgroups of `vote`.
    block_count: u32,
    // Workgroups in x of a two-dimensional dispatch.
    dispatch_width: u32,
    // Counts (one for each row and block), without the closing total.
    count_len: u32,
    chunk_count: u32,
    row_count: u32,
    // Ids that the survivor arena holds.
    survivor_capacity: u32,
    // 1 when `scan` runs: there are many counts.
    is_scanned: u32,
    // Strips of all rows.
    strip_count: u32,
    // Blocks of a strip: a power of two up to MOST_STRIP_BLOCKS; a row ends with a shorter one.
    strip_blocks: u32,
    pad_a: u32,
    pad_b: u32,
    pad_c: u32,
}

// A run of instances of one set in one page, as one entity uses it: tested against `row_count` views.
struct Chunk {
    // Rows of the affine matrix that takes the set to the world.
    world_x: vec4<f32>,
    world_y: vec4<f32>,
    world_z: vec4<f32>,
    // Bounding sphere of the mesh in its own space: centre, radius.
    sphere: vec4<f32>,
    // The first instance, counted from the start of the page.
    first_instance: u32,
    instance_count: u32,
    // The first block, counted over the chunks of the batch.
    first_block: u32,
    block_count: u32,
    first_row: u32,
    row_count: u32,
    // The count of the first row's first block; row r's block b is at first_count + r * block_count + b.
    first_count: u32,
    flags: u32,
    // The greatest stretch of the affine matrix: world radius = local radius * world_scale.
    world_scale: f32,
    // The first row's first strip, counted over the batch.
    first_strip: u32,
    // What a survivor draws: as in RowDraw.
    element_count: u32,
    first_element: u32,
    base_vertex: i32,
    indexed: u32,
    pad_a: u32,
    pad_b: u32,
}

// One view of one chunk. The planes are in the set's own space, normals of length one inwards:
// a sphere is outside when dot(plane, (centre, 1)) + radius <= 0 for any of them.
struct Row {
    left: vec4<f32>,
    right: vec4<f32>,
    top: vec4<f32>,
    bottom: vec4<f32>,
    near: vec4<f32>,
    far: vec4<f32>,
    // A light's reach in world space: centre, range. A negative range reaches everywhere.
    reach: vec4<f32>,
    // The same planes in pairs.
    pairs: Pairs,
}

// Planes that face each other about an axis. With d = dot(depth, (centre, 1)), a sphere is kept when
// |dot(x, (centre, 1))| < slopes.x * d + slopes.y + radius, as much for y and the other slope, and
// low - radius < d < high + radius.
struct Pairs {
    // Half of left minus right; half of top minus bottom.
    x: vec4<f32>,
    y: vec4<f32>,
    // Distance along the view.
    depth: vec4<f32>,
    // Half the width at a depth: slope, offset; half the height.
    slopes: vec4<f32>,
    // Depths of the near and the far plane.
    low: f32,
    high: f32,
    // 1 when the planes are as said above; else they are tested one by one.
    is_paired: u32,
    pad: u32,
}

// What `args` writes besides the instance count and the first instance, and where the row's counts lie.
struct RowDraw {
    // Indices of the mesh, or vertices when it has no indices.
    element_count: u32,
    first_element: u32,
    base_vertex: i32,
    // 1 when the mesh has indices.
    indexed: u32,
    first_count: u32,
    block_count: u32,
    pad_a: u32,
    pad_b: u32,
}

// Around the positions of a block's instances, in the set's space, whatever mesh they draw.
struct Bound {
    centre: vec3<f32>,
    // Infinite when a position is not finite: no view can then take the block as a whole.
    radius: f32,
    // The greatest scale of an instance.
    max_scale: f32,
    // 1 when the words' bounds are not worth a look: neighbours are not near each other.
    loose: u32,
    pad_a: u32,
    pad_b: u32,
    // Around each word's instances (word_bound.wgsl).
    words: array<u32, BLOCK_WORDS>,
}

// A run of blocks of one page whose bounds are to be made.
struct BoundJob {
    // The first block, counted from the start of the page.
    first_block: u32,
    block_count: u32,
    // End of the instances, counted from the start of the page: the last block may not be full.
    end: u32,
    // 1 when the page has a scale for each instance.
    has_scale: u32,
}

// Indexed: index_count, instance_count, first_index, base_vertex, first_instance.
// Else: vertex_count, instance_count, first_vertex, first_instance, 0.
struct DrawArgs {
    a: u32,
    b: u32,
    c: u32,
    d: u32,
    e: u32,
}

// Read back a few frames later.
struct Totals {
    // Survivors of all rows, also those that found no room.
    survivors: u32,
    // Survivors that found no room.
    overflow: u32,
    // Always 1: the count of a `multi_draw_*_indirect_count` of one draw.
    draw_count: u32,
    // Ids that the arena must hold so that none is lost.
    needed: u32,
    // Blocks that some view crosses, where the compaction classifies blocks.
    crossed: u32,
}
