//! Every byte on the GPU is accounted for, and the documentation tells of each.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic and tell what it saw"
)]

mod common;

use bevy_gpu_culling::{
    cull::{
        BoundingSphere, Channels, Compaction, CullFrame, CullRequest, CullView, Culler,
        CullerOptions, DrawShape, SetId,
    },
    instance::InstanceSet,
};
use common::gpu;
use glam::{Affine3A, Vec3};

/// A culler with a set of `len` instances that one view sees in whole.
fn culler(len: u32, channels: Channels, compaction: Compaction) -> Culler {
    let (device, queue, _) = gpu();
    let options = CullerOptions {
        compaction,
        ..CullerOptions::default()
    };
    let (mut culler, _) = Culler::new(&device, options).unwrap();
    let grid = (0..len).map(|i| Vec3::new((i % 100) as f32, (i / 100) as f32, 0.0));
    let set = InstanceSet::from_transforms(grid).unwrap();
    culler.reserve_set(&device, SetId(1), len, channels);
    culler.upload(&queue, SetId(1), 0, set.packed()).unwrap();
    let frame = CullFrame {
        views: vec![CullView::EVERYTHING],
        requests: vec![CullRequest {
            key: 0,
            set: SetId(1),
            world_from_local: Affine3A::IDENTITY,
            sphere: BoundingSphere {
                centre: Vec3::ZERO,
                radius: 0.5,
            },
            shape: DrawShape::NonIndexed {
                vertex_count: 3,
                first_vertex: 0,
            },
            views: vec![0],
        }],
    };
    culler.prepare(&device, &queue, &frame);
    let mut encoder = device.create_command_encoder(&Default::default());
    culler.record(&device, &mut encoder);
    queue.submit([encoder.finish()]);
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
        println!("{compaction}: {rest} bytes an instance beside the arena: {memory:#?}");
        assert!((16.0..17.0).contains(&rest), "{compaction}: {rest}");
    }
}

#[test]
fn channels_are_paid_for_by_the_sets_that_have_them() {
    let len = 300_000u32;
    let channels = Channels {
        scale: true,
        tag: true,
        ..Channels::default()
    };
    let memory = culler(len, channels, Compaction::Auto).memory();
    let blocks = u64::from(len.div_ceil(1024) * 1024);
    assert_eq!(memory["gpu_culling scales"], 4 * blocks);
    assert_eq!(memory["gpu_culling tags"], 4 * blocks);
    let plain = culler(len, Channels::default(), Compaction::Auto).memory();
    assert!(!plain.contains_key("gpu_culling scales") && !plain.contains_key("gpu_culling tags"));
}

#[test]
fn every_buffer_is_in_the_documentation() {
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/performance.md"));
    let docs = docs.unwrap();
    let (_, table) = docs.split_once("## Bytes").unwrap();
    let rows: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
        .collect();
    let channels = Channels {
        scale: true,
        tag: true,
        ..Channels::default()
    };
    for compaction in [Compaction::Auto, Compaction::Classify] {
        for label in culler(5000, channels, compaction).memory().keys() {
            let name = label.strip_prefix("gpu_culling ").unwrap();
            assert!(rows.contains(&name), "{name} is not in the table: {rows:?}");
        }
    }
}
