use super::*;
use crate::cull::{CoarserLevel, DistanceRange, DrawShape, Order};
use bevy::math::Vec3;
use proptest::prelude::*;

const SHAPE: DrawShape = DrawShape::NonIndexed {
    vertex_count: 3,
    first_vertex: 0,
};
const JOIN_RULE: JoinRule = JoinRule {
    may_be_hidden: false,
    has_min_size: false,
};

fn sphere(x: f32, radius: f32) -> BoundingSphere {
    BoundingSphere {
        center: Vec3::X * x,
        radius,
    }
}

fn request(sphere: BoundingSphere) -> CullRequest {
    CullRequest {
        views: vec![0, 1],
        ..CullRequest::new(SetId(1), sphere, SHAPE)
    }
}

/// The requests of a frame with these.
fn joined(all: &[(CullRequest, JoinRule)]) -> Vec<CullRequest> {
    let (mut groups, mut requests) = (Groups::default(), Vec::new());
    for (request, rule) in all {
        if groups.join(&mut requests, request, *rule).is_none() {
            requests.push(request.clone());
        }
    }
    requests
}

/// Whether the second joins the first.
fn joins(first: CullRequest, second: CullRequest) -> bool {
    joined(&[(first, JOIN_RULE), (second, JOIN_RULE)]).len() == 1
}

#[test]
fn entities_join_if_nothing_but_their_mesh_differs() {
    let first = request(sphere(0.0, 1.0));
    assert!(joins(first.clone(), first.clone()));
    let with_levels = |errors: &[f32]| {
        let level = |error: &f32| CoarserLevel {
            shape: SHAPE,
            error: *error,
            sphere: None,
        };
        Some(errors.iter().map(level).collect())
    };
    type Change = fn(&mut CullRequest);
    let changes: [(&str, Change); 9] = [
        ("set", |request| request.set = SetId(2)),
        ("transform", |request| {
            request.world_from_local.translation.x += 1e-3;
        }),
        ("views", |request| request.views.truncate(1)),
        ("order", |request| request.order = Order::Set),
        ("fade", |request| request.fade = 0.1),
        ("aggregate detail", |request| request.thin_below = 2.0),
        ("errors", |request| request.errors.end = Some(1.0)),
        ("range", |request| {
            request.range = Some(DistanceRange {
                start: 0.0,
                end: 9.0,
                of_centers: false,
            });
        }),
        ("sphere", |request| request.sphere.center.x = 9.0),
    ];
    for (what, change) in changes {
        let mut other = first.clone();
        change(&mut other);
        assert!(!joins(first.clone(), other.clone()), "{what}");
        assert!(joins(other.clone(), other), "{what}");
    }
    let leveled = |errors: &[f32]| CullRequest {
        coarser: with_levels(errors),
        ..first.clone()
    };
    assert!(joins(leveled(&[0.1, 0.2]), leveled(&[0.1, 0.2])));
    assert!(!joins(leveled(&[0.1, 0.2]), leveled(&[0.1, 0.3])));
    assert!(!joins(leveled(&[0.1, 0.2]), leveled(&[0.1])));
    assert!(!joins(leveled(&[0.1]), first.clone()));
    let hidden = JoinRule {
        may_be_hidden: true,
        ..JOIN_RULE
    };
    let both = [(first.clone(), JOIN_RULE), (first, hidden)];
    assert_eq!(joined(&both).len(), 2, "cameras hide only one");
}

/// If distances or sizes are measured by the sphere, it must be the same.
#[test]
fn spheres_that_measure_are_the_same() {
    let near = [sphere(0.0, 1.0), sphere(0.3, 1.0)].map(request);
    let all_join = |change: &dyn Fn(&mut CullRequest), rule: JoinRule| {
        let mut both = near.clone();
        both.iter_mut().for_each(change);
        let [first, second] = both.clone();
        let same = joined(&[(first.clone(), rule), (first.clone(), rule)]);
        assert_eq!(same.len(), 1);
        joined(&[(first, rule), (second, rule)]).len() == 1
    };
    assert!(all_join(&|_| (), JOIN_RULE));
    let range = |of_centers| {
        move |request: &mut CullRequest| {
            request.range = Some(DistanceRange {
                start: 1.0,
                end: 9.0,
                of_centers,
            });
        }
    };
    assert!(all_join(&range(false), JOIN_RULE));
    assert!(!all_join(&range(true), JOIN_RULE));
    let has_levels = |request: &mut CullRequest| {
        let level = CoarserLevel {
            shape: SHAPE,
            error: 0.1,
            sphere: None,
        };
        request.coarser = Some([level].into());
    };
    assert!(!all_join(&has_levels, JOIN_RULE));
    assert!(!all_join(&|request| request.thin_below = 2.0, JOIN_RULE));
    let has_min_size = JoinRule {
        has_min_size: true,
        ..JOIN_RULE
    };
    assert!(!all_join(&|_| (), has_min_size));
}

#[test]
fn the_sphere_of_many_is_not_much_larger_than_the_largest() {
    // Each touches the one before: three fit into one and a half of the largest radius.
    let row = [0.0, 0.5, 1.0, 1.5, 2.0, 9.0].map(|x| (request(sphere(x, 1.0)), JOIN_RULE));
    let requests = joined(&row);
    let sizes = requests.iter().map(|request| 1 + request.more.len());
    assert_eq!(sizes.collect::<Vec<_>>(), [2, 2, 1, 1]);
    for request in &requests {
        assert!(request.sphere.radius <= 1.5);
    }
    // One that is not a number is tested on its own.
    let odd = request(sphere(f32::NAN, 1.0));
    assert!(!joins(odd.clone(), odd));
}

proptest! {
    #[test]
    fn a_sphere_around_two_holds_both(
        values in prop::array::uniform8(-1e3f32..1e3),
        small in any::<bool>(),
    ) {
        let scale = if small { 1e-3 } else { 1.0 };
        let of = |at: usize| BoundingSphere {
            center: Vec3::new(values[at], values[at + 1], values[at + 2]) * scale,
            radius: values[at + 3].abs(),
        };
        let (one, other) = (of(0), of(4));
        let all = around(one, other);
        for inner in [one, other] {
            let away = inner.center.as_dvec3().distance(all.center.as_dvec3());
            prop_assert!(away + f64::from(inner.radius) <= f64::from(all.radius) * (1.0 + 1e-9));
        }
        let min = one.radius.max(other.radius);
        let max = (one.center.distance(other.center) + one.radius + other.radius) / 2.0;
        prop_assert!(all.radius <= min.max(max) * 1.001 + 0.01);
    }
}
