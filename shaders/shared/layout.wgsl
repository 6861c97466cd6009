// Every shape that a kernel and the host share. `src/cull/layout.rs` holds the same shapes in the
// same order; the test `layout` compares names, offsets and sizes.

// Instances of a block. A workgroup of `vote` tests one block, BLOCK_ITEMS instances per thread.
const BLOCK: u32 = 1024u;
const BLOCK_THREADS: u32 = 128u;
const BLOCK_ITEMS: u32 = 8u;
// Visibility words of one block in one row: one bit per instance.
const BLOCK_WORDS: u32 = 32u;
// Counts that one workgroup of `scan` scans.
const SCAN_TILE: u32 = 1024u;
// Threads of a workgroup of `scan`.
const SCAN_THREADS: u32 = 256u;
// Most tiles of a batch: `compact` adds up all tiles before the tile of each count.
const MOST_TILES: u32 = 512u;
// Blocks of a workgroup of `vote_block_per_subgroup`: one per subgroup of 32 lanes.
const BLOCKS_PER_WORKGROUP: u32 = 4u;
// Counts that a workgroup of `compact` handles at once, 32 threads per count.
const COUNTS_PER_WORKGROUP: u32 = 4u;
// Blocks of the largest strip. A workgroup of `look_back` culls one strip.
const MOST_STRIP_BLOCKS: u32 = 8u;
const MOST_STRIP_WORDS: u32 = MOST_STRIP_BLOCKS * BLOCK_WORDS;
// Turns in which the workgroup votes on the largest strip, BLOCK_THREADS words per turn. On a strip
// of less than four blocks a turn has fewer words.
const MOST_STRIP_TURNS: u32 = MOST_STRIP_WORDS / BLOCK_THREADS;
// Threads of a workgroup of `classify`: one thread per block.
const CLASSIFY_THREADS: u32 = 256u;
// Units that one workgroup of `order` sorts.
const ORDER_TILE: u32 = 1024u;
// Threads of a workgroup of `order`: one per two rings.
const ORDER_THREADS: u32 = 256u;
// Rings of distance from a view, the nearest first.
const RINGS: u32 = 512u;
// Survivors that one workgroup of `far_first` moves.
const FAR_FIRST_TILE: u32 = 2048u;
// Threads of a workgroup of `far_first`: one per digit.
const FAR_FIRST_THREADS: u32 = 256u;
// Values of a digit of 8 bits of a depth key.
const DIGITS: u32 = 256u;

// Threads of a workgroup of `pyramid`, and pixels along a side of its tile.
const PYRAMID_THREADS: u32 = 256u;
const PYRAMID_TILE: u32 = 64u;
// Most levels of a depth pyramid.
const MOST_PYRAMID_LEVELS: u32 = 16u;

// What the depth says of a sphere (footprint.wgsl).
const VISIBLE: u32 = 0u;
const COVERS_NO_SAMPLE: u32 = 1u;
const HIDDEN: u32 = 2u;

// Chunk.flags
const CHUNK_HAS_SCALE: u32 = 1u;
const CHUNK_OFF_CENTER: u32 = 2u;
// With CHUNK_HAS_SCALE: a scale is three numbers, one per axis of the mesh.
const CHUNK_NON_UNIFORM_SCALE: u32 = 4u;
// Rows may thin the instances out (thin.wgsl).
const CHUNK_IS_THINNED: u32 = 8u;
// ChunkView.flags: the mesh has indices.
const VIEW_INDEXED: u32 = 1u;
// DrawCommand.first_instance of a sibling command without indices.
const NOT_INDEXED: u32 = 0xffffffffu;
// Bound.halves: the bounds of the words are too large to help. Neighbors are far from each other.
const BOUND_IS_LOOSE: u32 = 0x80000000u;
// DistanceBand.flags: `low` and `high` limit the distance from the eye.
const BAND_BY_DISTANCE: u32 = 1u;
// They limit the size alone: all instances have distance 1.
const BAND_BY_SIZE: u32 = 2u;
// `start` and `end` limit the distance of the instance's origin.
const BAND_OF_ORIGINS: u32 = 4u;
// They limit the distance of the sphere's center.
const BAND_OF_CENTERS: u32 = 8u;
// `thin` says which share of the instances is kept.
const BAND_IS_THINNED: u32 = 16u;
// With it: all instances have distance 1.
const BAND_THINS_BY_SIZE: u32 = 32u;
// A sphere is compared with at most 2^FOOTPRINT_BITS columns and rows of a depth pyramid.
const FOOTPRINT_BITS: u32 = 2u;
// OcclusionRow.flags: the history says nothing of the row.
const OCCLUSION_IS_NEW: u32 = 1u;
// Only what the history says is drawn; all, if it says nothing.
const OCCLUSION_IS_FROZEN: u32 = 2u;
// The view sees something else than in the frame before.
const OCCLUSION_IS_CUT: u32 = 4u;
// OcclusionRow.near_pixels is divided by this for what the history does not know.
const NEAR_DIVISOR: u32 = 16u;
// Words of a record of the history: see occlusion/history.wgsl.
const RECORD_WORDS: u32 = 66u;

// One member of a set. `rotation` is a smallest-three quaternion (see instance.wgsl).
struct PackedInstance {
    position: vec3<f32>,
    rotation: u32,
}

// Sizes of one batch.
struct Batch {
    // Blocks of all chunks: workgroups of `vote`.
    block_count: u32,
    // Workgroups in x of a two-dimensional dispatch over blocks.
    dispatch_width: u32,
    // Counts, one per row and block, without the closing total.
    count_len: u32,
    chunk_count: u32,
    row_count: u32,
    // Capacity of the survivor arena, in ids.
    survivor_capacity: u32,
    // 1 if counts are many enough that `scan` runs.
    is_scanned: u32,
    // Strips of all rows together.
    strip_count: u32,
    // Blocks per strip, a power of two up to MOST_STRIP_BLOCKS. The last strip of a row may be
    // shorter.
    strip_blocks: u32,
    // 1 if `order` runs, because some row is near first. Otherwise all rows are in set order.
    is_near_first: u32,
    // Tiles of ORDER_TILE units of all rows together.
    order_tile_count: u32,
    // Words per unit, a power of two up to BLOCK_WORDS: what `order` sorts. A batch with few words
    // has small units.
    unit_words: u32,
    // Rows that may be hidden, and their blocks: one cell per row and block.
    occluded_rows: u32,
    occluded_cells: u32,
    pad_a: u32,
    pad_b: u32,
}

// A run of instances of one set in one page, drawn by one entity and tested against `row_count`
// views.
struct Chunk {
    // The rows of the affine matrix from the set's space to the world.
    world_x: vec4<f32>,
    world_y: vec4<f32>,
    world_z: vec4<f32>,
    // Bounding sphere of the mesh in the mesh's space: center, radius.
    sphere: vec4<f32>,
    // First instance, counted from the start of the page.
    first_instance: u32,
    instance_count: u32,
    // First block, counted over the chunks of the batch.
    first_block: u32,
    block_count: u32,
    first_row: u32,
    row_count: u32,
    // Count of the first row's first block. The count of row r and block b is
    //     first_count + r * block_count + b.
    first_count: u32,
    flags: u32,
    // Largest stretch of the affine matrix: world radius = local radius * world_scale.
    world_scale: f32,
    // First strip of the first row, counted over the batch.
    first_strip: u32,
    // First tile of `order` of the first row, counted over the batch.
    first_order_tile: u32,
    pad: u32,
}

// What a view keeps. The planes are in the set's space. Their normals have length one and point
// inwards: a sphere is outside if dot(plane, (center, 1)) + radius <= 0 for any plane.
struct ViewPlanes {
    left: vec4<f32>,
    right: vec4<f32>,
    top: vec4<f32>,
    bottom: vec4<f32>,
    near: vec4<f32>,
    far: vec4<f32>,
    // Reach of a light in world space: center, range. A negative range has no limit.
    reach: vec4<f32>,
    // The same planes as pairs.
    pairs: PlanePairs,
    order: ViewOrder,
    band: DistanceBand,
}

// Opposing planes as pairs about an axis. With d = dot(depth, (center, 1)), a sphere is kept if
//     |dot(x, (center, 1))| < slopes.x * d + slopes.y + radius,
//     |dot(y, (center, 1))| < slopes.z * d + slopes.w + radius, and
//     low - radius < d < high + radius.
struct PlanePairs {
    // Half of (left - right); half of (top - bottom).
    x: vec4<f32>,
    y: vec4<f32>,
    // Distance along the view.
    depth: vec4<f32>,
    // Half the width at a depth: slope, offset. Then half the height: slope, offset.
    slopes: vec4<f32>,
    // Depths of the near and the far plane.
    low: f32,
    high: f32,
    // 1 if the view's planes form such pairs. Otherwise each plane is tested.
    is_paired: u32,
    pad: u32,
}

// In which order a view takes blocks (order.wgsl), or sorts its survivors (far_first.wgsl).
struct ViewOrder {
    // The eye of the view, in the set's space, and 1; or the direction of a view without an eye
    // point, in steps per unit, and 0. In a far-first row, the axis towards the viewer.
    eye: vec4<f32>,
    // The step at which the nearest ring begins.
    first_step: i32,
    // 1 if near blocks come first; 0 for set order.
    is_near_first: u32,
    // 1 if the survivors are sorted far first. Then the blocks are in set order.
    is_far_first: u32,
    pad: u32,
}

// The distances at which a row keeps instances: of one level of detail, and of a visibility range.
// All are squares.
struct DistanceBand {
    // The eye, in the world.
    eye: vec3<f32>,
    // BAND_BY_DISTANCE and so on; 0 keeps every distance.
    flags: u32,
    // With d the distance of a sphere's center in the world over the sphere's radius in the set's
    // units, a row keeps low <= d * d < high. The bands of a view's levels adjoin, so each sphere
    // is in one of them; or they overlap, so that levels fade.
    low: f32,
    // Negative: without limit.
    high: f32,
    // Distances in the world, whatever the size: a row keeps start <= d * d < end.
    start: f32,
    end: f32,
    // With BAND_IS_THINNED: the share of the instances that is kept is this, over d * d.
    thin: f32,
    pad_a: u32,
    pad_b: u32,
    pad_c: u32,
}

// One view of one chunk, at one level of detail: what it keeps, what its survivors draw, and the
// place of its counts. Its index in `chunk_views` is a row.
struct ChunkView {
    planes: ViewPlanes,
    // Indices of the mesh, or vertices if it has no indices.
    element_count: u32,
    first_element: u32,
    // Added to each index.
    base_vertex: i32,
    // VIEW_INDEXED.
    flags: u32,
    // The first block's count.
    first_count: u32,
    block_count: u32,
    // The row's sibling commands, which draw further meshes with the row's survivors. They come
    // after the commands of all rows.
    first_sibling: u32,
    sibling_count: u32,
}

// Bound of the positions of a block's instances, in the set's space. It does not depend on the
// mesh. Instances that can never be drawn do not count: their position or scale is not finite, or a
// scale is below 0.
struct Bound {
    center: vec3<f32>,
    // Below 0 if no instance can be drawn.
    radius: f32,
    // Largest scale of any axis of an instance.
    max_scale: f32,
    // One bit per word with an instance that can never be drawn.
    gaps: u32,
    // How the words lie to each other: 3 bits per halving (order.wgsl). BOUND_IS_LOOSE besides.
    halves: u32,
    // Smallest of the instances' largest scales.
    least_scale: f32,
    // Bound of each word's instances, packed (visibility.wgsl).
    words: array<u32, BLOCK_WORDS>,
}

// A run of blocks of one page whose bounds `bound` makes.
struct BoundJob {
    // First block, counted from the start of the page.
    first_block: u32,
    block_count: u32,
    // End of the instances, counted from the start of the page. The last block may not be full.
    end: u32,
    // Numbers per scale: 0 if the page has no scales, 1, or 3 for a scale per axis.
    scale_floats: u32,
}

// An indirect draw command. Without indices it has four words: its fourth is the first instance.
struct DrawCommand {
    element_count: u32,
    instance_count: u32,
    first_element: u32,
    base_vertex_or_first_instance: u32,
    first_instance: u32,
}

// Totals of a batch. The host reads them back a few frames later.
struct Totals {
    // Survivors of all rows, including those that did not fit.
    survivors: u32,
    // Survivors that did not fit into the arena.
    overflow: u32,
    // Always 1: the count of a `multi_draw_*_indirect_count` of one draw.
    draw_count: u32,
    // Capacity of the arena, in ids, in which all survivors fit.
    needed: u32,
    // Blocks that some view crosses, if the compaction classifies blocks.
    crossed: u32,
    // Of a view's late lists: instances that the frustum keeps, hidden or not.
    in_frustum: u32,
    // Of these, those that reach no sample of the viewport, hidden or not.
    too_small: u32,
}

// What stands at one rank of a batch: the k-th unit of a row, in the row's order. The ranks of a
// row have the places of its units, row after row.
struct Rank {
    // The unit's first word of the batch, plus a flip below batch.unit_words: word k of the unit,
    // in the row's order, is word `first_word ^ k`. Unused in set order.
    first_word: u32,
    // Survivors before it in its tile of the scan, if ranks are scanned.
    place: u32,
}

// A row whose survivors are sorted far first.
struct FarFirstJob {
    // Direction towards the viewer, in the set's space. Its largest component is 1.
    axis: vec3<f32>,
    row: u32,
    // Center of the mesh's bounding sphere, in units that `turn` scales; 12 bits per coordinate.
    center: vec3<f32>,
    // Chunk.flags.
    flags: u32,
    // Instances of the row.
    most_survivors: u32,
    // 1 if the mesh has indices.
    is_indexed: u32,
    pad_a: u32,
    pad_b: u32,
}

// What `far_first` sorts of a row.
struct FarFirstSpan {
    // Its first survivor in the arena.
    first_survivor: u32,
    // Its survivors; 0 if they are not sorted.
    len: u32,
    // Its first key, and its first tile, counted over the rows of the batch.
    first_key: u32,
    first_tile: u32,
}

// A round of `far_first`.
struct FarFirstRound {
    // Rows that are sorted.
    job_count: u32,
    // Rows that may have several tiles. They are the first ones.
    large_count: u32,
    // Keys that there is room for.
    key_capacity: u32,
    // The lowest bit of the digit.
    shift: u32,
    // 1 in the round that writes to the arena.
    is_last: u32,
    pad_a: u32,
    pad_b: u32,
    pad_c: u32,
}

// From the set's space to pixels and depth, of a view with reverse z (span.wgsl).
struct Projection {
    // The rows of the matrix. Divided by w, x is the number of pixels right of the viewport's left
    // border, y the number of pixels below its upper border, and z the depth: 1 near, 0 far.
    x: vec4<f32>,
    y: vec4<f32>,
    z: vec4<f32>,
    w: vec4<f32>,
    // With n the first three components of the row, and m the first three of w:
    // n.n, n.m, |n x m|^2, m.m.
    gram_x: vec4<f32>,
    gram_y: vec4<f32>,
    gram_z: vec4<f32>,
    // The same of x + y and of x - y.
    gram_sum: vec4<f32>,
    gram_difference: vec4<f32>,
    // Where the samples of a pixel are: least and greatest x, least and greatest y. They are wider
    // than they are by what a device rounds.
    samples: vec4<f32>,
    // The same along the diagonals: least and greatest x + y, least and greatest x - y.
    diagonal_samples: vec4<f32>,
    // The rows expect positions times this power of two. It keeps squares within range.
    unit: f32,
    // Added to the radius, after `unit`: what is rounded at any position.
    margin: f32,
    // Length of m.
    slope: f32,
    // 1 if the diagonals can be used, 0 if x and y are nearly parallel.
    has_diagonals: u32,
}

// A level of a depth pyramid: its first texel in the buffer, and its size in texels. Its rows
// follow each other.
struct PyramidLevel {
    first: u32,
    width: u32,
    height: u32,
    pad: u32,
}

// The farthest depth of squares of pixels. Texel (i, j) of level k is the least depth of the pixels
// [i * 2^k, (i + 1) * 2^k) x [j * 2^k, (j + 1) * 2^k) of the viewport. Sizes are rounded up, and
// the last level has one texel:
//
//     pixels    0 1 2 3 4      level 0
//     texels    0 0 1 1 2      level 1: texel 2 has one column of pixels
//               0 0 0 0 1      level 2
//               0 0 0 0 0      level 3
struct DepthPyramid {
    // The viewport's first pixel in the depth texture.
    first_x: u32,
    first_y: u32,
    // Size of the viewport, in pixels.
    width: u32,
    height: u32,
    // 0: there is no pyramid, and nothing is hidden.
    level_count: u32,
    // Samples per pixel of the depth texture.
    samples: u32,
    pad_a: u32,
    pad_b: u32,
    levels: array<PyramidLevel, MOST_PYRAMID_LEVELS>,
}

// A row whose instances may be hidden behind what a view has drawn. `recall` and `occlude` have one
// table of them per batch.
struct OcclusionRow {
    projection: Projection,
    // Chunk.sphere, first_instance, instance_count and flags.
    sphere: vec4<f32>,
    first_instance: u32,
    instance_count: u32,
    chunk_flags: u32,
    block_count: u32,
    // Cells of the rows before it in the table.
    first_cell: u32,
    // Count of the first block: in `recall` of the row, in `occlude` of the row of late survivors.
    first_count: u32,
    // In `occlude`, the count of the first block of the row of all visible survivors.
    first_visible: u32,
    // Record of the first block in the history.
    first_record: u32,
    // Words with an instance of this diameter, in pixels, are drawn early in any case.
    near_pixels: f32,
    // OCCLUSION_IS_NEW, OCCLUSION_IS_FROZEN, OCCLUSION_IS_CUT.
    flags: u32,
    pad_a: u32,
    pad_b: u32,
}

// ---- The tables of a batch. The constant `LAYOUT` ends here.

@group(0) @binding(0) var<uniform> batch: Batch;
@group(0) @binding(1) var<storage, read> chunks: array<Chunk>;
@group(0) @binding(2) var<storage, read> chunk_views: array<ChunkView>;

// The block of a workgroup, counted over the batch.
fn block_of(workgroup: vec3<u32>, dispatch_width: u32) -> u32 {
    return workgroup.y * dispatch_width + workgroup.x;
}

// The chunk that holds `block`: the last one whose first block is not after it. Chunks are in block
// order and never empty.
fn chunk_of(block: u32, chunk_count: u32) -> u32 {
    var low = 0u;
    var high = chunk_count;
    while (high - low > 1u) {
        let middle = (low + high) / 2u;
        if (chunks[middle].first_block <= block) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}
