//! The machine itself, by small kernels whose results are computed by hand.

use super::machine::{
    dispatch::{Buffers, Dispatch},
    lower::lower,
    schedule::{Frozen, OneAtATime, RoundRobin, Scheduler},
};

/// Declares what the kernels share: `out`, an array of u32, and the kernel's head.
pub const HEAD: &str = "
    @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    var<workgroup> shared_words: array<u32, 128>;
";
pub const ARGUMENTS: &str = "
    @builtin(local_invocation_index) thread: u32,
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
";

/// Runs a kernel of 128 threads. Returns what it wrote.
pub fn run_with(
    globals: &str,
    code: &str,
    (size, workgroups): (u32, u32),
    scheduler: &mut dyn Scheduler,
) -> Result<Vec<u32>, String> {
    let text =
        format!("{HEAD}{globals} @compute @workgroup_size(128) fn main({ARGUMENTS}) {{ {code} }}");
    let program = lower(&text, "main", &[])?;
    let mut buffers = Buffers::from([(0, vec![0; 128])]);
    let dispatch = Dispatch {
        workgroups: [workgroups, 1, 1],
        subgroup_size: size,
    };
    program.run(dispatch, &mut buffers, scheduler)?;
    Ok(buffers.remove(&0).unwrap())
}

fn run(code: &str, size: u32) -> Result<Vec<u32>, String> {
    run_with("", code, (size, 1), &mut RoundRobin::default())
}

/// A number per thread.
fn threads(f: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..128).map(f).collect()
}

#[test]
fn lanes_take_their_own_way() {
    let code = "
        var sum = 0u;
        for (var i = 0u; i < thread; i += 1u) {
            if (i % 5u == 3u) { continue; }
            if (i > 20u) { break; }
            switch i % 4u {
                case 0u, 1u: { sum += 1u; }
                case 2u: { if (thread % 2u == 0u) { break; } sum += 10u; }
                default: { sum += 100u; continue; }
            }
            sum += 1000u;
        }
        out[thread] = sum;
        if (thread == 77u) { return; }
        out[thread] += 1000000u;";
    let wanted = threads(|thread| {
        let mut sum = 0;
        for i in (0..thread).filter(|i| i % 5 != 3 && *i <= 20) {
            match i % 4 {
                0 | 1 => sum += 1001,
                2 => sum += if thread % 2 == 0 { 1000 } else { 1010 },
                _ => sum += 100,
            }
        }
        sum + if thread == 77 { 0 } else { 1_000_000 }
    });
    for size in [1, 4, 32, 128] {
        assert_eq!(run(code, size).unwrap(), wanted, "size {size}");
    }
}

/// Lanes that return from within a condition do not take along those that the condition left out.
#[test]
fn lanes_return_from_nested_conditions() {
    let globals = "
        var<private> nine: u32 = 9u;
        fn state(i: u32) -> u32 {
            if (i % 2u == 0u) {
                if (i % 4u < 4u) { return 1u; }
            } else if (i > 60u) {
                for (var k = 0u; k < 9u; k += 1u) {
                    if (k > 3u) { if (i > 90u) { return k; } }
                }
            }
            return nine + i;
        }";
    let wanted = threads(|thread| match thread {
        even if even % 2 == 0 => 1,
        odd if odd > 90 => 4,
        odd => 9 + odd,
    });
    for size in [1, 8, 128] {
        let fair = &mut RoundRobin::default();
        let found = run_with(globals, "out[thread] = state(thread);", (size, 1), fair);
        assert_eq!(found.unwrap(), wanted, "size {size}");
    }
}

#[test]
fn functions_take_pointers_and_return_from_loops() {
    let globals = "
        fn add(to: ptr<function, array<vec3<u32>, 4>>, at: u32, by: u32) -> u32 {
            for (var k = 0u; k < 3u; k += 1u) {
                (*to)[at][k] += by * (k + 1u);
                if (k == by) { return k; }
            }
            return 9u;
        }";
    let code = "
        var parts: array<vec3<u32>, 4>;
        let first = add(&parts, thread % 4u, thread);
        let second = add(&parts, thread % 4u, 1u);
        let part = parts[thread % 4u];
        out[thread] = first * 10000u + second * 1000u + part.x + part.y + part.z;";
    let wanted = threads(|thread| {
        let first = if thread < 3 { thread } else { 9 };
        let added = [thread, 3 * thread, 6 * thread][first.min(2) as usize];
        first * 10_000 + 1000 + added + 3
    });
    let found = run_with(globals, code, (8, 1), &mut RoundRobin::default());
    assert_eq!(found.unwrap(), wanted);
}

#[test]
fn ballots_have_a_bit_per_lane() {
    let code = "
        let ballot = subgroupBallot(thread % 3u == 0u);
        out[thread] = ballot[thread % 4u];";
    for size in [1, 4, 8, 32, 64, 128] {
        let wanted = threads(|thread| {
            let first = thread / size * size;
            let lanes = (0..32).map(|bit| thread % 4 * 32 + bit);
            let with = |lane: &u32| *lane < size && (first + lane).is_multiple_of(3);
            lanes
                .filter(with)
                .fold(0, |word, lane| word | 1 << (lane % 32))
        });
        assert_eq!(run(code, size).unwrap(), wanted, "size {size}");
    }
}

#[test]
fn lanes_add_and_swap() {
    let code = "
        let all = subgroupAdd(thread);
        let before = subgroupExclusiveAdd(1u + thread);
        let up_to = subgroupInclusiveAdd(1u + thread);
        let largest = subgroupMax(thread ^ 5u);
        let swapped = subgroupShuffleXor(thread, 1u);
        let first = subgroupBroadcastFirst(thread);
        let turned = subgroupShuffle(thread, size - 1u - lane);
        let bits = subgroupOr(1u << (thread % 32u));
        let every = select(0u, 1u, subgroupAll(thread < 100u));
        let some = select(0u, 1u, subgroupAny(thread == 99u));
        out[thread] = all + 3u * before + 5u * up_to + 7u * largest + 11u * swapped
            + 13u * first + 17u * turned + 19u * bits + 23u * every + 29u * some;";
    for size in [4u32, 16, 64, 128] {
        let wanted = threads(|thread| {
            let first = thread / size * size;
            let lanes = first..first + size;
            let before: u32 = (first..thread).map(|thread| thread + 1).sum();
            let bits = lanes
                .clone()
                .fold(0, |bits: u32, lane| bits | 1 << (lane % 32));
            let terms = [
                lanes.clone().sum(),
                3 * before,
                5 * (before + 1 + thread),
                7 * lanes.clone().map(|lane| lane ^ 5).max().unwrap(),
                11 * (thread ^ 1),
                13 * first,
                17 * (2 * first + size - 1 - thread),
                19u32.wrapping_mul(bits),
                23 * u32::from(first + size <= 100),
                29 * u32::from(lanes.contains(&99)),
            ];
            terms.into_iter().fold(0, u32::wrapping_add)
        });
        assert_eq!(run(code, size).unwrap(), wanted, "size {size}");
    }
}

#[test]
fn atomics_return_what_was_there() {
    let globals = "@group(0) @binding(1) var<storage, read_write> counter: array<atomic<u32>, 4>;
        var<workgroup> local: atomic<u32>;";
    let code = "
        let place = atomicAdd(&counter[0], 1u);
        out[place] = place;
        atomicMax(&counter[1], thread ^ 64u);
        let swapped = atomicCompareExchangeWeak(&counter[2], 0u, thread + 1u);
        if (swapped.exchanged) { atomicStore(&counter[3], 1000u + swapped.old_value); }
        atomicOr(&local, 1u << (thread % 32u));
        workgroupBarrier();
        if (thread == 5u) { out[5] += atomicLoad(&local); }";
    let text =
        format!("{HEAD}{globals} @compute @workgroup_size(128) fn main({ARGUMENTS}) {{ {code} }}");
    let program = lower(&text, "main", &[]).unwrap();
    let mut buffers = Buffers::from([(0, vec![0; 128]), (1, vec![0; 4])]);
    let dispatch = Dispatch {
        workgroups: [1, 1, 1],
        subgroup_size: 16,
    };
    program
        .run(dispatch, &mut buffers, &mut RoundRobin::default())
        .unwrap();
    let mut wanted = threads(|thread| thread);
    wanted[5] = 4; // 5 + 0xffffffff
    assert_eq!(buffers[&0], wanted);
    let [count, most, first, flag] = buffers[&1][..] else {
        panic!()
    };
    assert_eq!((count, most, flag), (128, 127, 1000));
    assert!((1..=128).contains(&first));
}

#[test]
fn a_missing_barrier_is_seen() {
    let code = |barrier: &str| {
        format!(
            "shared_words[thread] = thread * 3u; {barrier} out[thread] = shared_words[127u - thread];"
        )
    };
    let wanted = threads(|thread| (127 - thread) * 3);
    for size in [4, 32] {
        // Subgroup after subgroup, as far as each comes.
        let alone = || OneAtATime::new(0, true);
        let run = |barrier| run_with("", &code(barrier), (size, 1), &mut alone()).unwrap();
        assert_eq!(run("workgroupBarrier();"), wanted);
        assert_ne!(run(""), wanted);
    }
}

#[test]
fn what_wgsl_leaves_undefined_is_refused() {
    let cases = [
        ("if (thread < 3u) { workgroupBarrier(); }", "a barrier"),
        ("if (thread < 40u) { workgroupBarrier(); }", "barrier"),
        (
            "if (lane == 0u) { out[0] = subgroupAdd(1u); }",
            "a sum over lanes",
        ),
        (
            "if (lane == 0u) { out[0] = subgroupBallot(true).x; }",
            "a ballot",
        ),
        ("out[thread + 1u] = 1u;", "word 128 of out"),
        ("out[0] = shared_words[thread + 1u];", "index 128"),
        ("loop { if (thread == 200u) { break; } }", "without an end"),
    ];
    for (code, reason) in cases {
        let error = run(code, 8).unwrap_err();
        assert!(error.contains(reason), "{code}: {error}");
    }
}

/// The second workgroup waits for the first one.
#[test]
fn a_workgroup_that_waits_for_one_that_never_runs_never_ends() {
    let globals = "@group(0) @binding(1) var<storage, read_write> flag: atomic<u32>;";
    let code = "
        if (thread == 0u) {
            if (workgroup.x == 0u) { atomicStore(&flag, 1u); }
            else { while (atomicLoad(&flag) == 0u) {} out[1] = 7u; }
        }";
    let text =
        format!("{HEAD}{globals} @compute @workgroup_size(128) fn main({ARGUMENTS}) {{ {code} }}");
    let program = lower(&text, "main", &[]).unwrap();
    let run = |scheduler: &mut dyn Scheduler| {
        let mut buffers = Buffers::from([(0, vec![0; 128]), (1, vec![0])]);
        let dispatch = Dispatch {
            workgroups: [2, 1, 1],
            subgroup_size: 32,
        };
        program.run(dispatch, &mut buffers, scheduler)?;
        Ok(buffers[&0][1])
    };
    assert_eq!(run(&mut RoundRobin::default()), Ok(7));
    let lowest = &mut OneAtATime::new(0, false);
    assert_eq!(run(lowest), Ok(7));
    let highest = &mut OneAtATime::new(0, true);
    let error: Result<u32, String> = run(highest);
    assert!(error.is_err_and(|error| error.contains("without an end")));
    let mut frozen = Frozen {
        workgroup: 0,
        turns: 0,
        thaws: true,
        was_frozen: false,
        next: 0,
    };
    assert!(run(&mut frozen).is_err());
}
