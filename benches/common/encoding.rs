//! The instance encodings of article 4, read by the same kernels.

use bevy_gpu_culling::{cull::shaders, instance::PackedInstance};
use glam::{Mat4, Vec4};

/// How an instance lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Encoding {
    /// 64 bytes: a 4 x 4 matrix.
    Matrix,
    /// 32 bytes: position and quaternion.
    Quaternion,
    /// 16 bytes: position and a packed quaternion, what the culler has.
    Packed,
}

impl Encoding {
    /// All, in the order of the article.
    pub const ALL: [Self; 3] = [Self::Matrix, Self::Quaternion, Self::Packed];

    /// Name in tables and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Matrix => "matrix",
            Self::Quaternion => "quaternion",
            Self::Packed => "packed",
        }
    }

    /// Bytes of an instance.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Matrix => 64,
            Self::Quaternion => 32,
            Self::Packed => 16,
        }
    }

    /// WGSL that reads an instance.
    pub const fn wgsl(self) -> &'static str {
        match self {
            Self::Matrix => include_str!("encoding/matrix.wgsl"),
            Self::Quaternion => include_str!("encoding/quaternion.wgsl"),
            Self::Packed => shaders::INSTANCE_PACKED,
        }
    }

    /// Appends instances of this encoding that are where the packed ones are.
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
