//! The mesh that a set draws, and its levels of detail.

use super::{SetDraws, frame_meshes::FrameMesh};
use crate::cull::{CoarserLevel, DrawShape};
use crate::render::{
    extracted_set::ExtractedSet,
    lods::{RequestLods, SetLodMesh, part_of},
    names::AssetNames,
    offset::{offset_sphere, stretch_of},
    set_meshes::{MeshBuffers, Meshes},
};
use bevy::{prelude::*, render::sync_world::MainEntity};
use core::ops::Range;
use std::sync::Arc;

impl SetDraws {
    /// The mesh of the set at a place; `None` if Bevy has not prepared it.
    pub fn mesh_of(
        &mut self,
        meshes: &Meshes,
        place: usize,
        id: AssetId<Mesh>,
    ) -> Option<FrameMesh> {
        let before = self.before(place).filter(|before| before.mesh_id == id);
        let known = before.map(|before| before.mesh);
        let index = known.or_else(|| self.meshes.find_or_add(meshes, id))?;
        Some(FrameMesh { id, index })
    }

    /// The levels of the set at a place, which draws `full`; `None` if it has none. Levels whose
    /// mesh Bevy has not prepared are left out until then.
    pub fn lods_of(
        &mut self,
        meshes: &Meshes,
        place: usize,
        set: &ExtractedSet,
        full: FrameMesh,
    ) -> Option<RequestLods> {
        let levels = set.lods.as_ref().filter(|levels| !levels.is_empty())?;
        if let Some(before) = self.before(place)
            && (before.entity, before.mesh_id) == (set.entity, full.id)
            && let Some(lods) = &before.lods
            && Arc::ptr_eq(&lods.made_from, levels)
            && lods.offset == set.offset
        {
            return Some(lods.clone());
        }
        let offset = set.offset.as_ref();
        let stretch = stretch_of(offset);
        let (mut coarser, mut places) = (Vec::new(), Vec::new());
        for (number, level) in (1..).zip(&**levels) {
            let found = match &level.mesh {
                SetLodMesh::Indices(part) => {
                    let name = format!("level {number}");
                    let shape = self.part_of(meshes, set.entity, full, &name, part);
                    shape.map(|shape| (full.index, shape))
                }
                SetLodMesh::Mesh(mesh) => {
                    let found = self.meshes.find_or_add(meshes, *mesh);
                    found.and_then(|place| {
                        let fits = meshes.fit_each_other(full.id, *mesh);
                        if !fits {
                            let names = AssetNames(meshes.server.as_deref());
                            self.warnings.refuse_level(set.entity, *mesh, &names);
                        }
                        fits.then(|| (place, self.meshes[place].shape))
                    })
                }
            };
            if let Some((place, shape)) = found {
                let error = level.error * stretch;
                let sphere = level.sphere.map(|own| offset_sphere(offset, own));
                coarser.push(CoarserLevel {
                    shape,
                    error,
                    sphere,
                });
                places.push(place);
            }
        }
        Some(RequestLods {
            made_from: levels.clone(),
            coarser: coarser.into(),
            meshes: places.into(),
            offset: set.offset,
        })
    }

    /// The levels that the mesh of the set at a place holds itself.
    pub fn own_lods_of(
        &self,
        place: usize,
        set: &ExtractedSet,
        mesh: FrameMesh,
    ) -> Option<RequestLods> {
        let own = self.meshes[mesh.index].lods.as_ref()?;
        let Some(behind) = set.offset else {
            return Some(own.clone());
        };
        if let Some(before) = self.before(place)
            && (before.entity, before.mesh_id) == (set.entity, mesh.id)
            && let Some(lods) = &before.lods
            && lods.made_from.is_empty()
            && lods.offset == set.offset
        {
            return Some(lods.clone());
        }
        Some(own.behind(behind))
    }

    /// A part of the entity's mesh, which a level draws. If there is no such part, this logs the
    /// reason once and returns `None`.
    pub fn part_of(
        &mut self,
        meshes: &Meshes,
        entity: MainEntity,
        mesh: FrameMesh,
        level: &str,
        part: &Range<u32>,
    ) -> Option<DrawShape> {
        let MeshBuffers {
            shape,
            indices_per_element,
            ..
        } = self.meshes[mesh.index];
        let found = part_of(shape, indices_per_element, part);
        if let Err(problem) = &found {
            let names = AssetNames(meshes.server.as_deref());
            (self.warnings).refuse_range(entity, mesh.id, level, part, problem, &names);
        }
        found.ok()
    }
}
