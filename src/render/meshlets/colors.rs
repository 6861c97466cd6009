//! Meshlets that can be told apart by their colors.

use super::formats::{attribute_id, format_code};
use crate::meshlet::{MeshletMesh, VertexAttribute};
use bevy::{mesh::VertexFormat, platform::collections::HashMap, prelude::*};

impl MeshletMesh {
    /// The same meshlets, each with its own vertex color, which Bevy's materials multiply with
    /// theirs. Vertices that meshlets share are duplicated.
    #[must_use]
    pub fn with_meshlet_colors(&self) -> Self {
        let mut sources = Vec::new();
        let mut colors: Vec<[f32; 4]> = Vec::new();
        let mut indices = Vec::with_capacity(self.indices().len());
        for (number, meshlet) in self.meshlets().iter().enumerate() {
            let mut places: HashMap<u32, u32> = default();
            // Neighbors are far apart on the color wheel.
            let hue = (number as f32 * 222.492_2) % 360.0;
            let color = LinearRgba::from(Color::hsl(hue, 0.75, 0.55)).to_f32_array();
            for index in self.meshlet_indices(meshlet) {
                let place = *places.entry(*index).or_insert_with(|| {
                    sources.push(*index);
                    colors.push(color);
                    sources.len() as u32 - 1
                });
                indices.push(place);
            }
        }
        let color = attribute_id(&Mesh::ATTRIBUTE_COLOR);
        let kept = self
            .attributes()
            .iter()
            .filter(|attribute| attribute.id != color);
        let mut attributes: Vec<_> = kept
            .map(|attribute| {
                let stride = attribute.stride as usize;
                let vertex = |source: &u32| &attribute.bytes[*source as usize * stride..][..stride];
                VertexAttribute {
                    bytes: sources.iter().flat_map(vertex).copied().collect(),
                    ..attribute.clone()
                }
            })
            .collect();
        let format = format_code(VertexFormat::Float32x4).unwrap_or_default();
        attributes.push(VertexAttribute {
            id: color,
            format,
            stride: 16,
            bytes: bytemuck::cast_slice(&colors).to_vec(),
        });
        let vertices = sources.len() as u32;
        // The parts fit each other, because the parts of this mesh do.
        Self::from_parts(vertices, attributes, indices, self.meshlets().to_vec())
            .and_then(|colored| colored.with_levels(self.levels().to_vec()))
            .unwrap_or_else(|_| self.clone())
    }
}

#[cfg(all(test, feature = "meshlets"))]
mod tests {
    use super::*;
    use crate::meshlet::{LodSettings, MeshletError, MeshletSettings};

    #[test]
    fn colors_part_the_meshlets() -> Result<(), MeshletError> {
        let mesh = Mesh::from(Torus::default());
        let settings = MeshletSettings {
            lods: Some(LodSettings::default()),
            ..default()
        };
        let meshlets = MeshletMesh::from_mesh(&mesh, &settings)?;
        let colored = meshlets.with_meshlet_colors();
        assert_eq!(colored.meshlets(), meshlets.meshlets());
        assert!(colored.levels().len() > 2 && colored.levels() == meshlets.levels());
        assert!(colored.vertex_count() > meshlets.vertex_count());
        let (before, after) = (meshlets.positions(), colored.positions());
        for (a, b) in meshlets.indices().iter().zip(colored.indices()) {
            assert_eq!(before[*a as usize], after[*b as usize]);
        }
        colored.to_mesh()?;
        Ok(())
    }
}
