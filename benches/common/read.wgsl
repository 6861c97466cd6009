// Reads a whole page and keeps nothing, which measures the memory's bandwidth. Each thread reads
// eight times 16 bytes, as the kernels that test instances do.

@group(0) @binding(0) var<storage, read> page: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> kept: array<u32>;

@compute @workgroup_size(128)
fn read_page(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let last = arrayLength(&page) - 1u;
    let first = (workgroup.y * groups.x + workgroup.x) * 1024u + thread;
    var all = vec4<u32>(0u);
    for (var k = 0u; k < 8u; k += 1u) {
        all ^= page[min(first + k * 128u, last)];
    }
    // Never true for positions in [-1, 1], but the compiler does not know that.
    if (all.x == 0x7fc00001u && all.y == 0x7fc00002u && all.z == 0x7fc00003u) {
        kept[0] = all.w;
    }
}
