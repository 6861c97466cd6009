//! The places of the orbs: a galaxy of arms, belt, core, streams and halo. Pure data, the same for
//! the same seed.
//!
//! Places are made in a disc of radius 1 and then scaled to [`radius`], which grows with the cube
//! root of the count: a larger field is wider, not denser.

use bevy::{
    math::{FloatOrd, ops},
    prelude::*,
};
use bevy_gpu_culling::instance::{InstanceError, InstanceSet, PackedInstance};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f32::consts::{PI, TAU};
use std::{sync::Mutex, thread};

/// Mesh of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A smooth ball.
    Orb,
    /// A ball with bumps and flat faces.
    Rock,
    /// A rod with round ends, along y.
    Capsule,
    /// A torus around y.
    Ring,
}

/// Material of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Pale blue lacquer.
    Ice,
    /// Violet metal.
    Amethyst,
    /// Glowing amber.
    Ember,
    /// Glowing cyan.
    Plasma,
    /// Dark stone.
    Basalt,
    /// Rough gold.
    Gold,
    /// Polished copper.
    Copper,
    /// Sea-green lacquer.
    Jade,
    /// Near mirror.
    Chrome,
}

/// Orbs of one mesh and one material: one set.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    pub shape: Shape,
    pub finish: Finish,
    /// Its number of orbs per thousand.
    share: u32,
    place: Place,
    /// Smallest and largest scale; most orbs are small. `None` if all have scale 1.
    sizes: Option<(f32, f32)>,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    /// A dense ball in the middle.
    Core,
    /// Three spiral arms from the core to the rim; a share of 1 keeps to their middle line.
    Arms { focus: f32 },
    /// A tilted ring through the arms.
    Belt,
    /// Curved strands from the core, above and below the disc.
    Streams { width: f32 },
    /// Thinly everywhere.
    Halo,
}

/// All layers. Their shares add up to a thousand.
#[rustfmt::skip]
pub const LAYERS: [Layer; 9] = [
    layer(Shape::Orb,     Finish::Ice,      240, Place::Arms { focus: 1.0 },    Some((0.4, 2.2))),
    layer(Shape::Orb,     Finish::Amethyst, 140, Place::Arms { focus: 0.6 },    Some((0.4, 1.8))),
    layer(Shape::Orb,     Finish::Ember,     60, Place::Core,                   Some((0.3, 1.0))),
    layer(Shape::Orb,     Finish::Plasma,    40, Place::Streams { width: 1.6 }, Some((0.2, 0.5))),
    layer(Shape::Rock,    Finish::Basalt,   250, Place::Belt,                   Some((0.35, 2.2))),
    layer(Shape::Rock,    Finish::Gold,      80, Place::Belt,                   Some((0.3, 1.3))),
    layer(Shape::Capsule, Finish::Copper,   100, Place::Streams { width: 1.0 }, None),
    layer(Shape::Capsule, Finish::Jade,      50, Place::Streams { width: 1.8 }, None),
    layer(Shape::Ring,    Finish::Chrome,    40, Place::Halo,                   None),
];

const fn layer(
    shape: Shape,
    finish: Finish,
    share: u32,
    place: Place,
    sizes: Option<(f32, f32)>,
) -> Layer {
    Layer {
        shape,
        finish,
        share,
        place,
        sizes,
    }
}

/// Strands that leave the core.
const STREAMS: usize = 9;
const ARMS: u32 = 3;
/// Radius at which arms and streams begin.
const INNER: f32 = 0.14;
/// Radius of the clearing around the camera's start, so that no orb covers the first view.
const CLEARING: f32 = 6.0;

/// The set of a layer, sorted along the Morton curve.
pub struct LayerSet {
    pub layer: Layer,
    pub set: InstanceSet,
}

impl LayerSet {
    /// Its orbs, or some of them.
    pub fn take(&self, indices: &[usize]) -> Result<Self, InstanceError> {
        Ok(Self {
            layer: self.layer,
            set: take(&self.set, indices)?,
        })
    }
}

/// The instances of a set with these indices, in this order.
fn take(set: &InstanceSet, indices: &[usize]) -> Result<InstanceSet, InstanceError> {
    let packed = indices.iter().map(|at| set.packed()[*at]).collect();
    let taken = InstanceSet::from_packed(packed)?;
    match set.scales() {
        Some(scales) => taken.with_scales(indices.iter().map(|at| scales[*at]).collect()),
        None => Ok(taken),
    }
}

/// The set with its instances in the order of their distance from `eye`, in its own space.
pub fn nearest_first(set: &InstanceSet, eye: Vec3) -> Result<InstanceSet, InstanceError> {
    let mut indices: Vec<_> = (0..set.len()).collect();
    indices.sort_by_cached_key(|at| {
        FloatOrd(Vec3::from(set.packed()[*at].position).distance_squared(eye))
    });
    take(set, &indices)
}

/// Radius of a field of `count` orbs, in world units.
pub fn radius(count: u32) -> f32 {
    3.0 * ops::cbrt(count.max(1000) as f32)
}

/// The camera's first place in the unit disc, and the place that it looks at.
pub const EYE: Vec3 = Vec3::new(0.46, 0.11, 0.34);
pub const TARGET: Vec3 = Vec3::new(0.125, 0.015, -0.35);

/// Orbs per piece of work. Each piece has its own random numbers.
pub const PART: usize = 1 << 18;

/// All sets that have orbs. Layers are made one after the other, each on all cores.
pub fn generate(count: u32, seed: u64) -> Result<Vec<LayerSet>, InstanceError> {
    (0..LAYERS.len())
        .map(|index| (index, layer_count(count, index)))
        .filter(|(_, of_layer)| *of_layer > 0)
        .map(|(index, of_layer)| {
            let set = layer_set(index, of_layer as usize, seed, radius(count))?;
            Ok(LayerSet {
                layer: LAYERS[index],
                set: set.sorted(),
            })
        })
        .collect()
}

/// Cuts the sets into contiguous pieces, about `sets` in all, and at least one per set.
pub fn split(layers: Vec<LayerSet>, sets: u32) -> Result<Vec<LayerSet>, InstanceError> {
    let all: usize = layers.iter().map(|layer| layer.set.len()).sum();
    let piece = all.div_ceil(sets.max(1) as usize).max(1);
    let mut pieces = Vec::new();
    for LayerSet { layer, set } in layers {
        if set.len() <= piece {
            pieces.push(LayerSet { layer, set });
            continue;
        }
        let mut scales = set.scales().map(|scales| scales.chunks(piece));
        for packed in set.packed().chunks(piece) {
            let mut set = InstanceSet::from_packed(packed.to_vec())?;
            if let Some(scales) = scales.as_mut().and_then(Iterator::next) {
                set = set.with_scales(scales.to_vec())?;
            }
            pieces.push(LayerSet { layer, set });
        }
    }
    Ok(pieces)
}

/// Processes all items on all cores. Each core takes the next item that is left.
pub fn each_core<T: Send>(items: impl Iterator<Item = T> + Send, work: impl Fn(T) + Sync) {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    if cores == 1 {
        // A browser starts no other thread.
        return items.for_each(work);
    }
    let items = Mutex::new(items);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                let next = || items.lock().ok().and_then(|mut items| items.next());
                while let Some(item) = next() {
                    work(item);
                }
            });
        }
    });
}

/// Pieces of the scales, one per piece of the instances; without scales, empty slices without end.
fn scale_parts(scales: &mut [f32]) -> impl Iterator<Item = &mut [f32]> {
    let none = scales.is_empty();
    let empty = std::iter::repeat_with(|| &mut [][..]).take_while(move |_| none);
    scales.chunks_mut(PART).chain(empty)
}

/// The orbs of a layer, in no order.
fn layer_set(
    index: usize,
    count: usize,
    seed: u64,
    radius: f32,
) -> Result<InstanceSet, InstanceError> {
    let layer = LAYERS[index];
    let streams = Stream::all(seed);
    let mut instances = vec![PackedInstance::default(); count];
    let mut scales = vec![1.0; if layer.sizes.is_some() { count } else { 0 }];
    let roll = |part: usize, instances: &mut [PackedInstance], scales: &mut [f32]| {
        let stream = index + 1 + part * (LAYERS.len() + 1);
        let mut dice = Dice::new(seed, stream as u64);
        for (at, instance) in instances.iter_mut().enumerate() {
            let (place, rotation) = layer.place.roll(&mut dice, &streams);
            let place = clear_of_the_eye(place * radius, EYE * radius);
            *instance = PackedInstance::new(place, rotation);
            if let (Some((min, max)), Some(scale)) = (layer.sizes, scales.get_mut(at)) {
                *scale = min * ops::powf(max / min, ops::powf(dice.unit(), 2.5));
            }
        }
    };
    let parts = instances.chunks_mut(PART).enumerate();
    each_core(
        parts.zip(scale_parts(&mut scales)),
        |((part, instances), scales)| {
            roll(part, instances, scales);
        },
    );
    if scales.is_empty() {
        return InstanceSet::from_packed(instances);
    }
    InstanceSet::from_packed(instances)?.with_scales(scales)
}

/// The number of a layer's orbs in a field of `count`, rounded so that all layers together have
/// `count`.
fn layer_count(count: u32, layer: usize) -> u32 {
    let up_to = |layers: &[Layer]| {
        let share: u32 = layers.iter().map(|layer| layer.share).sum();
        (u64::from(count) * u64::from(share) / 1000) as u32
    };
    up_to(&LAYERS[..=layer]) - up_to(&LAYERS[..layer])
}

/// Pushes an orb out of the clearing around the first view.
fn clear_of_the_eye(place: Vec3, eye: Vec3) -> Vec3 {
    let away = place - eye;
    match away.try_normalize() {
        Some(direction) if away.length_squared() < CLEARING * CLEARING => {
            eye + direction * CLEARING
        }
        _ => place,
    }
}

impl Place {
    /// A place in the unit disc, and the orb's rotation.
    fn roll(self, dice: &mut Dice, streams: &[Stream]) -> (Vec3, Quat) {
        match self {
            Self::Core => {
                let reach = 0.17 * ops::powf(dice.unit(), 1.0);
                (
                    dice.direction() * Vec3::new(1.0, 0.7, 1.0) * reach,
                    dice.rotation(),
                )
            }
            Self::Arms { focus } => {
                let arm = dice.below(ARMS) as f32 / ARMS as f32 * TAU;
                // Nearly even in area along the arm, a little denser near the core.
                let reach = INNER + (1.0 - INNER) * ops::powf(dice.unit(), 0.55);
                let width = (0.035 + 0.07 * reach) / focus;
                let place = on_disc(reach, arm + spiral(reach))
                    + dice.bell() * Vec3::new(width, width * 0.42, width);
                (place, dice.rotation())
            }
            Self::Belt => {
                let reach = 0.66 + 0.03 * dice.bell().x;
                let flat = on_disc(reach, dice.unit() * TAU) + Vec3::Y * 0.016 * dice.bell().y;
                (
                    Quat::from_axis_angle(Vec3::new(0.954, 0.0, -0.3), 0.36) * flat,
                    dice.rotation(),
                )
            }
            Self::Streams { width } => {
                let stream = &streams[dice.below(streams.len() as u32) as usize];
                let along = dice.unit();
                let place = stream.at(along);
                let ahead = (stream.at(along + 0.01) - place).normalize_or(Vec3::Y);
                let spread = width * (0.004 + 0.009 * along);
                let turn = Quat::from_rotation_arc(
                    Vec3::Y,
                    (ahead + 0.25 * dice.bell()).normalize_or(ahead),
                );
                (place + spread * dice.bell(), turn)
            }
            Self::Halo => {
                let reach = ops::powf(dice.unit(), 0.45);
                (
                    dice.direction() * Vec3::new(1.0, 0.38, 1.0) * reach,
                    dice.rotation(),
                )
            }
        }
    }
}

/// A strand. It winds out of the core, rises above the disc or dives below it, and comes back.
struct Stream {
    start: f32,
    winding: f32,
    height: f32,
    reach: f32,
}

impl Stream {
    fn all(seed: u64) -> Vec<Self> {
        let mut dice = Dice::new(seed, 0);
        (0..STREAMS)
            .map(|index| Self {
                // Each in its own sector, so that no seed leaves half of the sky empty.
                start: (index as f32 + dice.unit()) / STREAMS as f32 * TAU,
                winding: 1.2 + 1.6 * dice.unit(),
                height: (0.12 + 0.3 * dice.unit()) * if index % 2 == 0 { 1.0 } else { -1.0 },
                reach: 0.7 + 0.35 * dice.unit(),
            })
            .collect()
    }

    fn at(&self, along: f32) -> Vec3 {
        let reach = INNER * 0.6 + (self.reach - INNER * 0.6) * along;
        on_disc(reach, self.start + self.winding * along)
            + Vec3::Y * self.height * ops::sin(PI * along)
    }
}

/// Angle by which the arms wind, outwards from `INNER`.
fn spiral(reach: f32) -> f32 {
    1.9 * ops::ln(reach / INNER)
}

fn on_disc(reach: f32, angle: f32) -> Vec3 {
    Vec3::new(reach * ops::cos(angle), 0.0, reach * ops::sin(angle))
}

/// Random numbers of one layer.
struct Dice(ChaCha8Rng);

impl Dice {
    fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self(rng)
    }

    /// From 0 up to 1.
    fn unit(&mut self) -> f32 {
        self.0.random()
    }

    fn below(&mut self, end: u32) -> u32 {
        self.0.random_range(0..end)
    }

    /// Roughly normally distributed in each direction, within 3 deviations.
    fn bell(&mut self) -> Vec3 {
        let mut one = || {
            2.0 * (self.0.random::<f32>() + self.0.random::<f32>() + self.0.random::<f32>() - 1.5)
        };
        Vec3::new(one(), one(), one())
    }

    /// On the unit sphere.
    fn direction(&mut self) -> Vec3 {
        let y = 2.0 * self.unit() - 1.0;
        let (sin, cos) = ops::sin_cos(self.unit() * TAU);
        let flat = (1.0 - y * y).sqrt();
        Vec3::new(flat * cos, y, flat * sin)
    }

    /// A rotation; all are equally likely.
    fn rotation(&mut self) -> Quat {
        let (share, a, b) = (self.unit(), self.unit() * TAU, self.unit() * TAU);
        let (low, high) = ((1.0 - share).sqrt(), (share).sqrt());
        Quat::from_xyzw(
            low * ops::sin(a),
            low * ops::cos(a),
            high * ops::sin(b),
            high * ops::cos(b),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy_gpu_culling::instance::InstanceTransform;

    #[test]
    fn shares_add_up_to_a_thousand() {
        assert_eq!(LAYERS.iter().map(|layer| layer.share).sum::<u32>(), 1000);
    }

    #[test]
    fn layers_together_have_every_orb() {
        for count in [0, 1, 2, 9, 999, 1000, 100_000, 12_345_678, u32::MAX] {
            let total: u64 = (0..LAYERS.len())
                .map(|layer| u64::from(layer_count(count, layer)))
                .sum();
            assert_eq!(total, u64::from(count));
        }
    }

    #[test]
    fn a_set_by_distance_has_each_orb_once_with_its_scale() -> Result<(), InstanceError> {
        for layer in generate(3000, 5)? {
            let eye = EYE * radius(3000);
            let sorted = nearest_first(&layer.set, eye)?;
            let away = |orb: InstanceTransform| FloatOrd(orb.translation.distance_squared(eye));
            assert!(sorted.iter().map(away).is_sorted());
            let key = |orb: &InstanceTransform| {
                let place = orb.translation.to_array().map(f32::to_bits);
                (place, orb.scale.x.to_bits())
            };
            let mut orbs = [layer.set, sorted].map(|set| set.iter().collect::<Vec<_>>());
            orbs.iter_mut().for_each(|orbs| orbs.sort_by_key(key));
            assert_eq!(orbs[0], orbs[1]);
        }
        Ok(())
    }

    #[test]
    fn a_field_without_orbs_has_no_sets() -> Result<(), InstanceError> {
        assert!(generate(0, 1)?.is_empty());
        assert_eq!(
            generate(1, 1)?
                .iter()
                .map(|layer| layer.set.len())
                .sum::<usize>(),
            1
        );
        Ok(())
    }

    #[test]
    fn the_seed_decides_alone() -> Result<(), InstanceError> {
        let packed = |seed| -> Result<Vec<_>, InstanceError> {
            Ok(generate(2000, seed)?
                .iter()
                .flat_map(|layer| layer.set.packed().to_vec())
                .collect())
        };
        assert_eq!(packed(5)?, packed(5)?);
        assert_ne!(packed(5)?, packed(6)?);
        Ok(())
    }

    #[test]
    fn pieces_are_the_sets_they_were_cut_from() -> Result<(), InstanceError> {
        let whole = generate(5000, 7)?;
        let pieces = split(generate(5000, 7)?, 100)?;
        assert!((100..=109).contains(&pieces.len()), "{}", pieces.len());
        for layer in &whole {
            let finish = |piece: &&LayerSet| piece.layer.finish == layer.layer.finish;
            let packed = pieces
                .iter()
                .filter(finish)
                .flat_map(|piece| piece.set.packed());
            assert!(packed.eq(layer.set.packed()));
            let scales = pieces
                .iter()
                .filter(finish)
                .filter_map(|piece| piece.set.scales());
            assert_eq!(
                scales.flatten().count(),
                layer.set.scales().map_or(0, <[f32]>::len)
            );
        }
        assert_eq!(split(whole, 0)?.len(), LAYERS.len());
        Ok(())
    }

    #[test]
    fn no_orb_covers_the_first_view() -> Result<(), InstanceError> {
        let eye = EYE * radius(20_000);
        for layer in generate(20_000, 3)? {
            assert!(
                layer
                    .set
                    .iter()
                    .all(|orb| orb.translation.distance(eye) > CLEARING * 0.99)
            );
        }
        Ok(())
    }
}
