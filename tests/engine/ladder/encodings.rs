//! The instance encodings that Giordano (2019) compares, with the same kernels.

use super::{
    check::{check_batch, rungs},
    encoding::Encoding,
};
use crate::common::{gpu, kernel::buffer_of, random_set, random_view, rng};
use bevy_gpu_culling::{
    cull::{
        BoundingSphere, Compactor, CompactorOptions, CullView, DrawShape, Gpu, Region,
        layout::BLOCK,
        plan::{Plan, PlanLimits, PlanRequest},
    },
    instance::{PackedInstance, ScaleKind},
};
use glam::{Affine3A, Vec3};
use rand::RngExt;
use wgpu::Device;

/// A plan and its pages of at most `page` instances.
struct Input {
    plan: Plan,
    pages: Vec<wgpu::Buffer>,
    instances: Vec<Vec<PackedInstance>>,
}

fn input(
    device: &Device,
    encoding: Encoding,
    set: &[PackedInstance],
    views: &[CullView],
    page: usize,
) -> Input {
    let instances: Vec<_> = set.chunks(page).map(<[_]>::to_vec).collect();
    let buffer = |instances: &Vec<PackedInstance>| {
        let mut contents = Vec::new();
        encoding.encode(instances, &mut contents);
        buffer_of(device, &contents)
    };
    let capacity = (page as u32).next_multiple_of(BLOCK);
    let regions: Vec<_> = (0..instances.len())
        .map(|page| Region {
            page,
            first: 0,
            first_bound: 0,
            capacity,
        })
        .collect();
    let rows: Vec<_> = views
        .iter()
        .map(|view| view.planes_in(&Affine3A::IDENTITY))
        .collect();
    let request = PlanRequest {
        regions: &regions,
        len: set.len() as u32,
        scale: ScaleKind::One,
        world_from_local: Affine3A::IDENTITY,
        sphere: BoundingSphere {
            center: Vec3::new(0.3, -0.2, 0.5),
            radius: 0.7,
        },
        more: &[],
        shapes: &[DrawShape::NonIndexed {
            vertex_count: 3,
            first_vertex: 0,
        }],
        fades: false,
        thins: false,
        rings: None,
        row_group: 1,
        lists: 1,
        rows: &rows,
    };
    // The limit of workgroups in x is low, so that dispatches have two dimensions.
    let plan = Plan::build(
        &[request],
        PlanLimits {
            counts: 30_000,
            workgroups: 7,
            few_counts: 5,
            fine_words: 0,
        },
    );
    Input {
        plan,
        pages: instances.iter().map(buffer).collect(),
        instances,
    }
}

#[test]
fn every_encoding_equals_the_twin_in_every_compaction() {
    let Gpu { device, queue } = gpu();
    let mut rng = rng(64);
    let sets: Vec<_> = [1, 33, 1023, 1025, 5000, 30_000]
        .map(|len| random_set(&mut rng, len, ScaleKind::One))
        .into();
    for encoding in Encoding::ALL {
        assert!(encoding.name().len() > 5 && encoding.bytes() >= 16);
        for (compaction, tier) in rungs() {
            let options = CompactorOptions {
                tier,
                compaction,
                shader_checks: true,
                encoding: encoding.wgsl(),
            };
            let mut compactor = Compactor::new(device, options).unwrap();
            for set in &sets {
                let views: Vec<_> = (0..rng.random_range(1..=3))
                    .map(|_| random_view(&mut rng))
                    .collect();
                let input = input(device, encoding, set.packed(), &views, 8192);
                let prepared = compactor.prepare(device, queue, &input.plan, &input.pages);
                assert_eq!(prepared, Ok(()));
                let mut encoder = device.create_command_encoder(&Default::default());
                let mut pass = encoder.begin_compute_pass(&Default::default());
                compactor.record(&input.plan, &mut pass);
                drop(pass);
                queue.submit([encoder.finish()]);
                for (index, plan) in input.plan.batches.iter().enumerate() {
                    let data = compactor
                        .read_batch(device, queue, &input.plan, index)
                        .unwrap();
                    check_batch(
                        compaction,
                        plan,
                        &data,
                        &[],
                        &input.instances[plan.page],
                        &[],
                    )
                    .unwrap_or_else(|error| {
                        panic!(
                            "{compaction} on {tier}, {encoding:?}, {} instances: {error}",
                            set.len()
                        )
                    });
                }
            }
        }
    }
}
