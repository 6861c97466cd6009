use super::*;

fn limits(workgroups: u32) -> DispatchLimits {
    DispatchLimits {
        workgroups,
        subgroups_of_32: true,
        batches: 1,
    }
}

#[test]
fn blocks_are_voted_on_once() {
    let mut plan = BatchPlan::default();
    (plan.batch.block_count, plan.batch.dispatch_width) = (1001, 1001);
    let both = |plan: &BatchPlan, limits| {
        [Dispatch::SharedBlocks, Dispatch::BlockPerSubgroup]
            .map(|dispatch| dispatch.workgroups(plan, limits))
    };
    assert_eq!(both(&plan, limits(2000)), [(1001, 1), (0, 0)]);
    plan.block_per_subgroup = true;
    assert_eq!(both(&plan, limits(2000)), [(0, 0), (251, 1)]);
    assert_eq!(both(&plan, limits(200)), [(0, 0), (200, 2)]);
    let other_sizes = DispatchLimits {
        subgroups_of_32: false,
        ..limits(2000)
    };
    assert_eq!(both(&plan, other_sizes), [(1001, 1), (0, 0)]);
}

#[test]
fn crossed_blocks_are_voted_on_once() {
    let mut plan = BatchPlan::default();
    plan.batch.block_count = 100_000;
    for (alone, subgroups_of_32) in [(false, true), (true, false), (true, true)] {
        plan.crossed_block_per_subgroup = alone;
        let limits = DispatchLimits {
            subgroups_of_32,
            ..limits(65_535)
        };
        let [shared, per_subgroup] = [Dispatch::SharedCrossed, Dispatch::CrossedPerSubgroup]
            .map(|dispatch| dispatch.workgroups(&plan, limits));
        let all = (LIST_WORKGROUPS, 1);
        let is_per_subgroup = alone && subgroups_of_32;
        assert_eq!(
            (shared, per_subgroup),
            if is_per_subgroup {
                ((0, 0), all)
            } else {
                (all, (0, 0))
            }
        );
    }
}

#[test]
fn batches_share_the_workgroups_over_their_lists() {
    for (batches, max, expected) in [
        (1, 10_000, 4096),
        (1, 100, 100),
        (0, 10_000, 4096),
        (2, 10_000, 2048),
        (9, 10_000, 1024),
        (9, 100, 100),
    ] {
        let limits = DispatchLimits {
            batches,
            ..limits(65_535)
        };
        assert_eq!(limits.over_list(max), expected, "{batches}, {max}");
    }
}

#[cfg(feature = "study")]
#[test]
fn a_dispatch_beyond_the_limit_is_two_dimensional() {
    let mut plan = BatchPlan::default();
    (plan.batch.count_len, plan.batch.dispatch_width) = (100, 33);
    assert_eq!(
        Dispatch::Doubling.workgroups(&plan, limits(65_535)),
        (33, 25)
    );
    (plan.batch.count_len, plan.batch.dispatch_width) = (100, 1);
    let many_views_of_few_blocks = Dispatch::Doubling.workgroups(&plan, limits(33));
    assert_eq!(many_views_of_few_blocks, (25, 32));
}

#[test]
fn the_lists_have_room_for_what_the_kernels_put_before_the_entries() {
    let kernel = crate::cull::shaders::kernels::OCCLUDE.on(crate::cull::CullingTier::Subgroup);
    let module = naga::front::wgsl::parse_str(kernel).unwrap_or_default();
    let found = module.types.iter().find_map(|(_, one)| match &one.inner {
        naga::TypeInner::Struct { members, .. } if one.name.as_deref() == Some("Lists") => {
            members.last().map(|entries| entries.offset)
        }
        _ => None,
    });
    assert_eq!(found.map(u64::from), Some(4 * LISTS_HEAD));
}
