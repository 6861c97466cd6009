//! The levels of a request: what the engine culls, and what the draws bind.

use super::SetLod;
use crate::cull::{CoarserLevel, DrawShape};
use crate::render::offset::{offset_sphere, stretch_of};
use bevy::{math::Affine3A, mesh::PrimitiveTopology, render::mesh::RenderMesh};
use core::ops::Range;
use std::sync::Arc;

/// The levels of a request, kept from frame to frame.
#[derive(Clone)]
pub(in crate::render) struct RequestLods {
    /// The levels that they were made from.
    pub made_from: Arc<[SetLod]>,
    /// The engine's levels.
    pub coarser: Arc<[CoarserLevel]>,
    /// Index of each coarser level's mesh in
    /// [`SetDraws::meshes`](super::super::set_draws::SetDraws).
    pub meshes: Arc<[usize]>,
    /// The set's offset, which stretches the errors and moves the spheres.
    pub offset: Option<Affine3A>,
}

impl RequestLods {
    /// Levels that lie in the buffers of the full mesh, which has this place; `None` if there are
    /// none.
    pub fn in_one_mesh(coarser: Vec<CoarserLevel>, place: usize) -> Option<Self> {
        (!coarser.is_empty()).then(|| Self {
            made_from: Arc::default(),
            meshes: coarser.iter().map(|_| place).collect(),
            coarser: coarser.into(),
            offset: None,
        })
    }

    /// The levels behind an offset. They have none yet.
    pub fn behind(&self, offset: Affine3A) -> Self {
        let stretch = stretch_of(Some(&offset));
        let coarser = self.coarser.iter().map(|level| CoarserLevel {
            error: level.error * stretch,
            sphere: level.sphere.map(|own| offset_sphere(Some(&offset), own)),
            ..*level
        });
        Self {
            coarser: coarser.collect(),
            offset: Some(offset),
            ..self.clone()
        }
    }
}

/// Whether one pipeline draws both meshes: same vertex attributes, same topology, both with indices
/// or both without.
pub(in crate::render) fn fit_each_other(full: &RenderMesh, level: &RenderMesh) -> bool {
    full.layout == level.layout
        && full.key_bits.bits() == level.key_bits.bits()
        && full.indexed() == level.indexed()
}

/// Number of indices per triangle, line or point of a list; 1 for strips.
pub(in crate::render) fn indices_per_element(topology: PrimitiveTopology) -> u32 {
    match topology {
        PrimitiveTopology::TriangleList => 3,
        PrimitiveTopology::LineList => 2,
        _ => 1,
    }
}

/// The part of a mesh that has some of its indices, `each` per triangle or line.
///
/// # Errors
/// What is wrong with the range, and what to do about it.
pub(in crate::render) fn part_of(
    whole: DrawShape,
    each: u32,
    part: &Range<u32>,
) -> Result<DrawShape, String> {
    let DrawShape::Indexed {
        index_count,
        first_index,
        base_vertex,
    } = whole
    else {
        return Err("the mesh has no indices. Insert some, or give the level a mesh".to_owned());
    };
    if part.start >= part.end {
        return Err("the range has no index. Let it end behind its start, or leave it out".into());
    }
    if part.end > index_count {
        return Err(format!(
            "the mesh has {index_count} indices. Let the range end at {index_count} at most"
        ));
    }
    let len = part.end - part.start;
    if !len.is_multiple_of(each) {
        return Err(format!(
            "the range has {len} indices, which is no multiple of {each}. Let it have {each} indices per {}",
            if each == 3 { "triangle" } else { "line" }
        ));
    }
    Ok(DrawShape::Indexed {
        index_count: len,
        first_index: first_index + part.start,
        base_vertex,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_mesh_has_whole_triangles_within_it() {
        let shape = |first_index, index_count| DrawShape::Indexed {
            index_count,
            first_index,
            base_vertex: -7,
        };
        let whole = shape(100, 36);
        for (each, range, expected) in [
            (3, 0..36, Ok(shape(100, 36))),
            (3, 30..36, Ok(shape(130, 6))),
            (3, 1..4, Ok(shape(101, 3))),
            (1, 5..7, Ok(shape(105, 2))),
            (3, 0..37, Err("36 indices")),
            (3, 36..39, Err("36 indices")),
            (3, 0..u32::MAX, Err("36 indices")),
            (3, 0..35, Err("35 indices, which is no multiple of 3")),
            (2, 0..3, Err("2 indices per line")),
            (3, 12..12, Err("no index")),
            (3, Range { start: 12, end: 6 }, Err("no index")),
        ] {
            match (part_of(whole, each, &range), expected) {
                (Ok(part), Ok(expected)) => assert_eq!(part, expected),
                (Err(problem), Err(named)) => assert!(problem.contains(named), "{problem}"),
                (part, _) => panic!("{range:?}: {part:?}"),
            }
        }
        let bare = DrawShape::NonIndexed {
            vertex_count: 36,
            first_vertex: 0,
        };
        let problem = part_of(bare, 3, &(0..3)).err().unwrap_or_default();
        assert!(problem.contains("no indices"), "{problem}");
    }
}
