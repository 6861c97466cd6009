//! Twin of `shaders/scatter`: what grows in the cells of a tile.
//!
//! Everything is equal to the last bit, except rotations that lean with a slope: they are made of
//! sums of products and of square roots, which devices round differently, so that a code of a
//! rotation may differ by a step.

use crate::{
    cull::layout::{
        BLOCK, SCATTER_HAS_DENSITY, SCATTER_HAS_EXCLUSION, SCATTER_HAS_HEIGHT, SCATTER_SIDE,
        SCATTER_STEPS, SCATTER_TURNS, ScatterLayer, ScatterTurn,
    },
    instance::{PackedInstance, PackedQuat},
};
use glam::{IVec2, Quat, UVec2, Vec3};

/// A map: its values, row after row, with 16 bits each.
#[derive(Clone, Copy, Debug)]
pub struct ScatterMap<'a> {
    /// Width and height, of at least 1.
    pub size: UVec2,
    /// As many values as the map has texels.
    pub values: &'a [u16],
}

/// The maps of a layer. Those that [`ScatterLayer::flags`] names are there.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScatterMaps<'a> {
    /// The density.
    pub density: Option<ScatterMap<'a>>,
    /// The height.
    pub height: Option<ScatterMap<'a>>,
    /// What is excluded.
    pub exclusion: Option<ScatterMap<'a>>,
}

/// What grows in a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plant {
    /// The cell's number in its tile, in Z-order.
    pub cell: u32,
    /// Position and rotation.
    pub instance: PackedInstance,
    /// The scale.
    pub scale: f32,
}

/// The value of a texel as the kernel reads it. What is not a number is 0.
#[must_use]
pub fn texel_value(value: f32) -> u16 {
    let value = if value > 0.0 { value.min(1.0) } else { 0.0 };
    (value * 65535.0).round_ties_even() as u16
}

/// What grows in a tile, in the order of the instances.
#[must_use]
pub fn scatter(
    layer: &ScatterLayer,
    turns: &[ScatterTurn],
    maps: &ScatterMaps<'_>,
    tile: IVec2,
) -> Vec<Plant> {
    let cells = (0..BLOCK).map(|index| (index, cell_of(tile, index)));
    cells
        .filter_map(|(index, cell)| plant_of(layer, turns, maps, index, cell))
        .collect()
}

/// Every second bit of a number of 10 bits, from the lowest on.
fn even_bits(bits: u32) -> u32 {
    (0..5).fold(0, |even, bit| even | ((bits >> (2 * bit)) & 1) << bit)
}

fn cell_of(tile: IVec2, index: u32) -> IVec2 {
    let inside = UVec2::new(even_bits(index), even_bits(index >> 1));
    tile * SCATTER_SIDE as i32 + inside.as_ivec2()
}

fn mixed(value: u32) -> u32 {
    let h = (value ^ (value >> 16)).wrapping_mul(0x7feb_352d);
    let h = (h ^ (h >> 15)).wrapping_mul(0x846c_a68b);
    h ^ (h >> 16)
}

fn hash_of(seed: u32, cell: IVec2) -> u32 {
    mixed(cell.x as u32 ^ mixed(cell.y as u32 ^ mixed(seed.wrapping_add(1))))
}

fn place_in_cell(jitter: u32, hash: u32) -> IVec2 {
    let margin = (SCATTER_STEPS - jitter) / 2;
    let random = UVec2::new(hash & 255, (hash >> 8) & 255);
    let part: UVec2 = (random * jitter) >> 8u32;
    (part + margin).as_ivec2()
}

fn has_room(layer: &ScatterLayer, cell: IVec2, hash: u32) -> bool {
    let place = place_in_cell(layer.jitter, hash);
    let takes_room = |k: i32| {
        let aside = IVec2::new(k % 3, k / 3) - 1;
        let other = hash_of(layer.seed, cell + aside);
        let apart = aside * SCATTER_STEPS as i32 + place_in_cell(layer.jitter, other) - place;
        let is_near = (apart.length_squared() as u32) < layer.min_apart;
        let is_first = other > hash || (other == hash && k > 4);
        is_near && is_first && k != 4
    };
    layer.min_apart == 0 || !(0..9).any(takes_room)
}

fn product_high(a: u32, b: u32) -> u32 {
    ((u64::from(a) * u64::from(b)) >> 32) as u32
}

fn shifted_product(a: u32, b: u32, shift: u32) -> u32 {
    ((u64::from(a) * u64::from(b)) >> shift) as u32
}

struct Corners {
    values: [u32; 4],
    part: UVec2,
}

fn corners_of(map: &ScatterMap<'_>, place: UVec2) -> Corners {
    let at = UVec2::new(
        product_high(place.x, map.size.x * 256),
        product_high(place.y, map.size.y * 256),
    );
    let from_center = at.as_ivec2() - 128;
    let last = map.size.as_ivec2() - 1;
    let low: IVec2 = from_center >> 8;
    let [a, b] = [low, low + 1].map(|at| at.clamp(IVec2::ZERO, last).as_uvec2());
    let texel = |x: u32, z: u32| {
        let value = map.values.get((z * map.size.x + x) as usize);
        value.copied().map_or(0, u32::from)
    };
    Corners {
        values: [
            texel(a.x, a.y),
            texel(b.x, a.y),
            texel(a.x, b.y),
            texel(b.x, b.y),
        ],
        part: (from_center & 255).as_uvec2(),
    }
}

fn blend(corners: &Corners) -> u32 {
    let (far, near) = (corners.part, 256 - corners.part);
    let [a, b, c, d] = corners.values;
    (a * near.x + b * far.x) * near.y + (c * near.x + d * far.x) * far.y
}

fn gradient_of(layer: &ScatterLayer, corners: &Corners) -> IVec2 {
    let far = corners.part.as_ivec2();
    let near = 256 - far;
    let [a, b, c, d] = corners.values.map(|value| value as i32);
    let slope = |rise: i32, gradient: f32| {
        let slope = (rise as f32 * gradient).clamp(-32767.0, 32767.0);
        slope.round_ties_even() as i32
    };
    IVec2::new(
        slope((b - a) * near.y + (d - c) * far.y, layer.gradient_x),
        slope((c - a) * near.x + (d - b) * far.x, layer.gradient_z),
    )
}

fn leaning(layer: &ScatterLayer, turn: ScatterTurn, gradient: IVec2) -> PackedQuat {
    let slope = gradient.as_vec2() * layer.align;
    let w = (1.0 + slope.length_squared()).sqrt() + 1.0;
    let (x, z) = (-slope.y, slope.x);
    let (s, c) = (turn.half_sin, turn.half_cos);
    PackedQuat::encode(Quat::from_xyzw(c * x - s * z, w * s, c * z + s * x, w * c))
}

fn plant_of(
    layer: &ScatterLayer,
    turns: &[ScatterTurn],
    maps: &ScatterMaps<'_>,
    index: u32,
    cell: IVec2,
) -> Option<Plant> {
    let hash = hash_of(layer.seed, cell);
    let more = mixed(hash.wrapping_add(0x9e37_79b9));
    let step = cell * SCATTER_STEPS as i32 + place_in_cell(layer.jitter, hash);
    let in_area = UVec2::new(
        step.x.wrapping_sub(layer.first_x) as u32,
        step.y.wrapping_sub(layer.first_z) as u32,
    );
    if layer.flags != 0 && (in_area.x >= layer.len_x || in_area.y >= layer.len_z) {
        return None;
    }
    let place = UVec2::new(
        shifted_product(in_area.x, layer.factor_x, layer.shift_x),
        shifted_product(in_area.y, layer.factor_z, layer.shift_z),
    );
    let has = |flag: u32| layer.flags & flag != 0;

    let mut share = layer.density * 2;
    if let Some(map) = maps.density.filter(|_| has(SCATTER_HAS_DENSITY)) {
        let density = blend(&corners_of(&map, place)) >> 16;
        share = ((density + (density >> 15)) * layer.density) >> 15;
    }
    if let Some(map) = maps.exclusion.filter(|_| has(SCATTER_HAS_EXCLUSION))
        && blend(&corners_of(&map, place)) >= 0x8000_0000
    {
        return None;
    }
    let (mut height, mut gradient) = (0, IVec2::ZERO);
    if let Some(map) = maps.height.filter(|_| has(SCATTER_HAS_HEIGHT)) {
        let corners = corners_of(&map, place);
        height = blend(&corners) >> 8;
        gradient = gradient_of(layer, &corners);
        let steep = gradient.length_squared() as u32;
        let grows = (layer.min_height..=layer.max_height).contains(&height)
            && (layer.min_slope..=layer.max_slope).contains(&steep);
        if !grows {
            return None;
        }
    }
    if (more & 0xffff) >= share || !has_room(layer, cell, hash) {
        return None;
    }

    let y = ((height >> layer.height_shift) as i32).wrapping_add(layer.height_first);
    let position = Vec3::new(
        step.x as f32 * layer.step,
        y as f32 * layer.height_step,
        step.y as f32 * layer.step,
    );
    let turn = turns[((hash >> 16) % SCATTER_TURNS) as usize];
    let rotation = match layer.align > 0.0 && gradient != IVec2::ZERO {
        true => leaning(layer, turn, gradient),
        false => PackedQuat::from_bits(turn.rotation),
    };
    let scale = layer.min_scale + (((65536 - layer.min_scale) * (more >> 16)) >> 16);
    Some(Plant {
        cell: index,
        instance: PackedInstance {
            position: position.to_array(),
            rotation,
        },
        scale: scale as f32 * layer.scale_step,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn layer() -> ScatterLayer {
        ScatterLayer {
            step: 1.0 / 256.0,
            seed: 3,
            jitter: 256,
            density: 1 << 15,
            shift_x: 1,
            shift_z: 1,
            max_height: u32::MAX,
            max_slope: u32::MAX,
            min_scale: 1 << 16,
            scale_step: 1.0 / 65536.0,
            ..ScatterLayer::default()
        }
    }

    fn turns() -> Vec<ScatterTurn> {
        vec![ScatterTurn::default(); SCATTER_TURNS as usize]
    }

    #[test]
    fn the_cells_of_a_tile_are_there_once_and_words_are_neighbors() {
        let cells: HashSet<_> = (0..BLOCK)
            .map(|at| cell_of(IVec2::new(-1, 2), at))
            .collect();
        assert_eq!(cells.len(), BLOCK as usize);
        let side = SCATTER_SIDE as i32;
        let low = IVec2::new(-side, 2 * side);
        assert!(cells.iter().all(|cell| cell.cmpge(low).all()));
        assert!(cells.iter().all(|cell| cell.cmplt(low + side).all()));
        for word in 0..BLOCK / 32 {
            let in_word = |at| cell_of(IVec2::ZERO, word * 32 + at);
            let high = (0..32).map(in_word).reduce(IVec2::max);
            let low = (0..32).map(in_word).reduce(IVec2::min);
            assert_eq!(high.zip(low).map(|(a, b)| a - b), Some(IVec2::new(7, 3)));
        }
    }

    #[test]
    fn candidates_keep_their_distance_and_stand_in_their_cells() {
        let tile = |min_apart: u32| {
            let layer = ScatterLayer {
                min_apart,
                ..layer()
            };
            let tiles = [IVec2::new(-1, 0), IVec2::ZERO];
            let plants = tiles.map(|tile| scatter(&layer, &turns(), &ScatterMaps::default(), tile));
            plants.concat()
        };
        let all = tile(0);
        assert_eq!(all.len(), 2 * BLOCK as usize);
        for (plant, index) in all.iter().zip((0..BLOCK).cycle()) {
            let [x, _, z] = plant.instance.position;
            let tile = IVec2::new(if x < 0.0 { -1 } else { 0 }, 0);
            let cell = cell_of(tile, index);
            assert_eq!(IVec2::new(x.floor() as i32, z.floor() as i32), cell);
        }
        let near = |plants: &[Plant], steps: f32| {
            let at = |plant: &Plant| Vec3::from(plant.instance.position);
            let mut pairs = 0;
            for (index, one) in plants.iter().enumerate() {
                let others = &plants[index + 1..];
                let is_near = |other: &&Plant| at(one).distance(at(other)) * 256.0 < steps;
                pairs += others.iter().filter(is_near).count();
            }
            pairs
        };
        assert!(near(&all, 180.0) > 300, "{}", near(&all, 180.0));
        // Of two that are near, the first one stays, if nothing takes its room.
        let apart = tile(180 * 180);
        assert_eq!(near(&apart, 180.0), 0);
        assert!(apart.len() > BLOCK as usize, "{}", apart.len());
        assert!(apart.iter().all(|plant| all.contains(plant)));
    }

    #[test]
    fn texels_have_their_values_at_their_centers() {
        let values = [0, 65535, 65535, 0];
        let map = ScatterMap {
            size: UVec2::new(2, 2),
            values: &values,
        };
        let at = |x: f64, z: f64| {
            let part = |share: f64| (share * 4_294_967_296.0) as u32;
            blend(&corners_of(&map, UVec2::new(part(x), part(z)))) >> 16
        };
        assert_eq!([at(0.25, 0.25), at(0.75, 0.25)], [0, 65535]);
        // The border goes on outside the centers.
        assert_eq!([at(0.0, 0.0), at(0.999, 0.0)], [0, 65535]);
        assert_eq!(at(0.5, 0.25), 32767);
        assert_eq!(at(0.5, 0.5), 32767);
        assert_eq!(texel_value(f32::NAN), 0);
        assert_eq!(texel_value(-1.0), 0);
        assert_eq!(texel_value(2.0), 65535);
        // Eight bits, as a texture gives them.
        let exact = |n: u8| texel_value(f32::from(n) / 255.0) == u16::from(n) * 257;
        assert!((0..=255).all(exact));
    }
}
