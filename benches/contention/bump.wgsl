// Every invocation counts itself once. The words in capitals are filled in for each case (case.rs).

@group(0) @binding(0) var<storage, read_write> cells: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read_write> kept: array<u32>;

@compute @workgroup_size(128)
fn count_all(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
    SUBGROUP_BUILTINS
) {
    let group = workgroup.y * groups.x + workgroup.x;
    let cell = TARGET;
    var old = 0u;
    COUNT
    // Never the case, but the compiler does not know: the returned value is used.
    USE
}
