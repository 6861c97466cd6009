//! Compressed meshes (`Mesh::compress_mesh`) on the CPU: rays and builders read plain attributes.

#[cfg(feature = "meshlets")]
use crate::meshlet::MeshletError;
use bevy::{
    mesh::{
        MeshAttributeCompressionFlags, MeshCompressionArgs, MeshVertexAttribute,
        VertexAttributeValues, octahedral_decode_signed, octahedral_decode_tangent,
    },
    prelude::*,
};
use std::borrow::Cow;

/// The attributes of a mesh that are compressed; none if its vertices are only on the GPU.
#[cfg(feature = "meshlets")]
pub(super) fn compression_of(mesh: &Mesh) -> MeshAttributeCompressionFlags {
    use MeshAttributeCompressionFlags as Flags;
    let flags = [
        (Mesh::ATTRIBUTE_POSITION, Flags::COMPRESS_POSITION),
        (Mesh::ATTRIBUTE_NORMAL, Flags::COMPRESS_NORMAL),
        (Mesh::ATTRIBUTE_TANGENT, Flags::COMPRESS_TANGENT),
        (Mesh::ATTRIBUTE_UV_0, Flags::COMPRESS_UV0),
        (Mesh::ATTRIBUTE_UV_1, Flags::COMPRESS_UV1),
    ];
    let compressed = flags
        .into_iter()
        .filter(|(attribute, _)| plain(mesh, *attribute).is_some());
    compressed.map(|(_, flag)| flag).collect()
}

/// The mesh without compressed attributes, as the vertex stage reads it. What Bevy only quantizes
/// (colors, joint weights) and indices stay as they are.
pub(super) fn decompressed(mesh: &Mesh) -> Cow<'_, Mesh> {
    let mut plain_mesh = Cow::Borrowed(mesh);
    for attribute in [
        Mesh::ATTRIBUTE_POSITION,
        Mesh::ATTRIBUTE_NORMAL,
        Mesh::ATTRIBUTE_TANGENT,
        Mesh::ATTRIBUTE_UV_0,
        Mesh::ATTRIBUTE_UV_1,
    ] {
        if let Some(values) = plain(mesh, attribute) {
            plain_mesh.to_mut().insert_attribute(attribute, values);
        }
    }
    plain_mesh
}

/// An attribute of the mesh, not compressed; `None` if the mesh does not have it on the CPU.
#[cfg(feature = "picking")]
pub(super) fn plain_values(
    mesh: &Mesh,
    attribute: MeshVertexAttribute,
) -> Option<Cow<'_, VertexAttributeValues>> {
    match plain(mesh, attribute) {
        Some(values) => Some(Cow::Owned(values)),
        None => Some(Cow::Borrowed(mesh.try_attribute_option(attribute).ok()??)),
    }
}

/// Compresses the attributes that `like` names, as far as the mesh has them.
///
/// # Errors
/// [`MeshletError::Compression`]: it has values that cannot be compressed.
#[cfg(feature = "meshlets")]
pub(super) fn compress(
    mesh: &mut Mesh,
    like: MeshAttributeCompressionFlags,
) -> Result<(), MeshletError> {
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

/// An attribute in the format that it has in meshes that are not compressed; `None` if it has that,
/// or if the mesh does not have the attribute on the CPU.
fn plain(mesh: &Mesh, attribute: MeshVertexAttribute) -> Option<VertexAttributeValues> {
    use VertexAttributeValues as Values;
    let values = mesh.try_attribute_option(attribute).ok()??;
    let is = |known: MeshVertexAttribute| attribute.id == known.id;
    match values {
        Values::Snorm16x4(values) if is(Mesh::ATTRIBUTE_POSITION) => {
            let around = mesh.final_aabb?;
            let (min, max) = (Vec3::from(around.min), Vec3::from(around.max));
            let (center, half) = ((min + max) / 2.0, (max - min) / 2.0);
            let decoded = values.iter().map(|[x, y, z, _]| {
                (center + half * Vec3::from([*x, *y, *z].map(snorm))).to_array()
            });
            Some(Values::Float32x3(decoded.collect()))
        }
        Values::Snorm16x2(values) if is(Mesh::ATTRIBUTE_NORMAL) => {
            let decoded = values
                .iter()
                .map(|value| octahedral_decode_signed(value.map(snorm).into()).to_array());
            Some(Values::Float32x3(decoded.collect()))
        }
        Values::Snorm16x2(values) if is(Mesh::ATTRIBUTE_TANGENT) => {
            let decoded = values.iter().map(|value| {
                let (tangent, sign) = octahedral_decode_tangent(value.map(snorm).into());
                tangent.extend(sign).to_array()
            });
            Some(Values::Float32x4(decoded.collect()))
        }
        Values::Unorm16x2(values) if is(Mesh::ATTRIBUTE_UV_0) || is(Mesh::ATTRIBUTE_UV_1) => {
            let channel = usize::from(is(Mesh::ATTRIBUTE_UV_1));
            let range = mesh.final_uv_ranges[channel]?;
            let decoded = values.iter().map(|value| {
                let share = Vec2::from(value.map(|value| f32::from(value) / 65535.0));
                (range.min + (range.max - range.min) * share).to_array()
            });
            Some(Values::Float32x2(decoded.collect()))
        }
        _ => None,
    }
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
        compress(&mut small, MeshAttributeCompressionFlags::all())?;
        let has_uvs =
            MeshAttributeCompressionFlags::all() - MeshAttributeCompressionFlags::COMPRESS_UV1;
        assert_eq!(compression_of(&small), has_uvs);
        assert_eq!(
            compression_of(&mesh),
            MeshAttributeCompressionFlags::empty()
        );
        let back = decompressed(&small);
        for (attribute, most) in [
            (Mesh::ATTRIBUTE_POSITION, 2.5 / 32767.0),
            (Mesh::ATTRIBUTE_NORMAL, 1e-4),
            (Mesh::ATTRIBUTE_TANGENT, 2e-4),
            (Mesh::ATTRIBUTE_UV_0, 1.0 / 65535.0),
        ] {
            let (was, is) = (values(&mesh, attribute), values(&back, attribute));
            assert_eq!(was.len(), is.len(), "{}", attribute.name);
            let apart = was.iter().zip(&is).map(|(a, b)| (a - b).abs());
            let apart = apart.fold(0.0, f32::max);
            assert!(apart <= most && apart > 0.0, "{}: {apart}", attribute.name);
        }
        Ok(())
    }

    #[test]
    fn a_plain_mesh_is_not_copied() -> Result<()> {
        assert!(matches!(decompressed(&ring()?), Cow::Borrowed(_)));
        Ok(())
    }
}
