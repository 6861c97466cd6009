//! Twin of `shaders/bound.wgsl` and `shaders/block_state.wgsl`.

use crate::{
    cull::layout::{Bound, Chunk, Row},
    instance::PackedInstance,
};
use glam::Vec3;

/// A block as a whole in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// No instance can be visible.
    Outside,
    /// The view's border crosses the block.
    Partial,
    /// All instances are visible.
    Inside,
}

/// Around the positions of a block's instances; `scales` is empty without the channel.
#[must_use]
pub fn bound(instances: &[PackedInstance], scales: &[f32]) -> Bound {
    let scale = |at: usize| scales.get(at).copied().unwrap_or(1.0);
    let all = || instances.iter().map(PackedInstance::position).enumerate();
    let finite = || all().filter(|(at, position)| position.is_finite() && scale(*at).is_finite());
    let (low, high) = finite().fold((Vec3::MAX, Vec3::MIN), |(low, high), (_, position)| {
        (low.min(position), high.max(position))
    });
    let centre = (low + high) * 0.5;
    let radius = finite()
        .map(|(_, position)| position.distance(centre))
        .fold(0.0, f32::max);
    let max_scale = finite().map(|(at, _)| scale(at)).fold(0.0, f32::max);
    let radius = match finite().count() {
        // What is not finite is never visible: outside of every view.
        0 => -f32::MAX,
        count if count == instances.len() => radius,
        _ => f32::MAX,
    };
    Bound {
        centre,
        radius,
        max_scale,
        ..Bound::default()
    }
}

/// The block against the view. Cautious on both sides: rounding never makes a block inside or outside that is not.
#[must_use]
pub fn block_state(chunk: &Chunk, row: &Row, bound: &Bound) -> BlockState {
    let p = bound.centre.extend(1.0);
    let least = row
        .planes()
        .map(|plane| plane.dot(p))
        .into_iter()
        .fold(f32::INFINITY, f32::min);
    let aside = chunk.sphere.truncate().length() * bound.max_scale;
    let reach = bound.radius + aside + chunk.sphere.w * bound.max_scale;
    let slack = 1e-5 * (bound.centre.abs().element_sum() + least.abs() + reach);
    if least + reach + slack <= 0.0 {
        return BlockState::Outside;
    }
    if row.reach.w >= 0.0 {
        let world = Vec3::new(
            chunk.world_x.dot(p),
            chunk.world_y.dot(p),
            chunk.world_z.dot(p),
        );
        let range = row.reach.w + (reach + slack) * chunk.world_scale;
        let beyond = world.distance(row.reach.truncate()) * 0.99999 > range;
        return if beyond {
            BlockState::Outside
        } else {
            BlockState::Partial
        };
    }
    if least - bound.radius - aside - slack > 0.0 {
        BlockState::Inside
    } else {
        BlockState::Partial
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cull::{
        BoundingSphere, CullView,
        layout::BLOCK,
        pages::Region,
        plan::{DrawShape, Plan, PlanLimits, PlanRequest},
        reference::{is_visible, load_sphere},
    };
    use glam::{Affine3A, Mat4, Quat, Vec4};
    use proptest::prelude::*;

    /// The chunk of a block of its own.
    fn chunk_of(len: u32, sphere: BoundingSphere, world: Affine3A, scaled: bool) -> Chunk {
        let region = [Region {
            page: 0,
            first: 0,
            capacity: BLOCK,
        }];
        let request = PlanRequest {
            regions: &region,
            len,
            has_scale: scaled,
            world_from_local: world,
            sphere,
            shape: DrawShape::NonIndexed {
                vertex_count: 3,
                first_vertex: 0,
            },
            rows: &[Row::default()],
        };
        Plan::build(
            &[request],
            PlanLimits {
                counts: 100,
                workgroups: 100,
            },
        )
        .batches[0]
            .chunks[0]
    }

    proptest! {
        /// What the block says holds for each of its instances.
        #[test]
        fn a_block_outside_has_no_survivor_and_one_inside_has_no_other(
            positions in prop::collection::vec(prop::array::uniform3(-1.0f32..1.0), 1..40),
            size in 0.01f32..30.0,
            at in prop::array::uniform3(-60.0f32..60.0),
            scales in prop::collection::vec(0.1f32..3.0, 40),
            (centre, radius) in (prop::array::uniform3(-1.0f32..1.0), 0.0f32..2.0),
            (turn, stretch) in (0.0f32..6.0, 0.2f32..3.0),
            range in prop::option::of(1.0f32..60.0),
        ) {
            let at = Vec3::from(at);
            let instances: Vec<_> = positions
                .iter()
                .map(|p| PackedInstance::new(Vec3::from(*p) * size + at, Quat::from_rotation_y(p[0] * 3.0)))
                .collect();
            let sphere = BoundingSphere { centre: centre.into(), radius };
            let world = Affine3A::from_scale_rotation_translation(Vec3::splat(stretch), Quat::from_rotation_x(turn), Vec3::X);
            let chunk = chunk_of(instances.len() as u32, sphere, world, true);
            let clip = Mat4::perspective_infinite_reverse_rh(1.0, 1.3, 0.1) * Mat4::look_at_rh(Vec3::ZERO, Vec3::ONE, Vec3::Y);
            let mut view = CullView::from_clip_from_world(&clip);
            if let Some(range) = range {
                view = view.within(Vec3::ZERO, range);
            }
            let row = view.to_row(&world);
            let state = block_state(&chunk, &row, &bound(&instances, &scales[..instances.len()]));
            for i in 0..instances.len() as u32 {
                let visible = is_visible(&chunk, &row, load_sphere(&chunk, &instances, &scales, i));
                prop_assert!(state != BlockState::Outside || !visible, "instance {i} of a block outside");
                prop_assert!(state != BlockState::Inside || visible, "instance {i} of a block inside");
            }
        }
    }

    #[test]
    fn a_block_without_a_finite_instance_is_outside_of_every_view() {
        let nowhere = PackedInstance::new(Vec3::NAN, Quat::IDENTITY);
        let sphere = BoundingSphere {
            centre: Vec3::ZERO,
            radius: 1.0,
        };
        let chunk = chunk_of(2, sphere, Affine3A::IDENTITY, true);
        let unscaled = bound(&[PackedInstance::default(); 2], &[f32::NAN, f32::INFINITY]);
        for bound in [bound(&[nowhere; 2], &[]), unscaled] {
            for view in [
                CullView::EVERYTHING,
                CullView::EVERYTHING.within(Vec3::ZERO, 5.0),
            ] {
                let row = view.to_row(&Affine3A::IDENTITY);
                assert_eq!(block_state(&chunk, &row, &bound), BlockState::Outside);
            }
        }
    }

    #[test]
    fn a_block_with_a_nan_is_never_inside() {
        let mut instances = [PackedInstance::default(); 3];
        instances[1].position[0] = f32::NAN;
        let bound = bound(&instances, &[]);
        assert_eq!(bound.radius, f32::MAX);
        let chunk = chunk_of(
            3,
            BoundingSphere {
                centre: Vec3::ZERO,
                radius: 1.0,
            },
            Affine3A::IDENTITY,
            false,
        );
        let everything = CullView::EVERYTHING.to_row(&Affine3A::IDENTITY);
        assert_eq!(
            block_state(&chunk, &everything, &bound),
            BlockState::Partial
        );
        let nothing =
            CullView::from_planes([Vec4::new(1.0, 0.0, 0.0, -5.0); 6]).to_row(&Affine3A::IDENTITY);
        assert_eq!(block_state(&chunk, &nothing, &bound), BlockState::Partial);
    }
}
