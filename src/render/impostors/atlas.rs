//! Photographs of a mesh from all sides, as an asset.

use super::{error::ImpostorError, grid::Grid, octahedron::ImpostorSides};
use crate::{cull::BoundingSphere, file_head::FileKind};
use bevy::{
    asset::RenderAssetUsages,
    image::{ImageAddressMode, ImageFilterMode, ImageSampler, ImageSamplerDescriptor},
    mesh::{Indices, PrimitiveTopology},
    prelude::*,
    render::render_resource::{
        Extent3d, TextureDataOrder, TextureDescriptor, TextureDimension, TextureFormat,
        TextureUsages,
    },
};
use core::f32::consts::{FRAC_PI_4, FRAC_PI_8};

/// How the surface of an impostor shines: the numbers of a
/// [`StandardMaterial`], without its textures.
#[derive(Reflect, Clone, Copy, Debug, PartialEq)]
pub(super) struct Surface {
    pub perceptual_roughness: f32,
    pub metallic: f32,
    pub reflectance: f32,
}

impl Surface {
    pub fn of(material: &StandardMaterial) -> Self {
        Self {
            perceptual_roughness: material.perceptual_roughness,
            metallic: material.metallic,
            reflectance: material.reflectance,
        }
    }
}

/// Photographs of a mesh or of a scene from a grid of directions, and what is needed to light them.
///
/// [`BakeImpostor`](super::BakeImpostor) makes it, [`ImpostorAtlas3d`](super::ImpostorAtlas3d) draws
/// it. On the GPU it takes 10.7 bytes per pixel: 13.5 MiB by default. A file holds the same, without
/// compression.
#[derive(Asset, Reflect, Clone, Debug, PartialEq)]
#[reflect(opaque, Clone, Debug, PartialEq)]
pub struct ImpostorAtlas {
    /// The sphere that each view shows, in the space of the mesh or the scene.
    pub(super) sphere: BoundingSphere,
    pub(super) grid: Grid,
    pub(super) surface: Surface,
    /// Base color in sRGB, and opacity: 4 bytes per pixel, one mip after the other.
    pub(super) colors: Vec<u8>,
    /// Normal in the mesh's space, and height above the plane through the center, towards the
    /// viewer, in radii: 0 to 255 is -1 to 1.
    pub(super) shapes: Vec<u8>,
}

const FILE: FileKind = FileKind {
    magic: *b"GPUIMPOS",
    version: ImpostorAtlas::VERSION,
};

/// Number of words before the pictures.
const WORDS: usize = 10;

impl ImpostorAtlas {
    /// File name extension.
    pub const EXTENSION: &str = "impostor";
    /// Version of the files that this build writes; it reads no other version.
    pub const VERSION: u32 = 1;

    /// The center of the sphere that is shown, in the space of the mesh or the scene.
    #[must_use]
    pub fn center(&self) -> Vec3 {
        self.sphere.center
    }

    /// The radius of this sphere.
    #[must_use]
    pub fn radius(&self) -> f32 {
        self.sphere.radius
    }

    /// [`InstanceImpostor::error`](crate::render::InstanceImpostor::error) of cards that are drawn
    /// once the sphere is seen at most this many pixels wide.
    #[must_use]
    pub fn error(&self, below_pixels: f32) -> f32 {
        2.0 * self.sphere.radius / below_pixels
    }

    /// The pictures with base colors, and with normals and heights.
    pub(super) fn images(&self) -> [Image; 2] {
        [
            (&self.colors, TextureFormat::Rgba8UnormSrgb),
            (&self.shapes, TextureFormat::Rgba8Unorm),
        ]
        .map(|(bytes, format)| {
            let width = self.grid.width();
            Image {
                data: Some(bytes.clone()),
                data_order: TextureDataOrder::MipMajor,
                texture_descriptor: TextureDescriptor {
                    label: Some("impostor"),
                    size: Extent3d {
                        width,
                        height: width,
                        depth_or_array_layers: 1,
                    },
                    mip_level_count: self.grid.mip_widths().count() as u32,
                    sample_count: 1,
                    dimension: TextureDimension::D2,
                    format,
                    usage: TextureUsages::TEXTURE_BINDING | TextureUsages::COPY_DST,
                    view_formats: &[],
                },
                sampler: ImageSampler::Descriptor(ImageSamplerDescriptor {
                    address_mode_u: ImageAddressMode::ClampToEdge,
                    address_mode_v: ImageAddressMode::ClampToEdge,
                    mag_filter: ImageFilterMode::Linear,
                    min_filter: ImageFilterMode::Linear,
                    mipmap_filter: ImageFilterMode::Linear,
                    ..default()
                }),
                // The asset has the bytes.
                asset_usage: RenderAssetUsages::RENDER_WORLD,
                ..default()
            }
        })
    }

    /// The card: an octagon around the circle that a view shows, in X and Y.
    pub(super) fn card(&self) -> Mesh {
        let reach = self.sphere.radius / FRAC_PI_8.cos();
        let corners = (0..8).map(|at| {
            let (sin, cos) = (FRAC_PI_8 + FRAC_PI_4 * at as f32).sin_cos();
            self.sphere.center + reach * Vec3::new(cos, sin, 0.0)
        });
        let triangles = (1..7).flat_map(|at| [0, at, at + 1]);
        Mesh::new(
            PrimitiveTopology::TriangleList,
            RenderAssetUsages::default(),
        )
        .with_inserted_attribute(Mesh::ATTRIBUTE_POSITION, corners.collect::<Vec<_>>())
        // Bevy warns of meshes without normals in cameras with a normal prepass.
        .with_inserted_attribute(Mesh::ATTRIBUTE_NORMAL, vec![[0.0, 0.0, 1.0]; 8])
        .with_inserted_indices(Indices::U16(triangles.collect()))
    }

    /// The bytes of a file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let Surface {
            perceptual_roughness,
            metallic,
            reflectance,
        } = self.surface;
        let words: [u32; WORDS] = [
            self.sphere.center.x.to_bits(),
            self.sphere.center.y.to_bits(),
            self.sphere.center.z.to_bits(),
            self.sphere.radius.to_bits(),
            self.grid.side,
            self.grid.pixels,
            u32::from(self.grid.sides == ImpostorSides::Above),
            perceptual_roughness.to_bits(),
            metallic.to_bits(),
            reflectance.to_bits(),
        ];
        let size = 4 * WORDS + self.colors.len() + self.shapes.len();
        let Ok(bytes) = FILE.write(size, |mut bytes| {
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            bytes.extend(&self.colors);
            bytes.extend(&self.shapes);
            Ok::<_, core::convert::Infallible>(bytes)
        });
        bytes
    }

    /// The atlas that [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`ImpostorError::Foreign`], [`ImpostorError::Version`], [`ImpostorError::Length`],
    /// [`ImpostorError::Checksum`], [`ImpostorError::Content`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ImpostorError> {
        let payload = FILE.payload(bytes)?;
        let (words, pictures) = payload
            .as_chunks::<4>()
            .0
            .split_at_checked(WORDS)
            .map_or((&[][..], &[][..]), |(words, _)| {
                (words, &payload[4 * WORDS..])
            });
        let Ok(words) = <[[u8; 4]; WORDS]>::try_from(words) else {
            return Err(ImpostorError::Content(format!(
                "payload of {} bytes has no head",
                payload.len()
            )));
        };
        let [x, y, z, radius, side, pixels, sides, surface @ ..] = words.map(u32::from_le_bytes);
        let [perceptual_roughness, metallic, reflectance] = surface.map(f32::from_bits);
        let sphere = BoundingSphere {
            center: Vec3::from([x, y, z].map(f32::from_bits)),
            radius: f32::from_bits(radius),
        };
        let grid = Grid {
            side,
            pixels,
            sides: match sides {
                0 => ImpostorSides::All,
                _ => ImpostorSides::Above,
            },
        };
        let is_number = |number: f32| (0.0..=1.0).contains(&number);
        let bad = [
            (
                !sphere.center.is_finite(),
                "center",
                sphere.center.to_string(),
            ),
            (
                !(sphere.radius > 0.0 && sphere.radius.is_finite()),
                "radius",
                sphere.radius.to_string(),
            ),
            (
                !Grid::SIDE.contains(&side),
                "number of views",
                side.to_string(),
            ),
            (
                !Grid::PIXELS.contains(&pixels) || !pixels.is_multiple_of(Grid::STEP),
                "resolution",
                pixels.to_string(),
            ),
            (sides > 1, "kind of sides", sides.to_string()),
            (
                !is_number(perceptual_roughness),
                "roughness",
                perceptual_roughness.to_string(),
            ),
            (!is_number(metallic), "metallic", metallic.to_string()),
            (
                !is_number(reflectance),
                "reflectance",
                reflectance.to_string(),
            ),
        ];
        if let Some((_, name, value)) = bad.into_iter().find(|(is_bad, ..)| *is_bad) {
            return Err(ImpostorError::Content(format!("{name} is {value}")));
        }
        let expected = 2 * grid.bytes();
        if pictures.len() != expected {
            return Err(ImpostorError::Content(format!(
                "pictures have {} bytes instead of {expected}",
                pictures.len()
            )));
        }
        let (colors, shapes) = pictures.split_at(grid.bytes());
        Ok(Self {
            sphere,
            grid,
            surface: Surface {
                perceptual_roughness,
                metallic,
                reflectance,
            },
            colors: colors.to_vec(),
            shapes: shapes.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_head::HEAD;

    fn atlas() -> ImpostorAtlas {
        let grid = Grid {
            side: 2,
            pixels: 32,
            sides: ImpostorSides::Above,
        };
        let byte = |at: usize| (at * 7 + at / 5) as u8;
        ImpostorAtlas {
            sphere: BoundingSphere {
                center: Vec3::new(1.0, -2.0, 0.5),
                radius: 3.0,
            },
            grid,
            surface: Surface {
                perceptual_roughness: 0.7,
                metallic: 0.1,
                reflectance: 0.5,
            },
            colors: (0..grid.bytes()).map(byte).collect(),
            shapes: (0..grid.bytes()).rev().map(byte).collect(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let atlas = atlas();
        assert_eq!(ImpostorAtlas::from_bytes(&atlas.to_bytes()), Ok(atlas));
    }

    #[test]
    fn damaged_short_long_and_foreign_files_are_errors() {
        let good = atlas().to_bytes();
        for at in (0..200).chain(good.len() - 20..good.len()) {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            let error = ImpostorAtlas::from_bytes(&bad).err();
            match at {
                0..8 => assert!(matches!(error, Some(ImpostorError::Foreign { .. }))),
                8..12 => assert!(matches!(error, Some(ImpostorError::Version { .. }))),
                16..24 => assert!(matches!(error, Some(ImpostorError::Length { .. }))),
                _ => assert!(
                    matches!(error, Some(ImpostorError::Checksum { .. })),
                    "{at}"
                ),
            }
            assert!(ImpostorAtlas::from_bytes(&good[..at]).is_err(), "{at}");
        }
    }

    /// Files with a right checksum.
    #[test]
    fn numbers_that_no_atlas_has_are_errors() {
        let good = atlas().to_bytes();
        let with = |word: usize, number: u32| {
            let mut payload = good[HEAD..].to_vec();
            payload[4 * word..4 * word + 4].copy_from_slice(&number.to_le_bytes());
            let Ok(bytes) = FILE.write(0, |mut bytes| {
                bytes.extend(&payload);
                Ok::<_, core::convert::Infallible>(bytes)
            });
            ImpostorAtlas::from_bytes(&bytes)
                .err()
                .map(|error| error.to_string())
        };
        for (word, number, expected) in [
            (1, f32::NAN.to_bits(), "the file's center is [1, NaN, 0.5]"),
            (3, 0, "the file's radius is 0"),
            (3, f32::INFINITY.to_bits(), "the file's radius is inf"),
            (4, 1, "the file's number of views is 1"),
            (4, 1 << 30, "the file's number of views is 1073741824"),
            (
                4,
                3,
                "the file's pictures have 43520 bytes instead of 97920",
            ),
            (5, 33, "the file's resolution is 33"),
            (6, 2, "the file's kind of sides is 2"),
            (7, (-1.0f32).to_bits(), "the file's roughness is -1"),
        ] {
            assert_eq!(with(word, number).as_deref(), Some(expected));
        }
        let Ok(empty) = FILE.write(0, Ok::<_, core::convert::Infallible>);
        assert!(matches!(
            ImpostorAtlas::from_bytes(&empty),
            Err(ImpostorError::Content(_))
        ));
    }

    #[test]
    fn the_card_is_around_the_circle_that_a_view_shows() {
        let atlas = atlas();
        let mesh = atlas.card();
        let points = mesh
            .attribute(Mesh::ATTRIBUTE_POSITION)
            .and_then(|it| it.as_float3());
        let points = points.unwrap_or_default();
        assert_eq!(points.len(), 8);
        for (a, b) in points.iter().zip(points.iter().cycle().skip(1)) {
            let middle = (Vec3::from(*a) + Vec3::from(*b)) / 2.0;
            assert!((middle.distance(atlas.center()) - 3.0).abs() < 1e-5);
        }
    }
}
