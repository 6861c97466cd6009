//! Who asks for photographs, and what was photographed.

use super::{
    atlas::ImpostorAtlas,
    cards::ImpostorAtlas3d,
    component::ImpostorBaked,
    error::ImpostorError,
    parts::{Answered, AskingItem, BakeKey, Part, PartItem, parts_of},
};
use bevy::{platform::collections::HashMap, prelude::*};

/// Photographs that are to be taken.
pub(super) struct Job {
    pub key: BakeKey,
    pub parts: Vec<Part>,
}

/// What was photographed, and what will be.
#[derive(Resource, Default)]
pub(super) struct ImpostorBakes {
    pub waiting: Vec<Job>,
    /// The job of which photographs are being taken.
    pub in_work: Option<BakeKey>,
    baked: Vec<(BakeKey, AssetId<ImpostorAtlas>)>,
    /// Results since the entities got some. Their handles keep new atlases until then.
    results: Vec<(BakeKey, BakeResult)>,
}

pub(super) type BakeResult = Result<Handle<ImpostorAtlas>, ImpostorError>;

impl ImpostorBakes {
    /// Ends a job.
    pub fn finish(&mut self, key: BakeKey, result: BakeResult) {
        self.in_work = None;
        if let Ok(atlas) = &result {
            self.baked.push((key.clone(), atlas.id()));
        }
        self.results.push((key, result));
    }

    fn has(&self, key: &BakeKey) -> bool {
        self.in_work.as_ref() == Some(key) || self.waiting.iter().any(|job| job.key == *key)
    }

    /// What is known of photographs; `None` if they are still to be taken.
    fn result_of(&self, key: &BakeKey, atlases: &mut Assets<ImpostorAtlas>) -> Option<BakeResult> {
        if let Some((_, result)) = self.results.iter().find(|(known, _)| known == key) {
            return Some(result.clone());
        }
        let (_, id) = self.baked.iter().find(|(known, _)| known == key)?;
        atlases.get_strong_handle(*id).map(Ok)
    }
}

/// Forgets what was photographed of meshes and materials that have changed since.
pub(super) fn forget_changed(
    mut bakes: ResMut<ImpostorBakes>,
    mut meshes: MessageReader<AssetEvent<Mesh>>,
    mut materials: MessageReader<AssetEvent<StandardMaterial>>,
) {
    let meshes = meshes.read().filter_map(|event| match event {
        AssetEvent::Modified { id } | AssetEvent::Removed { id } => Some(id.untyped()),
        _ => None,
    });
    let materials = materials.read().filter_map(|event| match event {
        AssetEvent::Modified { id } | AssetEvent::Removed { id } => Some(id.untyped()),
        _ => None,
    });
    for id in meshes.chain(materials) {
        bakes.baked.retain(|(key, _)| !key.is_of(id));
    }
}

/// Frames in which an entity may get its material after its mesh.
const MATERIAL_PATIENCE: u32 = 30;

/// Frames in which entities have had a mesh without a material.
#[derive(Default)]
pub(super) struct Waiting(HashMap<Entity, u32>);

impl Waiting {
    /// Counts a frame. Returns whether there were too many.
    fn is_over(&mut self, entity: Entity) -> bool {
        let frames = self.0.entry(entity).or_default();
        *frames += 1;
        *frames > MATERIAL_PATIENCE
    }
}

/// Gives entities what was photographed, and takes their wishes.
pub(super) fn ask_for_bakes(
    mut commands: Commands,
    asking: Query<AskingItem>,
    all: Query<PartItem>,
    mut atlases: ResMut<Assets<ImpostorAtlas>>,
    mut bakes: ResMut<ImpostorBakes>,
    mut without_material: Local<Waiting>,
) {
    for item in &asking {
        let entity = item.entity;
        if item.is_answered && !item.bake.is_changed() {
            continue;
        }
        let result = match parts_of(&item, &all) {
            None => continue,
            Some(Err(ImpostorError::Material)) if !without_material.is_over(entity) => continue,
            Some(Err(error)) => Err(error),
            Some(Ok(parts)) => match item.bake.grid() {
                Err(error) => Err(error),
                Ok(grid) => {
                    let key = BakeKey::of(&parts, grid);
                    let Some(result) = bakes.result_of(&key, &mut atlases) else {
                        if !bakes.has(&key) {
                            bakes.waiting.push(Job { key, parts });
                        }
                        continue;
                    };
                    result
                }
            },
        };
        without_material.0.remove(&entity);
        let mut commands = commands.entity(entity);
        match &result {
            Ok(atlas) => {
                commands.try_insert(ImpostorAtlas3d {
                    atlas: atlas.clone(),
                    below_pixels: item.bake.below_pixels,
                });
            }
            Err(error) => error!("BakeImpostor on {entity}: no impostor: {error}"),
        }
        commands.try_insert(Answered);
        commands.trigger(|entity| ImpostorBaked { entity, result });
    }
    bakes.results.clear();
}
