//! Vertex attributes of meshlets: their formats, and those that Bevy knows.

use bevy::{
    mesh::{MeshVertexAttribute, VertexAttributeValues, VertexFormat},
    prelude::*,
};
use core::hash::{Hash, Hasher};

/// The formats that an attribute may have. A format's code in files is its place here, so new ones
/// go to the end.
macro_rules! formats {
    ($($name:ident),+ $(,)?) => {
        pub(super) const FORMATS: &[VertexFormat] = &[$(VertexFormat::$name),+];

        /// Values of a format from their bytes.
        pub(super) fn values(format: VertexFormat, bytes: &[u8]) -> Option<VertexAttributeValues> {
            match format {
                $(VertexFormat::$name => {
                    Some(VertexAttributeValues::$name(bytemuck::pod_collect_to_vec(bytes)))
                })+
                _ => None,
            }
        }
    };
}

formats!(
    Float32x3,
    Float32x2,
    Float32x4,
    Float32,
    Uint32,
    Uint32x2,
    Uint32x3,
    Uint32x4,
    Sint32,
    Sint32x2,
    Sint32x3,
    Sint32x4,
    Uint16x2,
    Uint16x4,
    Sint16x2,
    Sint16x4,
    Unorm16x2,
    Unorm16x4,
    Snorm16x2,
    Snorm16x4,
    Uint8x2,
    Uint8x4,
    Sint8x2,
    Sint8x4,
    Unorm8x2,
    Unorm8x4,
    Snorm8x2,
    Snorm8x4,
    Uint8,
    Sint8,
    Unorm8,
    Snorm8,
    Uint16,
    Sint16,
    Unorm16,
    Snorm16,
    Float16,
    Float16x2,
    Float16x4,
    Unorm10_10_10_2,
    Unorm8x4Bgra,
);

/// Bevy's own attributes.
pub(super) const KNOWN: [MeshVertexAttribute; 8] = [
    Mesh::ATTRIBUTE_POSITION,
    Mesh::ATTRIBUTE_NORMAL,
    Mesh::ATTRIBUTE_UV_0,
    Mesh::ATTRIBUTE_UV_1,
    Mesh::ATTRIBUTE_TANGENT,
    Mesh::ATTRIBUTE_COLOR,
    Mesh::ATTRIBUTE_JOINT_WEIGHT,
    Mesh::ATTRIBUTE_JOINT_INDEX,
];
/// Name of all other attributes.
pub(super) const OTHER: &str = "Vertex_Custom";

/// What a shader reads an attribute as. wgpu refuses a pipeline that reads another kind, and Bevy
/// then quits.
#[derive(PartialEq)]
pub(super) enum Kind {
    Float,
    Signed,
    Unsigned,
}

impl Kind {
    pub fn of(format: VertexFormat) -> Self {
        use VertexFormat::*;
        match format {
            Uint8 | Uint8x2 | Uint8x4 | Uint16 | Uint16x2 | Uint16x4 | Uint32 | Uint32x2
            | Uint32x3 | Uint32x4 => Self::Unsigned,
            Sint8 | Sint8x2 | Sint8x4 | Sint16 | Sint16x2 | Sint16x4 | Sint32 | Sint32x2
            | Sint32x3 | Sint32x4 => Self::Signed,
            _ => Self::Float,
        }
    }
}

/// The code of a format; `None` if attributes cannot have it.
pub(super) fn format_code(format: VertexFormat) -> Option<u32> {
    let place = FORMATS.iter().position(|known| *known == format);
    place.map(|place| place as u32)
}

/// The number in an attribute's id. It is private, but its hash is the number itself.
pub(super) fn attribute_id(attribute: &MeshVertexAttribute) -> u64 {
    struct Number(u64);

    impl Hasher for Number {
        fn finish(&self) -> u64 {
            self.0
        }

        fn write(&mut self, bytes: &[u8]) {
            let mut word = [0; 8];
            let len = bytes.len().min(8);
            word[..len].copy_from_slice(&bytes[..len]);
            self.0 = u64::from_ne_bytes(word);
        }
    }

    let mut number = Number(u64::MAX);
    attribute.id.hash(&mut number);
    number.finish()
}
