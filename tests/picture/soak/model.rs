//! A random app as it should be.

use super::{
    acts::{Act, CROWD, Part, Setting, Swap},
    around::Around,
    props::{Look, Props},
    set::{Kind, Set, at},
};
use crate::scene::{Stage, field_of, posed};
use bevy::{
    camera::visibility::{NoFrustumCulling, RenderLayers},
    math::Affine3A,
    prelude::*,
};
use bevy_gpu_culling::prelude::*;

/// The app as it should be.
pub struct Model {
    pub around: Around,
    pub sets: Vec<Set>,
    /// `None` for the best one.
    tier: Option<CullingTier>,
}

impl Model {
    pub fn new(around: Around) -> Self {
        Self {
            around,
            sets: Vec::new(),
            tier: None,
        }
    }

    fn is_on_cpu(&self) -> bool {
        self.tier == Some(CullingTier::Cpu)
    }

    pub fn act(&mut self, stage: &mut Stage, props: &Props, act: &Act) {
        let count = self.sets.len();
        let at_set = |number: &u8| usize::from(*number).checked_rem(count);
        match act {
            Act::Start { .. } | Act::AtOnce(_) | Act::Frames(_) => {}
            Act::Spawn {
                count,
                mesh,
                paint,
                kind,
                at: place,
            } => {
                let place = Transform::from_translation(at(*place));
                let look = Look::new(*mesh, *paint);
                let set = Set::spawn(stage, props, (*count, *kind), look, place);
                self.sets.push(set);
            }
            Act::Crowd(..) if self.is_on_cpu() => {}
            Act::Crowd(count, place) => {
                for number in 0..*count {
                    let turn = f32::from(number) * 0.7;
                    let offset = Vec3::new(turn.sin(), 0.0, turn.cos()) * turn * 0.2;
                    let place = Transform::from_translation(at(*place) + offset);
                    let look = Look::new(number, number);
                    let plain = (u16::from(number % 4) + 1, 9);
                    let set = Set::spawn(stage, props, plain, look, place);
                    self.sets.push(set);
                }
            }
            Act::Despawn(number) => {
                if let Some(at) = at_set(number) {
                    self.sets.swap_remove(at).remove(stage);
                }
            }
            Act::Edit(number, change) => {
                if let Some(at) = at_set(number) {
                    self.sets[at].edit(stage, change);
                }
            }
            Act::Swap(number, swap) => {
                if let Some(at) = at_set(number) {
                    self.swap(stage, props, (at, *swap));
                }
            }
            Act::Move(number, to, is_flat) => {
                if let Some(number) = at_set(number) {
                    let set = &mut self.sets[number];
                    let scale = if *is_flat {
                        Vec3::new(1.2, 0.6, 1.0)
                    } else {
                        Vec3::ONE
                    };
                    let turn = Quat::from_rotation_y(f32::from(to[0]) / 20.0);
                    set.place = Transform::from_translation(at(*to))
                        .with_scale(scale)
                        .with_rotation(turn);
                    stage.entity(set.entity).insert(set.place);
                }
            }
            Act::Toggle(number, part) => {
                if let Some(at) = at_set(number) {
                    self.sets[at].toggle(stage, props, *part);
                }
            }
            Act::Detach(number, id) => {
                if let Some(at) = at_set(number) {
                    self.sets[at].detach(stage, *id);
                }
            }
            Act::Attach(number) => {
                if let Some(at) = at_set(number) {
                    self.sets[at].attach(stage);
                }
            }
            Act::Look(turn) => self.around.look(stage, *turn),
            Act::Shine(turn) => self.around.shine(stage, *turn),
            Act::Switch(thing) => self.around.switch(stage, *thing),
            Act::Tier(number) => {
                let tiers = CullingTier::ALL;
                let tier = tiers[usize::from(*number) % tiers.len()];
                // There, each set is a direct draw, for each of which lavapipe compiles the vertex
                // shader again and keeps the code: half a gigabyte per frame of two crowds.
                if tier == CullingTier::Cpu && count >= CROWD {
                    return;
                }
                let was_on_cpu = self.is_on_cpu();
                self.tier = Some(tier);
                if self.is_on_cpu() != was_on_cpu {
                    self.sets.iter_mut().for_each(|set| set.renew(stage));
                }
                let world = stage.app.world_mut();
                world.resource_mut::<GpuCullingSettings>().tier = Some(tier);
            }
            Act::Setting(setting) => {
                let world = stage.app.world_mut();
                change(&mut world.resource_mut::<GpuCullingSettings>(), *setting);
            }
        }
    }

    /// Gives a set something in place of what it has.
    fn swap(&mut self, stage: &mut Stage, props: &Props, (at, swap): (usize, Swap)) {
        let shared = |other: u8| {
            let other = &self.sets[usize::from(other) % self.sets.len()];
            other.kind.is_edited().then(|| other.asset.clone())
        };
        let asset = match swap {
            Swap::Asset(count) => Some(stage.add(field_of(count.into(), ScaleKind::Uniform))),
            Swap::Share(other) => shared(other),
            Swap::Mesh(_) | Swap::Paint(_) => None,
        };
        let set = &mut self.sets[at];
        match (swap, asset) {
            (Swap::Mesh(mesh), _) if !matches!(set.kind, Kind::Posed) => {
                set.look.mesh = Look::new(mesh, 0).mesh;
                set.give_mesh(stage, props);
            }
            (Swap::Paint(paint), _) => {
                set.look.paint = Look::new(0, paint).paint;
                let paint = props.paint(set.look.paint);
                stage.entity(set.entity).insert(paint);
            }
            (_, Some(asset)) if set.kind.is_edited() => {
                set.asset = asset;
                set.give_asset(stage);
            }
            _ => {}
        }
    }

    /// Whether the peer cannot know which levels are drawn: levels of meshlets have errors.
    pub fn has_unknown_levels(&self) -> bool {
        let mut sets = self.sets.iter();
        sets.any(|set| matches!(set.kind, Kind::Meshlets))
    }

    /// Spawns Bevy's entities that look like what the stage draws now.
    pub fn spawn_entities(&self, stage: &Stage, peer: &mut Stage, props: &Props) {
        peer.clear();
        self.around.clone().spawn(peer);
        let world = stage.app.world();
        let draws_levels = world.resource::<GpuCullingSettings>().lod_pixels > 0.0;
        let now = world.resource::<Time>().elapsed();
        let poses = posed::moving();
        let mut figures = Vec::new();
        for set in &self.sets {
            let visibility = match set.has(Part::Hidden) {
                true => Visibility::Hidden,
                false => Visibility::Inherited,
            };
            let layers = match set.has(Part::OtherLayer) {
                true => RenderLayers::layer(2),
                false => RenderLayers::layer(0),
            };
            let parent = peer.spawn((set.place, visibility));
            // Bevy culls a box by a sphere that is too small if the parent stretches a turned
            // child.
            let part = |place: Transform| (place, NoFrustumCulling, ChildOf(parent));
            let paint = props.paint(set.look.paint);
            let is_missing =
                self.is_on_cpu() && matches!(set.kind, Kind::Written(_) | Kind::Scattered(_));
            let shown = if set.has(Part::NoInstances) {
                let look = (props.mesh(set.look.mesh), paint.clone());
                peer.spawn((look, layers.clone(), part(Transform::IDENTITY)));
                Vec::new()
            } else if is_missing {
                Vec::new()
            } else {
                set.shown(stage, &self.around)
            };
            let plain = props.mesh(set.drawn_mesh(draws_levels));
            for (id, place) in shown {
                let mesh = match set.kind {
                    Kind::Posed => {
                        let pose = poses.pose(AnimationState::automatic(id), now, 0.0);
                        figure(peer, &mut figures, pose)
                    }
                    _ => plain.clone(),
                };
                let look = (mesh, paint.clone());
                peer.spawn((look, layers.clone(), part(place.into())));
            }
            for (entity, look) in &set.detached {
                let entity = world.entity(*entity);
                let layers = entity.get::<RenderLayers>().cloned().unwrap_or_default();
                let place = *entity.get::<Transform>().unwrap();
                let look = (props.mesh(look.mesh), props.paint(look.paint));
                peer.spawn((look, layers, part(place)));
            }
        }
    }
}

/// The mesh with joints in a pose. Few poses are different.
fn figure(
    peer: &mut Stage,
    known: &mut Vec<(Vec<Affine3A>, Mesh3d)>,
    pose: Vec<Affine3A>,
) -> Mesh3d {
    if let Some((_, mesh)) = known.iter().find(|(known, _)| *known == pose) {
        return mesh.clone();
    }
    let mesh = Mesh3d(peer.mesh(posed::in_pose(&posed::mesh(), &pose)));
    known.push((pose, mesh.clone()));
    mesh
}

/// Changes a setting so that the picture stays the same, except for the levels.
fn change(settings: &mut GpuCullingSettings, setting: Setting) {
    fn other<T: PartialEq>(value: &mut T, [a, b]: [T; 2]) {
        *value = if *value == a { b } else { a };
    }
    match setting {
        Setting::ShaderChecks => settings.shader_checks ^= true,
        Setting::SelfTest => settings.self_test ^= true,
        Setting::NearLevels => settings.near_levels_from ^= 1 << 18,
        Setting::Compaction(number) => {
            let all = [
                Compaction::Auto,
                Compaction::Classify,
                Compaction::VoteScanCompact,
            ];
            settings.compaction = all[usize::from(number) % all.len()];
        }
        Setting::Expansion(number) => {
            let all = [
                MeshletExpansion::Auto,
                MeshletExpansion::By(Expansion::OneBucket),
                MeshletExpansion::By(Expansion::Po2Buckets),
            ];
            settings.expansion = all[usize::from(number) % all.len()];
        }
        Setting::LodPixels => {
            other(&mut settings.lod_pixels, [1.0, 0.0]);
            settings.shadow_lod_pixels = settings.lod_pixels * 2.0;
        }
        // No instance is as small.
        Setting::MinPixels => other(&mut settings.min_pixels, [0.0, 0.05]),
        // A set with scales arrives in slices of a block, and small sets in slices of some dozens.
        Setting::UploadBudget => other(&mut settings.upload_budget, [None, Some(96 << 10)]),
        // With room for fewer survivors, frames lack some until the arena has grown.
        Setting::SurvivorCapacity => other(&mut settings.survivor_capacity, [None, Some(1 << 20)]),
    }
}
