// Every invocation counts itself once. `case.rs` replaces the words in capitals for each case.

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
    // Never true, but the compiler does not know that and must compute the returned value.
    USE
}
