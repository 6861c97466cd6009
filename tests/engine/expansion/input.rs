//! The expander rejects input buffers that are too small, and stays usable.

use super::harness::Gpu;
use bevy_gpu_culling::cull::{
    CullError, CullingTier, Expander, Expansion,
    expand::{ExpandInput, SourceCount},
};
use wgpu::Buffer;

fn prepare(gpu: &Gpu, expander: &mut Expander, input: ExpandInput<'_>) -> Result<(), CullError> {
    expander.prepare(&gpu.device, &gpu.queue, &input)
}

/// After an error, nothing is bound, so nothing is recorded. Correct input can then be prepared as
/// usual.
fn is_usable(gpu: &Gpu, expander: &mut Expander, counts: &[u32]) {
    let (_, marks) = gpu.expand(expander, counts);
    assert!(marks.iter().all(|mark| *mark == 0), "something was bound");
    gpu.check(expander, counts).unwrap();
}

#[test]
fn counts_that_are_too_few_or_missing_are_refused() {
    let gpu = Gpu::new();
    let options = gpu.options(CullingTier::Subgroup, Expansion::default());
    let mut expander = Expander::new(&gpu.device, &options).unwrap();
    let counts = [3, 0, 5, 1];
    let buffer = gpu.buffer(&counts);
    let word = gpu.buffer(&[2]);
    let from_gpu = |max| SourceCount::Buffer {
        buffer: &word,
        offset: 0,
        max,
    };
    for (counts, sources, wrong) in [
        (Some(&buffer), SourceCount::Known(1000), "1000 sources"),
        (Some(&buffer), SourceCount::Known(5), "holds 4"),
        (Some(&buffer), from_gpu(5), "5 sources"),
        (None, SourceCount::Known(4), "ExpandInput::counts"),
        (None, SourceCount::Known(0), "ExpandInput::counts"),
    ] {
        let error = prepare(&gpu, &mut expander, ExpandInput { counts, sources });
        let error = error.unwrap_err().to_string();
        assert!(error.contains(wrong), "{error:?} lacks {wrong:?}");
        is_usable(&gpu, &mut expander, &[3, 0, 5, 1]);
    }
    for sources in [SourceCount::Known(4), SourceCount::Known(0), from_gpu(4)] {
        let counts = Some(&buffer);
        prepare(&gpu, &mut expander, ExpandInput { counts, sources }).unwrap();
    }
}

#[test]
fn a_number_of_sources_that_is_not_in_its_buffer_is_refused() {
    let gpu = Gpu::new();
    let options = gpu.options(CullingTier::Subgroup, Expansion::default());
    let mut expander = Expander::new(&gpu.device, &options).unwrap();
    let (counts, words) = (gpu.buffer(&[3, 0, 5, 1]), gpu.buffer(&[9, 9, 4]));
    let input = |offset| ExpandInput {
        counts: Some(&counts),
        sources: SourceCount::Buffer {
            buffer: &words,
            offset,
            max: 4,
        },
    };
    for offset in [2, 9, 12, 4000, 4 * u64::from(u32::MAX), u64::MAX - 3] {
        let error = prepare(&gpu, &mut expander, input(offset)).unwrap_err();
        let error = error.to_string();
        for part in [&format!("byte {offset} "), "12 bytes", "multiple of 4"] {
            assert!(error.contains(part), "{error:?} lacks {part:?}");
        }
        is_usable(&gpu, &mut expander, &[3, 0, 5, 1]);
    }
    prepare(&gpu, &mut expander, input(8)).unwrap();
    gpu.check_prepared(&mut expander, &[3, 0, 5, 1]).unwrap();
}

/// Size in bytes of a binding on the device of [`small`].
const LIMIT: u64 = 1 << 20;

/// A device with small bindings, and an expander that creates a list.
fn small() -> (Gpu, Expander) {
    let gpu = Gpu::with_limit(LIMIT);
    let options = gpu.options(CullingTier::Subgroup, Expansion::ItemList);
    let expander = Expander::new(&gpu.device, &options).unwrap();
    (gpu, expander)
}

fn known(counts: &Buffer, sources: u32) -> ExpandInput<'_> {
    ExpandInput {
        counts: Some(counts),
        sources: SourceCount::Known(sources),
    }
}

fn is_too_large<T: core::fmt::Debug>(result: Result<T, CullError>) {
    let large = matches!(result, Err(CullError::ExpansionTooLarge { .. }));
    assert!(large, "{result:?}");
}

#[test]
fn a_list_grows_as_far_as_a_binding_reaches() {
    let (gpu, mut expander) = small();
    // 8 bytes per item fit, an eighth more does not.
    let items = LIMIT as u32 / 8 * 19 / 20;
    gpu.check(&mut expander, &[items]).unwrap();
    assert!(expander.entry_capacity() >= items);
    assert!(expander.arena().size() <= LIMIT);
}

#[test]
fn a_list_beyond_a_binding_is_refused_and_what_was_prepared_stays() {
    let (gpu, mut expander) = small();
    let counts = [200_000];
    let buffer = gpu.buffer(&counts);
    prepare(&gpu, &mut expander, known(&buffer, 1)).unwrap();
    let report = gpu.expand(&expander, &counts).0;
    is_too_large(expander.grow(&gpu.device, &gpu.queue, &report));
    let again = gpu.expand(&expander, &counts).0;
    assert_eq!(again, report);
    assert_eq!((again.needed, again.capacity), (200_000, 1));
    gpu.check(&mut expander, &[3, 0, 5, 1]).unwrap();
}

#[test]
fn too_many_sources_do_not_stay_in_the_way_of_fewer() {
    let (gpu, mut expander) = small();
    // Their entries alone do not fit one binding.
    let buffer = gpu.buffer(&[1; 200_000]);
    is_too_large(prepare(&gpu, &mut expander, known(&buffer, 200_000)));
    is_usable(&gpu, &mut expander, &[3, 0, 5, 1]);
}

#[test]
fn a_list_that_has_grown_leaves_room_for_more_sources() {
    let (gpu, mut expander) = small();
    gpu.check(&mut expander, &[120_000]).unwrap();
    gpu.check(&mut expander, &[1; 60_000]).unwrap();
}
