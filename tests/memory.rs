//! Every byte on the GPU is accounted for, and the documentation lists every buffer.
#![cfg(feature = "study")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic and tell what it saw"
)]

mod common;

use bevy_gpu_culling::{
    cull::{
        Channels, Compaction, CullFrame, CullRequest, CullView, Culler, CullerOptions, Gpu, Order,
        SetId,
        layout::{ChunkView, OcclusionRow},
    },
    instance::{InstanceSet, ScaleKind},
};
use common::{gpu, gpu_with, triangles_of};
use glam::Vec3;

/// A culler with a set of `len` instances and one view that keeps all of them.
fn culler(len: u32, channels: Channels, compaction: Compaction) -> Culler {
    culler_in(Order::NearFirst, len, channels, compaction)
}

/// The same in an order.
fn culler_in(order: Order, len: u32, channels: Channels, compaction: Compaction) -> Culler {
    let (device, queue, _) = gpu();
    let options = CullerOptions {
        compaction,
        ..CullerOptions::default()
    };
    let (mut culler, _) = Culler::new(&device, options).unwrap();
    let grid = (0..len).map(|i| Vec3::new((i % 100) as f32, (i / 100) as f32, 0.0));
    let set = InstanceSet::from_transforms(grid).unwrap();
    culler
        .store_mut()
        .reserve_set(&device, SetId(1), len, channels)
        .unwrap();
    culler
        .store_mut()
        .upload(&queue, SetId(1), 0, set.packed())
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
    culler.prepare(Gpu::new(&device, &queue), &frame);
    let mut encoder = device.create_command_encoder(&Default::default());
    let recorded = culler
        .prepared()
        .unwrap()
        .record(Gpu::new(&device, &queue), &mut encoder);
    queue.submit([encoder.finish()]);
    culler.finish(recorded);
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
    let (device, ..) = gpu();
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
    let (mut culler, _) = Culler::new(&device, CullerOptions::default()).unwrap();
    culler.limit_pages(1 << 21, u32::MAX, u32::MAX);
    culler.store_mut().expect_sets(sets);
    assert!(!culler.store().has_room(300_000, plain));
    for (id, len, channels) in sets {
        culler
            .store_mut()
            .reserve_set(&device, id, len, channels)
            .unwrap();
    }
    let page = |culler: &Culler, id| culler.store().set_regions(SetId(id))[0].page;
    assert_eq!(page(&culler, 1), page(&culler, 3));
    assert_eq!(page(&culler, 2), page(&culler, 4));
    assert_ne!(page(&culler, 1), page(&culler, 2));
    assert!(page(&culler, 5) != page(&culler, 1) && page(&culler, 5) != page(&culler, 2));
    let (sum, shared) = (
        |lens: &[u64]| -> u64 { lens.iter().map(|len| len.next_multiple_of(1024)).sum() },
        1 << 20,
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
        .reserve_set(&device, SetId(6), 290_000, plain)
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
        .reserve_set(&device, SetId(7), 300_000, plain)
        .unwrap();
    assert_eq!(
        culler.memory()["gpu_culling instances"],
        16 * (scaled_sum + shared + sum(&[300_000]))
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
    let (device, queue, _) = gpu_with(|limits| limits.max_storage_buffer_binding_size = limit);
    for compaction in [Compaction::VoteScanCompact, Compaction::Classify] {
        let options = CullerOptions {
            survivor_capacity: 1000,
            compaction,
            ..CullerOptions::default()
        };
        let (mut culler, _) = Culler::new(&device, options).unwrap();
        let len = 60_000;
        let set = InstanceSet::from_transforms(vec![Vec3::ZERO; len as usize]).unwrap();
        let plain = Channels::default();
        culler
            .store_mut()
            .reserve_set(&device, SetId(1), len, plain)
            .unwrap();
        culler
            .store_mut()
            .upload(&queue, SetId(1), 0, set.packed())
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
            culler.prepare(Gpu::new(&device, &queue), &frame);
            let mut encoder = device.create_command_encoder(&Default::default());
            let recorded = culler
                .prepared()
                .unwrap()
                .record(Gpu::new(&device, &queue), &mut encoder);
            queue.submit([encoder.finish()]);
            culler.finish(recorded);
            device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
            assert_eq!(culler.take_refusals(), []);
            if let Some(counts) = culler.take_counts(&device) {
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
    for part in [
        format!("| frame tables | {row} per row"),
        format!("hides has {hiding} more per row"),
        format!("late lists {}.", 2 * row + hiding),
    ] {
        assert!(text.contains(&part), "memory.md lacks \"{part}\"");
    }
}
