//! Small sets for the unit tests of this folder.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::{InstanceSet, InstanceTransform};
use glam::{Quat, Vec3};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// An instance on the x axis.
pub fn at(x: f32) -> InstanceTransform {
    Vec3::new(x, 0.0, 0.0).into()
}

/// A set of `len` instances, one unit apart.
pub fn line(len: usize) -> InstanceSet {
    InstanceSet::from_transforms((0..len).map(|i| at(i as f32))).unwrap()
}

/// A point in a cube of this half size.
pub fn random(rng: &mut ChaCha8Rng, size: f32) -> Vec3 {
    Vec3::from_array(core::array::from_fn(|_| rng.random_range(-size..size)))
}

/// Instances in a cube, turned about y, and perhaps of any scale.
pub fn random_set(rng: &mut ChaCha8Rng, len: usize, scaled: bool) -> InstanceSet {
    let instances = (0..len).map(|_| {
        let turn = Quat::from_rotation_y(rng.random_range(0.0..6.0));
        let scale = if scaled {
            rng.random_range(0.0..3.0)
        } else {
            1.0
        };
        InstanceTransform::from(random(rng, 20.0))
            .with_rotation(turn)
            .with_scale(scale)
    });
    let instances: Vec<_> = instances.collect();
    InstanceSet::from_transforms(instances).unwrap()
}
