//! From a mesh to coarser ones: edges of surfaces collapse, and leaves are thinned out and widened.

use super::{
    LodSettings, MeshData, MeshletError,
    collapse::{Collapse, MAX_LEFT},
    cut::weld,
    data::{check_attributes, check_indices},
    foliage::Foliage,
};

/// A coarser form of a mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct SimplifiedMesh {
    /// Its triangles and attributes.
    pub data: MeshData,
    /// How far the surfaces lie apart, in the mesh's units: the largest distance of a vertex of the
    /// full mesh from this surface, or of a corner, a middle of an edge or the middle of one of its
    /// triangles from the full surface.
    ///
    /// Leaves of [`LodSettings::foliage`] are no surface, and differ by chance. Theirs is a root
    /// mean square by area, the larger of two: of how far points of kept leaves moved as these
    /// grew, and of the distances of left-out leaves from the nearest kept one. Single leaves may
    /// be farther away. The error of a level is the larger one of its leaves and its surfaces.
    pub error: f32,
}

impl MeshData {
    /// Coarser forms of a mesh, each made from the one before, with fewer and fewer triangles.
    /// Vertices that stay are moved to the places that fit the surface best, normals turn with
    /// them, and other attributes are kept. The list is empty if the mesh cannot become coarser.
    ///
    /// Edges between vertices that differ in some attribute (seams, flat shading) are kept as long
    /// as other edges can go. With [`LodSettings::foliage`], leaves are thinned out and widened
    /// instead, and keep their attributes.
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
        let mut parts = Parts::new(self, settings)?;
        let mut levels = Vec::new();
        // A level takes time as the number of triangles that it is made from.
        let done = |levels: f32| 1.0 - settings.kept.powf(levels);
        let all = done(settings.max_levels as f32);
        for number in 0..settings.max_levels {
            let mut report = |share: f32| progress(done(number as f32 + share) / all);
            let Some(level) = parts.coarser(settings, &mut report)? else {
                break;
            };
            levels.push(level);
            report(1.0);
        }
        progress(1.0);
        Ok(levels)
    }
}

/// What levels are made from.
struct Parts {
    /// All triangles, or those of no leaf.
    surface: Collapse,
    foliage: Option<Foliage>,
    /// If there is foliage: the last level of the surface, with its error. `None` if all triangles
    /// are leaves.
    rest: Option<(MeshData, f32)>,
    /// The largest error of the leaves so far.
    error: f32,
}

impl Parts {
    fn new(mesh: &MeshData, settings: &LodSettings) -> Result<Self, MeshletError> {
        let (welded, indices) = weld(mesh);
        let found = settings.foliage.then(|| Foliage::split(&welded, &indices));
        let (foliage, indices) = match found.flatten() {
            Some((foliage, rest)) => (Some(foliage), rest),
            None => (None, indices),
        };
        let surface = Collapse::new(welded, indices)?;
        let rest = foliage.as_ref().and_then(|_| surface.last());
        Ok(Self {
            surface,
            foliage,
            rest: rest.map(|data| (data, 0.0)),
            error: 0.0,
        })
    }

    /// Number of triangles of the last level.
    fn triangles(&self) -> usize {
        self.surface.triangles() + self.foliage.as_ref().map_or(0, Foliage::triangles)
    }

    /// The next level; `None` if there is no coarser one.
    fn coarser(
        &mut self,
        settings: &LodSettings,
        report: impl FnMut(f32),
    ) -> Result<Option<SimplifiedMesh>, MeshletError> {
        let triangles = self.triangles();
        let kept = (triangles as f32 * settings.kept) as usize;
        let target = kept.max(settings.min_triangles.max(1) as usize);
        if target as f32 > triangles as f32 * MAX_LEFT {
            return Ok(None);
        }
        let Some(foliage) = &mut self.foliage else {
            let level = self.surface.collapse(target, report)?;
            return Ok(level.map(|(data, error)| SimplifiedMesh { data, error }));
        };
        // Both keep the same share, if they can.
        let share = target as f32 / triangles as f32;
        let kept_of = |triangles: usize| ((triangles as f32 * share) as usize).max(1);
        let of_surface = kept_of(self.surface.triangles());
        if let Some(level) = self.surface.collapse(of_surface, report)? {
            self.rest = Some(level);
        }
        let (leaves, error) = foliage.thinned(kept_of(foliage.triangles()));
        if self.triangles() as f32 > triangles as f32 * MAX_LEFT {
            return Ok(None);
        }
        self.error = self.error.max(error);
        let (data, error) = match &self.rest {
            Some((data, error)) => (joined(data.clone(), leaves), error.max(self.error)),
            None => (leaves, self.error),
        };
        Ok(Some(SimplifiedMesh { data, error }))
    }
}

/// Both meshes in one. They have the same attributes.
fn joined(mut mesh: MeshData, other: MeshData) -> MeshData {
    let before = mesh.vertex_count;
    mesh.vertex_count += other.vertex_count;
    for (attribute, more) in mesh.attributes.iter_mut().zip(other.attributes) {
        attribute.bytes.extend(more.bytes);
    }
    let more = other.indices.iter().flatten().map(|index| before + index);
    mesh.indices.get_or_insert_default().extend(more);
    mesh
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meshlet::{MeshletError::Setting, data::positions};
    use glam::Vec3;

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
