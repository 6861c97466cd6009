use super::*;
use crate::cull::{
    BoundingSphere, CullView, DrawShape, Region,
    layout::{BAND_IS_THINNED, BAND_THINS_BY_SIZE, BLOCK, Chunk, ViewPlanes},
    plan::{Plan, PlanLimits, PlanRequest},
    reference::{is_visible, load_sphere},
};
use crate::instance::ScaleKind;
use glam::camera::rh::{proj::directx, view};
use glam::{Affine3A, Quat, Vec4};
use proptest::prelude::*;

/// The chunk of a single block.
fn chunk_of(len: u32, sphere: BoundingSphere, world: Affine3A, scale: ScaleKind) -> Chunk {
    let region = [Region {
        page: 0,
        first: 0,
        first_bound: 0,
        capacity: BLOCK,
    }];
    let request = PlanRequest {
        regions: &region,
        len,
        scale,
        world_from_local: world,
        sphere,
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
        rows: &[ViewPlanes::default()],
    };
    Plan::build(
        &[request],
        PlanLimits {
            counts: 100,
            workgroups: 100,
            few_counts: 100,
            fine_words: 0,
        },
    )
    .batches[0]
        .chunks[0]
}

/// Floats of a range, in discrete steps: proptest 1.12 asserts a property of its ranges that
/// rounding can break.
fn float(range: Range<f32>) -> impl Strategy<Value = f32> {
    const STEPS: u32 = 1 << 24;
    let place = move |step: u32| {
        let share = step as f32 / STEPS as f32;
        range.start + (range.end - range.start) * share
    };
    (0..STEPS).prop_map(place)
}

fn point(reach: f32) -> impl Strategy<Value = [f32; 3]> {
    [
        float(-reach..reach),
        float(-reach..reach),
        float(-reach..reach),
    ]
}

/// Which instances can never be drawn, and why.
#[derive(Clone, Copy, Debug)]
enum Gaps {
    None,
    /// Every n-th.
    OneIn(usize),
    /// All but one.
    AllBut(usize),
    All,
}

impl Gaps {
    fn any() -> impl Strategy<Value = Self> {
        prop_oneof![
            2 => Just(Self::None),
            4 => (1usize..200).prop_map(Self::OneIn),
            2 => (0usize..200).prop_map(Self::AllBut),
            1 => Just(Self::All),
        ]
    }

    fn has(self, i: usize) -> bool {
        match self {
            Self::None => false,
            Self::OneIn(each) => i.is_multiple_of(each),
            Self::AllBut(one) => i != one,
            Self::All => true,
        }
    }
}

proptest! {
    /// The state of the block holds for each of its instances, and its bound is the same as without
    /// those that can never be drawn.
    #[test]
    fn a_block_outside_has_no_survivor_and_one_inside_has_no_other(
        positions in prop::collection::vec(point(1.0), 1..200),
        size in float(0.01..30.0),
        at in point(60.0),
        scales in prop::collection::vec(float(0.1..3.0), 200),
        (center, radius) in (point(1.0), float(0.0..2.0)),
        (turn, stretch) in (float(0.0..6.0), float(0.2..3.0)),
        range in prop::option::of(float(1.0..60.0)),
        thin in prop::option::of((float(-2.0..5.0), prop::bool::ANY)),
        gaps in Gaps::any(),
    ) {
        let at = Vec3::from(at);
        let mut scales = scales;
        let mut instances: Vec<_> = positions
            .iter()
            .map(|p| PackedInstance::new(Vec3::from(*p) * size + at, Quat::from_rotation_y(p[0] * 3.0)))
            .collect();
        let drawn: Vec<_> = (0..instances.len()).filter(|i| !gaps.has(*i)).collect();
        let others: Vec<_> = drawn.iter().map(|i| instances[*i]).collect();
        let others = (others, drawn.iter().map(|i| scales[*i]).collect::<Vec<_>>());
        for i in (0..instances.len()).filter(|i| gaps.has(*i)) {
            match i % 4 {
                0 => instances[i].position[i % 3] = f32::NAN,
                1 => instances[i].position[i % 3] = f32::INFINITY,
                2 => scales[i] = -scales[i],
                _ => scales[i] = f32::NAN,
            }
        }
        let sphere = BoundingSphere { center: center.into(), radius };
        let world = Affine3A::from_scale_rotation_translation(Vec3::splat(stretch), Quat::from_rotation_x(turn), Vec3::X);
        let chunk = chunk_of(instances.len() as u32, sphere, world, ScaleKind::Uniform);
        let clip = directx::perspective_infinite_reverse(1.0, 1.3, 0.1) * view::look_at_mat4(Vec3::ZERO, Vec3::ONE, Vec3::Y);
        let mut view = CullView::from_clip_from_world(&clip);
        if let Some(range) = range {
            view = view.within(Vec3::ZERO, range);
        }
        let mut row = view.planes_in(&world);
        if let Some((thin, by_size)) = thin && radius > 0.0 {
            row.band.flags = BAND_IS_THINNED | if by_size { BAND_THINS_BY_SIZE } else { 0 };
            row.band.thin = 10f32.powf(thin);
            row.band.eye = Vec3::X;
        }
        let bound = bound(&instances, &scales[..instances.len()]);
        let alone = reference_bound(&others);
        prop_assert_eq!(
            (bound.center, bound.radius, bound.max_scale, bound.min_scale),
            (alone.center, alone.radius, alone.max_scale, alone.min_scale)
        );
        let state = block_state(&chunk, &row, &bound);
        if drawn.is_empty() {
            prop_assert_eq!(state, BoundState::Outside);
        }
        for i in 0..instances.len() {
            let visible = is_visible(&chunk, &row, load_sphere(&chunk, &instances, &scales, i as u32));
            prop_assert!(state != BoundState::Outside || !visible, "instance {i} of a block outside");
            prop_assert!(state != BoundState::Inside || visible, "instance {i} of a block inside");
            let state = word_state(&chunk, &row, &bound, i / 32);
            prop_assert!(state != BoundState::Outside || !visible, "instance {i} of a word outside");
            prop_assert!(state != BoundState::Inside || visible, "instance {i} of a word inside");
        }
    }
}

/// The bound of instances with scales; of none, the bound of one that can never be drawn.
fn reference_bound((instances, scales): &(Vec<PackedInstance>, Vec<f32>)) -> Bound {
    match instances.is_empty() {
        true => bound(&[PackedInstance::new(Vec3::NAN, Quat::IDENTITY)], &[]),
        false => bound(instances, scales),
    }
}

/// Neighbors along a line, one of which is hidden.
#[test]
fn a_word_without_gaps_of_a_block_with_gaps_is_inside() {
    let mut instances: Vec<_> = (0..1024)
        .map(|x| PackedInstance::new(Vec3::X * x as f32, Quat::IDENTITY))
        .collect();
    let whole = bound(&instances, &[]);
    instances[70].position[0] = f32::NAN;
    let hidden = instances[70];
    instances[96..128].fill(hidden);
    let bound = bound(&instances, &[]);
    assert_eq!((whole.gaps, bound.gaps), (0, 0b1100));
    assert_eq!((whole.center, whole.radius), (bound.center, bound.radius));
    assert_eq!(bound.halves, whole.halves);
    assert!(!bound.is_loose());
    let sphere = BoundingSphere {
        center: Vec3::ZERO,
        radius: 1.0,
    };
    let chunk = chunk_of(1024, sphere, Affine3A::IDENTITY, ScaleKind::One);
    let everything = CullView::EVERYTHING.planes_in(&Affine3A::IDENTITY);
    assert_eq!(block_state(&chunk, &everything, &whole), BoundState::Inside);
    assert_eq!(
        block_state(&chunk, &everything, &bound),
        BoundState::Partial
    );
    let state = |word| word_state(&chunk, &everything, &bound, word);
    let states = [1, 2, 3, 4].map(state);
    let [inside, crossed, outside] = [BoundState::Inside, BoundState::Partial, BoundState::Outside];
    assert_eq!(states, [inside, crossed, outside, inside]);
    let below = CullView::from_planes([Vec4::new(-1.0, 0.0, 0.0, -9.0); 6]);
    let below = below.planes_in(&Affine3A::IDENTITY);
    assert_eq!(block_state(&chunk, &below, &bound), BoundState::Outside);
}

#[test]
fn a_block_without_a_finite_instance_is_outside_of_every_view() {
    let nowhere = PackedInstance::new(Vec3::NAN, Quat::IDENTITY);
    let sphere = BoundingSphere {
        center: Vec3::ZERO,
        radius: 1.0,
    };
    let chunk = chunk_of(2, sphere, Affine3A::IDENTITY, ScaleKind::Uniform);
    let unscaled = bound(&[PackedInstance::default(); 2], &[f32::NAN, f32::INFINITY]);
    for bound in [bound(&[nowhere; 2], &[]), unscaled] {
        for view in [
            CullView::EVERYTHING,
            CullView::EVERYTHING.within(Vec3::ZERO, 5.0),
        ] {
            let row = view.planes_in(&Affine3A::IDENTITY);
            assert_eq!(block_state(&chunk, &row, &bound), BoundState::Outside);
            let mut row = row;
            row.band.flags = BAND_IS_THINNED;
            row.band.thin = 1.0;
            assert_eq!(block_state(&chunk, &row, &bound), BoundState::Outside);
        }
    }
}

#[test]
fn a_negative_scale_is_that_of_nothing_whatever_the_radius() {
    let instances = [PackedInstance::default(); 3];
    let everything = CullView::EVERYTHING.planes_in(&Affine3A::IDENTITY);
    for radius in [1.0, 0.0] {
        let sphere = BoundingSphere {
            center: Vec3::ZERO,
            radius,
        };
        let chunk = chunk_of(3, sphere, Affine3A::IDENTITY, ScaleKind::Uniform);
        let some = [1.0, -1.0, 2.0];
        let none = [-1.0; 3];
        let seen = |scales: &[f32], i| {
            is_visible(
                &chunk,
                &everything,
                load_sphere(&chunk, &instances, scales, i),
            )
        };
        assert_eq!([0, 1, 2].map(|i| seen(&some, i)), [true, false, true]);
        let whole = block_state(&chunk, &everything, &bound(&instances, &some));
        assert_eq!(whole, BoundState::Partial);
        let whole = block_state(&chunk, &everything, &bound(&instances, &none));
        assert_eq!(whole, BoundState::Outside);
    }
}
