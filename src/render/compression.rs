//! Compressed meshes (`Mesh::compress_mesh`) on the CPU: rays and builders read plain attributes.

#[cfg(feature = "meshlets")]
use crate::meshlet::MeshletError;
#[cfg(feature = "meshlets")]
use bevy::mesh::MeshCompressionArgs;
use bevy::{
    mesh::{
        MeshAttributeCompressionFlags as Flags, MeshVertexAttribute, VertexAttributeValues,
        octahedral_decode_signed, octahedral_decode_tangent,
    },
    prelude::*,
    shape::BoundingVolume,
};
use std::borrow::Cow;

/// What can be compressed.
const ATTRIBUTES: [(MeshVertexAttribute, Flags); 5] = [
    (Mesh::ATTRIBUTE_POSITION, Flags::COMPRESS_POSITION),
    (Mesh::ATTRIBUTE_NORMAL, Flags::COMPRESS_NORMAL),
    (Mesh::ATTRIBUTE_TANGENT, Flags::COMPRESS_TANGENT),
    (Mesh::ATTRIBUTE_UV_0, Flags::COMPRESS_UV0),
    (Mesh::ATTRIBUTE_UV_1, Flags::COMPRESS_UV1),
];

/// The attributes of a mesh that are compressed; none if its vertices are only on the GPU.
#[cfg(feature = "meshlets")]
pub(super) fn compression_of(mesh: &Mesh) -> Flags {
    let compressed = ATTRIBUTES
        .iter()
        .filter(|(attribute, flag)| compressed_values(mesh, *attribute, *flag).is_some());
    compressed.map(|(_, flag)| *flag).collect()
}

/// The mesh without compressed attributes, as the vertex stage reads it. What Bevy only quantizes
/// (colors, joint weights) and indices stay unchanged.
pub(super) fn decompressed(mesh: &Mesh) -> Cow<'_, Mesh> {
    let mut made = Cow::Borrowed(mesh);
    for (attribute, flag) in ATTRIBUTES {
        if let Some(values) = plain(mesh, attribute, flag) {
            made.to_mut().insert_attribute(attribute, values);
        }
    }
    made
}

/// Whether the mesh has positions of three floats on the CPU, be they compressed.
#[cfg(feature = "picking")]
pub(super) fn has_plain_positions(mesh: &Mesh) -> bool {
    let (attribute, flag) = ATTRIBUTES[0];
    let values = mesh.try_attribute(attribute);
    values.is_ok_and(|values| values.as_float3().is_some())
        || compressed_values(mesh, attribute, flag).is_some()
}

/// An attribute of the mesh, not compressed; `None` if the mesh does not have it on the CPU.
pub(super) fn plain_values(
    mesh: &Mesh,
    attribute: MeshVertexAttribute,
) -> Option<Cow<'_, VertexAttributeValues>> {
    let known = ATTRIBUTES
        .iter()
        .find(|(known, _)| known.id == attribute.id);
    match known.and_then(|(_, flag)| plain(mesh, attribute, *flag)) {
        Some(values) => Some(Cow::Owned(values)),
        None => Some(Cow::Borrowed(mesh.try_attribute_option(attribute).ok()??)),
    }
}

/// Compresses the attributes that `like` names, as far as the mesh has them.
///
/// # Errors
/// [`MeshletError::Compression`]: it has values that cannot be compressed.
#[cfg(feature = "meshlets")]
pub(super) fn compress(mesh: &mut Mesh, like: Flags) -> Result<(), MeshletError> {
    let args = MeshCompressionArgs {
        compress_attributes: like,
        ..MeshCompressionArgs::none()
    };
    mesh.compress_mesh(&args).map_err(|errors| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        MeshletError::Compression {
            problems: errors.join(", "),
        }
    })
}

/// The values of an attribute that is compressed.
fn compressed_values(
    mesh: &Mesh,
    attribute: MeshVertexAttribute,
    flag: Flags,
) -> Option<&VertexAttributeValues> {
    use VertexAttributeValues::{Snorm16x2, Snorm16x4, Unorm16x2};
    let values = mesh.try_attribute_option(attribute).ok()??;
    let is_compressed = match flag {
        Flags::COMPRESS_POSITION => matches!(values, Snorm16x4(_)) && mesh.final_aabb.is_some(),
        Flags::COMPRESS_UV0 => matches!(values, Unorm16x2(_)) && mesh.final_uv_ranges[0].is_some(),
        Flags::COMPRESS_UV1 => matches!(values, Unorm16x2(_)) && mesh.final_uv_ranges[1].is_some(),
        _ => matches!(values, Snorm16x2(_)),
    };
    is_compressed.then_some(values)
}

/// An attribute in the format that it has in meshes that are not compressed; `None` if it has that,
/// or if the mesh does not have the attribute on the CPU.
fn plain(
    mesh: &Mesh,
    attribute: MeshVertexAttribute,
    flag: Flags,
) -> Option<VertexAttributeValues> {
    use VertexAttributeValues as Values;
    Some(match compressed_values(mesh, attribute, flag)? {
        Values::Snorm16x4(values) => {
            let around = mesh.final_aabb?;
            let (center, half) = (Vec3::from(around.center()), Vec3::from(around.half_size()));
            let decode =
                |[x, y, z, _]: &[i16; 4]| center + half * Vec3::from([*x, *y, *z].map(snorm));
            Values::Float32x3(values.iter().map(|value| decode(value).into()).collect())
        }
        Values::Snorm16x2(values) if flag == Flags::COMPRESS_NORMAL => {
            let decode = |value: &[i16; 2]| octahedral_decode_signed(value.map(snorm).into());
            Values::Float32x3(values.iter().map(|value| decode(value).into()).collect())
        }
        Values::Snorm16x2(values) => {
            let decode = |value: &[i16; 2]| {
                let (tangent, sign) = octahedral_decode_tangent(value.map(snorm).into());
                tangent.extend(sign)
            };
            Values::Float32x4(values.iter().map(|value| decode(value).into()).collect())
        }
        Values::Unorm16x2(values) => {
            let range = mesh.final_uv_ranges[usize::from(flag == Flags::COMPRESS_UV1)]?;
            let decode = |value: &[u16; 2]| {
                let share = Vec2::from(value.map(|value| f32::from(value) / 65535.0));
                range.min + (range.max - range.min) * share
            };
            Values::Float32x2(values.iter().map(|value| decode(value).into()).collect())
        }
        _ => return None,
    })
}

/// A signed, normalized number of 16 bits.
fn snorm(value: i16) -> f32 {
    (f32::from(value) / 32767.0).max(-1.0)
}

#[cfg(all(test, feature = "meshlets"))]
mod tests {
    use super::*;

    fn ring() -> Result<Mesh, bevy::mesh::GenerateTangentsError> {
        let mesh = Torus::new(1.5, 2.5).mesh().build();
        let mesh = mesh.translated_by(Vec3::new(4.0, -1.0, 0.5));
        mesh.with_generated_tangents()
    }

    fn values(mesh: &Mesh, attribute: MeshVertexAttribute) -> Vec<f32> {
        match mesh.attribute(attribute) {
            Some(VertexAttributeValues::Float32x2(values)) => values.as_flattened().to_vec(),
            Some(VertexAttributeValues::Float32x3(values)) => values.as_flattened().to_vec(),
            Some(VertexAttributeValues::Float32x4(values)) => values.as_flattened().to_vec(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn attributes_come_back_within_a_step_of_16_bits() -> Result<()> {
        let mesh = ring()?;
        let mut small = mesh.clone();
        compress(&mut small, Flags::all())?;
        assert_eq!(compression_of(&small), Flags::all() - Flags::COMPRESS_UV1);
        assert_eq!(compression_of(&mesh), Flags::empty());
        let back = decompressed(&small);
        for (attribute, max) in [
            (Mesh::ATTRIBUTE_POSITION, 2.5 / 32767.0),
            (Mesh::ATTRIBUTE_NORMAL, 1e-4),
            (Mesh::ATTRIBUTE_TANGENT, 2e-4),
            (Mesh::ATTRIBUTE_UV_0, 1.0 / 65535.0),
        ] {
            let (was, is) = (values(&mesh, attribute), values(&back, attribute));
            assert_eq!(was.len(), is.len(), "{}", attribute.name);
            let apart = was.iter().zip(&is).map(|(a, b)| (a - b).abs());
            let apart = apart.fold(0.0, f32::max);
            assert!(apart <= max && apart > 0.0, "{}: {apart}", attribute.name);
        }
        Ok(())
    }

    #[test]
    fn a_plain_mesh_is_not_copied() -> Result<()> {
        assert!(matches!(decompressed(&ring()?), Cow::Borrowed(_)));
        Ok(())
    }
}
