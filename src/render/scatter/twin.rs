//! What grows in a tile, on the CPU.

use super::{
    component::Scatter,
    layer::layer_of,
    maps::{ScatterError, map_values},
};
use crate::{
    cull::{
        reference::{ScatterMap, ScatterMaps, scatter},
        scatter::scatter_turns,
    },
    instance::InstanceTransform,
};
use bevy::prelude::*;

/// The farthest tile whose places are whole numbers of steps that fit in an `i32`. Windows end
/// before it.
const MAX_PLANTED_TILE: i32 = 5 << 15;

impl Scatter {
    /// What grows in a tile, as the GPU places it: for collisions, sounds, or a server without a
    /// GPU. In the entity's space, in the order of the set's instances.
    ///
    /// Tile (x, z) reaches from `(x, z)` times [`Self::tile_size`] to `(x + 1, z + 1)` times that.
    /// Positions and scales are the same to the last bit, and so is which candidates grow.
    /// Rotations are the same, too, except that those that lean with the slope
    /// ([`align`](Self::align)) may differ by what [`PackedQuat`](crate::instance::PackedQuat)
    /// rounds, because devices round sums and roots differently.
    ///
    /// It reads the whole maps at each call. They need data on the CPU.
    ///
    /// # Errors
    /// [`ScatterError`] if a field is not valid, a map cannot be read, or there is a
    /// [`rule`](Self::rule).
    pub fn plants(
        &self,
        tile: IVec2,
        images: &Assets<Image>,
    ) -> Result<Vec<InstanceTransform>, ScatterError> {
        self.plants_in([tile], images)
    }

    /// Same as [`Self::plants`], for many tiles: it reads the maps once.
    ///
    /// # Errors
    /// Same as [`Self::plants`].
    pub fn plants_in(
        &self,
        tiles: impl IntoIterator<Item = IVec2>,
        images: &Assets<Image>,
    ) -> Result<Vec<InstanceTransform>, ScatterError> {
        if let Some(problem) = self.problem() {
            return Err(problem);
        }
        if self.rule.is_some() {
            return Err(ScatterError::RuleOnCpu);
        }
        let [density, height, exclusion] = self.maps();
        let read = |(map, handle): (&'static str, Option<&Handle<Image>>)| {
            let Some(handle) = handle else {
                return Ok(None);
            };
            let image = images.get(handle);
            let image = image.ok_or(ScatterError::NotLoaded { map })?;
            Ok(Some((image.size(), map_values(map, image)?)))
        };
        let (density, height, exclusion) = (read(density)?, read(height)?, read(exclusion)?);
        let height_size = height.as_ref().map_or(UVec2::ONE, |(size, _)| *size);
        let layer = layer_of(self, height_size);
        let turns = scatter_turns(self.turn);
        let maps = ScatterMaps {
            density: density.as_ref().map(map_of),
            height: height.as_ref().map(map_of),
            exclusion: exclusion.as_ref().map(map_of),
        };
        let max_tile = IVec2::splat(MAX_PLANTED_TILE);
        let mut plants = Vec::new();
        for tile in tiles {
            if tile.clamp(-max_tile, max_tile) != tile {
                return Err(ScatterError::Field {
                    field: "tile",
                    value: tile.to_string(),
                    wanted: format!("between {} and {MAX_PLANTED_TILE}", -MAX_PLANTED_TILE),
                });
            }
            let found = scatter(&layer, &turns, &maps, tile);
            plants.extend(found.iter().map(|plant| InstanceTransform {
                translation: plant.instance.position.into(),
                rotation: plant.instance.rotation.decode(),
                scale: Vec3::splat(plant.scale),
            }));
        }
        Ok(plants)
    }
}

fn map_of((size, values): &(UVec2, Vec<u16>)) -> ScatterMap<'_> {
    ScatterMap {
        size: *size,
        values,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use bevy::{
        asset::RenderAssetUsages,
        render::render_resource::{Extent3d, TextureDimension, TextureFormat},
    };

    #[test]
    fn what_cannot_be_planted_is_an_error() {
        let images = Assets::<Image>::default();
        let plain = Scatter {
            min_distance: 0.0,
            ..default()
        };
        let all = plain
            .plants(IVec2::new(MAX_PLANTED_TILE, -MAX_PLANTED_TILE), &images)
            .unwrap();
        assert_eq!(all.len(), 1024);
        let said =
            |scatter: &Scatter, tile: IVec2| scatter.plants(tile, &images).unwrap_err().to_string();
        assert!(said(&plain, IVec2::MAX).starts_with("tile is"));
        assert!(said(&plain, IVec2::MIN).starts_with("tile is"));
        let with_map = Scatter {
            exclusion_map: Some(images.reserve_handle()),
            ..default()
        };
        assert_eq!(
            said(&with_map, IVec2::ZERO),
            "the exclusion_map is not loaded: check its path, and that Bevy's feature for its format is on"
        );
        // A server needs no texture.
        let mut images = images;
        let size = Extent3d {
            width: 2,
            height: 2,
            depth_or_array_layers: 1,
        };
        let usage = RenderAssetUsages::MAIN_WORLD;
        let format = TextureFormat::R8Unorm;
        let white = Image::new_fill(size, TextureDimension::D2, &[255], format, usage);
        let with_image = Scatter {
            density_map: Some(images.add(white)),
            ..plain.clone()
        };
        assert!(with_image.plants(IVec2::ZERO, &images).is_ok());
        let with_rule = Scatter {
            rule: Some(Handle::default()),
            ..default()
        };
        assert_eq!(
            with_rule.plants(IVec2::ZERO, &images),
            Err(ScatterError::RuleOnCpu)
        );
    }
}
