//! Twin of `shaders/cull/order.wesl`.

use crate::cull::layout::{BLOCK, BLOCK_WORDS, Batch, Bound, Chunk, ChunkView, RINGS, ViewOrder};
use core::ops::Range;
use glam::Vec3;

/// Shift of a float's bits that leaves 32 steps per doubling.
const STEP_BITS: u32 = 18;
/// Number of steps of a depth per ring.
const RING_STEPS: i32 = 64;
const MAX_STEPS: f32 = (1 << 28) as f32;

/// The ring of a block, 0 to [`RINGS`]` - 1`, by the center of its bound: the distance from the
/// view, in the set's space.
///
/// From a point, rings are 32 per doubling of `|x| + |y| + |z|`. Like the distance, it grows
/// along every ray from the eye. Without a point of view, they are slices of the depth. Every step
/// is exact, so the GPU gets the same ring.
#[must_use]
pub fn ring_of(order: &ViewOrder, center: Vec3) -> u32 {
    let step = if order.eye.w != 0.0 {
        let away = (center - order.eye.truncate()).abs();
        ((away.x + away.y + away.z).to_bits() >> STEP_BITS) as i32
    } else {
        let along = (center * order.eye.truncate()).to_array();
        let steps = along.map(|along| along.clamp(-MAX_STEPS, MAX_STEPS) as i32);
        steps.iter().sum::<i32>() / RING_STEPS
    };
    (step - order.first_step).clamp(0, RINGS as i32 - 1) as u32
}

/// The flip of a block: word `k ^ flip` comes at place k. It has one bit per halving of the block
/// whose second half is nearer than its first.
#[must_use]
pub fn flip_of(order: &ViewOrder, bound: &Bound) -> u32 {
    let eye = order.eye.truncate();
    let away = if order.eye.w != 0.0 {
        bound.center - eye
    } else {
        eye
    };
    let mut flip = 0;
    for level in 0..5 {
        let code = bound.halves >> (3 * level) & 7;
        if code == 0 {
            continue;
        }
        let axis = ((code - 1) / 2).min(2) as usize;
        let towards = if code.is_multiple_of(2) { -1.0 } else { 1.0 };
        if away[axis] * towards < 0.0 {
            flip |= (BLOCK_WORDS / 2) >> level;
        }
    }
    flip
}

/// The place by which a unit of words is sorted: the center of its block, or of its middle word. In
/// both formulas the product is exact, so a fused sum is the same.
#[must_use]
pub fn unit_center(bound: &Bound, first_word: u32, unit_words: u32) -> Vec3 {
    if unit_words == BLOCK_WORDS || bound.is_loose() {
        return bound.center;
    }
    let steps = bound.words[(first_word + unit_words / 2) as usize].to_le_bytes();
    let away = [steps[0], steps[1], steps[2]].map(|steps| f32::from(steps) - 128.0);
    bound.center + Vec3::from(away) * order_step(bound.radius)
}

/// About a 128th of a radius, with 8 bits of precision.
fn order_step(radius: f32) -> f32 {
    f32::from_bits(radius.to_bits() & 0xffff_0000) * (1.0 / 128.0)
}

/// What stands at each rank of the batch ([`Rank::first_word`](crate::cull::layout::Rank)). Each
/// row has its units by ring, and units of one ring in set order. Empty if no row is near first.
/// `bound` gives the bound of a block from the range of its instances in the page.
#[must_use]
pub fn order(
    batch: &Batch,
    chunks: &[Chunk],
    chunk_views: &[ChunkView],
    bound: impl Fn(Range<usize>) -> Bound,
) -> Vec<u32> {
    let mut first_words = Vec::new();
    if batch.is_near_first == 0 {
        return first_words;
    }
    for chunk in &chunks[..batch.chunk_count as usize] {
        let bounds: Vec<_> = (0..chunk.block_count)
            .map(|block| {
                let end = chunk.instance_count.min((block + 1) * BLOCK);
                let in_page = |i: u32| (chunk.first_instance + i) as usize;
                bound(in_page(block * BLOCK)..in_page(end))
            })
            .collect();
        for r in 0..chunk.row_count {
            let view = &chunk_views[(chunk.first_row + r) as usize];
            let order = &view.planes.order;
            let key = |unit: u32| {
                let word = unit * batch.unit_words;
                if order.is_near_first == 0 {
                    return (0, word, 0);
                }
                let block = word / BLOCK_WORDS;
                let bound = &bounds[block as usize];
                let center = unit_center(bound, word % BLOCK_WORDS, batch.unit_words);
                let is_full = (block + 1) * BLOCK <= chunk.instance_count;
                let flip = if is_full { flip_of(order, bound) } else { 0 };
                (ring_of(order, center), word, flip % batch.unit_words)
            };
            let units = chunk.block_count * batch.block_units();
            let mut keys: Vec<_> = (0..units).map(key).collect();
            keys.sort_unstable();
            let first = view.first_count * BLOCK_WORDS;
            first_words.extend(keys.iter().map(|(_, word, flip)| (first + word) | flip));
        }
    }
    first_words
}

/// What stands at a rank. Without an order, ranks are units.
#[must_use]
pub fn first_word_at(batch: &Batch, first_words: &[u32], rank: u32) -> u32 {
    let first_word = first_words.get(rank as usize).copied();
    first_word.unwrap_or(rank * batch.unit_words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cull::{
            BoundingSphere, CullView, DrawShape, Region,
            plan::{Plan, PlanLimits, PlanRequest},
            reference::bound,
        },
        instance::{PackedInstance, ScaleKind},
    };
    use glam::camera::rh::{proj::directx, view};
    use glam::{Affine3A, Mat4, Quat};
    use proptest::prelude::*;

    fn perspective(eye: Vec3) -> CullView {
        let clip = directx::perspective_infinite_reverse(1.0, 1.5, 0.1);
        CullView::from_clip_from_world(&(clip * look_at_origin(eye)))
    }

    /// Has an up vector for every eye: an eye above the origin cannot have +Y.
    fn look_at_origin(eye: Vec3) -> Mat4 {
        view::look_at_mat4(eye, Vec3::ZERO, eye.normalize().any_orthonormal_vector())
    }

    fn orthographic(eye: Vec3) -> CullView {
        let clip = directx::orthographic(-50.0, 50.0, -50.0, 50.0, 400.0, 0.0);
        CullView::from_clip_from_world(&(clip * look_at_origin(eye)))
    }

    /// The ring of a place of the world in a set with this transform.
    fn ring_at(view: &CullView, world_from_local: Affine3A, world: Vec3) -> u32 {
        let local = world_from_local.inverse().transform_point3(world);
        ring_of(&view.order_in(&world_from_local, 1.0), local)
    }

    fn point() -> impl Strategy<Value = Vec3> {
        let axis = || (-1000i32..1000).prop_map(|x| x as f32 * 0.05);
        [axis(), axis(), axis()].prop_map(Vec3::from)
    }

    fn transform() -> impl Strategy<Value = Affine3A> {
        (point(), -3i32..4, 0i32..60).prop_map(|(offset, scale, turn)| {
            let rotation = Quat::from_euler(glam::EulerRot::XYZ, turn as f32 * 0.1, 0.7, 0.2);
            Affine3A::from_scale_rotation_translation(
                Vec3::splat((scale as f32).exp2()),
                rotation,
                offset,
            )
        })
    }

    proptest! {
        /// Along every ray from the eye, and along every parallel ray of a view without a point of
        /// view, rings only grow.
        #[test]
        fn rings_grow_along_rays(eye in point(), at in point(), world in transform()) {
            prop_assume!(eye.length() > 1.0 && (at - eye).length() > 1.0);
            let towards = (at - eye).normalize();
            let rings: Vec<_> = (1..200)
                .map(|k| ring_at(&perspective(eye), world, eye + towards * (k as f32 * 0.7)))
                .collect();
            prop_assert!(rings.is_sorted(), "{rings:?}");
            prop_assert!(rings[198] > rings[0] + 40, "{rings:?}");
            let along = -eye.normalize();
            let rings: Vec<_> = (0..200)
                .map(|k| ring_at(&orthographic(eye), world, at + along * (k as f32 - 100.0)))
                .collect();
            prop_assert!(rings.is_sorted(), "{rings:?}");
            prop_assert!(rings.iter().max() > rings.iter().min(), "{rings:?}");
        }

        /// The ranks of each row are a permutation of its cells, by ring, and in set order within a
        /// ring. Each flip is one of its block.
        #[test]
        fn ranks_are_cells_by_ring(
            eye in point(),
            len in 1u32..20_000,
            (is_orthographic, few_words) in (prop::bool::ANY, 0u32..3),
            world in transform(),
        ) {
            prop_assume!(eye.length() > 1.0);
            // Along a curve through a cube, as a sorted set has them.
            let instances: Vec<_> = (0..len)
                .map(|i| {
                    let spread = |k: u32| ((i / 32).wrapping_mul(k) % 97) as f32 * 0.02;
                    let at = Vec3::new(i as f32 * 0.004, spread(31), spread(57));
                    PackedInstance::new(at, Quat::IDENTITY)
                })
                .collect();
            let view = if is_orthographic { orthographic(eye) } else { perspective(eye) };
            let mut near_first = view.planes_in(&world);
            near_first.order = view.order_in(&world, 0.1);
            let regions = [Region { page: 0, first: 0, first_bound: 0, capacity: len.next_multiple_of(BLOCK) }];
            let plan = Plan::build(
                &[PlanRequest {
                    regions: &regions,
                    len,
                    scale: ScaleKind::One,
                    world_from_local: world,
                    sphere: BoundingSphere { center: Vec3::ZERO, radius: 0.1 },
                    more: &[],
                    shapes: &[DrawShape::NonIndexed { vertex_count: 3, first_vertex: 0 }],
                    fades: false,
                    thins: false,
                    rings: None,
                    row_group: 1,
                    lists: 1,
                    rows: &[near_first, view.planes_in(&world)],
                }],
                PlanLimits { counts: 1 << 20, workgroups: 100, few_counts: 100, fine_words: 0 },
            );
            let mut batch = plan.batches[0].clone();
            // Units of one word, of four, or blocks.
            batch.batch.unit_words = [1, 4, BLOCK_WORDS][few_words as usize];
            let bounds = |range: Range<usize>| bound(&instances[range], &[]);
            let first_words = order(&batch.batch, &batch.chunks, &batch.chunk_views, bounds);
            let unit_words = batch.batch.unit_words;
            let units = (batch.chunks[0].block_count * BLOCK_WORDS / unit_words) as usize;
            let mut words: Vec<_> =
                first_words.iter().map(|word| word / unit_words * unit_words).collect();
            let ring = |word: u32| {
                let first = (word / BLOCK_WORDS * BLOCK) as usize;
                let end = instances.len().min(first + BLOCK as usize);
                let bound = bound(&instances[first..end], &[]);
                ring_of(&near_first.order, unit_center(&bound, word % BLOCK_WORDS, unit_words))
            };
            let keys: Vec<_> = words[..units].iter().map(|word| (ring(*word), *word)).collect();
            prop_assert!(keys.is_sorted(), "{keys:?}");
            let in_set_order = (units as u32..2 * units as u32).map(|unit| unit * unit_words);
            prop_assert!(first_words[units..].iter().copied().eq(in_set_order.clone()));
            words.sort_unstable();
            let all = (0..2 * units as u32).map(|unit| unit * unit_words);
            prop_assert!(words.iter().copied().eq(all));
            if len % BLOCK != 0 {
                let last = (units as u32 - 1) * unit_words;
                prop_assert!(first_words.contains(&last), "a block that is not full has no flip");
            }
        }
    }

    /// A row of words along an axis comes from the near end, whichever end that is.
    #[test]
    fn words_are_flipped_towards_the_view() {
        for (axis, direction) in [(0, 1.0), (0, -1.0), (1, 1.0), (2, -1.0)] {
            let instances: Vec<_> = (0..BLOCK)
                .map(|i| {
                    let mut at = Vec3::ZERO;
                    at[axis] = i as f32 * direction;
                    PackedInstance::new(at, Quat::IDENTITY)
                })
                .collect();
            let bound = bound(&instances, &[]);
            let mut eye = Vec3::new(5.0, 3.0, 4.0);
            eye[axis] = -3000.0 * direction;
            let near_start = perspective(eye).order_in(&Affine3A::IDENTITY, 0.5);
            eye[axis] = 3000.0 * direction;
            let near_end = perspective(eye).order_in(&Affine3A::IDENTITY, 0.5);
            assert_eq!(flip_of(&near_start, &bound), 0);
            assert_eq!(flip_of(&near_end, &bound), 31);
            eye[axis] = 300.0 * direction;
            let parallel = orthographic(eye).order_in(&Affine3A::IDENTITY, 0.5);
            assert_eq!(flip_of(&parallel, &bound), 31);
            assert_eq!(flip_of(&ViewOrder::default(), &bound), 0);
        }
    }
}
