// The body of pass 2. Its sums show whether each item of each source was processed exactly once.
// The sum over a source's items is the product of a hash of the source and a prefix sum over items,
// so the host computes it without an expansion.

struct BenchSums {
    items: atomic<u32>,
    a: atomic<u32>,
    b: atomic<u32>,
    // Added to the sum `a` of each workgroup to spoil the result. The host must then reject it.
    spoil: u32,
}

@group(1) @binding(0) var<storage, read_write> bench_sums: BenchSums;

var<private> bench_items: u32;
var<private> bench_a: u32;
var<private> bench_b: u32;
var<workgroup> bench_own: BenchOwn;

struct BenchOwn {
    items: atomic<u32>,
    a: atomic<u32>,
    b: atomic<u32>,
    arrived: atomic<u32>,
}

fn bench_hash(value: u32) -> u32 {
    let product = value * 0x9e3779b1u;
    return product ^ (product >> 15u);
}

fn expand_item(source: u32, item: u32) {
    let s = bench_hash(source + 1u);
    let i = bench_hash(item + 0x7f4a7c15u);
    bench_items += 1u;
    bench_a += s * i;
    bench_b += (s >> 7u) * (i ^ 0x5bd1e995u);
}

fn expand_done() {
    atomicAdd(&bench_own.items, bench_items);
    atomicAdd(&bench_own.a, bench_a);
    atomicAdd(&bench_own.b, bench_b);
    workgroupBarrier();
    // Whichever thread of the workgroup arrives first adds the workgroup's sums.
    if (atomicAdd(&bench_own.arrived, 1u) == 0u) {
        atomicAdd(&bench_sums.items, atomicLoad(&bench_own.items));
        atomicAdd(&bench_sums.a, atomicLoad(&bench_own.a) + bench_sums.spoil);
        atomicAdd(&bench_sums.b, atomicLoad(&bench_own.b));
    }
}
