//! The meshes that sets draw, and their levels of detail.

use super::SetDraws;
use crate::cull::{CoarserLevel, DrawShape};
use crate::render::{
    lods::{RequestLods, SetLod, SetLodMesh, part_of},
    names::AssetNames,
    offset::{offset_sphere, stretch_of},
    set_meshes::{MeshBuffers, Meshes},
};
use bevy::{math::Affine3A, prelude::*, render::sync_world::MainEntity};
use core::ops::Range;
use std::sync::Arc;

/// Up to this number of meshes are kept, however few of them Bevy still has.
const MANY_MESHES: usize = 256;

impl SetDraws {
    /// Index of the mesh of the set at a place; `None` if Bevy has not prepared it.
    pub fn place_of(&mut self, meshes: &Meshes, place: usize, id: AssetId<Mesh>) -> Option<usize> {
        if let Some(before) = self.before(place)
            && before.mesh_id == id
        {
            return Some(before.mesh);
        }
        self.find_or_add(meshes, id)
    }

    fn find_or_add(&mut self, meshes: &Meshes, id: AssetId<Mesh>) -> Option<usize> {
        if let Some(place) = self.mesh_places.get(&id) {
            return Some(*place);
        }
        let place = self.meshes.len();
        let Some(buffers) = meshes.buffers(id, place) else {
            self.lacks_meshes = true;
            return None;
        };
        self.meshes.push(buffers);
        self.mesh_places.insert(id, place);
        Some(place)
    }

    /// Whether Bevy still has all meshes that entities draw, where it had them. Meshes that none
    /// draws may go. `is_there` says whether the entity at a place of the list of sets has not
    /// gone.
    pub fn keep_meshes(&mut self, meshes: &Meshes, is_there: impl Fn(usize) -> bool) -> bool {
        let are_mostly_gone = self.meshes.len() > MANY_MESHES.max(2 * self.mesh_places.len());
        if self.lacks_meshes || are_mostly_gone {
            return false;
        }
        let mut gone = Vec::new();
        for (id, place) in &self.mesh_places {
            match meshes.buffers(*id, *place) {
                Some(now) if now.is_same(&self.meshes[*place]) => {}
                Some(_) => return false,
                None => gone.push((*id, *place)),
            }
        }
        if gone.is_empty() {
            return true;
        }
        let mut is_drawn = vec![false; self.meshes.len()];
        let drawn = self.drawn.iter().filter(|drawn| !drawn.is_gone);
        for drawn in drawn.filter(|drawn| is_there(drawn.place)) {
            let levels = drawn.lods.iter().flat_map(|lods| lods.meshes.iter());
            for mesh in levels.chain([&drawn.mesh]) {
                is_drawn[*mesh] = true;
            }
        }
        if gone.iter().any(|(_, place)| is_drawn[*place]) {
            return false;
        }
        for (id, _) in gone {
            self.mesh_places.remove(&id);
        }
        true
    }

    /// The levels of an entity at a place, whose mesh has the place `full`; `None` if it has none.
    /// Levels whose mesh Bevy has not prepared are left out until then.
    pub fn lods_of(
        &mut self,
        meshes: &Meshes,
        (place, entity): (usize, MainEntity),
        full: (AssetId<Mesh>, usize),
        (levels, offset): (&Arc<[SetLod]>, Option<Affine3A>),
    ) -> Option<RequestLods> {
        if levels.is_empty() {
            return None;
        }
        if let Some(before) = self.before(place)
            && (before.entity, before.mesh_id) == (entity, full.0)
            && let Some(lods) = &before.lods
            && Arc::ptr_eq(&lods.made_from, levels)
            && lods.offset == offset
        {
            return Some(lods.clone());
        }
        let stretch = stretch_of(offset.as_ref());
        let (mut coarser, mut places) = (Vec::new(), Vec::new());
        for (number, level) in (1..).zip(&**levels) {
            let found = match &level.mesh {
                SetLodMesh::Indices(part) => {
                    let name = format!("level {number}");
                    let shape = self.part_of(meshes, entity, full, (&name, part));
                    shape.map(|shape| (full.1, shape))
                }
                SetLodMesh::Mesh(mesh) => self.find_or_add(meshes, *mesh).and_then(|place| {
                    let fits = meshes.fit_each_other(full.0, *mesh);
                    if !fits {
                        let names = AssetNames(meshes.server.as_deref());
                        self.refuse_level(entity, *mesh, &names);
                    }
                    fits.then(|| (place, self.meshes[place].shape))
                }),
            };
            if let Some((place, shape)) = found {
                let error = level.error * stretch;
                let sphere = level.sphere.map(|own| offset_sphere(offset.as_ref(), own));
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
            offset,
        })
    }

    /// The levels that the mesh of an entity at a place holds itself, if its place is `mesh`.
    pub fn own_lods_of(
        &self,
        (place, entity): (usize, MainEntity),
        (mesh_id, mesh): (AssetId<Mesh>, usize),
        offset: Option<Affine3A>,
    ) -> Option<RequestLods> {
        let own = self.meshes[mesh].lods.as_ref()?;
        let Some(behind) = offset else {
            return Some(own.clone());
        };
        if let Some(before) = self.before(place)
            && (before.entity, before.mesh_id) == (entity, mesh_id)
            && let Some(lods) = &before.lods
            && lods.made_from.is_empty()
            && lods.offset == offset
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
        (mesh, place): (AssetId<Mesh>, usize),
        (level, part): (&str, &Range<u32>),
    ) -> Option<DrawShape> {
        let MeshBuffers {
            shape,
            indices_per_element,
            ..
        } = self.meshes[place];
        let found = part_of(shape, indices_per_element, part);
        if let Err(problem) = &found
            && self.told_ranges.is_new((entity, part.clone()))
        {
            error!(
                "InstanceLods on {}: {level} is ignored: its indices are {part:?} of {}, and {problem}",
                entity.id(),
                AssetNames(meshes.server.as_deref()).of(mesh)
            );
        }
        found.ok()
    }
}
