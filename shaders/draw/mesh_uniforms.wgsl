// One of Bevy's MeshUniforms per survivor of one draw, in the order of the survivors, and the
// draw's command: for vertex stages that know nothing of instances.

import package::shared::instance::rotate;
import package::shared::instance_pack::{PackedInstance, unpack};

// bevy_pbr::mesh_types::Mesh, 176 bytes.
struct Mesh {
    world_from_local: mat3x4<f32>,
    previous_world_from_local: mat3x4<f32>,
    local_from_world_transpose_a: mat2x4<f32>,
    local_from_world_transpose_b: f32,
    flags: u32,
    lightmap_uv_rect: vec2<u32>,
    first_vertex_index: u32,
    current_skin_index: u32,
    material_and_lightmap_bind_group_slot: u32,
    tag: u32,
    morph_descriptor_index: u32,
}

// The entity's slot, as in draw/instance.wgsl.
struct DrawSlot {
    mesh_uniform: Mesh,
    flags: u32,
    region_first: u32,
    set_first: u32,
    previous_offset: u32,
    // How instances fade (draw/fade.wgsl).
    errors: vec4<f32>,
    distances: vec4<f32>,
    center: vec3<f32>,
    radius: f32,
    pad_a: vec4<f32>,
    // Only with DRAW_HAS_OFFSET, as in draw/instance.wgsl.
    instance_from_mesh: mat3x4<f32>,
    previous_instance_from_mesh: mat3x4<f32>,
    instance_from_mesh_normals: mat3x4<f32>,
}

struct UniformJob {
    // The row's command among the batch's.
    row: u32,
    // 1 if the mesh has indices.
    indexed: u32,
    // The command to write.
    draw: u32,
    // The first MeshUniform, and the number of them that fit.
    first: u32,
    room: u32,
    pad_a: u32,
    pad_b: u32,
    pad_c: u32,
}

// As in shared/layout.wgsl.
struct DrawCommand {
    element_count: u32,
    instance_count: u32,
    first_element: u32,
    base_vertex_or_first_instance: u32,
    first_instance: u32,
}

// The host puts TOTALS_WORDS, the size of its `Totals`, in front of the kernel.
struct Args {
    totals: array<u32, TOTALS_WORDS>,
    draws: array<DrawCommand>,
}

const DRAW_HAS_SCALE: u32 = 1u;
const DRAW_HAS_OFFSET: u32 = 8u;
const DRAW_NON_UNIFORM_SCALE: u32 = 16u;
const DRAW_DATA_WORDS: u32 = 8u;
// Bevy's MESH_FLAGS_SIGN_DETERMINANT_MODEL_3X3_BIT: the transform does not mirror.
const FLAG_SIGN_DETERMINANT: u32 = 0x80000000u;
const THREADS: u32 = 64u;

@group(0) @binding(0) var<uniform> job: UniformJob;
@group(0) @binding(1) var<storage, read> slot: DrawSlot;
@group(0) @binding(2) var<storage, read> survivors: array<u32>;
@group(0) @binding(3) var<storage, read> instances: array<PackedInstance>;
@group(0) @binding(4) var<storage, read> scales: array<f32>;
@group(0) @binding(5) var<storage, read> data: array<u32>;
@group(0) @binding(6) var<storage, read> args: Args;
@group(0) @binding(7) var<storage, read_write> uniforms: array<Mesh>;
@group(0) @binding(8) var<storage, read_write> commands: Args;

// The transform of instance `at`. Columns: rotation times scale, then the position.
fn load(at: u32) -> mat4x3<f32> {
    let instance = unpack(instances[at]);
    var scale = vec3<f32>(1.0);
    if ((slot.flags & DRAW_HAS_SCALE) != 0u) {
        if ((slot.flags & DRAW_NON_UNIFORM_SCALE) != 0u) {
            scale = vec3<f32>(scales[at * 3u], scales[at * 3u + 1u], scales[at * 3u + 2u]);
        } else {
            scale = vec3<f32>(scales[at]);
        }
    }
    let q = instance.rotation;
    return mat4x3<f32>(
        rotate(q, vec3<f32>(scale.x, 0.0, 0.0)),
        rotate(q, vec3<f32>(0.0, scale.y, 0.0)),
        rotate(q, vec3<f32>(0.0, 0.0, scale.z)),
        instance.position);
}

// A row of an affine matrix times the instance's matrix.
fn row_times(row: vec4<f32>, instance: mat4x3<f32>) -> vec4<f32> {
    return row.xyz * instance + vec4<f32>(0.0, 0.0, 0.0, row.w);
}

fn times(entity: mat3x4<f32>, instance: mat4x3<f32>) -> mat3x4<f32> {
    return mat3x4<f32>(
        row_times(entity[0], instance),
        row_times(entity[1], instance),
        row_times(entity[2], instance));
}

@compute @workgroup_size(THREADS)
fn mesh_uniforms(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let i = (workgroup.y * workgroups.x + workgroup.x) * THREADS + thread;
    let command = args.draws[job.row];
    let count = min(command.instance_count, job.room);
    let is_indexed = job.indexed != 0u;
    if (i == 0u) {
        if (is_indexed) {
            commands.draws[job.draw] = DrawCommand(command.element_count, count, command.first_element, command.base_vertex_or_first_instance, job.first);
        } else {
            commands.draws[job.draw] = DrawCommand(command.element_count, count, command.first_element, job.first, 0u);
        }
    }
    if (i >= count) {
        return;
    }
    let id = survivors[select(command.base_vertex_or_first_instance, command.first_instance, is_indexed) + i];
    let now = load(id);
    var before = now;
    if (slot.previous_offset != 0u) {
        let at = id + slot.previous_offset;
        let exponents = bitcast<vec3<u32>>(instances[at].position) & vec3<u32>(0x7f800000u);
        if (all(exponents != vec3<u32>(0x7f800000u))) {
            before = load(at);
        }
    }
    var mesh = slot.mesh_uniform;
    // The inverse of rotation and scale, transposed, is the rotation over the scale.
    let sizes = vec3<f32>(dot(now[0], now[0]), dot(now[1], now[1]), dot(now[2], now[2]));
    let over = 1.0 / select(vec3<f32>(1.0), sizes, sizes > vec3<f32>(0.0));
    var turned = mat3x3<f32>(now[0] * over.x, now[1] * over.y, now[2] * over.z);
    if (any(sizes == vec3<f32>(0.0))) {
        // A flat instance has no inverse. The cofactors point the same way.
        turned = mat3x3<f32>(cross(now[1], now[2]), cross(now[2], now[0]), cross(now[0], now[1]));
    }
    let a = mesh.local_from_world_transpose_a;
    let inverse = mat3x3<f32>(
        a[0].xyz,
        vec3<f32>(a[0].w, a[1].xy),
        vec3<f32>(a[1].zw, mesh.local_from_world_transpose_b));
    var normal = inverse * turned;
    mesh.world_from_local = times(mesh.world_from_local, now);
    mesh.previous_world_from_local = times(mesh.previous_world_from_local, before);
    if ((slot.flags & DRAW_HAS_OFFSET) != 0u) {
        mesh.world_from_local = times(mesh.world_from_local, transpose(slot.instance_from_mesh));
        let previous = transpose(slot.previous_instance_from_mesh);
        mesh.previous_world_from_local = times(mesh.previous_world_from_local, previous);
        let rows = slot.instance_from_mesh_normals;
        normal = normal * transpose(mat3x3<f32>(rows[0].xyz, rows[1].xyz, rows[2].xyz));
        if (rows[0].w < 0.0) {
            mesh.flags ^= FLAG_SIGN_DETERMINANT;
        }
    }
    mesh.local_from_world_transpose_a = mat2x4<f32>(
        vec4<f32>(normal[0], normal[1].x), vec4<f32>(normal[1].yz, normal[2].xy));
    mesh.local_from_world_transpose_b = normal[2].z;
    let words = slot.flags >> DRAW_DATA_WORDS;
    if (words != 0u) {
        mesh.tag = data[id * words];
    }
    uniforms[job.first + i] = mesh;
}
