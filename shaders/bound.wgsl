// A workgroup a block: a sphere around the positions of its instances, and their greatest scale. It runs when
// instances have changed, not every frame.

@group(0) @binding(0) var<uniform> job: BoundJob;
// Binding 3 is `instances`, declared with its encoding (instance_packed.wgsl).
@group(0) @binding(4) var<storage, read> scales: array<f32>;
@group(0) @binding(5) var<storage, read_write> bounds: array<Bound>;

var<workgroup> lows: array<vec4<f32>, BLOCK_THREADS>;
var<workgroup> highs: array<vec4<f32>, BLOCK_THREADS>;

// Compared as bits: a compiler may take it that there is no NaN.
fn is_finite(v: vec3<f32>) -> bool {
    let exponents = bitcast<vec3<u32>>(v) & vec3<u32>(0x7f800000u);
    return all(exponents != vec3<u32>(0x7f800000u));
}

fn f32_max() -> f32 {
    return bitcast<f32>(0x7f7fffffu);
}

@compute @workgroup_size(BLOCK_THREADS)
fn bound(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let own = workgroup.y * workgroups.x + workgroup.x;
    if (own >= job.block_count) {
        return;
    }
    let block = job.first_block + own;
    let first = block * BLOCK + thread;
    let last = job.end - 1u;

    // The fourth components: whether all instances are finite (1 or 0), and the greatest scale. What is not finite
    // is never visible, and counts for nothing else.
    var low = vec4<f32>(vec3<f32>(3e38), 1.0);
    var high = vec4<f32>(vec3<f32>(-3e38), 0.0);
    for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
        let at = min(first + k * BLOCK_THREADS, last);
        let instance = load_instance(at);
        let position = instance.position;
        var scale = instance_scale(instance);
        if (job.has_scale != 0u) {
            scale *= scales[at];
        }
        if (is_finite(position) && is_finite(vec3<f32>(scale))) {
            low = vec4<f32>(min(low.xyz, position), low.w);
            high = vec4<f32>(max(high.xyz, position), max(high.w, scale));
        } else {
            low.w = 0.0;
        }
    }
    lows[thread] = low;
    highs[thread] = high;
    workgroupBarrier();
    for (var span = BLOCK_THREADS / 2u; span > 0u; span /= 2u) {
        if (thread < span) {
            lows[thread] = min(lows[thread], lows[thread + span]);
            highs[thread] = max(highs[thread], highs[thread + span]);
        }
        workgroupBarrier();
    }
    let empty = lows[0].x > highs[0].x;
    let centre = (lows[0].xyz + highs[0].xyz) * 0.5;
    let finite = lows[0].w;
    let max_scale = highs[0].w;
    workgroupBarrier();

    var reach = 0.0;
    for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
        let instance = load_instance(min(first + k * BLOCK_THREADS, last));
        reach = max(reach, distance(instance.position, centre));
    }
    highs[thread].w = reach;
    workgroupBarrier();
    for (var span = BLOCK_THREADS / 2u; span > 0u; span /= 2u) {
        if (thread < span) {
            highs[thread].w = max(highs[thread].w, highs[thread + span].w);
        }
        workgroupBarrier();
    }
    if (thread == 0u) {
        // A block of nothing visible is outside of every view, one with some of it never inside.
        let unknown = select(f32_max(), -f32_max(), empty);
        let radius = select(unknown, highs[0].w, finite == 1.0);
        bounds[block] = Bound(centre, radius, max_scale, 0u, 0u, 0u);
    }
}
