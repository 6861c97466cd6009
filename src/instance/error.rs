//! What can be wrong with instances, and at which index.

use glam::{Quat, Vec3};
use thiserror::Error;

use super::InstanceBounds;

/// Why an [`InstanceSet`](super::InstanceSet) refused its input.
///
/// `index` is the index that the instance has, or would have got, in the set: for a new set the
/// position in the input; for a set that already holds `n` instances, the position in the input
/// plus `n`.
///
/// An error that contains NaN is unequal to itself, as NaN is.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum InstanceError {
    /// A position is NaN or infinite.
    #[error(
        "instance {index}: position {value} is not finite; leave the instance out or give it three finite numbers"
    )]
    NonFinitePosition {
        /// Index of the instance.
        index: u32,
        /// The position as given.
        value: Vec3,
    },
    /// A rotation has length zero.
    #[error(
        "instance {index}: rotation {value} has length 0 and therefore no direction; use Quat::IDENTITY for no rotation"
    )]
    ZeroRotation {
        /// Index of the instance.
        index: u32,
        /// The rotation as given.
        value: Quat,
    },
    /// A rotation is NaN or infinite.
    #[error("instance {index}: rotation {value} is not finite; check what it was computed from")]
    NonFiniteRotation {
        /// Index of the instance.
        index: u32,
        /// The rotation as given.
        value: Quat,
    },
    /// A rotation's length is more than 1 % off. Smaller drift is normalized silently.
    #[error(
        "instance {index}: rotation {value} has length {length}, which must be 1 within 1 %; call normalize() on it"
    )]
    RotationNotNormalized {
        /// Index of the instance.
        index: u32,
        /// The rotation as given.
        value: Quat,
        /// Its length.
        length: f32,
    },
    /// A scale is NaN or infinite, or it mirrors: one axis is negative, or all three are. A
    /// mirroring matrix gives a negative scale, and a sheared matrix NaN. Zero is allowed, and so
    /// are two negative axes of an [`InstanceTransform`](super::InstanceTransform).
    #[error(
        "instance {index}: scale {value} is not a finite number of at least 0 (a mirroring matrix gives a negative \
         scale, a sheared one NaN); bake mirroring and shear into the mesh, or draw mirrored instances with a mirrored \
         mesh (InstanceTransform::folded); use hide() to hide an instance"
    )]
    InvalidScale {
        /// Index of the instance.
        index: u32,
        /// The first axis's scale that is invalid.
        value: f32,
    },
    /// A channel does not have one value per instance.
    #[error(
        "the {channel} channel has {len} values for {expected} instances; give exactly one per instance"
    )]
    ChannelLength {
        /// `"scale"`, `"tag"` or `"data"`.
        channel: &'static str,
        /// Number of values given.
        len: usize,
        /// Number of instances in the set.
        expected: usize,
    },
    /// Instances that were read have a channel in two forms.
    #[error("the {channel} channel is given twice, in different forms; give it once")]
    ChannelTwice {
        /// `"scale"` or `"data"`.
        channel: &'static str,
    },
    /// The data of an instance has a size that shaders cannot read.
    #[error(
        "data of {bytes} bytes per instance: it must have 4, 8, 12 or 16; pad it, or keep the data in a storage buffer of \
         the material and give each instance an index into it"
    )]
    DataSize {
        /// Size of the data of one instance, in bytes.
        bytes: usize,
    },
    /// No instance has this index.
    #[error(
        "there is no instance {index}: the set has {len}; use an index below that or push a new instance"
    )]
    IndexOutOfRange {
        /// The requested index.
        index: u32,
        /// Number of instances in the set.
        len: usize,
    },
    /// Some of these indices do not exist.
    #[error("there are no instances {start}..{end}: the set has {len}; use a range within these")]
    RangeOutOfBounds {
        /// First requested index.
        start: usize,
        /// End of the requested indices.
        end: usize,
        /// Number of instances in the set.
        len: usize,
    },
    /// The set's instances are written on the GPU: the CPU cannot edit them.
    #[error(
        "the set's instances are written on the GPU (InstanceSet::gpu_written): write them there, or use set_live"
    )]
    GpuWritten,
    /// The set's instances are not written on the GPU.
    #[error(
        "the set has its data on the CPU and measures its own bounds: only sets of InstanceSet::gpu_written are given bounds"
    )]
    NotWritten,
    /// More live instances than the GPU may write.
    #[error(
        "{live} live instances are more than the {capacity} that the GPU may write; make a set with a larger capacity"
    )]
    LiveOutOfRange {
        /// Number of requested instances.
        live: u32,
        /// The set's capacity.
        capacity: u32,
    },
    /// The bounds of a set that the GPU writes are not a valid box.
    #[error(
        "{bounds:?} is not a valid box: min must not be above max, and all numbers, including max_scale, must be finite"
    )]
    InvalidBounds {
        /// The box as given.
        bounds: InstanceBounds,
    },
    /// More instances than a set can hold.
    #[error(
        "{len} instances are more than the {limit} that one set can hold; spread them over several sets"
    )]
    TooMany {
        /// Number of requested instances.
        len: usize,
        /// The largest number of instances in a set:
        /// [`InstanceSet::MAX_LEN`](super::InstanceSet::MAX_LEN).
        limit: usize,
    },
    /// A list of indices is not an order: an index is there twice or does not exist.
    #[error(
        "entry {at} of the order is {index}, which is there twice or not below the length {len}; give each index once"
    )]
    NotAnOrder {
        /// Position in the list.
        at: usize,
        /// The index at that position.
        index: u32,
        /// Length of the list.
        len: usize,
    },
    /// The set's data was dropped on the CPU after its upload.
    #[error(
        "the set's instances were dropped on the CPU after their upload; keep MAIN_WORLD in its asset_usage to edit \
         them, clear() the set to fill it again, or replace it with a new one"
    )]
    Released,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_index_the_value_and_the_limit() {
        let quat = Quat::from_xyzw(0.0, 0.0, 0.0, 2.0);
        let bounds = InstanceBounds {
            min: Vec3::ONE,
            max: Vec3::ZERO,
            max_scale: 7.5,
        };
        let cases: [(InstanceError, &[&str]); 16] = [
            (
                InstanceError::NonFinitePosition {
                    index: 7,
                    value: Vec3::new(0.0, f32::NAN, 0.0),
                },
                &["instance 7", "NaN", "finite"],
            ),
            (
                InstanceError::ZeroRotation {
                    index: 7,
                    value: quat * 0.0,
                },
                &["instance 7", "length 0", "IDENTITY"],
            ),
            (
                InstanceError::NonFiniteRotation {
                    index: 7,
                    value: quat,
                },
                &["instance 7", "finite"],
            ),
            (
                InstanceError::RotationNotNormalized {
                    index: 7,
                    value: quat,
                    length: 2.0,
                },
                &["instance 7", "length 2", "1 %", "normalize"],
            ),
            (
                InstanceError::InvalidScale {
                    index: 7,
                    value: -3.0,
                },
                &[
                    "instance 7",
                    "-3",
                    "at least 0",
                    "mirror",
                    "sheared",
                    "mesh",
                ],
            ),
            (
                InstanceError::ChannelLength {
                    channel: "data",
                    len: 3,
                    expected: 4,
                },
                &["data channel", "3 values", "4 instances"],
            ),
            (
                InstanceError::ChannelTwice { channel: "data" },
                &["data channel", "once"],
            ),
            (
                InstanceError::DataSize { bytes: 20 },
                &["20 bytes", "16", "storage buffer"],
            ),
            (
                InstanceError::IndexOutOfRange { index: 9, len: 4 },
                &["instance 9", "has 4"],
            ),
            (
                InstanceError::TooMany { len: 11, limit: 10 },
                &["11 instances", "10", "several sets"],
            ),
            (
                InstanceError::Released,
                &["after their upload", "MAIN_WORLD", "asset_usage"],
            ),
            (
                InstanceError::RangeOutOfBounds {
                    start: 2,
                    end: 9,
                    len: 4,
                },
                &["2..9", "has 4"],
            ),
            (InstanceError::GpuWritten, &["on the GPU", "set_live"]),
            (
                InstanceError::LiveOutOfRange {
                    live: 9,
                    capacity: 4,
                },
                &["9 live", "the 4", "larger capacity"],
            ),
            (InstanceError::InvalidBounds { bounds }, &["7.5", "finite"]),
            (
                InstanceError::NotAnOrder {
                    at: 3,
                    index: 9,
                    len: 4,
                },
                &["entry 3", "is 9", "length 4", "once"],
            ),
        ];
        for (error, parts) in cases {
            let text = error.to_string();
            for part in parts {
                assert!(text.contains(part), "{text:?} lacks {part:?}");
            }
        }
    }
}
