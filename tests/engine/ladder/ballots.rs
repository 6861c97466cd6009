//! `shaders/shared/ballot.wesl` at all subgroup sizes: no adapter has them all.

use crate::common::{
    gpu,
    kernel::{self, Kernel},
    rng,
};
use rand::RngExt;

/// One thread per lane of 128 counts the bits of its workgroup's ballot.
const ASK: &str = "
@group(0) @binding(0) var<storage, read> ballots: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> answers: array<u32>;

@compute @workgroup_size(128)
fn ask(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let ballot = ballots[group.x];
    answers[group.x * 128u + lane] = ballot_before(ballot, lane) | (ballot_count(ballot) << 16u);
}
";

#[test]
fn ballots_are_counted_before_every_lane() {
    let gpu = gpu();
    let mut rng = rng(128);
    let mut ballots = vec![
        0,
        u128::MAX,
        1,
        1 << 127,
        u128::from(u32::MAX),
        u128::MAX << 32,
    ];
    ballots.extend((0..58).map(|_| rng.random::<u128>()));
    // The adapter may lack subgroups.
    let file = include_str!("../../../shaders/shared/ballot.wesl");
    let counting = file.split("// ----").next().unwrap();
    let source = [counting, ASK].concat();
    let kernel = Kernel::new(gpu.device, &source, "ask");
    // The first component holds the lowest lanes, as in the bytes of a little-endian u128.
    let bytes: Vec<u8> = ballots
        .iter()
        .flat_map(|ballot| ballot.to_le_bytes())
        .collect();
    let input = kernel::buffer_of(gpu.device, &bytes);
    let answers = kernel::buffer(gpu.device, ballots.len() as u64 * 512);
    kernel.run(gpu, &[(0, &input), (1, &answers)], ballots.len() as u32);
    let answers: Vec<u32> = kernel::read(gpu, &answers, 0, ballots.len() * 128);
    for (ballot, answers) in ballots.iter().zip(answers.chunks(128)) {
        for (lane, answer) in answers.iter().enumerate() {
            let before = (ballot & ((1 << lane) - 1)).count_ones();
            assert_eq!(
                *answer,
                before | (ballot.count_ones() << 16),
                "lane {lane} of {ballot:#x}"
            );
        }
    }
}
