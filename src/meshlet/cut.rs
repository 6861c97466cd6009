//! From triangles to the meshlets of one level, with meshoptimizer.

use super::{
    MeshData, Meshlet, MeshletError, MeshletMesh, MeshletSettings, NormalCone, VertexAttribute,
    data::positions,
};
use glam::{DVec3, Vec3};
use meshopt::{
    VertexDataAdapter, VertexStream, build_meshlets, compute_cluster_bounds,
    generate_vertex_remap_multi, optimize_vertex_cache, optimize_vertex_fetch_remap,
    remap_index_buffer, typed_to_bytes,
};

/// Factor by which spheres are larger than the measured distances, because `f32` rounds.
const SPHERE_SLACK: f64 = 1.0 + 1e-5;
/// Number of meshlets between two reports of progress.
const REPORT_EACH: usize = 256;

/// Cuts a mesh into one level of meshlets, and regularly reports the progress, from 0 to 1.
pub(super) fn cut_mesh(
    data: &MeshData,
    settings: &MeshletSettings,
    mut progress: impl FnMut(f32),
) -> Result<MeshletMesh, MeshletError> {
    let (welded, indices) = weld(data);
    progress(0.2);
    let indices = optimize_vertex_cache(&indices, welded.vertex_count as usize);
    progress(0.3);
    let points = positions(&welded.attributes).ok_or(MeshletError::NoPositions)?;
    let (indices, counts) = cut(&points, &indices, settings)?;
    progress(0.7);
    let order = optimize_vertex_fetch_remap(&indices, points.len());
    let attributes: Vec<_> = welded
        .attributes
        .iter()
        .map(|attribute| reorder(attribute, &order, points.len()))
        .collect();
    let indices = remap_index_buffer(Some(&indices), 0, &order);
    progress(0.8);

    let points = positions(&attributes).ok_or(MeshletError::NoPositions)?;
    let mut meshlets = Vec::with_capacity(counts.len());
    let mut first_index = 0;
    for (done, &triangle_count) in counts.iter().enumerate() {
        let range = first_index as usize..(first_index + triangle_count * 3) as usize;
        meshlets.push(Meshlet {
            first_index,
            triangle_count,
            ..bounds(&points, &indices[range])?
        });
        first_index += triangle_count * 3;
        if done % REPORT_EACH == 0 {
            progress(0.8 + 0.2 * done as f32 / counts.len() as f32);
        }
    }
    MeshletMesh::from_parts(welded.vertex_count, attributes, indices, meshlets)
}

/// Merges equal vertices and drops vertices without a triangle.
pub(super) fn weld(data: &MeshData) -> (MeshData, Vec<u32>) {
    let streams: Vec<_> = data
        .attributes
        .iter()
        .map(|attribute| {
            let stride = attribute.stride as usize;
            let mut stream =
                VertexStream::new_with_stride::<u8, u8>(attribute.bytes.as_ptr(), stride);
            stream.size = stride;
            stream
        })
        .collect();
    let indices = match &data.indices {
        Some(indices) => indices.clone(),
        None => (0..data.vertex_count).collect(),
    };
    let (count, remap) =
        generate_vertex_remap_multi(data.vertex_count as usize, &streams, Some(&indices));
    let attributes = data
        .attributes
        .iter()
        .map(|attribute| reorder(attribute, &remap, count));
    let welded = MeshData {
        vertex_count: count as u32,
        attributes: attributes.collect(),
        indices: None,
    };
    (welded, remap_index_buffer(Some(&indices), 0, &remap))
}

/// The attribute with its vertices at their new places; drops vertices without a place.
pub(super) fn reorder(
    attribute: &VertexAttribute,
    places: &[u32],
    count: usize,
) -> VertexAttribute {
    let stride = attribute.stride as usize;
    let mut bytes = vec![0; count * stride];
    for (vertex, place) in attribute.bytes.chunks_exact(stride).zip(places) {
        let at = *place as usize * stride;
        if let Some(to) = bytes.get_mut(at..at + stride) {
            to.copy_from_slice(vertex);
        }
    }
    VertexAttribute {
        bytes,
        ..attribute.clone()
    }
}

/// The indices in the order of the meshlets, and the number of triangles per meshlet.
fn cut(
    points: &[Vec3],
    indices: &[u32],
    settings: &MeshletSettings,
) -> Result<(Vec<u32>, Vec<u32>), MeshletError> {
    let meshlets = build_meshlets(
        indices,
        &adapter(points)?,
        settings.max_vertices as usize,
        settings.max_triangles as usize,
        settings.cone_weight,
    );
    let mut ordered = Vec::with_capacity(indices.len());
    let mut counts = Vec::with_capacity(meshlets.len());
    for meshlet in meshlets.iter() {
        let corners = meshlet.triangles.iter();
        ordered.extend(corners.map(|corner| meshlet.vertices[usize::from(*corner)]));
        counts.push((meshlet.triangles.len() / 3) as u32);
    }
    Ok((ordered, counts))
}

fn adapter(points: &[Vec3]) -> Result<VertexDataAdapter<'_>, MeshletError> {
    VertexDataAdapter::new(typed_to_bytes(points), size_of::<Vec3>(), 0)
        .map_err(|error| MeshletError::Content(error.to_string()))
}

/// Sphere and cone of a meshlet. Meshoptimizer finds the center and the axis. How far they must
/// reach is measured here in `f64`, so that rounding never makes them too small.
fn bounds(points: &[Vec3], indices: &[u32]) -> Result<Meshlet, MeshletError> {
    let found = compute_cluster_bounds(indices, &adapter(points)?);
    let center = Vec3::from_array(found.center);
    let point = |index: &u32| points[*index as usize].as_dvec3();
    let distances = indices
        .iter()
        .map(|index| point(index).distance_squared(center.as_dvec3()));
    let radius = distances.fold(0.0, f64::max).sqrt() * SPHERE_SLACK;
    let corners = |triangle: &[u32]| [0, 1, 2].map(|corner| point(&triangle[corner]));
    let normals = indices
        .chunks_exact(3)
        .filter_map(|triangle| facing(corners(triangle)));
    Ok(Meshlet {
        center,
        radius: (radius as f32).next_up(),
        cone: NormalCone::around(Vec3::from_array(found.cone_axis), normals),
        first_index: 0,
        triangle_count: 0,
    })
}

/// The direction that a triangle faces; `None` if it has no area, because it is then never visible.
fn facing([a, b, c]: [DVec3; 3]) -> Option<DVec3> {
    (b - a).cross(c - a).try_normalize()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A bumpy grid of `side` x `side` squares in the xz plane, facing up.
    pub fn grid(side: u32) -> MeshData {
        let points: Vec<_> = (0..=side)
            .flat_map(|z| {
                (0..=side).map(move |x| Vec3::new(x as f32, ((x * z) as f32).sin() * 0.1, z as f32))
            })
            .collect();
        let at = |x, z| z * (side + 1) + x;
        let squares = (0..side).flat_map(|z| (0..side).map(move |x| (x, z)));
        let indices = squares.flat_map(|(x, z)| {
            let [a, b, c, d] = [at(x, z), at(x, z + 1), at(x + 1, z), at(x + 1, z + 1)];
            [a, b, c, c, b, d]
        });
        MeshData::from_positions(&points, Some(indices.collect()))
    }

    pub fn triangles(points: &[Vec3], indices: &[u32]) -> Vec<[[u32; 3]; 3]> {
        let mut triangles: Vec<_> = indices
            .chunks_exact(3)
            .map(|triangle| {
                let mut corners =
                    [0, 1, 2].map(|i| points[triangle[i] as usize].to_array().map(f32::to_bits));
                // The same triangle, whichever corner comes first.
                let min = (0..3).min_by_key(|i| corners[*i]).unwrap_or(0);
                corners.rotate_left(min);
                corners
            })
            .collect();
        triangles.sort_unstable();
        triangles
    }

    #[test]
    fn every_triangle_is_in_one_meshlet_and_keeps_its_face() -> Result<(), MeshletError> {
        let data = grid(40);
        let mesh = MeshletMesh::build(&data, &MeshletSettings::default())?;
        let before = positions(&data.attributes).unwrap_or_default();
        assert_eq!(
            triangles(&before, data.indices.as_deref().unwrap_or_default()),
            triangles(&mesh.positions(), mesh.indices())
        );
        assert!(mesh.meshlets().len() >= 3200 / 124);
        for meshlet in mesh.meshlets() {
            let mut vertices = mesh.meshlet_indices(meshlet).to_vec();
            vertices.sort_unstable();
            vertices.dedup();
            assert!(vertices.len() <= 64 && meshlet.triangle_count <= 124);
            for vertex in vertices {
                let distance = mesh.positions()[vertex as usize].distance(meshlet.center);
                assert!(distance <= meshlet.radius, "{distance} {meshlet:?}");
            }
            assert!(meshlet.cone.cutoff() < 0.6 && meshlet.cone.axis().y > 0.8);
        }
        Ok(())
    }

    #[test]
    fn a_mesh_without_indices_is_welded() -> Result<(), MeshletError> {
        let indexed = grid(10);
        let points = positions(&indexed.attributes).unwrap_or_default();
        let corners: Vec<_> = indexed.indices.iter().flatten().collect();
        let loose: Vec<_> = corners.iter().map(|i| points[**i as usize]).collect();
        let mesh = MeshletMesh::build(
            &MeshData::from_positions(&loose, None),
            &MeshletSettings::default(),
        )?;
        assert_eq!((mesh.vertex_count(), mesh.triangle_count()), (121, 200));
        Ok(())
    }

    #[test]
    fn every_attribute_goes_with_its_vertex() -> Result<(), MeshletError> {
        let mut data = grid(20);
        let ids: Vec<u32> = (0..data.vertex_count).map(|vertex| vertex / 2).collect();
        data.attributes.push(VertexAttribute {
            id: 7,
            format: 3,
            stride: 4,
            bytes: bytemuck::cast_slice(&ids).to_vec(),
        });
        let mesh = MeshletMesh::build(&data, &MeshletSettings::default())?;
        let before = positions(&data.attributes).unwrap_or_default();
        let own = mesh.attributes().iter().find(|attribute| attribute.id == 7);
        let own = own.expect("the attribute is kept");
        assert_eq!((own.format, own.stride), (3, 4));
        let kept: Vec<u32> = bytemuck::pod_collect_to_vec(&own.bytes);
        assert_eq!(kept.len(), mesh.vertex_count() as usize);
        for (point, id) in mesh.positions().iter().zip(kept) {
            let at = before.iter().position(|other| other == point);
            assert_eq!(at.map(|at| at as u32 / 2), Some(id));
        }
        Ok(())
    }
}
