//! Instances as plain data on the CPU: callers fill them, and a renderer uploads them.
//!
//! * [`InstanceTransform`]: one instance as the caller describes it (position, rotation, scale).
//! * [`PackedInstance`]: the same in the 16 bytes that the shaders read, with a [`PackedQuat`].
//! * [`InstanceSet`]: millions of instances behind one handle, with optional scale and data
//!   channels, [`InstanceBounds`] and a record of what changed ([`SetChanges`]).
//! * [`InstanceId`]: names an instance through all edits of its set. [`SetVersion`]: names a set as
//!   it was, so that an index of then can be checked now.
//! * [`SpatialIndex`]: which instance an [`InstanceRay`] hits first, and which ones lie in an
//!   [`InstanceRegion`].
//! * [`InstanceOrder`]: the way back from a set ordered by [`InstanceSet::sorted_with_order`].
//! * [`GpuWritten`]: a set whose instances are written by your compute pass.
//! * [`InstanceError`]: what was wrong, and at which index.
//! * [`InstanceSet::to_bytes`], [`InstanceSet::from_bytes`]: the file, versioned and with a
//!   checksum. [`InstanceFileError`]: what was wrong with it.
//!
//! Nothing here depends on the GPU. An instance's index is a `u32`, as in the shaders.

mod bounds;
mod bulk;
mod changes;
mod channels;
mod content;
mod data;
mod edit;
#[cfg(test)]
mod edit_model;
mod error;
mod file;
mod file_error;
mod gpu_written;
mod hidden;
mod hide;
mod identify;
mod ids;
mod limits;
mod morton;
mod packed;
mod quat;
mod ray;
mod region;
mod remove;
mod scales;
mod set;
mod spatial_index;
mod splice;
mod tag;
#[cfg(test)]
mod test_sets;
mod transform;
mod whole;
mod written;

pub use bounds::InstanceBounds;
pub use changes::{ChangedRanges, SetChanges, SetVersion};
pub use error::InstanceError;
pub use file_error::InstanceFileError;
pub use gpu_written::GpuWritten;
pub use ids::InstanceId;
pub use morton::InstanceOrder;
pub use packed::PackedInstance;
pub use quat::PackedQuat;
pub use ray::InstanceRay;
pub use region::InstanceRegion;
pub use scales::ScaleKind;
pub use set::InstanceSet;
pub use spatial_index::SpatialIndex;
pub use transform::InstanceTransform;
