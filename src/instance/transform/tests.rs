#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

fn scaled(scale: Vec3) -> InstanceTransform {
    InstanceTransform {
        scale,
        ..InstanceTransform::IDENTITY
    }
}

fn turned(x: f32, y: f32, z: f32, w: f32) -> InstanceTransform {
    InstanceTransform::IDENTITY.with_rotation(Quat::from_xyzw(x, y, z, w))
}

#[test]
fn positions_must_be_finite() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for axis in Vec3::AXES {
            let value = Vec3::ONE + axis * bad;
            let error = InstanceTransform::from(value).pack(3).unwrap_err();
            assert!(
                matches!(error, InstanceError::NonFinitePosition { index: 3, .. }),
                "{error}"
            );
        }
    }
    assert!(
        InstanceTransform::from(Vec3::splat(-f32::MAX))
            .pack(0)
            .is_ok()
    );
}

#[test]
fn rotations_must_be_near_unit_length() {
    let error = turned(0.0, 0.0, 0.0, 0.0).pack(3).unwrap_err();
    assert!(
        matches!(error, InstanceError::ZeroRotation { index: 3, .. }),
        "{error}"
    );
    for bad in [f32::NAN, f32::INFINITY] {
        let error = turned(0.0, bad, 0.0, 1.0).pack(3).unwrap_err();
        assert!(
            matches!(error, InstanceError::NonFiniteRotation { index: 3, .. }),
            "{error}"
        );
    }
    for (w, ok) in [
        (1.009, true),
        (0.991, true),
        (1.011, false),
        (0.989, false),
        (1e-10, false),
        (1e30, false),
    ] {
        match turned(0.0, 0.0, 0.0, w).pack(3) {
            Ok((packed, _)) => {
                assert!(ok, "length {w} was accepted");
                assert_eq!(packed.rotation(), Quat::IDENTITY);
            }
            Err(InstanceError::RotationNotNormalized { index: 3, .. }) => {
                assert!(!ok, "length {w} was refused");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn nearly_equal_scales_are_one_scale() {
    let stored = |scale| scaled(scale).pack(0).unwrap().1;
    assert_eq!(stored(Vec3::new(2.0, 2.001, 2.0)), Vec3::splat(2.001));
    for scale in [
        Vec3::new(1.0, 1.0, 1.002),
        Vec3::new(0.0, 1.0, 1.0),
        Vec3::new(f32::MAX, 0.0, 3.0),
    ] {
        assert_eq!(stored(scale), scale);
    }
}

#[test]
fn scales_must_be_finite_and_not_mirror() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let error = scaled(Vec3::new(1.0, bad, 1.0)).pack(3).unwrap_err();
        assert!(
            matches!(error, InstanceError::InvalidScale { index: 3, value } if !value.is_finite()),
            "{error}"
        );
    }
    let error = scaled(Vec3::splat(-2.0)).pack(3).unwrap_err();
    assert_eq!(
        error,
        InstanceError::InvalidScale {
            index: 3,
            value: -2.0
        }
    );
    for scale in [Vec3::ZERO, Vec3::splat(f32::MAX)] {
        assert_eq!(scaled(scale).pack(0).unwrap().1, scale);
    }
}

#[test]
fn a_scale_next_to_one_is_one() {
    let stored = |scale| scaled(Vec3::splat(scale)).pack(0).unwrap().1;
    assert_eq!(stored(1.000_005), Vec3::ONE);
    assert_eq!(stored(1.000_02), Vec3::splat(1.000_02));
}

#[test]
fn matrices_come_apart_as_they_were_made() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    for _ in 0..100_000 {
        let rotation = Quat::from_array(std::array::from_fn(|_| rng.random_range(-1.0f32..=1.0)));
        if rotation.length_squared() < 0.01 {
            continue;
        }
        let rotation = rotation.normalize();
        let translation =
            Vec3::from_array(std::array::from_fn(|_| rng.random_range(-1e3f32..=1e3)));
        let rigid = Affine3A::from_rotation_translation(rotation, translation);
        let (packed, scale) = InstanceTransform::from(rigid).pack(0).unwrap();
        assert_eq!(scale, Vec3::ONE, "{rigid}");
        assert_eq!(packed.position(), translation);

        let scale = Vec3::from_array(std::array::from_fn(|_| rng.random_range(0.01f32..100.0)));
        let matrix = Mat4::from_scale_rotation_translation(scale, rotation, translation);
        let apart = InstanceTransform::from(matrix);
        assert!(
            (apart.scale / scale).abs_diff_eq(Vec3::ONE, 1e-6),
            "{scale} -> {}",
            apart.scale
        );
        assert!(
            apart.rotation.dot(rotation).abs() > 1.0 - 1e-6,
            "{rotation} -> {}",
            apart.rotation
        );
        assert_eq!(apart.translation, translation);
    }
}

#[test]
fn odd_matrices_are_refused_for_the_right_reason() {
    let of = |scale| InstanceTransform::from(Affine3A::from_scale(scale)).pack(0);
    assert_eq!(
        of(Vec3::ZERO).unwrap(),
        (PackedInstance::default(), Vec3::ZERO)
    );
    assert!(of(Vec3::splat(1e-30)).is_ok());
    assert!(matches!(
        of(Vec3::new(1.0, -1.0, 1.0)),
        Err(InstanceError::InvalidScale { value: -1.0, .. })
    ));
    assert!(matches!(
        of(Vec3::splat(f32::NAN)),
        Err(InstanceError::InvalidScale { .. })
    ));
    assert!(matches!(
        of(Vec3::splat(f32::MAX)),
        Err(InstanceError::InvalidScale { .. })
    ));
    // A shear that keeps all axes at unit length.
    for angle in [0.0f32, 1e-4, 2e-3, 0.5, 1.5] {
        let leaning = Vec3::new(angle.sin(), angle.cos(), 0.0);
        let sheared = Affine3A::from_mat3(Mat3::from_cols(Vec3::X, leaning, Vec3::Z));
        match InstanceTransform::from(sheared).pack(0) {
            Ok((_, scale)) => assert!(
                angle < 1e-3 && scale == Vec3::ONE,
                "{angle} radians of shear were accepted"
            ),
            Err(InstanceError::InvalidScale { value, .. }) => {
                assert!(
                    value.is_nan() && angle > 1e-3,
                    "{angle} radians were refused"
                );
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// A flat matrix has more than one rotation. Any of them draws the same.
#[test]
fn flat_matrices_come_apart_too() {
    let rotation = Quat::from_euler(glam::EulerRot::XYZ, 0.3, 1.1, -2.0);
    for bits in 0..8 {
        let scale = Vec3::from_array(core::array::from_fn(|i| {
            if bits >> i & 1 == 0 {
                0.0
            } else {
                2.0 + i as f32
            }
        }));
        let matrix = Affine3A::from_scale_rotation_translation(scale, rotation, Vec3::X);
        let apart = InstanceTransform::from(matrix);
        let (_, stored) = apart.pack(0).unwrap();
        assert!(stored.abs_diff_eq(scale, 1e-5), "{scale} -> {stored}");
        let again = apart.to_affine();
        assert!(again.abs_diff_eq(matrix, 1e-5), "{matrix} -> {again}");
    }
}

#[test]
fn to_affine_is_the_inverse_of_from_affine() {
    let instance = InstanceTransform::from(Vec3::new(1.0, 2.0, 3.0))
        .with_rotation(Quat::from_rotation_y(1.0))
        .with_scale(2.0);
    let back = InstanceTransform::from(instance.to_affine());
    assert!(back.to_affine().abs_diff_eq(instance.to_affine(), 1e-5));

    let mirrored = InstanceTransform {
        scale: Vec3::new(2.0, 3.0, -4.0),
        ..instance
    };
    let back = InstanceTransform::from(mirrored.to_affine());
    assert_eq!(back.scale.signum(), Vec3::new(-1.0, 1.0, 1.0));
    assert!(back.to_affine().abs_diff_eq(mirrored.to_affine(), 1e-5));
}

#[cfg(feature = "bevy")]
#[test]
fn bevy_transforms_go_both_ways() {
    use bevy::transform::components::Transform;

    let transform = Transform::from_xyz(1.0, 2.0, 3.0).with_scale(Vec3::splat(2.0));
    assert_eq!(
        Transform::from(InstanceTransform::from(&transform)),
        transform
    );
    assert_eq!(
        InstanceTransform::from(transform).translation,
        transform.translation
    );
}

#[test]
fn negative_axes_are_folded_into_the_rotation() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let mut random = |low: f32| {
        let turn = Quat::from_array(std::array::from_fn(|_| rng.random_range(-1.0f32..=1.0)));
        let scale = Vec3::from_array(std::array::from_fn(|_| rng.random_range(low..=3.0)));
        (turn.normalize(), scale)
    };
    for signs in 0..8u32 {
        for flat in [None, Some(0), Some(1), Some(2)] {
            let (rotation, mut scale) = random(0.2);
            for axis in 0..3 {
                if signs >> axis & 1 == 1 {
                    scale[axis] = -scale[axis];
                }
            }
            if let Some(flat) = flat {
                scale[flat] = 0.0;
            }
            let given = scaled(scale).with_rotation(rotation);
            let folded = given.folded();
            assert!(
                folded.to_affine().abs_diff_eq(given.to_affine(), 1e-5),
                "{given:?} {folded:?}"
            );
            let mirrors = flat.is_none() && signs.count_ones() % 2 == 1;
            assert_eq!(given.is_mirrored(), mirrors, "{scale}");
            assert_eq!(folded.scale.abs(), scale.abs());
            assert_eq!(
                folded.scale.to_array().map(|axis| axis < 0.0),
                [mirrors, false, false]
            );
            match given.pack(3) {
                Ok((packed, stored)) => {
                    let error = packed.rotation().angle_between(folded.rotation);
                    assert!(!mirrors && error < 0.01 && stored == folded.scale);
                }
                Err(InstanceError::InvalidScale { index, value }) => {
                    assert!(mirrors && index == 3 && scale.to_array().contains(&value));
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}
