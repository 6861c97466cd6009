//! The expansions on the GPU against their CPU twins: every distribution and edge, both GPU tiers, with and without
//! the shaders' bounds checks.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic and tell what it saw"
)]

mod common;

use bevy_gpu_culling::cull::{
    CullError, CullingTier, Expander, Expansion,
    expand::{ExpandCode, ExpandDispatch, ExpandInput, ExpandReport, ExpanderOptions, Sources},
    layout::expand::*,
    reference::expand as twin,
};
use common::{gpu, rng};
use rand::RngExt;
use wgpu::{
    BindGroup, BindGroupLayout, Buffer, BufferUsages, Device, Queue,
    util::{BufferInitDescriptor, DeviceExt},
};

const GPU_TIERS: [CullingTier; 2] = [CullingTier::Subgroup, CullingTier::Workgroup];

/// Marks each item; an item that there is not is an error.
const BODY: &str = "
struct TestMarks { errors: atomic<u32>, done: atomic<u32>, marks: array<atomic<u32>> }
// The first item of each source, and the end.
@group(1) @binding(0) var<storage, read> test_firsts: array<u32>;
@group(1) @binding(1) var<storage, read_write> test_marks: TestMarks;
fn expand_item(source: u32, item: u32) {
    if (source + 1u >= arrayLength(&test_firsts)) {
        atomicAdd(&test_marks.errors, 1u);
        return;
    }
    let first = test_firsts[source];
    if (item >= test_firsts[source + 1u] - first) {
        atomicAdd(&test_marks.errors, 1u);
        return;
    }
    atomicAdd(&test_marks.marks[first + item], 1u);
}
fn expand_done() {
    atomicAdd(&test_marks.done, 1u);
}
";

struct Gpu {
    device: Device,
    queue: Queue,
    layout: BindGroupLayout,
}

impl Gpu {
    fn new() -> Self {
        let (device, queue, _) = gpu();
        let entry = |binding, read_only| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Storage { read_only },
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        };
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: None,
            entries: &[entry(0, true), entry(1, false)],
        });
        Self {
            device,
            queue,
            layout,
        }
    }

    fn options(&self, tier: CullingTier, expansion: Expansion) -> ExpanderOptions<'_> {
        let body = ExpandCode {
            wgsl: BODY,
            layout: Some(&self.layout),
        };
        ExpanderOptions {
            expansion,
            ..ExpanderOptions::new(tier, body)
        }
    }

    fn buffer(&self, words: &[u32]) -> Buffer {
        let some = if words.is_empty() { &[0][..] } else { words };
        self.device.create_buffer_init(&BufferInitDescriptor {
            label: None,
            contents: bytemuck::cast_slice(some),
            usage: BufferUsages::STORAGE | BufferUsages::COPY_SRC,
        })
    }

    fn read(&self, buffer: &Buffer) -> Vec<u32> {
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: buffer.size(),
            usage: BufferUsages::COPY_DST | BufferUsages::MAP_READ,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, buffer.size());
        self.queue.submit([encoder.finish()]);
        staging.map_async(wgpu::MapMode::Read, .., |result| result.unwrap());
        self.device
            .poll(wgpu::PollType::wait_indefinitely())
            .unwrap();
        bytemuck::pod_collect_to_vec(&staging.get_mapped_range(..))
    }

    /// Marks for the items of `counts`, and their group.
    fn marks(&self, counts: &[u32]) -> (Buffer, BindGroup) {
        let mut firsts = vec![0u32];
        for items in counts {
            firsts.push(firsts.last().unwrap().saturating_add(*items));
        }
        let items = *firsts.last().unwrap() as usize;
        // Too many items are never expanded: a mark for any of them is an error.
        let room = if items > 1 << 26 { 0 } else { items };
        let firsts = self.buffer(&firsts);
        let marks = self.buffer(&vec![0; 2 + room.max(1)]);
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.layout,
            entries: &[
                wgpu::BindGroupEntry {
                    binding: 0,
                    resource: firsts.as_entire_binding(),
                },
                wgpu::BindGroupEntry {
                    binding: 1,
                    resource: marks.as_entire_binding(),
                },
            ],
        });
        (marks, group)
    }

    /// Both passes; what pass 1 found, and the marks (errors, threads that were done, items).
    fn expand(&self, expander: &Expander, counts: &[u32]) -> (ExpandReport, Vec<u32>) {
        let (marks, group) = self.marks(counts);
        let mut encoder = self.device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            expander.record_sources(&mut pass, None);
            expander.record_items(&mut pass, Some(&group));
        }
        self.queue.submit([encoder.finish()]);
        let report = expander.read(&self.device, &self.queue).unwrap();
        (report, self.read(&marks))
    }

    /// Prepares, expands, grows where a list had too little room, and compares everything with the twin.
    fn check(&self, expander: &mut Expander, counts: &[u32]) -> Result<(), String> {
        let buffer = self.buffer(counts);
        let input = ExpandInput {
            counts: Some(&buffer),
            sources: Sources::Known(counts.len() as u32),
        };
        expander
            .prepare(&self.device, &self.queue, &input)
            .map_err(|error| error.to_string())?;
        self.check_prepared(expander, counts)
    }

    fn check_prepared(&self, expander: &mut Expander, counts: &[u32]) -> Result<(), String> {
        let (mut report, mut marks) = self.expand(expander, counts);
        let items = twin::sum_items(counts);
        let equal = |what: &str, gpu: u32, twin: u32| match gpu == twin {
            true => Ok(()),
            false => Err(format!("{what}: {gpu} on the GPU, {twin} in the twin")),
        };
        equal("sources", report.sources, counts.len() as u32)?;
        equal("items", report.items, items)?;
        if let Err(CullError::ExpansionOverflow { needed, capacity }) = report.check() {
            // What has room is there, once; the rest is not.
            equal("errors of an overflow", marks[0], 0)?;
            let found = marks[2..].iter().filter(|mark| **mark == 1).count();
            let more = marks[2..].iter().filter(|mark| **mark > 1).count();
            equal("items twice in an overflow", more as u32, 0)?;
            if needed <= capacity || found >= items as usize || marks[2] != u32::from(items > 0) {
                return Err(format!("{found} of {items} items for {report:?}"));
            }
            if !expander.grow(&self.device, &self.queue, &report).unwrap() {
                return Err("an overflow, but no growth".into());
            }
            (report, marks) = self.expand(expander, counts);
        }
        report.check().map_err(|error| error.to_string())?;
        equal("errors", marks[0], 0)?;
        if marks[1] == 0 || !marks[1].is_multiple_of(EXPAND_CHUNK) {
            return Err(format!("{} threads were done", marks[1]));
        }
        let marks = &marks[2..2 + items as usize];
        if let Some(item) = marks.iter().position(|mark| *mark != 1) {
            return Err(format!("item {item} of {items}: {} times", marks[item]));
        }
        self.compare_pass_1(expander, counts)
    }

    /// What pass 1 left, word by word.
    fn compare_pass_1(&self, expander: &Expander, counts: &[u32]) -> Result<(), String> {
        let gpu = (&self.device, &self.queue);
        let params = expander.params();
        let read = |at, len| expander.read_arena(gpu.0, gpu.1, at, len).unwrap();
        let state = expander.read_state(gpu.0, gpu.1).unwrap();
        let items = twin::sum_items(counts);
        let weight = match expander.expansion() {
            Expansion::WorkgroupItems => twin::weight_of_groups,
            _ => |items| items,
        };
        let (prefixes, mut partials) = twin::expand_scan(counts, weight);
        let total = twin::expand_spine(&mut partials);
        let scanned = || {
            equal(
                "prefixes",
                &read(params.prefix_at, prefixes.len()),
                &prefixes,
            )?;
            equal(
                "partials",
                &read(params.partials_at, partials.len()),
                &partials,
            )
        };
        let chunks = |threads: u32| threads.div_ceil(EXPAND_CHUNK);
        match expander.expansion() {
            Expansion::FixedMax => {
                let (most, _) = twin::measure(counts);
                equal("width", &[state.width], &[most])?;
                equal(
                    "chunks",
                    &[state.chunks],
                    &[chunks(most * counts.len() as u32)],
                )
            }
            Expansion::ItemList | Expansion::WorkgroupItems => {
                scanned()?;
                let weights: Vec<_> = counts.iter().map(|items| weight(*items)).collect();
                let list = twin::item_list(&weights, &prefixes, &partials, u32::MAX);
                equal("needed", &[state.needed], &[total])?;
                equal(
                    "entries",
                    &read(params.entries_at, 2 * list.len()),
                    list.as_flattened(),
                )
            }
            Expansion::PrefixSearch => {
                scanned()?;
                equal("chunks", &[state.chunks], &[chunks(items)])
            }
            Expansion::WorkgroupSearch => {
                scanned()?;
                equal("chunks", &[state.chunks], &[items.div_ceil(EXPAND_SPAN)])
            }
            Expansion::PackedAtomic => {
                let sources = read(params.entries_at, counts.len());
                let mut tiles = Vec::new();
                let mut at = 0;
                while at < counts.len() {
                    let tile = sources[at] / EXPAND_TILE;
                    let left = counts.len().saturating_sub((tile * EXPAND_TILE) as usize);
                    tiles.push(tile);
                    at += left.clamp(1, EXPAND_TILE as usize);
                }
                let mut sorted = tiles.clone();
                sorted.sort_unstable();
                equal(
                    "tiles",
                    &sorted,
                    &(0..partials.len() as u32).collect::<Vec<_>>(),
                )?;
                let packed = twin::pack(counts, &tiles);
                equal("sources", &sources, &packed.sources)?;
                equal(
                    "prefixes",
                    &read(params.prefix_at, counts.len()),
                    &packed.prefixes,
                )
            }
            Expansion::Po2Buckets => {
                let entries = twin::po2_buckets(counts);
                let words: Vec<_> = entries
                    .entries
                    .iter()
                    .flat_map(|e| [e.word, e.mask])
                    .collect();
                equal("entries", &read(params.entries_at, words.len()), &words)?;
                let plan = twin::plan_buckets(
                    &entries.firsts,
                    items,
                    params.entry_capacity,
                    twin::lanes_po2_buckets,
                );
                compare_buckets(&state, &plan)
            }
            Expansion::OneBucket => {
                let entries = twin::one_bucket(counts);
                equal(
                    "entries",
                    &read(params.entries_at, entries.entries.len()),
                    &entries.entries,
                )?;
                let plan = twin::plan_buckets(
                    &entries.firsts,
                    items,
                    params.entry_capacity,
                    twin::lanes_one_bucket,
                );
                compare_buckets(&state, &plan)
            }
            other => Err(format!("{other} has no comparison")),
        }
    }
}

fn compare_buckets(
    state: &ExpandState,
    (buckets, chunks): &([ExpandBucket; EXPAND_BUCKETS as usize], u32),
) -> Result<(), String> {
    equal("buckets", &state.buckets, buckets)?;
    equal("chunks", &[state.chunks], &[*chunks])
}

fn equal<T: PartialEq + core::fmt::Debug>(what: &str, gpu: &[T], twin: &[T]) -> Result<(), String> {
    match gpu.iter().zip(twin).position(|(a, b)| a != b) {
        Some(i) => Err(format!(
            "{what}[{i}]: {:?} on the GPU, {:?} in the twin",
            gpu[i], twin[i]
        )),
        None if gpu.len() != twin.len() => Err(format!("{what}: other lengths")),
        None => Ok(()),
    }
}

/// Counts of items around each power of two, as far as the sum stays small.
fn around_powers() -> Vec<u32> {
    (0..17u32)
        .flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1])
        .collect()
}

/// The distributions of the benchmark, the edges, and sizes around every boundary.
fn cases() -> Vec<(String, Vec<u32>)> {
    let mut rng = rng(0xe5);
    let mut cases: Vec<(String, Vec<u32>)> = Vec::new();
    let mut case = |name: &str, counts: Vec<u32>| cases.push((name.into(), counts));
    case("no source", vec![]);
    case("all N = 0", vec![0; 3000]);
    case("one source without items", vec![0]);
    case("one N of a million", vec![1_000_000]);
    let mut giant = vec![1; 5000];
    giant[3210] = 1_000_000;
    case("one giant", giant);
    let mut first = vec![3; 3000];
    first[0] = 500;
    case("the greatest first", first);
    case("around powers of two", around_powers());
    case("all 1", vec![1; 70_000]);
    case("all 7", vec![7; 3001]);
    case("all 128", vec![128; 2000]);
    case("all 1023", vec![1023; 700]);
    case(
        "uniform",
        (0..2500).map(|_| rng.random_range(0..=1000)).collect(),
    );
    case(
        "uniform, many",
        (0..40_000).map(|_| rng.random_range(0..=20)).collect(),
    );
    let power_law = |rng: &mut rand_chacha::ChaCha8Rng| {
        let share: f64 = rng.random_range(1e-4..1.0);
        (share.powf(-1.2) as u32).min(100_000)
    };
    case(
        "power law",
        (0..60_000).map(|_| power_law(&mut rng)).collect(),
    );
    // The most for which the buckets have a pass 1 without a scan, and one more.
    for sources in [262_144, 262_145] {
        let counts = (0..sources).map(|_| rng.random_range(0..5)).collect();
        case(&format!("{sources} sources"), counts);
    }
    case(
        "power law, many",
        (0..300_000).map(|_| power_law(&mut rng)).collect(),
    );
    // More than one step of the spine: 4,096 tiles.
    let mut long = vec![0; 4_300_000];
    for _ in 0..2000 {
        let at = rng.random_range(0..long.len());
        long[at] = rng.random_range(1..200);
    }
    *long.last_mut().unwrap() = 3;
    case("a long way between items", long);
    for sources in [
        1, 2, 7, 8, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 2047,
        2049, 32_768, 32_769,
    ] {
        let counts = (0..sources).map(|_| rng.random_range(0..40)).collect();
        case(&format!("{sources} sources"), counts);
    }
    cases
}

/// Whether `fixed-max` is out of reach here: too many threads for a software adapter.
fn is_out_of_reach(expansion: Expansion, counts: &[u32]) -> bool {
    let (most, _) = twin::measure(counts);
    expansion == Expansion::FixedMax && u64::from(most) * counts.len() as u64 > 1 << 27
}

#[test]
fn every_expansion_equals_its_twin() {
    let gpu = Gpu::new();
    let cases = cases();
    for expansion in Expansion::ALL {
        for tier in GPU_TIERS {
            for shader_checks in [true, false] {
                let options = ExpanderOptions {
                    shader_checks,
                    ..gpu.options(tier, *expansion)
                };
                let mut expander = Expander::new(&gpu.device, &options).unwrap();
                if expander.expansion() != *expansion {
                    println!("{}", expander.fallback().unwrap());
                    continue;
                }
                for (name, counts) in &cases {
                    if is_out_of_reach(*expansion, counts) {
                        continue;
                    }
                    gpu.check(&mut expander, counts).unwrap_or_else(|error| {
                        panic!("{expansion} on {tier}, checks {shader_checks}, {name}: {error}")
                    });
                }
            }
        }
    }
}

#[test]
fn indirect_and_separate_dispatches_expand_the_same() {
    let gpu = Gpu::new();
    let cases = cases();
    for expansion in Expansion::ALL {
        for (dispatch, merged) in [
            (ExpandDispatch::Indirect, true),
            (ExpandDispatch::Indirect, false),
            (ExpandDispatch::Persistent, false),
        ] {
            let options = ExpanderOptions {
                dispatch,
                merged,
                ..gpu.options(CullingTier::Subgroup, *expansion)
            };
            let mut expander = Expander::new(&gpu.device, &options).unwrap();
            for (name, counts) in cases.iter().filter(|(_, counts)| counts.len() < 100_000) {
                if is_out_of_reach(*expansion, counts) {
                    continue;
                }
                let checked = match marks_no_thread(dispatch, counts) {
                    // No workgroup, no thread that is done.
                    true => continue,
                    false => gpu.check(&mut expander, counts),
                };
                checked.unwrap_or_else(|error| {
                    panic!(
                        "{expansion}, {}, merged {merged}, {name}: {error}",
                        dispatch.name()
                    )
                });
            }
        }
    }
}

fn marks_no_thread(dispatch: ExpandDispatch, counts: &[u32]) -> bool {
    dispatch == ExpandDispatch::Indirect && twin::sum_items(counts) == 0
}

#[test]
fn the_number_of_sources_may_come_from_the_gpu() {
    let gpu = Gpu::new();
    let mut rng = rng(7);
    let counts: Vec<u32> = (0..5000).map(|_| rng.random_range(0..50)).collect();
    let buffer = gpu.buffer(&counts);
    for expansion in Expansion::ALL {
        let mut expander =
            Expander::new(&gpu.device, &gpu.options(CullingTier::Subgroup, *expansion)).unwrap();
        for (said, sources) in [
            (0, 0),
            (1, 1),
            (1024, 1024),
            (4999, 4999),
            (5000, 5000),
            (u32::MAX, 5000),
        ] {
            let words = gpu.buffer(&[77, 88, said]);
            let input = ExpandInput {
                counts: Some(&buffer),
                sources: Sources::Buffer {
                    buffer: &words,
                    offset: 8,
                    most: counts.len() as u32,
                },
            };
            expander.prepare(&gpu.device, &gpu.queue, &input).unwrap();
            gpu.check_prepared(&mut expander, &counts[..sources])
                .unwrap_or_else(|error| panic!("{expansion}, {said} sources: {error}"));
        }
    }
}

#[test]
fn a_caller_may_count_by_itself() {
    const COUNTING: &str = "fn items_of(source: u32) -> u32 { return source * 7u % 61u; }";
    let gpu = Gpu::new();
    let counts: Vec<u32> = (0..3000u32).map(|source| source * 7 % 61).collect();
    for expansion in Expansion::ALL {
        for tier in GPU_TIERS {
            let options = ExpanderOptions {
                counting: Some(ExpandCode {
                    wgsl: COUNTING,
                    layout: None,
                }),
                ..gpu.options(tier, *expansion)
            };
            let mut expander = Expander::new(&gpu.device, &options).unwrap();
            let input = ExpandInput {
                counts: None,
                sources: Sources::Known(counts.len() as u32),
            };
            expander.prepare(&gpu.device, &gpu.queue, &input).unwrap();
            gpu.check_prepared(&mut expander, &counts)
                .unwrap_or_else(|error| panic!("{expansion} on {tier}: {error}"));
        }
    }
}

#[test]
fn totals_near_2_32_are_refused_clearly() {
    let gpu = Gpu::new();
    let limit = u64::from(EXPAND_MOST_ITEMS);
    let spread = |total: u64, sources: u64| -> Vec<u32> {
        let (each, rest) = (total / sources, total % sources);
        (0..sources)
            .map(|i| (each + u64::from(i < rest)) as u32)
            .collect()
    };
    let mut wraps_in_a_late_tile = vec![0u32; 9000];
    wraps_in_a_late_tile[8999] = u32::MAX;
    wraps_in_a_late_tile[10] = 5;
    let cases = [
        vec![u32::MAX],
        vec![u32::MAX; 2000],
        vec![0x8000_0000, 0x8000_0000],
        vec![0x8000_0000, 0, 0x7fff_ffff],
        vec![EXPAND_MOST_ITEMS + 1],
        wraps_in_a_late_tile,
        spread(limit + 1, 1500),
        spread(1 << 32, 5000),
        spread((1 << 32) + 3, 5000),
        spread(3 << 32, 70_000),
    ];
    for expansion in Expansion::ALL {
        for tier in GPU_TIERS {
            let mut expander = Expander::new(&gpu.device, &gpu.options(tier, *expansion)).unwrap();
            for (index, counts) in cases.iter().enumerate() {
                let buffer = gpu.buffer(counts);
                let input = ExpandInput {
                    counts: Some(&buffer),
                    sources: Sources::Known(counts.len() as u32),
                };
                expander.prepare(&gpu.device, &gpu.queue, &input).unwrap();
                let (report, marks) = gpu.expand(&expander, counts);
                let what = format!("{expansion} on {tier}, case {index}: {report:?}");
                let total = twin::exact_items(counts).min(u64::from(u32::MAX)) as u32;
                // An atomic counter cannot say how far beyond.
                let items = match expander.expansion() {
                    Expansion::PackedAtomic => u32::MAX,
                    _ => total,
                };
                assert_eq!(report.items, items, "{what}");
                assert_eq!(marks[0], 0, "{what}");
                assert!(marks[2..].iter().all(|mark| *mark == 0), "{what}");
                let error = report.check().unwrap_err();
                assert!(matches!(error, CullError::TooManyItems { .. }), "{what}");
                assert!(error.to_string().contains("at most 4278190080"), "{error}");
            }
        }
    }
}

#[test]
fn fixed_max_refuses_more_threads_than_there_can_be() {
    let gpu = Gpu::new();
    let mut counts = vec![1; 70_000];
    counts[5] = 100_000;
    let mut expander = Expander::new(
        &gpu.device,
        &gpu.options(CullingTier::Subgroup, Expansion::FixedMax),
    )
    .unwrap();
    let buffer = gpu.buffer(&counts);
    let input = ExpandInput {
        counts: Some(&buffer),
        sources: Sources::Known(counts.len() as u32),
    };
    expander.prepare(&gpu.device, &gpu.queue, &input).unwrap();
    let (report, marks) = gpu.expand(&expander, &counts);
    assert!(marks.iter().skip(2).all(|mark| *mark == 0));
    let error = report.check().unwrap_err().to_string();
    assert!(
        error.contains("70000 sources") && error.contains("100000 items"),
        "{error}"
    );
}

#[test]
fn an_arena_beyond_a_binding_is_refused_and_leaves_nothing_half_done() {
    let gpu = Gpu::new();
    let limits = gpu.device.limits();
    let most = limits
        .max_storage_buffer_binding_size
        .min(limits.max_buffer_size);
    if most >= 1 << 34 {
        println!("this adapter binds {most} bytes: no arena is too large");
        return;
    }
    let options = gpu.options(CullingTier::Subgroup, Expansion::PrefixSearch);
    let mut expander = Expander::new(&gpu.device, &options).unwrap();
    let buffer = gpu.buffer(&[1, 2, 3]);
    let prepare = |expander: &mut Expander, count| {
        let input = ExpandInput {
            counts: Some(&buffer),
            sources: Sources::Known(count),
        };
        expander.prepare(&gpu.device, &gpu.queue, &input)
    };
    let error = prepare(&mut expander, u32::MAX).unwrap_err();
    assert!(
        matches!(error, CullError::ExpansionTooLarge { .. }),
        "{error}"
    );
    // Nothing is bound: nothing is recorded.
    let (marks, group) = gpu.marks(&[1]);
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        expander.record_sources(&mut pass, None);
        expander.record_items(&mut pass, Some(&group));
    }
    gpu.queue.submit([encoder.finish()]);
    assert_eq!(gpu.read(&marks)[1], 0);
    prepare(&mut expander, 3).unwrap();
    gpu.check_prepared(&mut expander, &[1, 2, 3]).unwrap();
}

#[test]
fn without_64_bit_atomics_the_search_takes_over() {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter = pollster::block_on(instance.request_adapter(&Default::default())).unwrap();
    let (device, _) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        required_features: adapter.features() & CullingTier::wanted_features(),
        required_limits: adapter.limits(),
        ..Default::default()
    }))
    .unwrap();
    let body = ExpandCode {
        wgsl: "fn expand_item(source: u32, item: u32) {}\nfn expand_done() {}",
        layout: None,
    };
    let options = ExpanderOptions {
        expansion: Expansion::PackedAtomic,
        ..ExpanderOptions::new(CullingTier::Workgroup, body)
    };
    let expander = Expander::new(&device, &options).unwrap();
    assert_eq!(expander.expansion(), Expansion::PrefixSearch);
    let reason = expander.fallback().unwrap();
    assert!(reason.contains("SHADER_INT64_ATOMIC_ALL_OPS"), "{reason}");
}

#[test]
fn a_broken_expansion_is_seen() {
    use Expansion::*;
    let gpu = Gpu::new();
    let breaks: &[(Expansion, &str, &str)] = &[
        (FixedMax, "i % state.width", "i % (state.width + 1u)"),
        (FixedMax, "most = max(most, items);", "most = items;"),
        (
            FixedMax,
            "item < items_of(source)",
            "item <= items_of(source)",
        ),
        (ItemList, "arena[at + 1u] = k;", "arena[at + 1u] = k + 1u;"),
        (ItemList, "(place + k);", "place;"),
        (ItemList, "return carry;", "return 0u;"),
        (
            WorkgroupItems,
            "+ select(0u, 1u, items % EXPAND_CHUNK != 0u)",
            "",
        ),
        (WorkgroupItems, "item < items_of(source)", "true"),
        (PrefixSearch, "<= in_tile", "< in_tile"),
        (PrefixSearch, "<= i)", "< i)"),
        (
            PrefixSearch,
            "index_of(thread)) + before;",
            "index_of(thread));",
        ),
        (PrefixSearch, "+ prefixes[r]", ""),
        (
            WorkgroupSearch,
            "select(begin, end - 1u, thread == 1u)",
            "begin",
        ),
        (WorkgroupSearch, "if (before <= i)", "if (before < i)"),
        (WorkgroupSearch, "count <= SPAN_ROOM", "true"),
        (
            WorkgroupSearch,
            "span_firsts[k] = first_item_of(first + k);",
            "span_firsts[k] = first_item_of(first);",
        ),
        (PackedAtomic, "let place = own_count + i", "let place = i"),
        (PackedAtomic, "return own_sum;", "return 0u;"),
        (PackedAtomic, "<= i)", "< i)"),
        (Po2Buckets, "& ~((2u << b) - 1u)", "& ~((1u << b) - 1u)"),
        (Po2Buckets, "k & (size - 1u)", "k"),
        (Po2Buckets, "place += 1u;", ""),
        (Po2Buckets, "left >= below", "left > below"),
        (Po2Buckets, "bit += width;", ""),
        (
            Po2Buckets,
            "entries_before(index, index / EXPAND_BUCKETS)",
            "0u",
        ),
        (Po2Buckets, "select(0u, entries, t < tile)", "entries"),
        (
            Po2Buckets,
            "place_of(index % EXPAND_BUCKETS * tiles + tile)",
            "place_of(index % EXPAND_BUCKETS * tiles)",
        ),
        (OneBucket, "firsts[bucket] + add", "add"),
        (Po2Buckets, "(atomicLoad(&words[w]) >> index) & 1u", "1u"),
        (
            Po2Buckets,
            "atomicOr(&words[word], all)",
            "atomicOr(&words[word], bits)",
        ),
        (Po2Buckets, "chunk += chunks;", ""),
        (Po2Buckets, "bucket += step;", "bucket += step / 2u;"),
        (
            OneBucket,
            "places[slot] + countOneBits(before)",
            "places[slot]",
        ),
        (OneBucket, "place += entries_of(mask_at(index, k));", ""),
        (OneBucket, "item += lanes", "item += lanes + 1u"),
        (
            OneBucket,
            "1u << firstLeadingBit(items)",
            "1u << firstTrailingBit(items)",
        ),
    ];
    let cases = cases();
    let mut rng = rng(3);
    let random: Vec<u32> = (0..9000).map(|_| rng.random_range(0..300)).collect();
    for (expansion, from, to) in breaks {
        if expansion.check(gpu.device.features()).is_err() {
            continue;
        }
        for tier in GPU_TIERS {
            let sources = expansion.sources(tier);
            if !sources.iter().any(|(_, source)| source.contains(from)) {
                let other = GPU_TIERS.iter().any(|tier| {
                    expansion
                        .sources(*tier)
                        .iter()
                        .any(|(_, source)| source.contains(from))
                });
                assert!(other, "{from} is gone");
                continue;
            }
            let options = ExpanderOptions {
                shader_checks: true,
                ..gpu.options(tier, *expansion)
            };
            let edit = |_: &str, source: String| source.replace(from, to);
            let mut expander = Expander::with_sources(&gpu.device, &options, edit).unwrap();
            // Only long ones have a scan of the table or long spans, only the longest a second step of the spine.
            let long = ["carry", "tiles", "ROOM"]
                .iter()
                .any(|part| from.contains(part));
            let small = cases.iter().filter(|(_, counts)| match long {
                // Not too many items for one thread that is given a wrong source.
                true => counts.len() > 262_144 && counts.iter().all(|items| *items < 1000),
                false => counts.len() < 4000,
            });
            let caught = small
                .map(|(_, counts)| counts)
                .chain([&random])
                .filter(|counts| !is_out_of_reach(*expansion, counts))
                .any(|counts| gpu.check(&mut expander, counts).is_err());
            assert!(
                caught,
                "{expansion} with \"{to}\" for \"{from}\" passed on {tier}"
            );
        }
    }
}
