#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use glam::{Quat, Vec3};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::instance::test_sets::{at, line};

#[test]
fn an_empty_set_is_ordinary() {
    let mut set = InstanceSet::new();
    assert!(set.is_empty());
    assert_eq!(set.bounds(), None);
    assert_eq!(set.get(0), None);
    assert_eq!(set.tag(0), None);
    assert_eq!(set.iter().len(), 0);
    assert_eq!(set.revision(), 1);
    assert_eq!(set.changes_since(0), SetChanges::Everything);
    set.truncate(5);
    set.clear();
    set.tighten_bounds();
    set.extend([Vec3::ZERO; 0]).unwrap();
    assert_eq!(set.revision(), 1, "nothing happened");
    assert_eq!(InstanceSet::from_packed(Vec::new()).unwrap().len(), 0);
    let (sorted, order) = set
        .with_scales(Vec::new())
        .unwrap()
        .with_tags(Vec::new())
        .unwrap()
        .sorted_with_order();
    assert!(sorted.is_empty() && order.is_empty());
}

#[test]
fn an_instance_that_moves_keeps_all_else() {
    let turned = Quat::from_euler(glam::EulerRot::XYZ, 0.3, -1.2, 2.1);
    let from = at(2.0).with_rotation(turned).with_scale(3.0);
    let mut set = InstanceSet::from_transforms([at(1.0), from]).unwrap();
    set.hide(1).unwrap();
    let before = set.get(1).unwrap();
    set.set_position(1, Vec3::new(5.0, 6.0, 7.0)).unwrap();
    assert!(set.is_hidden(1));
    set.show(1).unwrap();
    let after = set.get(1).unwrap();
    assert_eq!(after.translation, Vec3::new(5.0, 6.0, 7.0));
    assert_eq!(
        (after.rotation, after.scale),
        (before.rotation, before.scale)
    );
    assert!(set.bounds().unwrap().max.x >= 5.0);
}

#[test]
fn one_instance_is_ordinary() {
    let mut set = InstanceSet::with_capacity(1);
    let transform = at(2.0)
        .with_rotation(Quat::from_rotation_x(std::f32::consts::PI))
        .with_scale(3.0);
    assert_eq!(set.push(transform), Ok(0));
    let bounds = set.bounds().unwrap();
    assert_eq!(
        (bounds.min, bounds.max, bounds.max_scale),
        (Vec3::X * 2.0, Vec3::X * 2.0, 3.0)
    );
    let got = set.get(0).unwrap();
    assert_eq!(
        (got.translation, got.scale),
        (transform.translation, transform.scale)
    );
    assert!(got.rotation.abs_diff_eq(transform.rotation, 1e-6));
    assert_eq!(set.iter().collect::<Vec<_>>(), [got]);
    let (sorted, order) = set.sorted_with_order();
    assert_eq!(sorted.get(0), Some(got));
    assert_eq!(order.as_slice(), [0]);
}

#[test]
fn whole_channels_are_checked() {
    let set = line(3)
        .with_scales(vec![1.0, 0.0, 5.0])
        .unwrap()
        .with_tags(vec![7, 8, 9])
        .unwrap();
    assert_eq!(set.scales(), Some(&[1.0, 0.0, 5.0][..]));
    assert_eq!(set.tags(), Some(&[7, 8, 9][..]));
    assert_eq!(set.bounds().unwrap().max_scale, 5.0);

    assert_eq!(
        line(3).with_scales(vec![1.0; 4]).unwrap_err(),
        InstanceError::ChannelLength {
            channel: "scale",
            len: 4,
            expected: 3
        }
    );
    assert_eq!(
        line(3).with_tags(vec![1; 2]).unwrap_err(),
        InstanceError::ChannelLength {
            channel: "tag",
            len: 2,
            expected: 3
        }
    );
    for bad in [f32::NAN, f32::INFINITY, -1.0] {
        let error = line(3).with_scales(vec![1.0, 1.0, bad]).unwrap_err();
        assert!(
            matches!(error, InstanceError::InvalidScale { index: 2, .. }),
            "{error}"
        );
    }
}

#[test]
fn a_released_set_is_known_but_not_there() {
    let mut set = line(5).with_tags(vec![3; 5]).unwrap();
    let (revision, bounds, lineage) = (set.revision(), set.bounds(), set.lineage());
    drop(set.release());
    assert!(set.is_released());
    assert_eq!(
        (set.revision(), set.bounds(), set.lineage(), set.len()),
        (revision, bounds, lineage, 5)
    );
    assert_eq!((set.has_scales(), set.has_tags()), (false, true));
    assert_eq!((set.get(0), set.tag(0)), (None, None));
    assert_eq!((set.iter().len(), set.packed().len()), (0, 0));
    assert_eq!(set.clone().len(), 5);
    let refused = Err(InstanceError::Released);
    assert_eq!(set.splice(1..2, [at(0.0)]).map(|_| ()), refused);
    assert_eq!(set.push(at(0.0)).map(|_| ()), refused);
    assert_eq!(set.extend([at(0.0)]), refused);
    assert_eq!(set.set(0, at(0.0)), refused);
    assert_eq!(set.set_tag(0, 3), refused);
    assert_eq!(set.clone().with_scales(vec![1.0; 5]).map(|_| ()), refused);
    assert_eq!(set.clone().with_tags(vec![1; 5]).map(|_| ()), refused);
    set.tighten_bounds();
    let (mut set, order) = set.sorted_with_order();
    assert!(set.is_released() && order.is_empty());
    assert_eq!((set.revision(), set.bounds()), (revision, bounds));

    set.truncate(2);
    assert_eq!((set.len(), set.bounds()), (2, bounds));
    assert!(set.revision() > revision);
    drop(set.release());
    assert_eq!((set.len(), set.has_tags()), (2, true));
    set.clear();
    assert!(!set.is_released() && set.is_empty());
    assert_eq!((set.bounds(), set.has_tags()), (None, false));
    assert_eq!(set.push(at(7.0)), Ok(0));
    assert_eq!(set.changes_since(revision), SetChanges::Everything);
}

#[test]
fn a_released_set_without_instances_is_filled_again() {
    for tags in [false, true] {
        let mut set = line(4);
        if tags {
            set.set_tags(vec![1; 4]).unwrap();
        }
        drop(set.release());
        set.truncate(0);
        let seen = set.revision();
        assert_eq!(set.push(at(1.0)).unwrap_err(), InstanceError::Released);
        set.clear();
        assert!(!set.is_released() && set.revision() > seen);
        assert_eq!(set.push(at(1.0)), Ok(0));
        assert_eq!(set.get(0), Some(at(1.0)));
    }
    let mut empty = InstanceSet::new();
    drop(empty.release());
    empty.clear();
    assert_eq!(empty.push(at(1.0)), Ok(0));
}

#[test]
fn packed_instances_are_checked_and_taken_over() {
    let good = vec![PackedInstance::default(); 3];
    let address = good.as_ptr();
    let set = InstanceSet::from_packed(good).unwrap();
    assert_eq!(set.packed().as_ptr(), address);
    assert_eq!(set.revision(), 1);

    let mut bad = vec![PackedInstance::default(); 3];
    bad[2].position[1] = f32::INFINITY;
    let error = InstanceSet::from_packed(bad).unwrap_err();
    assert!(
        matches!(error, InstanceError::NonFinitePosition { index: 2, .. }),
        "{error}"
    );

    let zeroed = vec![PackedInstance::default(), bytemuck::Zeroable::zeroed()];
    let error = InstanceSet::from_packed(zeroed).unwrap_err();
    assert!(
        matches!(error, InstanceError::RotationNotNormalized { index: 1, .. }),
        "{error}"
    );

    // Three components with a total length of 1.002: slightly long, so it is corrected.
    let odd = super::super::PackedQuat::from_bits(3 << 30 | 1022 << 20 | 1022 << 10 | 543);
    assert!(!odd.decode().is_normalized());
    let instance = PackedInstance {
        rotation: odd,
        ..Default::default()
    };
    let set = InstanceSet::from_packed(vec![instance]).unwrap();
    assert!(set.get(0).unwrap().rotation.is_normalized());
}

#[test]
fn too_many_are_refused_before_memory_is_asked_for() {
    let limit = InstanceSet::MAX_LEN;
    let endless = std::iter::repeat_n(Vec3::ZERO, limit + 1);
    let error = InstanceSet::from_transforms(endless.clone()).unwrap_err();
    assert_eq!(
        error,
        InstanceError::TooMany {
            len: limit + 1,
            limit
        }
    );
    let error = line(1).extend(endless).unwrap_err();
    assert_eq!(
        error,
        InstanceError::TooMany {
            len: limit + 2,
            limit
        }
    );
}

#[test]
fn sorted_keeps_everything_and_knows_the_way_back() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    for len in [2usize, 3, 63, 64, 65, 5000] {
        let random = |rng: &mut ChaCha8Rng| {
            Vec3::from_array(std::array::from_fn(|_| rng.random_range(-9.0f32..9.0)))
        };
        let points: Vec<Vec3> = (0..len).map(|_| random(&mut rng)).collect();
        let set = InstanceSet::from_transforms(points)
            .unwrap()
            .with_scales((0..len).map(|i| i as f32).collect())
            .unwrap()
            .with_tags((0..len as u32).collect())
            .unwrap();
        let original = set.clone();
        let (sorted, order) = set.sorted_with_order();
        assert_ne!(sorted.lineage(), original.lineage());
        assert_eq!(sorted.bounds(), original.bounds());
        assert_eq!(order.len(), len);
        for index in 0..len as u32 {
            assert_eq!(order.sorted(order.original(index)), index);
            assert_eq!(sorted.get(order.sorted(index)), original.get(index));
            assert_eq!(sorted.tag(order.sorted(index)), Some(index));
        }
    }
}

#[test]
fn debug_is_short() {
    assert!(format!("{:?}", line(100_000)).len() < 300);
}
