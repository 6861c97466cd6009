//! Where the orbs are: a galaxy of arms, belt, core, streams and halo. Pure data, the same for the same seed.
//!
//! Places are made in a disc of radius 1 and then spread to [`radius`], which grows with the cube root of the count:
//! a larger field is wider, not denser.

use bevy::{math::ops, prelude::*};
use bevy_gpu_culling::instance::{InstanceError, InstanceSet, InstanceTransform};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f32::consts::{PI, TAU};

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
    /// Of a thousand orbs.
    share: u32,
    place: Place,
    /// Smallest and largest scale, most are small; `None` where all have scale 1.
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
    /// Curved strands out of the core, above and below the disc.
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
/// Where arms and streams begin.
const INNER: f32 = 0.14;
/// No orb covers the camera's first view.
const CLEARING: f32 = 6.0;

/// The set of a layer, sorted along the Morton curve.
pub struct LayerSet {
    pub layer: Layer,
    pub set: InstanceSet,
}

/// Radius of a field of so many orbs, in world units.
pub fn radius(count: u32) -> f32 {
    3.0 * ops::cbrt(count.max(1000) as f32)
}

/// Where the camera starts, in the unit disc, and where it looks.
pub const EYE: Vec3 = Vec3::new(0.46, 0.11, 0.34);
pub const TARGET: Vec3 = Vec3::new(0.125, 0.015, -0.35);

/// All sets that have orbs, one thread each.
pub fn generate(count: u32, seed: u64) -> Result<Vec<LayerSet>, InstanceError> {
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..LAYERS.len())
            .map(|index| (index, layer_count(count, index)))
            .filter(|(_, count)| *count > 0)
            .map(|(index, of_layer)| {
                scope.spawn(move || {
                    let set =
                        InstanceSet::from_transforms(orbs(index, of_layer, seed, radius(count)))?;
                    Ok(LayerSet {
                        layer: LAYERS[index],
                        set: set.sorted().0,
                    })
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    })
}

/// How many of `count` orbs are of a layer: rounded so that all layers together have `count`.
fn layer_count(count: u32, layer: usize) -> u32 {
    let up_to = |layers: &[Layer]| {
        let share: u32 = layers.iter().map(|layer| layer.share).sum();
        (u64::from(count) * u64::from(share) / 1000) as u32
    };
    up_to(&LAYERS[..=layer]) - up_to(&LAYERS[..layer])
}

/// The orbs of a layer.
fn orbs(
    index: usize,
    count: u32,
    seed: u64,
    radius: f32,
) -> impl Iterator<Item = InstanceTransform> {
    let layer = LAYERS[index];
    let streams = Stream::all(seed);
    let mut dice = Dice::new(seed, index as u64 + 1);
    (0..count).map(move |_| {
        let (place, rotation) = layer.place.roll(&mut dice, &streams);
        let orb = InstanceTransform::from(clear_of_the_eye(place * radius, EYE * radius))
            .with_rotation(rotation);
        match layer.sizes {
            Some((least, most)) => {
                orb.with_scale(least * ops::powf(most / least, ops::powf(dice.unit(), 2.5)))
            }
            None => orb,
        }
    })
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
    /// A place in the unit disc, and how the orb is turned.
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
                // Even along the arm in area, a little more towards the core.
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

/// A strand: it winds out of the core, rises over or dives under the disc, and comes back to it.
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

/// Angle by which the arms wind, from `INNER` outwards.
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

    /// About a normal distribution in each direction, but never further than 3 deviations.
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

    /// Any rotation, all alike.
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
