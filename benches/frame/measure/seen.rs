//! How many instances are kept for each that is really seen, by item buffers: pictures in which
//! every pixel has the number of its instance.

use super::{Case, Occlusion, Peer, SETTLED, Stage};
use crate::items::{BITS, Items, item_of};
use anyhow::{Result, anyhow, ensure};
use bevy::{
    camera::Hdr,
    core_pipeline::tonemapping::{DebandDither, Tonemapping},
    light::Skybox,
    platform::collections::{HashMap, HashSet},
    post_process::bloom::Bloom,
    prelude::*,
};
use bevy_gpu_culling::{instance::InstanceSet, prelude::GpuInstances};

/// Frames after which the counters are of the pictures' frames.
const COUNTED: u32 = 12;

/// Whether the camera hides instances, so that it matters how many are seen.
pub fn is_counted(case: &Case) -> bool {
    let hides = matches!(case.occlusion, Some(Occlusion::On | Occlusion::Prepass));
    hides && case.peer == Peer::Sets
}

impl Stage<'_> {
    /// Number of instances that are kept in the last view, over the number of those that own a
    /// pixel, without antialiasing; `None` for a case that hides nothing. Nothing else can be
    /// measured afterwards.
    pub(super) fn kept_over_seen(&mut self) -> Result<Option<f64>> {
        if !is_counted(self.case) {
            return Ok(None);
        }
        let sets = self.show_numbers()?;
        for _ in 0..COUNTED {
            self.still_frame()?;
        }
        let kept = self.visible();
        let mut seen = 0;
        // Set by set, because a color has not room for the numbers of all.
        for materials in sets.values() {
            let mut numbers = self.numbers(materials, 0)?;
            let high = self.numbers(materials, BITS)?;
            for (number, high) in numbers.iter_mut().zip(high) {
                *number |= high << BITS;
            }
            numbers.retain(|number| *number > 0);
            seen += numbers.into_iter().collect::<HashSet<_>>().len();
            self.set_numbers(materials, Items { first: 0, shift: 0 });
        }
        ensure!(seen > 0, "no instance owns a pixel");
        Ok(Some(kept as f64 / seen as f64))
    }

    /// Gives each set a material that shows numbers, and everything else black. Returns the
    /// materials of each set's entities.
    fn show_numbers(&mut self) -> Result<HashMap<AssetId<InstanceSet>, Vec<Handle<Items>>>> {
        let world = self.app.world_mut();
        let mut camera = world.entity_mut(self.camera);
        camera.remove::<(Bloom, DistanceFog, Hdr, Skybox)>();
        camera.insert((Msaa::Off, Tonemapping::None, DebandDither::Disabled));
        let black = StandardMaterial {
            base_color: Color::BLACK,
            unlit: true,
            ..default()
        };
        let black = world.resource_mut::<Assets<StandardMaterial>>().add(black);
        let mut drawn = world
            .query_filtered::<(Entity, Option<&GpuInstances>), With<MeshMaterial3d<StandardMaterial>>>();
        let drawn: Vec<_> = drawn
            .iter(world)
            .map(|(entity, set)| (entity, set.map(|set| set.0.id())))
            .collect();
        let mut sets: HashMap<_, Vec<_>> = HashMap::default();
        for (entity, set) in drawn {
            let Some(set) = set else {
                world
                    .entity_mut(entity)
                    .insert(MeshMaterial3d(black.clone()));
                continue;
            };
            let items = Items { first: 0, shift: 0 };
            let items = world.resource_mut::<Assets<Items>>().add(items);
            sets.entry(set).or_default().push(items.clone());
            world
                .entity_mut(entity)
                .remove::<MeshMaterial3d<StandardMaterial>>()
                .insert(MeshMaterial3d(items));
        }
        self.wait_for_pipelines()?;
        Ok(sets)
    }

    fn set_numbers(&mut self, materials: &[Handle<Items>], items: Items) {
        let mut assets = self.app.world_mut().resource_mut::<Assets<Items>>();
        for material in materials {
            let _ = assets.insert(material, items.clone());
        }
    }

    /// The bits of each pixel's number from `shift` on, of instances with one of `materials`.
    /// Numbers begin at 1; 0 is everything else.
    fn numbers(&mut self, materials: &[Handle<Items>], shift: u32) -> Result<Vec<u32>> {
        self.set_numbers(materials, Items { first: 1, shift });
        for _ in 0..SETTLED {
            self.still_frame()?;
        }
        let picture = self.picture()?;
        let number = |pixel: &image::Rgb<u8>| match item_of(pixel.0) {
            Ok(item) => Ok(item.unwrap_or(0)),
            Err(reason) => Err(anyhow!("the item buffer has a foreign color: {reason}")),
        };
        picture.pixels().map(number).collect()
    }
}
