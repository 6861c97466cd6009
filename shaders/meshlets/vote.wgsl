// Vote: a workgroup takes one tile of survivors, one per thread, and some meshlets. Each answer is
// one bit. The bits of a cell are four words. Meshlets of late lists are also compared with the
// view's depth pyramid. The twin is `reference::meshlet`.

import package::meshlets::layout::{
    CELL_WORDS, GpuMeshlet, ITEM_MESHLETS, MESHLET_TILE, MeshletTotals, item_of, meshlet_rows, row_of,
};
@if(late) import package::occlusion::footprint::is_hidden;
import package::shared::instance::{instance_scale, load_instance, rotate, unpack_quat};
import package::shared::layout::{Chunk, Projection, ViewPlanes};
import package::shared::visibility::{load_scale, sphere_in_reach, sphere_in_view};

@group(0) @binding(5) var<storage, read> survivors: array<u32>;
@group(0) @binding(7) var<storage, read> meshlets: array<GpuMeshlet>;

// An instance in its set's space.
struct Survivor {
    position: vec3<f32>,
    // Along the axes of the mesh.
    scale: vec3<f32>,
    rotation: vec4<f32>,
}

fn load_survivor(chunk_flags: u32, id: u32) -> Survivor {
    let instance = load_instance(id);
    let scale = instance_scale(instance) * load_scale(chunk_flags, id);
    return Survivor(instance.position, scale, unpack_quat(instance.rotation));
}

// The meshlet's sphere in the set's space.
fn place_sphere(survivor: Survivor, sphere: vec4<f32>) -> vec4<f32> {
    let center = rotate(survivor.rotation, sphere.xyz * survivor.scale) + survivor.position;
    let largest = max(max(survivor.scale.x, survivor.scale.y), survivor.scale.z);
    return vec4<f32>(center, sphere.w * largest);
}

// The eye in the survivor's mesh, because cones are as they were built there: an affine transform
// keeps which side of a triangle the eye is on. Times the product of the scales, so that nothing is
// divided by them: a flat survivor sees the eye from far away.
fn eye_in_mesh(survivor: Survivor, eye: vec4<f32>) -> vec4<f32> {
    let inverse = vec4<f32>(-survivor.rotation.xyz, survivor.rotation.w);
    let largest = max(max(survivor.scale.x, survivor.scale.y), survivor.scale.z);
    // Relative to the largest scale, so that products stay in range.
    let part = survivor.scale / select(1.0, largest, largest > 0.0);
    let turned = rotate(inverse, eye.xyz - eye.w * survivor.position);
    return vec4<f32>(turned * (part.yzx * part.zxy), eye.w * part.x * part.y * part.z * largest);
}

// What 32-bit arithmetic may lose of the direction to the eye, whose coordinates have length one in
// the set's space: 2^-20. It counts if a survivor is far from the set's origin and near the eye.
const EYE_ROUNDING: f32 = 9.5367431640625e-7;

// Whether the eye sees the back of every triangle in the sphere whose normal is in the cone.
fn faces_away(eye: vec4<f32>, axis: vec3<f32>, cutoff: f32, sphere: vec4<f32>) -> bool {
    let to_eye = eye.xyz - eye.w * sphere.xyz;
    let least = cutoff * length(to_eye) + abs(eye.w) * sphere.w + EYE_ROUNDING;
    return (cutoff < 1.0) & (-dot(axis, to_eye) > least);
}

// Whether the depth of the view hides everything in a sphere. What is not in a late list is drawn
// before there is a depth.
@if(late)
fn is_behind_depth(projection: Projection, sphere: vec4<f32>) -> bool {
    return is_hidden(projection, sphere);
}

@if(!late)
fn is_behind_depth(projection: Projection, sphere: vec4<f32>) -> bool {
    return false;
}

// What the vote finds out about a meshlet of a survivor. If no field is true, it faces away.
struct Found {
    outside: bool,
    hidden: bool,
    visible: bool,
}

// Tests a meshlet of a survivor of row `r`. `eye` is in the survivor's mesh.
fn test_meshlet(
    r: u32,
    planes: ViewPlanes,
    chunk: Chunk,
    eye: vec4<f32>,
    survivor: Survivor,
    meshlet: GpuMeshlet,
) -> Found {
    let cone = unpack4x8snorm(meshlet.cone);
    let sphere = place_sphere(survivor, meshlet.sphere);
    var inside = sphere_in_view(planes, sphere);
    if (planes.reach.w >= 0.0) {
        inside = inside & sphere_in_reach(planes, chunk, sphere);
    }
    let is_candidate = inside & !faces_away(eye, cone.xyz, cone.w, meshlet.sphere);
    var hidden = false;
    if (is_candidate) {
        hidden = is_behind_depth(meshlet_rows[r].projection, sphere);
    }
    return Found(!inside, hidden, is_candidate & !hidden);
}

@group(0) @binding(6) var<storage, read_write> spans: VoteSpans;
@group(0) @binding(8) var<storage, read_write> words: array<u32>;

// MeshletSpan with `outside` and `hidden` as atomics: this stage adds them up.
struct VoteSpan {
    first_item: u32,
    first_cell: u32,
    tile_count: u32,
    survivor_count: u32,
    first_survivor: u32,
    outside: atomic<u32>,
    first_source: u32,
    hidden: atomic<u32>,
}

struct VoteSpans {
    totals: MeshletTotals,
    rows: array<VoteSpan>,
}

var<workgroup> item_words: array<atomic<u32>, 32>; // ITEM_MESHLETS * CELL_WORDS
var<workgroup> item_outside: atomic<u32>;
var<workgroup> item_hidden: atomic<u32>;

// Votes on one work item of row `r`. `item` counts from the first item of the row.
fn vote_item(r: u32, item: u32, thread: u32, subgroup: u32, lane: u32, size: u32) {
    let planes = meshlet_rows[r].planes;
    let chunk = meshlet_rows[r].chunk;
    let first_meshlet = meshlet_rows[r].first_meshlet;
    let work = item_of(item, meshlet_rows[r].meshlet_count);
    let i = work.tile * MESHLET_TILE + thread;
    let survives = i < spans.rows[r].survivor_count;
    // A thread without a survivor tests the first survivor of the row, and its answer does not
    // count.
    let id = survivors[spans.rows[r].first_survivor + select(0u, i, survives)];
    let survivor = load_survivor(chunk.flags, id);
    let eye = eye_in_mesh(survivor, meshlet_rows[r].eye);

    var outside = 0u;
    var hidden = 0u;
    for (var k = 0u; k < ITEM_MESHLETS; k += 1u) {
        let m = work.first + k;
        // Uniform over the workgroup.
        if (m >= work.end) {
            break;
        }
        let meshlet = meshlets[first_meshlet + m];
        let found = test_meshlet(r, planes, chunk, eye, survivor, meshlet);
        outside += select(0u, 1u, survives & found.outside);
        hidden += select(0u, 1u, survives & found.hidden);
        add_votes(k * CELL_WORDS, survives & found.visible, thread, subgroup, lane, size);
    }
    atomicAdd(&item_outside, outside);
    if (hidden > 0u) {
        atomicAdd(&item_hidden, hidden);
    }
    workgroupBarrier();

    if (thread < ITEM_MESHLETS * CELL_WORDS) {
        let m = work.first + thread / CELL_WORDS;
        if (m < work.end) {
            let cell = spans.rows[r].first_cell + m * spans.rows[r].tile_count + work.tile;
            words[cell * CELL_WORDS + thread % CELL_WORDS] = atomicLoad(&item_words[thread]);
        }
    }
    if (thread == 0u) {
        atomicAdd(&spans.rows[r].outside, atomicLoad(&item_outside));
        atomicAdd(&spans.rows[r].hidden, atomicLoad(&item_hidden));
    }
    workgroupBarrier();
    // Clears the votes for the next item.
    if (thread < ITEM_MESHLETS * CELL_WORDS) {
        atomicStore(&item_words[thread], 0u);
    }
    if (thread == 0u) {
        atomicStore(&item_outside, 0u);
        atomicStore(&item_hidden, 0u);
    }
    workgroupBarrier();
}

// Adds the votes of a subgroup to the words of a cell: a ballot, at any subgroup size from 4 to
// 128. The bits of a subgroup are contiguous.
@if(subgroup)
fn add_votes(first_word: u32, vote: bool, thread: u32, subgroup: u32, lane: u32, size: u32) {
    let ballot = subgroupBallot(vote);
    let first_bit = subgroup * size;
    if (size < 32u) {
        if (lane == 0u) {
            atomicOr(&item_words[first_word + first_bit / 32u], ballot.x << (first_bit % 32u));
        }
    } else if (lane < size / 32u) {
        let low = select(ballot.x, ballot.y, lane == 1u);
        let word = select(low, select(ballot.z, ballot.w, lane == 3u), lane > 1u);
        atomicOr(&item_words[first_word + first_bit / 32u + lane], word);
    }
}

@if(subgroup)
@compute @workgroup_size(MESHLET_TILE)
fn vote(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {
    for (var item = workgroup.x; item < spans.totals.item_count; item += workgroups.x) {
        let r = row_of(item);
        let thread = subgroup * size + lane;
        vote_item(r, item - spans.rows[r].first_item, thread, subgroup, lane, size);
    }
}

// Without subgroups, each thread adds its vote.
@if(!subgroup)
fn add_votes(first_word: u32, vote: bool, thread: u32, subgroup: u32, lane: u32, size: u32) {
    if (vote) {
        atomicOr(&item_words[first_word + thread / 32u], 1u << (thread % 32u));
    }
}

@if(!subgroup)
@compute @workgroup_size(MESHLET_TILE)
fn vote(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    for (var item = workgroup.x; item < spans.totals.item_count; item += workgroups.x) {
        let r = row_of(item);
        vote_item(r, item - spans.rows[r].first_item, thread, 0u, 0u, 0u);
    }
}
