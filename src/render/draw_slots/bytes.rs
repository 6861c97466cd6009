//! The bytes of tables.

use bevy::{
    prelude::*,
    render::render_resource::{
        ShaderType,
        encase::{StorageBuffer, internal::WriteInto},
    },
};
use core::ops::Range;

/// The bytes of an element of a table.
pub(super) fn place_of<const SIZE: u64>(index: u32) -> Range<usize> {
    let (index, size) = (index as usize, SIZE as usize);
    index * size..(index + 1) * size
}

/// Puts the bytes of an element at its place in `all`. Returns whether that changed them.
pub(super) fn put(all: &mut Vec<u8>, index: u32, made: &[u8]) -> bool {
    let first = index as usize * made.len();
    let place = first..first + made.len();
    let is_new = all.len() < place.end;
    if is_new {
        all.resize(place.end, 0);
    }
    let held = &mut all[place];
    let changes = is_new || *held != *made;
    if changes {
        held.copy_from_slice(made);
    }
    changes
}

/// Writes a value in the layout that shaders read.
pub(super) fn write<T: ShaderType + WriteInto>(value: &T, into: &mut [u8]) {
    // The slice is as long as the value.
    if let Err(error) = StorageBuffer::new(into).write(value) {
        error!(
            "a draw slot could not be written: {error}. A set may be missing or in a wrong place. Please report this"
        );
    }
}
