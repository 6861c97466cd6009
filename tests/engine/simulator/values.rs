//! What the machine computes, by small kernels whose results are computed by hand: numbers, and
//! where they are in memory.

use super::{
    machine::{
        dispatch::{Buffers, Dispatch},
        lower::lower,
        schedule::RoundRobin,
    },
    small::{ARGUMENTS, HEAD, run_with},
};

#[test]
fn integers_wrap_and_divisions_by_zero_have_a_result() {
    let globals = "
        fn u(i: i32) -> u32 { return bitcast<u32>(i); }
        fn f(x: u32) -> f32 { return bitcast<f32>(x); }";
    // `zero` is not known before the kernel runs.
    let code = "
        let zero = out[0];
        if (thread != 0u) { return; }
        let most = 0xffffffffu - zero;
        let least = bitcast<i32>(0x80000000u + zero);
        out[1] = most + 2u;
        out[2] = u(least - 1);
        out[3] = 7u / zero;
        out[4] = 7u % zero;
        out[5] = u(least / (i32(zero) - 1));
        out[6] = u(least % (i32(zero) - 1));
        out[7] = 1u << (33u + zero);
        out[8] = u(least >> (4u + zero));
        out[9] = firstTrailingBit(zero);
        out[10] = firstLeadingBit(most >> 3u);
        out[11] = countOneBits(most) + countLeadingZeros(1u + zero) + countTrailingZeros(8u + zero);
        out[12] = u32(-1.5 - f(zero));
        out[13] = u32(5e9 + f(zero));
        out[14] = u(i32(f(0x7fc00000u + zero)));
        out[15] = u(i32(-2.7 + f(zero)));
        out[16] = bitcast<u32>(round(2.5 + f(zero)));
        out[17] = u(abs(least));
        out[18] = u(-7 % (i32(zero) + 4));
        out[19] = select(1u, 2u, f(0x7fc00000u + zero) == f(0x7fc00000u + zero));
        out[20] = most * most;
        out[21] = reverseBits(1u + zero);
        out[22] = bitcast<u32>(fma(f(0x3f800001u + zero), f(0x3f800001u + zero), -1.0));
        out[23] = u(firstLeadingBit(-2 - i32(zero)));";
    let found = run_with(globals, code, (32, 1), &mut RoundRobin::default()).unwrap();
    let wanted = [
        0,
        1,
        0x7fff_ffff,
        7,
        0,
        0x8000_0000,
        0,
        2,
        0xf800_0000,
        u32::MAX,
        28,
        32 + 31 + 3,
        0,
        u32::MAX,
        0,
        (-2i32).cast_unsigned(),
        2f32.to_bits(),
        0x8000_0000,
        (-3i32).cast_unsigned(),
        1,
        1,
        0x8000_0000,
        f32::EPSILON
            .mul_add(f32::EPSILON, 2.0 * f32::EPSILON)
            .to_bits(),
        0,
    ];
    assert_eq!(found[..wanted.len()], wanted);
}

#[test]
fn memory_has_the_gaps_of_wgsl() {
    let globals = "
        struct Inner { a: u32, b: vec3<f32>, c: u32 }
        struct Outer { first: vec2<u32>, inner: array<Inner, 2>, last: mat3x3<f32>, end: i32 }
        @group(0) @binding(1) var<uniform> given: Outer;
        @group(0) @binding(2) var<storage, read_write> copy: Outer;";
    let code = "
        if (thread == 0u) {
            copy.first = given.first.yx;
            var inner = given.inner[1u - out[0]];
            copy.inner[0] = inner;
            copy.last = given.last;
            copy.last[1][out[0] + 2u] = 5.0;
            let turned = given.last * vec3<f32>(1.0, 2.0, 3.0);
            copy.inner[1].b = turned;
            copy.end = given.end * -2;
        }";
    let text =
        format!("{HEAD}{globals} @compute @workgroup_size(128) fn main({ARGUMENTS}) {{ {code} }}");
    let program = lower(&text, "main", &[]).unwrap();
    // first at word 0, inner at 4 and 12, last at 20, end at 32.
    let mut given = vec![0u32; 36];
    (given[0], given[1], given[32]) = (8, 9, 21);
    given[12] = 70;
    for word in [16, 17, 18] {
        given[word] = (word as f32).to_bits();
    }
    given[19] = 71;
    for column in 0..3 {
        for row in 0..3 {
            given[20 + 4 * column + row] = ((10 * column + row) as f32).to_bits();
        }
    }
    let mut buffers = Buffers::from([(0, vec![0; 128]), (1, given.clone()), (2, vec![0; 36])]);
    let dispatch = Dispatch {
        workgroups: [1, 1, 1],
        subgroup_size: 32,
    };
    program
        .run(dispatch, &mut buffers, &mut RoundRobin::default())
        .unwrap();
    let copy = &buffers[&2];
    let mut wanted = vec![0; 36];
    (wanted[0], wanted[1]) = (9, 8);
    wanted[4] = 70;
    wanted[8..12].copy_from_slice(&given[16..20]);
    for (row, word) in wanted[16..19].iter_mut().enumerate() {
        *word = (80.0 + 6.0 * row as f32).to_bits();
    }
    wanted[20..32].copy_from_slice(&given[20..32]);
    wanted[26] = 5f32.to_bits();
    wanted[32] = (-42i32).cast_unsigned();
    assert_eq!(copy, &wanted);
}
