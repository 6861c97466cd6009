//! From a mesh to coarser ones, with meshoptimizer.

use super::{
    LodSettings, MeshData, MeshletError, POSITION, POSITION_FORMAT, VertexAttribute,
    cut::{reorder, weld},
    data::{check_attributes, check_indices, positions},
    surface::{Surface, area, with_area},
};
use glam::Vec3;
use meshopt::{SimplifyOptions, optimize_vertex_cache, simplify_with_update};

/// A level must have at most this share of the triangles of the level before.
const MAX_LEFT: f32 = 0.8;

/// A coarser form of a mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct SimplifiedMesh {
    /// Its triangles and attributes.
    pub data: MeshData,
    /// How far the surfaces lie apart, in the mesh's units: the largest distance of a vertex of the
    /// full mesh from this surface, or of a corner, a middle of an edge or the middle of one of its
    /// triangles from the full surface.
    pub error: f32,
}

impl MeshData {
    /// Coarser forms of a mesh, each made from the one before, with fewer and fewer triangles.
    /// Vertices that stay are moved to the places that fit the surface best, normals turn with
    /// them, and other attributes are kept. The list is empty if the mesh cannot become coarser.
    ///
    /// Edges between vertices that differ in some attribute (seams, flat shading) are kept as long
    /// as other edges can go.
    ///
    /// # Errors
    /// [`MeshletError`]: settings out of range, no triangles, an index without a vertex, a position
    /// that is not finite, or an attribute with too few bytes.
    pub fn simplified(&self, settings: &LodSettings) -> Result<Vec<SimplifiedMesh>, MeshletError> {
        self.simplified_with_progress(settings, |_| ())
    }

    /// Same as [`Self::simplified`], and regularly reports the progress, from 0 to 1.
    ///
    /// # Errors
    /// Same as [`Self::simplified`].
    pub fn simplified_with_progress(
        &self,
        settings: &LodSettings,
        mut progress: impl FnMut(f32),
    ) -> Result<Vec<SimplifiedMesh>, MeshletError> {
        settings.check()?;
        progress(0.0);
        check_indices(self.indices.as_deref(), self.vertex_count)?;
        check_attributes(&self.attributes, self.vertex_count)?;
        let (mut welded, mut indices) = weld(self);
        let full = indices.clone();
        let points = positions(&welded.attributes).ok_or(MeshletError::NoPositions)?;
        let surface = Surface::new(&points, &full);
        let mut levels = Vec::new();
        let mut error = 0.0f32;
        // A level takes time as the number of triangles that it is made from.
        let done = |levels: f32| 1.0 - settings.kept.powf(levels);
        let all = done(settings.max_levels as f32);
        for number in 0..settings.max_levels {
            let mut report = |share: f32| progress(done(number as f32 + share) / all);
            let Some(coarser) = coarser(&mut welded, &indices, settings) else {
                break;
            };
            indices = coarser;
            report(0.3);
            let moved = positions(&welded.attributes).ok_or(MeshletError::NoPositions)?;
            let distance = |moved: &[Vec3]| surface.distance(&Surface::new(moved, &indices));
            let grown = with_area(area(&points, &full), &moved, &indices);
            let plain = distance(&moved);
            report(0.6);
            let of_grown = distance(&grown);
            let mut data = compact(&welded, &indices);
            if of_grown <= plain * MAX_GROWN {
                let mut grown_mesh = welded.clone();
                set_attribute(&mut grown_mesh, POSITION, bytemuck::cast_slice(&grown));
                data = compact(&grown_mesh, &indices);
                error = error.max(of_grown);
            } else {
                error = error.max(plain);
            }
            levels.push(SimplifiedMesh { data, error });
            report(1.0);
        }
        progress(1.0);
        Ok(levels)
    }
}

/// How much farther a level may lie from the full mesh so that it keeps its area.
const MAX_GROWN: f32 = 1.5;

fn set_attribute(mesh: &mut MeshData, id: u64, bytes: &[u8]) {
    let found = mesh
        .attributes
        .iter_mut()
        .find(|attribute| attribute.id == id);
    if let Some(attribute) = found {
        attribute.bytes = bytes.to_vec();
    }
}

/// [`VertexAttribute::id`] of normals, same as Bevy's `Mesh::ATTRIBUTE_NORMAL`.
const NORMAL: u64 = 1;

/// How much a normal counts against a position, in extents of the mesh.
const NORMAL_WEIGHT: f32 = 0.1;

/// The indices of a coarser form of some triangles of a mesh; `None` if there is none. Its vertices
/// are moved to the places that fit the surface best.
fn coarser(mesh: &mut MeshData, indices: &[u32], settings: &LodSettings) -> Option<Vec<u32>> {
    let triangles = indices.len() / 3;
    let kept = (triangles as f32 * settings.kept) as usize;
    let target = kept.max(settings.min_triangles.max(1) as usize);
    if target as f32 > triangles as f32 * MAX_LEFT {
        return None;
    }
    let of = |id: u64| {
        let is_vec3 = |one: &VertexAttribute| one.stride == 12 && one.format == POSITION_FORMAT;
        let found = mesh.attributes.iter().find(|one| one.id == id);
        found
            .filter(|one| is_vec3(one))
            .map(|one| one.bytes.clone())
    };
    let (old_points, old_normals) = (of(POSITION)?, of(NORMAL));
    // Without seams first: they are seen.
    for seams in [SimplifyOptions::None, SimplifyOptions::Permissive] {
        let mut points: Vec<[f32; 3]> = bytemuck::pod_collect_to_vec(&old_points);
        let mut normals: Vec<f32> = match &old_normals {
            Some(normals) => bytemuck::pod_collect_to_vec(normals),
            None => vec![0.0; points.len() * 3],
        };
        let mut found = indices.to_vec();
        let weights = [NORMAL_WEIGHT; 3];
        let weights = &weights[..if old_normals.is_some() { 3 } else { 0 }];
        let stride = 12;
        let (target, any) = (target * 3, f32::MAX);
        let count = simplify_with_update(
            &mut found,
            &mut points,
            &mut normals,
            weights,
            stride,
            None,
            target,
            any,
            seams,
            None,
        );
        found.truncate(count);
        if count == 0 || count as f32 > indices.len() as f32 * MAX_LEFT {
            continue;
        }
        for normal in normals.chunks_exact_mut(3) {
            let unit = Vec3::from_slice(normal).normalize_or_zero();
            unit.write_to_slice(normal);
        }
        set_attribute(mesh, POSITION, bytemuck::cast_slice(&points));
        if old_normals.is_some() {
            set_attribute(mesh, NORMAL, bytemuck::cast_slice(&normals));
        }
        return Some(found);
    }
    None
}

/// The triangles of some indices with the vertices that they need, in the order of the GPU's vertex
/// cache.
fn compact(mesh: &MeshData, indices: &[u32]) -> MeshData {
    let vertex_count = mesh.vertex_count as usize;
    let mut indices = optimize_vertex_cache(indices, vertex_count);
    // Vertices in the order of their first use. (`optimize_vertex_fetch_remap` of meshopt 0.7 cuts
    // off the places of vertices behind the number of used ones.)
    let mut places = vec![u32::MAX; vertex_count];
    let mut count = 0;
    for index in &mut indices {
        let place = &mut places[*index as usize];
        if *place == u32::MAX {
            *place = count;
            count += 1;
        }
        *index = *place;
    }
    MeshData {
        vertex_count: count,
        attributes: mesh
            .attributes
            .iter()
            .map(|attribute| reorder(attribute, &places, count as usize))
            .collect(),
        indices: Some(indices),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meshlet::MeshletError::Setting;

    /// A grid of `side` squares per side on a dome of radius 1.
    fn dome(side: u32) -> MeshData {
        let mut points = Vec::new();
        let mut indices = Vec::new();
        for y in 0..=side {
            for x in 0..=side {
                let at = |k: u32| k as f32 / side as f32 - 0.5;
                points.push(Vec3::new(at(x), at(y), 0.5).normalize());
            }
        }
        for y in 0..side {
            for x in 0..side {
                let at = y * (side + 1) + x;
                indices.extend([at, at + 1, at + side + 2, at, at + side + 2, at + side + 1]);
            }
        }
        MeshData::from_positions(&points, Some(indices))
    }

    #[test]
    fn each_level_is_coarser_and_farther_from_the_full_mesh() -> Result<(), MeshletError> {
        let full = dome(32);
        let levels = full.simplified(&LodSettings::default())?;
        assert_eq!(levels.len(), 5);
        let mut before = (2048, 0.0);
        for level in &levels {
            let indices = level
                .data
                .indices
                .as_ref()
                .ok_or(MeshletError::NoPositions)?;
            let triangles = indices.len() / 3;
            assert!(triangles * 2 <= before.0 + 2, "{triangles} of {}", before.0);
            assert!(level.error > before.1, "{} after {}", level.error, before.1);
            // No vertex is left over, and all stay near the dome.
            let corners = positions(&level.data.attributes).ok_or(MeshletError::NoPositions)?;
            assert!(
                corners
                    .iter()
                    .all(|corner| (corner.length() - 1.0).abs() <= level.error)
            );
            let used: std::collections::HashSet<_> = indices.iter().collect();
            assert_eq!(used.len(), level.data.vertex_count as usize);
            before = (triangles, level.error);
        }
        // A dome of this many triangles is at most a few hundredths flatter.
        assert!(before.1 < 0.05, "{}", before.1);
        Ok(())
    }

    /// Corners and middles of a level's triangles lie about as far from the sphere as the error
    /// says.
    #[test]
    fn errors_are_distances_in_the_meshs_units() -> Result<(), MeshletError> {
        let mut full = dome(24);
        let points = positions(&full.attributes).ok_or(MeshletError::NoPositions)?;
        for factor in [1.0, 100.0] {
            let scaled: Vec<_> = points.iter().map(|point| *point * factor).collect();
            full = MeshData::from_positions(&scaled, full.indices);
            for level in full.simplified(&LodSettings::default())? {
                let corners = positions(&level.data.attributes).ok_or(MeshletError::NoPositions)?;
                let indices = level.data.indices.unwrap_or_default();
                let apart = |triangle: &[u32]| {
                    let corners = [0, 1, 2].map(|corner| corners[triangle[corner] as usize]);
                    let middle = corners.iter().sum::<Vec3>() / 3.0;
                    let apart = |point: Vec3| (point.length() - factor).abs();
                    corners.map(apart).into_iter().fold(apart(middle), f32::max)
                };
                let max = indices.chunks(3).map(apart).fold(0.0, f32::max);
                let ratio = max / level.error;
                assert!((0.2..1.2).contains(&ratio), "{max}, error {}", level.error);
            }
        }
        Ok(())
    }

    #[test]
    fn progress_rises_from_nothing_to_everything() -> Result<(), MeshletError> {
        for mesh in [dome(16), dome(1)] {
            let mut told = Vec::new();
            mesh.simplified_with_progress(&LodSettings::default(), |share| told.push(share))?;
            assert_eq!((told.first(), told.last()), (Some(&0.0), Some(&1.0)));
            assert!(told.is_sorted(), "{told:?}");
            let steps = told.windows(2).map(|pair| pair[1] - pair[0]);
            assert!(
                told.len() == 2 || steps.fold(0.0, f32::max) < 0.3,
                "{told:?}"
            );
        }
        Ok(())
    }

    #[test]
    fn what_has_few_triangles_has_no_levels() -> Result<(), MeshletError> {
        let square = dome(1);
        assert_eq!(square.simplified(&LodSettings::default())?, []);
        Ok(())
    }

    /// Flat shading: no two triangles share a vertex.
    #[test]
    fn a_mesh_whose_triangles_share_no_vertex_becomes_coarser() -> Result<(), MeshletError> {
        let smooth = dome(16);
        let points = positions(&smooth.attributes).ok_or(MeshletError::NoPositions)?;
        let corners: Vec<_> = smooth
            .indices
            .iter()
            .flatten()
            .map(|at| points[*at as usize])
            .collect();
        let mut flat = MeshData::from_positions(&corners, None);
        // Vertices at one place differ in a second attribute.
        let mut numbers = flat.attributes[0].clone();
        (numbers.id, numbers.format, numbers.stride) = (77, 1, 4);
        numbers.bytes = (0..corners.len() as u32)
            .flat_map(u32::to_le_bytes)
            .collect();
        flat.attributes.push(numbers);
        let levels = flat.simplified(&LodSettings::default())?;
        assert!(!levels.is_empty());
        assert_eq!(levels[0].data.attributes.len(), 2);
        Ok(())
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let mesh = dome(4);
        for (name, settings) in [
            (
                "max_levels",
                LodSettings {
                    max_levels: 0,
                    ..LodSettings::default()
                },
            ),
            (
                "max_levels",
                LodSettings {
                    max_levels: 8,
                    ..LodSettings::default()
                },
            ),
            (
                "kept",
                LodSettings {
                    kept: 0.9,
                    ..LodSettings::default()
                },
            ),
            (
                "kept",
                LodSettings {
                    kept: f32::NAN,
                    ..LodSettings::default()
                },
            ),
        ] {
            let error = mesh.simplified(&settings).err();
            assert!(
                matches!(error, Some(Setting { name: one, .. }) if one == name),
                "{error:?}"
            );
        }
        for kept in [0.05, 0.75] {
            assert!(
                LodSettings {
                    kept,
                    ..LodSettings::default()
                }
                .check()
                .is_ok()
            );
        }
    }
}
