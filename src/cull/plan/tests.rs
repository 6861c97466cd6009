//! Tests of the plan.

use super::*;
use crate::cull::policy::FEW_COUNTS;

fn request<'a>(regions: &'a [Region], len: u32, views: &'a [ViewPlanes]) -> PlanRequest<'a> {
    PlanRequest {
        regions,
        len,
        scale: ScaleKind::One,
        world_from_local: Affine3A::IDENTITY,
        sphere: BoundingSphere {
            center: Vec3::ZERO,
            radius: 1.0,
        },
        more: &[],
        shapes: &[DrawShape::Indexed {
            index_count: 36,
            first_index: 3,
            base_vertex: -2,
        }],
        fades: false,
        thins: false,
        rings: None,
        row_group: 1,
        lists: 1,
        rows: views,
    }
}

const LIMITS: PlanLimits = PlanLimits {
    counts: 1000,
    workgroups: 65_535,
    few_counts: FEW_COUNTS,
    fine_words: 0,
};

#[test]
fn an_empty_frame_has_no_batch() {
    assert_eq!(Plan::build(&[], LIMITS).batches.len(), 0);
    let region = [Region {
        page: 0,
        first: 0,
        first_bound: 0,
        capacity: 1024,
    }];
    let plan = Plan::build(
        &[
            request(&region, 0, &[ViewPlanes::default()]),
            request(&region, 5, &[]),
        ],
        LIMITS,
    );
    assert_eq!(plan.batches.len(), 0);
    assert!(plan.parts(0, 0).is_empty() && plan.parts(1, 0).is_empty());
    assert!(plan.parts(2, 0).is_empty() && plan.draws.is_empty());
}

#[test]
fn sets_of_one_page_share_a_batch_and_counts_lie_row_after_row() {
    let a = [Region {
        page: 7,
        first: 0,
        first_bound: 0,
        capacity: 2048,
    }];
    let b = [Region {
        page: 7,
        first: 2048,
        first_bound: 2,
        capacity: 1024,
    }];
    let rows = [ViewPlanes::default(); 3];
    let plan = Plan::build(
        &[request(&a, 1025, &rows[..2]), request(&b, 1024, &rows)],
        LIMITS,
    );
    let [batch] = &plan.batches[..] else {
        panic!("{plan:?}")
    };
    assert_eq!(
        (
            batch.page,
            batch.batch.block_count,
            batch.batch.count_len,
            batch.batch.row_count
        ),
        (7, 3, 7, 5)
    );
    let [first, second] = &batch.chunks[..] else {
        panic!("{batch:?}")
    };
    assert_eq!(
        (
            first.first_block,
            first.block_count,
            first.first_row,
            first.first_count
        ),
        (0, 2, 0, 0)
    );
    assert_eq!(
        (
            second.first_block,
            second.block_count,
            second.first_row,
            second.first_count
        ),
        (2, 1, 2, 4)
    );
    assert_eq!(second.first_instance, 2048);
    let counts: Vec<_> = batch
        .chunk_views
        .iter()
        .map(|draw| (draw.first_count, draw.block_count))
        .collect();
    assert_eq!(counts, [(0, 2), (2, 2), (4, 1), (5, 1), (6, 1)]);
    assert_eq!(
        plan.parts(1, 2),
        [DrawPart {
            batch: 0,
            chunk: 1,
            row: 4,
            region: 0,
            level: 0,
        }]
    );
    assert_eq!(batch.max_survivors, 1025 * 2 + 1024 * 3);
}

#[test]
fn rows_beyond_a_batch_go_to_the_next() {
    let region = [Region {
        page: 0,
        first: 0,
        first_bound: 0,
        capacity: 400 * 1024,
    }];
    let rows = [ViewPlanes::default(); 5];
    let plan = Plan::build(&[request(&region, 400 * 1024, &rows)], LIMITS);
    let rows: Vec<_> = plan
        .batches
        .iter()
        .map(|batch| batch.batch.row_count)
        .collect();
    assert_eq!(rows, [2, 2, 1]);
    assert_eq!(
        plan.parts(0, 4),
        [DrawPart {
            batch: 2,
            chunk: 0,
            row: 0,
            region: 0,
            level: 0,
        }]
    );
}

#[test]
fn a_set_of_two_pages_draws_twice_for_each_view() {
    let regions = [
        Region {
            page: 0,
            first: 0,
            first_bound: 0,
            capacity: 4096,
        },
        Region {
            page: 1,
            first: 1024,
            first_bound: 1,
            capacity: 2048,
        },
    ];
    let plan = Plan::build(&[request(&regions, 4097, &[ViewPlanes::default()])], LIMITS);
    assert_eq!(plan.parts(0, 0).len(), 2);
    assert_eq!(plan.batches[1].chunks[0].instance_count, 1);
}

#[test]
fn dispatches_beyond_the_limit_are_two_dimensional() {
    let region = [Region {
        page: 0,
        first: 0,
        first_bound: 0,
        capacity: 100 * 1024,
    }];
    let limits = PlanLimits {
        counts: 1000,
        workgroups: 33,
        few_counts: FEW_COUNTS,
        fine_words: 0,
    };
    let plan = Plan::build(
        &[request(&region, 100 * 1024, &[ViewPlanes::default()])],
        limits,
    );
    assert_eq!(plan.batches[0].block_dispatch(), (33, 4));
}

#[test]
fn strips_number_the_blocks_of_every_row() {
    let region = |page, first, blocks| Region {
        page,
        first,
        first_bound: first / BLOCK,
        capacity: blocks * BLOCK,
    };
    let rows = [ViewPlanes::default(); 3];
    let limits = PlanLimits {
        counts: 100_000,
        ..LIMITS
    };
    for (blocks, strip_blocks, strips) in [
        (1, 1, 1 + 3),
        (340, 1, 1 + 3 * 340),
        (683, 2, 1 + 3 * 342),
        (1367, 4, 1 + 3 * 342),
        (10_000, 8, 1 + 3 * 1250),
    ] {
        let (a, b) = ([region(0, 0, 1)], [region(0, BLOCK, blocks)]);
        let requests = [
            request(&a, 1, &rows[..1]),
            request(&b, blocks * BLOCK, &rows),
        ];
        let plan = Plan::build(&requests, limits);
        let batch = &plan.batches[0];
        assert_eq!(
            (batch.batch.strip_blocks, batch.batch.strip_count),
            (strip_blocks, strips),
            "{blocks}"
        );
        assert_eq!(
            (batch.chunks[0].first_strip, batch.chunks[1].first_strip),
            (0, 1)
        );
        let view = &batch.chunk_views[1];
        assert_eq!(
            (view.element_count, view.first_element, view.base_vertex),
            (36, 3, -2)
        );
        assert!(view.is_indexed());
    }
}

#[test]
fn limits_follow_the_binding_and_32_bits() {
    assert_eq!(PlanLimits::new(128 << 20, 1).counts, 32_768);
    assert!(u64::from(PlanLimits::new(u64::MAX, 1).counts) * 1024 < 1 << 32);
    assert_eq!(PlanLimits::new(0, 1).counts, 1);
}
