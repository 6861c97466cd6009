//! Every byte on the GPU is accounted for, and the documentation lists every buffer.

use crate::common::{gpu, gpu_with, run_resident, triangles_of};
use bevy_gpu_culling::{
    cull::{
        Channels, Compaction, CullFrame, CullRequest, CullView, Culler, CullerOptions, Gpu, Order,
        SetId,
        layout::{Chunk, ChunkView, OcclusionRow, Projection, RowSource, ViewSource},
    },
    instance::{InstanceSet, ScaleKind},
};
use glam::Vec3;

/// A culler with a set of `len` instances and one view that keeps all of them.
fn culler(len: u32, channels: Channels, compaction: Compaction) -> Culler {
    culler_in(Order::NearFirst, len, channels, compaction)
}

/// The same in an order.
fn culler_in(order: Order, len: u32, channels: Channels, compaction: Compaction) -> Culler {
    let gpu = gpu();
    let options = CullerOptions {
        compaction,
        ..CullerOptions::default()
    };
    let (mut culler, _) = Culler::new(gpu.device, options).unwrap();
    let grid = (0..len).map(|i| Vec3::new((i % 100) as f32, (i / 100) as f32, 0.0));
    let set = InstanceSet::from_transforms(grid).unwrap();
    culler
        .store_mut()
        .reserve_set(gpu.device, SetId(1), len, channels)
        .unwrap();
    culler
        .store_mut()
        .upload(gpu.queue, SetId(1), 0, set.packed())
        .unwrap();
    let frame = CullFrame {
        views: vec![CullView::EVERYTHING.sorted_toward(Vec3::Z)],
        requests: vec![CullRequest {
            order,
            views: vec![0],
            ..triangles_of(1)
        }],
        ..CullFrame::default()
    };
    run_resident(&mut culler, gpu, &frame);
    culler
}

#[test]
fn a_plain_set_takes_sixteen_bytes_and_less_than_one_more_an_instance() {
    let len = 1 << 20;
    for compaction in [
        Compaction::VoteScanCompact,
        Compaction::Classify,
        Compaction::LookBack,
    ] {
        let culler = culler(len, Channels::default(), compaction);
        let memory = culler.memory();
        assert_eq!(memory.values().sum::<u64>(), culler.gpu_bytes());
        assert_eq!(memory["gpu_culling instances"], 16 * u64::from(len));
        let survivors = memory["gpu_culling survivors"];
        assert_eq!(survivors, 4 * culler.survivor_capacity());
        assert!(culler.survivor_capacity() >= u64::from(len));
        let rest = (culler.gpu_bytes() - survivors) as f64 / f64::from(len);
        println!("{compaction}: {rest} bytes per instance without the arena: {memory:#?}");
        assert!((16.0..17.0).contains(&rest), "{compaction}: {rest}");
    }
}

#[test]
fn channels_are_paid_for_by_the_sets_that_have_them() {
    let len = 300_000u32;
    let channels = Channels {
        scale: ScaleKind::Uniform,
        data_words: 1,
        ..Channels::default()
    };
    let memory = culler(len, channels, Compaction::Auto).memory();
    let blocks = u64::from(len.div_ceil(1024) * 1024);
    assert_eq!(memory["gpu_culling scales"], 4 * blocks);
    assert_eq!(memory["gpu_culling data"], 4 * blocks);
    let wide = Channels {
        data_words: 4,
        ..channels
    };
    let memory = culler(len, wide, Compaction::Auto).memory();
    assert_eq!(memory["gpu_culling data"], 16 * blocks);
    let per_axis = Channels {
        scale: ScaleKind::NonUniform,
        ..channels
    };
    let memory = culler(len, per_axis, Compaction::Auto).memory();
    assert_eq!(memory["gpu_culling scales"], 12 * blocks);
    let plain = culler(len, Channels::default(), Compaction::Auto).memory();
    assert!(!plain.contains_key("gpu_culling scales") && !plain.contains_key("gpu_culling data"));
}

#[test]
fn large_sets_that_come_together_share_the_pages_of_their_kind() {
    let device = gpu().device;
    let plain = Channels::default();
    let scaled = Channels {
        scale: ScaleKind::Uniform,
        ..plain
    };
    let sets = [
        (SetId(1), 300_000, plain),
        (SetId(2), 400_000, scaled),
        (SetId(3), 1_100_000, plain),
        (SetId(4), 262_145, scaled),
        // A small set, which shares a page with sets of any kind.
        (SetId(5), 262_144, scaled),
    ];
    let (mut culler, _) = Culler::new(device, CullerOptions::default()).unwrap();
    culler.limit_pages(1 << 21, u32::MAX, u32::MAX);
    culler.store_mut().expect_sets(sets);
    assert!(!culler.store().has_room(300_000, plain));
    for (id, len, channels) in sets {
        culler
            .store_mut()
            .reserve_set(device, id, len, channels)
            .unwrap();
    }
    let page = |culler: &Culler, id| culler.store().set_regions(SetId(id))[0].page;
    assert_eq!(page(&culler, 1), page(&culler, 3));
    assert_eq!(page(&culler, 2), page(&culler, 4));
    assert_ne!(page(&culler, 1), page(&culler, 2));
    assert!(page(&culler, 5) != page(&culler, 1) && page(&culler, 5) != page(&culler, 2));
    // The only small set that is expected has a page for small sets alone.
    let (sum, shared) = (
        |lens: &[u64]| -> u64 { lens.iter().map(|len| len.next_multiple_of(1024)).sum() },
        1 << 18,
    );
    let (plain_sum, scaled_sum) = (sum(&[300_000, 1_100_000]), sum(&[400_000, 262_145]));
    let memory = culler.memory();
    assert_eq!(
        memory["gpu_culling instances"],
        16 * (plain_sum + scaled_sum + shared)
    );
    assert_eq!(
        memory["gpu_culling scales"],
        4 * (scaled_sum + shared),
        "plain sets have no scales"
    );

    // Sets of the same kind reuse the room. It is freed with the last set.
    assert!(!culler.store().has_room(300_000, plain));
    culler.store_mut().remove_set(SetId(1));
    assert!(culler.store().has_room(300_000, plain) && !culler.store().has_room(300_000, scaled));
    assert_eq!(culler.memory(), memory);
    culler
        .store_mut()
        .reserve_set(device, SetId(6), 290_000, plain)
        .unwrap();
    assert_eq!(page(&culler, 6), page(&culler, 3));
    assert_eq!(culler.memory(), memory);
    for id in [3, 6] {
        culler.store_mut().remove_set(SetId(id));
    }
    assert_eq!(
        culler.memory()["gpu_culling instances"],
        16 * (scaled_sum + shared)
    );
    // No more sets are expected, so the new page fits only this set.
    culler
        .store_mut()
        .reserve_set(device, SetId(7), 300_000, plain)
        .unwrap();
    assert_eq!(
        culler.memory()["gpu_culling instances"],
        16 * (scaled_sum + shared + sum(&[300_000]))
    );
}

/// A frame of equal sets, in views that keep everything. `rests` says in which of the views each
/// set rests.
fn frame_of_sets(sets: u64, views: u32, rests: impl Fn(u64) -> u128) -> CullFrame {
    let request = |set| CullRequest {
        key: set,
        views: (0..views).collect(),
        resting: rests(set),
        ..triangles_of(set)
    };
    CullFrame {
        views: vec![CullView::EVERYTHING; views as usize],
        requests: (0..sets).map(request).collect(),
        ..CullFrame::default()
    }
}

/// A culler with equal sets, which are announced as an app's are.
fn culler_of_sets(gpu: Gpu<'_>, sets: u64, len: u32) -> Culler {
    let (mut culler, _) = Culler::new(gpu.device, CullerOptions::default()).unwrap();
    let store = culler.store_mut();
    let plain = Channels::default();
    store.expect_sets((0..sets).map(|id| (SetId(id), len, plain)));
    let places = (0..len).map(|i| Vec3::new(i as f32, 0.0, 0.0));
    let set = InstanceSet::from_transforms(places).unwrap();
    for id in (0..sets).map(SetId) {
        store.reserve_set(gpu.device, id, len, plain).unwrap();
        store.upload(gpu.queue, id, 0, set.packed()).unwrap();
    }
    culler
}

fn run_frame(culler: &mut Culler, gpu: Gpu<'_>, frame: &CullFrame) {
    run_resident(culler, gpu, frame);
    assert_eq!(culler.take_refusals(), []);
}

/// The instances of 10,000 small sets take 16 MB.
#[test]
fn ten_thousand_small_sets_take_little_more_than_their_instances() {
    let gpu = gpu();
    let device = gpu.device;
    let (sets, len, views) = (10_000, 100, 5);
    let mut culler = culler_of_sets(gpu, sets, len);
    // Each set rests in all views but one.
    let frame = frame_of_sets(sets, views, |set| 0b11111 & !(1 << (set % 5)));
    for _ in 0..3 {
        run_frame(&mut culler, gpu, &frame);
        device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
        culler.take_counts(device);
    }
    let memory = culler.memory();
    println!(
        "{}: {} bytes: {memory:#?}",
        culler.compaction(),
        culler.gpu_bytes()
    );
    let each = |label: &str| memory[label] / sets;
    // 128 places each, and the rest of the second page.
    assert_eq!(
        memory["gpu_culling instances"],
        16 * ((1 << 20) + (1 << 18))
    );
    assert!(each("gpu_culling bounds") < 210);
    // A fifth of the rows is awake; a half more has room.
    assert!(each("gpu_culling survivors") <= 100 * 4 * 3 / 2);
    // `docs/guide/many-meshes.md` names this figure.
    assert!(culler.gpu_bytes() < 58_000_000, "{}", culler.gpu_bytes());
    run_frame(&mut culler, gpu, &frame_of_sets(sets, views, |_| 0));
    let all = culler.memory();
    println!("if no row rests: {} bytes", culler.gpu_bytes());
    assert!(all["gpu_culling survivors"] >= 4 * sets * u64::from(len) * u64::from(views));
}

#[test]
fn an_arena_follows_the_rows_that_are_awake_and_loses_nothing() {
    let gpu = gpu();
    let (sets, len, views) = (300u64, 200u32, 3u32);
    // The buffer is rounded up to 256 bytes.
    let all = (sets * u64::from(len) * u64::from(views)).next_multiple_of(64);
    let mut culler = culler_of_sets(gpu, sets, len);
    let mut sizes = Vec::new();
    for awake in [0, 1, 30, 31, 200, 300, 299, 120, 60, 20, 0, 300, 5] {
        // The others rest in all views.
        let rests = |set| if set < awake { 0 } else { 0b111 };
        run_frame(&mut culler, gpu, &frame_of_sets(sets, views, rests));
        let batches = 0..culler.plan().batches.len();
        let totals: Vec<_> = batches
            .map(|batch| culler.read_batch(gpu, batch).unwrap().totals)
            .collect();
        let survivors = totals.iter().map(|totals| u64::from(totals.survivors));
        let awake = awake * u64::from(len) * u64::from(views);
        assert_eq!(survivors.sum::<u64>(), awake);
        assert!(totals.iter().all(|totals| totals.overflow == 0));
        let capacity = culler.survivor_capacity();
        assert!((awake..=all).contains(&capacity), "{capacity} for {awake}");
        let most = (4 * awake).max(1 << 14).next_multiple_of(64);
        assert!(capacity <= most, "{capacity} for {awake}");
        sizes.push(capacity);
    }
    println!("{sizes:?}");
    assert_eq!(sizes.iter().max(), Some(&all));
    assert!(
        sizes.windows(2).any(|pair| pair[1] < pair[0]),
        "none shrank"
    );
    assert!(
        sizes.windows(2).any(|pair| pair[1] == pair[0]),
        "none stayed"
    );
}

#[test]
fn every_buffer_is_in_the_documentation() {
    let docs = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/docs/internals/memory.md"
    ));
    let docs = docs.unwrap();
    let (_, table) = docs.split_once("## Bytes").unwrap();
    let rows: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
        .collect();
    let channels = Channels {
        scale: ScaleKind::Uniform,
        data_words: 1,
        ..Channels::default()
    };
    for compaction in [Compaction::Auto, Compaction::Classify] {
        for order in [Order::NearFirst, Order::FarFirst] {
            let memory = culler_in(order, 5000, channels, compaction).memory();
            for label in memory.keys() {
                let name = label.strip_prefix("gpu_culling ").unwrap();
                assert!(rows.contains(&name), "{name} is not in the table: {rows:?}");
            }
            let sorts = memory.contains_key("gpu_culling far-first keys");
            assert_eq!(sorts, order == Order::FarFirst);
        }
    }
}

/// A binding limit need only be a multiple of 4. On desktop Vulkan and DX12 it is 2^31 - 4.
#[test]
fn an_arena_grows_to_what_can_be_bound_and_no_further() {
    let limit = (1u64 << 20) - 4;
    let limited = gpu_with(|limits| limits.max_storage_buffer_binding_size = limit);
    let gpu = limited.gpu();
    let Gpu { device, queue } = gpu;
    for compaction in [Compaction::VoteScanCompact, Compaction::Classify] {
        let options = CullerOptions {
            survivor_capacity: 1000,
            compaction,
            ..CullerOptions::default()
        };
        let (mut culler, _) = Culler::new(device, options).unwrap();
        let len = 60_000;
        let set = InstanceSet::from_transforms(vec![Vec3::ZERO; len as usize]).unwrap();
        let plain = Channels::default();
        culler
            .store_mut()
            .reserve_set(device, SetId(1), len, plain)
            .unwrap();
        culler
            .store_mut()
            .upload(queue, SetId(1), 0, set.packed())
            .unwrap();
        // These survivors and a quarter more do not fit one binding.
        let frame = CullFrame {
            views: vec![CullView::EVERYTHING; 4],
            requests: vec![CullRequest {
                views: vec![0, 1, 2, 3],
                ..triangles_of(1)
            }],
            ..CullFrame::default()
        };
        let mut overflows = Vec::new();
        for _ in 0..6 {
            run_resident(&mut culler, gpu, &frame);
            device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
            assert_eq!(culler.take_refusals(), []);
            if let Some(counts) = culler.take_counts(device) {
                overflows.push(counts.overflow);
            }
        }
        assert_eq!(
            overflows.first(),
            Some(&(4 * u64::from(len) - 1000)),
            "{compaction}"
        );
        assert_eq!(overflows.last(), Some(&0), "{compaction}: {overflows:?}");
        assert_eq!(culler.survivor_capacity(), limit / 4, "{compaction}");
    }
}

#[test]
fn the_documented_rows_have_the_size_of_the_engines() {
    let text = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/docs/internals/memory.md"
    ));
    let (row, hiding) = (size_of::<ChunkView>(), size_of::<OcclusionRow>());
    let projection = size_of::<Projection>();
    let (chunk, source) = (size_of::<Chunk>(), size_of::<RowSource>());
    let view = size_of::<ViewSource>();
    for part in [
        format!("| chunks | {chunk} per set and page"),
        format!(
            "| row sources | {source} per row, and {} per row that may be",
            2 * source
        ),
        format!("{view} per view instead."),
        format!("| frame tables | {row} per row"),
        format!("hides has {hiding} more per row"),
        format!("late lists {},", 2 * row + hiding),
        format!("and {projection} per transform"),
    ] {
        assert!(text.contains(&part), "memory.md lacks \"{part}\"");
    }
}
