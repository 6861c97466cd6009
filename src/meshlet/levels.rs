//! The levels of detail of a mesh of meshlets.

use super::{Meshlet, MeshletError, MeshletLevel, MeshletMesh};
use core::ops::Range;

impl MeshletMesh {
    /// Largest number of levels, with the full mesh.
    pub const MAX_LEVELS: usize = 8;

    /// The same mesh, with its meshlets divided into these levels, the full mesh first.
    ///
    /// # Errors
    /// [`MeshletError::TooLarge`]: more than [`Self::MAX_LEVELS`]. [`MeshletError::LevelRange`]:
    /// the levels must follow each other from the first meshlet to the last, and each must have a
    /// meshlet. [`MeshletError::LevelError`]: the error of the full mesh must be 0, and each other
    /// error finite and not less than the one before.
    pub fn with_levels(mut self, levels: Vec<MeshletLevel>) -> Result<Self, MeshletError> {
        if levels.len() > Self::MAX_LEVELS {
            return Err(MeshletError::TooLarge {
                what: "levels of detail",
                count: levels.len(),
                limit: Self::MAX_LEVELS as u32,
            });
        }
        let meshlets = self.meshlets.len();
        let (mut expected, mut min) = (0u64, 0.0);
        for (at, level) in levels.iter().enumerate() {
            let end = u64::from(level.first_meshlet) + u64::from(level.meshlet_count);
            let is_last = at + 1 == levels.len();
            let is_run = u64::from(level.first_meshlet) == expected && level.meshlet_count > 0;
            let fits = if is_last {
                end == meshlets as u64
            } else {
                end < meshlets as u64
            };
            if !is_run || !fits {
                return Err(MeshletError::LevelRange {
                    level: at,
                    start: level.first_meshlet,
                    count: level.meshlet_count,
                    expected,
                    meshlets,
                });
            }
            let max = if at == 0 { 0.0 } else { f32::MAX };
            // Not a number is in no range.
            if !(min..=max).contains(&level.error) {
                return Err(MeshletError::LevelError {
                    level: at,
                    error: level.error,
                    min,
                });
            }
            (expected, min) = (end, level.error);
        }
        if levels.is_empty() {
            return Err(MeshletError::NoLevel {
                level: 0,
                levels: 0,
            });
        }
        self.levels = levels;
        Ok(self)
    }

    /// The levels of detail, from the full mesh to the coarsest. A mesh that was built without
    /// levels has one.
    #[must_use]
    pub fn levels(&self) -> &[MeshletLevel] {
        &self.levels
    }

    /// The meshlets of a level; none if there is no such level.
    #[must_use]
    pub fn level_meshlets(&self, level: usize) -> &[Meshlet] {
        let run = self.levels.get(level).map(|level| {
            let first = level.first_meshlet as usize;
            first..first + level.meshlet_count as usize
        });
        run.and_then(|run| self.meshlets.get(run))
            .unwrap_or_default()
    }

    /// The run of a level's indices in [`Self::indices`]; `None` if there is no such level.
    #[must_use]
    pub fn level_range(&self, level: usize) -> Option<Range<u32>> {
        let meshlets = self.level_meshlets(level);
        let (first, last) = (meshlets.first()?, meshlets.last()?);
        Some(first.first_index..last.first_index + last.triangle_count * 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meshlet::{MeshData, NormalCone};
    use glam::Vec3;

    /// Ten triangles, each a meshlet.
    fn ten() -> Result<MeshletMesh, MeshletError> {
        let points = [Vec3::ZERO, Vec3::X, Vec3::Y];
        let meshlet = |at: u32| Meshlet {
            center: Vec3::ZERO,
            radius: 1.0,
            cone: NormalCone::from_bits(0),
            first_index: at * 3,
            triangle_count: 1,
        };
        MeshletMesh::from_parts(
            3,
            MeshData::from_positions(&points, None).attributes,
            (0..30).map(|at| at % 3).collect(),
            (0..10).map(meshlet).collect(),
        )
    }

    /// Levels with these numbers of meshlets and errors, one after the other.
    fn runs(levels: &[(u32, f32)]) -> Vec<MeshletLevel> {
        let mut first_meshlet = 0;
        let level = |&(meshlet_count, error): &(u32, f32)| {
            let end = first_meshlet + meshlet_count;
            let first_meshlet = core::mem::replace(&mut first_meshlet, end);
            MeshletLevel {
                first_meshlet,
                meshlet_count,
                error,
            }
        };
        levels.iter().map(level).collect()
    }

    #[test]
    fn levels_divide_the_meshlets_and_the_indices() -> Result<(), MeshletError> {
        let mesh = ten()?;
        assert_eq!(mesh.levels(), runs(&[(10, 0.0)]));
        assert_eq!(
            (mesh.triangle_count(), mesh.level_range(0)),
            (10, Some(0..30))
        );
        let mesh = mesh.with_levels(runs(&[(6, 0.0), (3, 0.5), (1, 0.5)]))?;
        assert_eq!(mesh.triangle_count(), 6);
        let ranges = [0, 1, 2, 3].map(|level| mesh.level_range(level));
        assert_eq!(ranges, [Some(0..18), Some(18..27), Some(27..30), None]);
        let counts = [0, 1, 2, 3].map(|level| mesh.level_meshlets(level).len());
        assert_eq!(counts, [6, 3, 1, 0]);
        Ok(())
    }

    #[test]
    fn malformed_levels_are_refused() -> Result<(), MeshletError> {
        let mesh = ten()?;
        let refused = |levels: Vec<MeshletLevel>| mesh.clone().with_levels(levels).err();
        // Runs that end too early, too late or in the middle, that are empty, or that overlap.
        let mut overlapping = runs(&[(6, 0.0), (4, 1.0)]);
        overlapping[1].first_meshlet = 5;
        let mut wrapping = runs(&[(6, 0.0), (4, 1.0)]);
        wrapping[1].meshlet_count = u32::MAX;
        for (levels, at) in [
            (runs(&[(9, 0.0)]), 0),
            (runs(&[(11, 0.0)]), 0),
            (runs(&[(10, 0.0), (1, 1.0)]), 0),
            (runs(&[(6, 0.0), (5, 1.0)]), 1),
            (runs(&[(6, 0.0), (0, 1.0), (4, 1.0)]), 1),
            (overlapping, 1),
            (wrapping, 1),
        ] {
            let error = refused(levels);
            assert!(
                matches!(error, Some(MeshletError::LevelRange { level, .. }) if level == at),
                "{error:?}"
            );
        }
        for (errors, at) in [
            ([0.0, 0.5, 0.4], 2),
            ([0.0, -0.5, 0.4], 1),
            ([0.1, 0.5, 0.5], 0),
            ([0.0, f32::NAN, 0.5], 1),
            ([0.0, 0.5, f32::INFINITY], 2),
            ([f32::NAN, 0.5, 0.5], 0),
        ] {
            let error = refused(runs(&[(5, errors[0]), (3, errors[1]), (2, errors[2])]));
            assert!(
                matches!(error, Some(MeshletError::LevelError { level, .. }) if level == at),
                "{errors:?}: {error:?}"
            );
        }
        let nine: Vec<_> = (0..9).map(|at| (1 + at / 8, at as f32)).collect();
        let error = refused(runs(&nine));
        assert!(matches!(
            error,
            Some(MeshletError::TooLarge {
                count: 9,
                limit: 8,
                ..
            })
        ));
        let mut eight = runs(&[(3, 0.0)]);
        eight.extend((3..10).map(|first_meshlet| MeshletLevel {
            first_meshlet,
            meshlet_count: 1,
            error: 0.25,
        }));
        assert_eq!(refused(eight), None);
        assert!(matches!(
            refused(vec![]),
            Some(MeshletError::NoLevel { .. })
        ));
        Ok(())
    }
}
