//! From triangles to meshlets: the full mesh and its levels of detail.

use super::{
    MeshData, Meshlet, MeshletError, MeshletLevel, MeshletMesh, MeshletSettings,
    cut::cut_mesh,
    data::{check_attributes, check_indices},
};

impl MeshletMesh {
    /// Cuts a mesh into meshlets.
    ///
    /// Vertices that are equal in all attributes are merged. Triangles are ordered for the GPU's
    /// vertex cache and cut by meshoptimizer. Then vertices are ordered as the meshlets need them.
    /// A mesh of 10,000 triangles takes a few milliseconds.
    ///
    /// With [`MeshletSettings::lods`], coarser levels of detail follow ([`MeshData::simplified`]).
    /// Each is cut the same way, and has its own vertices behind the others, because
    /// simplification moves vertices. A mesh that cannot become coarser has one level.
    ///
    /// # Errors
    /// [`MeshletError`]: settings out of range, no triangles, an index without a vertex, a position
    /// that is not finite, an attribute with too few bytes, or levels with more vertices than 32
    /// bits count.
    pub fn build(data: &MeshData, settings: &MeshletSettings) -> Result<Self, MeshletError> {
        Self::build_with_progress(data, settings, |_| ())
    }

    /// Same as [`Self::build`], and regularly reports the progress, from 0 to 1.
    ///
    /// # Errors
    /// Same as [`Self::build`].
    pub fn build_with_progress(
        data: &MeshData,
        settings: &MeshletSettings,
        mut progress: impl FnMut(f32),
    ) -> Result<Self, MeshletError> {
        settings.check()?;
        check_indices(data.indices.as_deref(), data.vertex_count)?;
        check_attributes(&data.attributes, data.vertex_count)?;
        progress(0.0);
        let coarser = match &settings.lods {
            Some(lods) => data.simplified(lods)?,
            None => Vec::new(),
        };
        // Simplification takes longer than cutting.
        let begin = if coarser.is_empty() { 0.0 } else { 0.6 };
        let share = (1.0 - begin) / (coarser.len() + 1) as f32;
        let mut cut_level = |level: usize, data: &MeshData| {
            let before = begin + share * level as f32;
            cut_mesh(data, settings, |done| progress(before + share * done))
        };
        let mut mesh = cut_level(0, data)?;
        let mut levels = mesh.levels.clone();
        for (at, level) in (1..).zip(&coarser) {
            let first_meshlet = mesh.meshlets.len() as u32;
            mesh.append(cut_level(at, &level.data)?)?;
            levels.push(MeshletLevel {
                first_meshlet,
                meshlet_count: mesh.meshlets.len() as u32 - first_meshlet,
                error: level.error,
            });
        }
        progress(1.0);
        mesh.with_levels(levels)
    }

    /// Adds the vertices, indices and meshlets of a mesh with the same attributes.
    fn append(&mut self, other: Self) -> Result<(), MeshletError> {
        let too_large = |what, count| MeshletError::TooLarge {
            what,
            count,
            limit: u32::MAX,
        };
        let (vertices, indices) = (self.vertex_count, self.indices.len());
        let sum = vertices.checked_add(other.vertex_count);
        let all = u64::from(vertices) + u64::from(other.vertex_count);
        self.vertex_count = sum.ok_or_else(|| too_large("vertices", all as usize))?;
        let first_index = u32::try_from(indices + other.indices.len())
            .map(|_| indices as u32)
            .map_err(|_| too_large("indices", indices + other.indices.len()))?;
        for (attribute, more) in self.attributes.iter_mut().zip(other.attributes) {
            attribute.bytes.extend(more.bytes);
        }
        let others = other.indices.iter().map(|index| vertices + index);
        self.indices.extend(others);
        self.meshlets.extend(other.meshlets.iter().map(|meshlet| {
            let first_index = first_index + meshlet.first_index;
            Meshlet {
                first_index,
                ..*meshlet
            }
        }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meshlet::{
        LodSettings, POSITION,
        cut::tests::{grid, triangles},
        data::positions,
    };

    #[test]
    fn progress_rises_from_nothing_to_everything() -> Result<(), MeshletError> {
        for lods in [None, Some(LodSettings::default())] {
            let mut seen = Vec::new();
            let settings = MeshletSettings {
                max_triangles: 4,
                lods,
                ..Default::default()
            };
            MeshletMesh::build_with_progress(&grid(40), &settings, |done| seen.push(done))?;
            assert!(seen.is_sorted() && seen.len() > 8, "{seen:?}");
            assert_eq!((seen.first(), seen.last()), (Some(&0.0), Some(&1.0)));
        }
        Ok(())
    }

    /// Each level has the triangles of the simplified mesh, with bounds around its own vertices.
    /// The full mesh is the same as without levels.
    #[test]
    fn each_level_is_the_simplified_mesh_in_meshlets() -> Result<(), MeshletError> {
        let data = grid(40);
        let lods = LodSettings::default();
        let settings = MeshletSettings {
            lods: Some(lods),
            ..Default::default()
        };
        let full = MeshletMesh::build(&data, &MeshletSettings::default())?;
        let mesh = MeshletMesh::build(&data, &settings)?;
        let expected = data.simplified(&lods)?;
        assert_eq!((mesh.levels().len(), expected.len()), (6, 5));
        assert_eq!(mesh.level_meshlets(0), full.meshlets());
        assert_eq!(mesh.triangle_count(), full.triangle_count());
        assert_eq!(&mesh.indices()[..full.indices().len()], full.indices());
        let points = mesh.positions();
        for (at, simplified) in (1..).zip(&expected) {
            let range = mesh.level_range(at).unwrap_or_default();
            let indices = &mesh.indices()[range.start as usize..range.end as usize];
            let theirs = positions(&simplified.data.attributes).unwrap_or_default();
            assert_eq!(
                triangles(&points, indices),
                triangles(
                    &theirs,
                    simplified.data.indices.as_deref().unwrap_or_default()
                )
            );
            assert_eq!(mesh.levels()[at].error, simplified.error);
            for meshlet in mesh.level_meshlets(at) {
                let corners = mesh.meshlet_indices(meshlet).iter();
                assert!(
                    corners
                        .map(|corner| points[*corner as usize])
                        .all(|point| point.distance(meshlet.center) <= meshlet.radius)
                );
            }
        }
        Ok(())
    }

    #[test]
    fn a_mesh_that_cannot_become_coarser_has_one_level() -> Result<(), MeshletError> {
        let settings = MeshletSettings {
            lods: Some(LodSettings::default()),
            ..Default::default()
        };
        let mesh = MeshletMesh::build(&grid(1), &settings)?;
        assert_eq!((mesh.levels().len(), mesh.triangle_count()), (1, 2));
        Ok(())
    }

    #[test]
    fn bad_input_is_named() {
        let build = |data: &MeshData| MeshletMesh::build(data, &MeshletSettings::default()).err();
        let none = MeshData::default();
        assert_eq!(build(&none), Some(MeshletError::NoTriangles { indices: 0 }));
        let mut data = grid(2);
        data.indices = Some(vec![0, 1, 2, 3]);
        assert_eq!(
            build(&data),
            Some(MeshletError::NotTriangles { indices: 4 })
        );
        data.indices = Some(vec![0, 1, 9]);
        assert_eq!(
            build(&data),
            Some(MeshletError::IndexOutOfRange {
                at: 2,
                index: 9,
                vertices: 9
            })
        );
        data = grid(2);
        data.attributes[0].bytes[4..8].copy_from_slice(&f32::INFINITY.to_le_bytes());
        assert!(matches!(
            build(&data),
            Some(MeshletError::NonFinitePosition { vertex: 0, .. })
        ));
        data = grid(2);
        data.attributes[0].bytes.pop();
        assert!(matches!(
            build(&data),
            Some(MeshletError::AttributeLength { id: POSITION, .. })
        ));
        data.attributes.clear();
        assert_eq!(build(&data), Some(MeshletError::NoPositions));
        for (settings, name) in [
            (
                MeshletSettings {
                    max_vertices: 257,
                    ..Default::default()
                },
                "max_vertices",
            ),
            (
                MeshletSettings {
                    max_triangles: 0,
                    ..Default::default()
                },
                "max_triangles",
            ),
            (
                MeshletSettings {
                    cone_weight: f32::NAN,
                    ..Default::default()
                },
                "cone_weight",
            ),
            (
                MeshletSettings {
                    lods: Some(LodSettings {
                        max_levels: 8,
                        ..Default::default()
                    }),
                    ..Default::default()
                },
                "max_levels",
            ),
        ] {
            let error = MeshletMesh::build(&grid(2), &settings).err();
            assert!(
                matches!(error, Some(MeshletError::Setting { name: found, .. }) if found == name)
            );
        }
    }
}
