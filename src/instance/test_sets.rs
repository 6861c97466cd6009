//! Small sets for the unit tests of this folder.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::{InstanceSet, InstanceTransform};
use glam::Vec3;

/// An instance on the x axis.
pub fn at(x: f32) -> InstanceTransform {
    Vec3::new(x, 0.0, 0.0).into()
}

/// A set of `len` instances, one unit apart.
pub fn line(len: usize) -> InstanceSet {
    InstanceSet::from_transforms((0..len).map(|i| at(i as f32))).unwrap()
}
