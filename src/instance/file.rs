//! The file of a set.
//!
//! The payload is:
//!
//! | bytes | content |
//! | --- | --- |
//! | 4 | number of instances, little-endian like all numbers |
//! | 4 | flags: 1 for scales, 2 for tags, 4 if the set keeps previous places, 8 if instances are hidden, 16 if scales have three numbers; 32 times (words of data per instance - 1), with tags |
//! | 16 per instance | position, three `f32`; rotation, [`PackedQuat`](super::PackedQuat) |
//! | 4 per instance, if flagged; 12 if scales have three numbers | scales, `f32` |
//! | 4 per word and instance, if flagged | data, `u32`: the tag, and up to three more words |
//! | 4 per hidden instance, if flagged | indices of hidden instances, `u32` |

use super::content::Content;
use super::{InstanceFileError, InstanceSet, PackedInstance};
use crate::file_head::{FileKind, HEAD};
use bytemuck::Pod;
use std::borrow::Cow;

const FILE: FileKind = FileKind {
    magic: *b"GPUINSTS",
    version: InstanceSet::FILE_VERSION,
};

/// Size of count and flags, in bytes.
const COUNT_AND_FLAGS: usize = 8;
const SCALES: u32 = 1;
const TAGS: u32 = 2;
const PREVIOUS: u32 = 4;
const HIDDEN: u32 = 8;
/// Only with [`SCALES`].
const PER_AXIS: u32 = 16;
/// Only with [`TAGS`]: the first of two bits that count the words of data behind the tag.
const MORE_WORDS: u32 = 32;

impl InstanceSet {
    /// File name extension.
    pub const FILE_EXTENSION: &str = "instances";
    /// Version of the files that this build writes; it reads no other version.
    pub const FILE_VERSION: u32 = 1;

    /// The bytes of a file: 32, and 16 per instance, 4 more with scales (12 if they differ between
    /// axes), 4 more with tags (8, 12 or 16 with more data), 4 per hidden instance. All instances
    /// and channels come back bit by bit, in the same order; ids do not.
    ///
    /// # Errors
    ///
    /// [`InstanceFileError::Released`] and [`InstanceFileError::GpuWritten`]: the data is not on
    /// the CPU.
    ///
    /// ```
    /// use bevy_gpu_culling::instance::InstanceSet;
    /// use glam::Vec3;
    ///
    /// let set = InstanceSet::from_transforms([Vec3::X * 9.0, Vec3::ZERO])?.sorted();
    /// let bytes = set.to_bytes()?;
    /// assert_eq!(InstanceSet::from_bytes(&bytes)?.packed(), set.packed());
    /// # Ok::<(), bevy_gpu_culling::instance::InstanceFileError>(())
    /// ```
    pub fn to_bytes(&self) -> Result<Vec<u8>, InstanceFileError> {
        let content = Content::of(self)?;
        let scales = self.scale_floats();
        let data = self.data_words();
        let more_words = (self.data_size() as u32 / 4).saturating_sub(1);
        let mut flags = more_words * MORE_WORDS;
        for (has_it, flag) in [
            (self.has_scales(), SCALES),
            (content.non_uniform_scales.is_some(), PER_AXIS),
            (self.has_tags(), TAGS),
            (content.keep_previous, PREVIOUS),
            (!content.hidden.is_empty(), HIDDEN),
        ] {
            flags |= if has_it { flag } else { 0 };
        }
        let len = content.instances.len();
        let words = scales.len() + data.len() + content.hidden.len();
        let size = COUNT_AND_FLAGS + len * size_of::<PackedInstance>() + words * 4;
        FILE.write(size, |mut bytes| {
            append(&mut bytes, &[len as u32, flags]);
            append(&mut bytes, &content.instances);
            append(&mut bytes, scales);
            append(&mut bytes, data);
            append(&mut bytes, &content.hidden);
            Ok(bytes)
        })
    }

    /// The set that [`Self::to_bytes`] wrote. It is a new set: its [`revision`](Self::revision) is
    /// 1, its bounds are tight, and its data is kept on the CPU.
    ///
    /// # Errors
    ///
    /// [`InstanceFileError`]: the file is foreign, of another version, damaged or cut off. For a
    /// file of another tool, also every error of [`Self::from_packed`] and [`Self::with_scales`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InstanceFileError> {
        let payload = FILE.payload(bytes)?;
        let length = |expected: u64| InstanceFileError::Length {
            found: bytes.len() as u64,
            expected,
        };
        let Some((numbers, arrays)) = payload.split_at_checked(COUNT_AND_FLAGS) else {
            return Err(length((HEAD + COUNT_AND_FLAGS) as u64));
        };
        let numbers: Vec<u32> = array(numbers);
        let (count, flags) = (numbers[0], numbers[1]);
        let has_scales = flags & SCALES != 0;
        let is_per_axis = has_scales && flags & PER_AXIS != 0;
        let per_axis = if has_scales { PER_AXIS } else { 0 };
        let words = if flags & TAGS == 0 {
            0
        } else {
            1 + flags / MORE_WORDS % 4
        };
        let more_words = words.saturating_sub(1) * MORE_WORDS;
        let unknown = flags & !(SCALES | TAGS | PREVIOUS | HIDDEN | per_axis | more_words);
        if unknown != 0 {
            return Err(InstanceFileError::UnknownParts { flags: unknown });
        }
        // Before any memory is asked for. 64 bits hold the size of any count.
        let sizes = [
            size_of::<PackedInstance>() as u64,
            match (has_scales, is_per_axis) {
                (false, _) => 0,
                (true, false) => 4,
                (true, true) => 12,
            },
            4 * u64::from(words),
        ];
        let sizes = sizes.map(|stride| u64::from(count) * stride);
        let expected: u64 = sizes.iter().sum();
        let rest = (arrays.len() as u64).checked_sub(expected);
        let is_allowed = |rest: &u64| match flags & HIDDEN {
            0 => *rest == 0,
            _ => rest.is_multiple_of(4) && *rest <= u64::from(count) * 4,
        };
        if !rest.is_some_and(|rest| is_allowed(&rest)) {
            return Err(length((HEAD + COUNT_AND_FLAGS) as u64 + expected));
        }
        let (instances, channels) = arrays.split_at(sizes[0] as usize);
        let (scales, channels) = channels.split_at(sizes[1] as usize);
        let (data, hidden) = channels.split_at(sizes[2] as usize);
        let content = Content {
            instances: Cow::Owned(array(instances)),
            scales: (has_scales && !is_per_axis).then(|| Cow::Owned(array(scales))),
            non_uniform_scales: is_per_axis.then(|| Cow::Owned(array(scales))),
            tags: (words == 1).then(|| Cow::Owned(array(data))),
            data: (words > 1).then(|| (words, Cow::Owned(array(data)))),
            hidden: array(hidden),
            keep_previous: flags & PREVIOUS != 0,
        };
        Ok(content.into_set()?)
    }
}

/// Appends values that are made of 32-bit words.
fn append<T: Pod>(bytes: &mut Vec<u8>, values: &[T]) {
    if cfg!(target_endian = "little") {
        bytes.extend_from_slice(bytemuck::cast_slice(values));
    } else {
        let words: &[u32] = bytemuck::cast_slice(values);
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
}

/// The values that [`append`] wrote; `bytes` has a whole number of them, at any alignment.
fn array<T: Pod>(bytes: &[u8]) -> Vec<T> {
    let mut values: Vec<T> = bytemuck::pod_collect_to_vec(bytes);
    if cfg!(target_endian = "big") {
        for word in bytemuck::cast_slice_mut::<T, u32>(&mut values) {
            *word = u32::from_le(*word);
        }
    }
    values
}

#[cfg(test)]
mod tests;
