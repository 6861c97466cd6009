//! The three instance encodings that Giordano (2019) compares, for the same kernels.
//! `benches/ladder/main.rs` has the link.

use bevy_gpu_culling::{cull::shaders, instance::PackedInstance};
use glam::{Mat4, Vec4};

/// The layout of an instance in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Encoding {
    /// A 4 x 4 matrix: 64 bytes.
    Matrix,
    /// A position and a quaternion: 32 bytes.
    Quaternion,
    /// A position and a packed quaternion: 16 bytes. This is the culler's encoding.
    Packed,
}

impl Encoding {
    /// All encodings, in the article's order.
    pub const ALL: [Self; 3] = [Self::Matrix, Self::Quaternion, Self::Packed];

    /// The name in tables and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Matrix => "matrix",
            Self::Quaternion => "quaternion",
            Self::Packed => "packed",
        }
    }

    /// The size of an instance in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Matrix => 64,
            Self::Quaternion => 32,
            Self::Packed => 16,
        }
    }

    /// The WGSL that reads an instance.
    pub const fn wgsl(self) -> &'static str {
        match self {
            Self::Matrix => include_str!("encoding/matrix.wgsl"),
            Self::Quaternion => include_str!("encoding/quaternion.wgsl"),
            Self::Packed => shaders::INSTANCE_PACKED,
        }
    }

    /// Appends `instances` to `bytes` in this encoding.
    pub fn encode(self, instances: &[PackedInstance], bytes: &mut Vec<u8>) {
        match self {
            Self::Matrix => instances.iter().for_each(|instance| {
                let turn = instance.rotation().normalize();
                let matrix = Mat4::from_rotation_translation(turn, instance.position());
                bytes.extend_from_slice(bytemuck::bytes_of(&matrix));
            }),
            Self::Quaternion => instances.iter().for_each(|instance| {
                let position = instance.position().extend(1.0);
                let rotation = Vec4::from(instance.rotation());
                bytes.extend_from_slice(bytemuck::bytes_of(&[position, rotation]));
            }),
            Self::Packed => bytes.extend_from_slice(bytemuck::cast_slice(instances)),
        }
    }
}
