//! A set of a random app.

use super::{
    acts::{Edit, Part, Place},
    around::Around,
    props::{COARSE, Look, POSED, Props, Written},
};
use crate::{
    scatter::window,
    scene::{Stage, field, field_of},
};
use bevy::{asset::RenderAssetUsages, camera::visibility::RenderLayers, prelude::*};
use bevy_gpu_culling::prelude::*;
use std::collections::BTreeSet;

pub fn at(place: Place) -> Vec3 {
    Vec3::from_array(place.map(f32::from)) / 10.0
}

/// How a set comes to the GPU.
pub enum Kind {
    /// Its meshes are drawn whole.
    Plain,
    /// Its meshes are drawn by meshlets.
    Meshlets,
    /// Its mesh has joints, which have poses.
    Posed,
    /// The CPU drops it once it is on the GPU. This is a copy.
    Released(Box<InstanceSet>),
    /// The GPU writes these instances.
    Written(Box<InstanceSet>),
    /// The GPU scatters instances around the cameras.
    Scattered(Box<Scatter>),
}

impl Kind {
    /// Whether the app has the instances, and can edit them.
    pub fn is_edited(&self) -> bool {
        matches!(self, Self::Plain | Self::Meshlets | Self::Posed)
    }
}

/// A set of the app.
pub struct Set {
    pub entity: Entity,
    pub kind: Kind,
    /// Its asset, also while the entity does not have it. Of what is scattered, the plugin has
    /// another one.
    pub asset: Handle<InstanceSet>,
    pub look: Look,
    pub place: Transform,
    pub parts: Vec<Part>,
    /// Entities that were instances, each with the look that the set had then.
    pub detached: Vec<(Entity, Look)>,
}

impl Set {
    /// Spawns a set with a kind of this number.
    pub fn spawn(
        stage: &mut Stage,
        props: &Props,
        (count, kind): (u16, u8),
        look: Look,
        place: Transform,
    ) -> Self {
        let set = field_of(count.into(), ScaleKind::Uniform);
        let kind = match kind % 10 {
            0 => Kind::Meshlets,
            1 => Kind::Written(Box::new(field(count.into(), false))),
            2 => Kind::Scattered(Box::new(Scatter {
                seed: count.into(),
                spacing: 1.2 + f32::from(count % 7) * 0.2,
                radius: 8.0 + f32::from(count % 5),
                scales: 0.6..1.1,
                ..default()
            })),
            3 => Kind::Posed,
            4 => Kind::Released(Box::new(set.clone())),
            _ => Kind::Plain,
        };
        let asset = match &kind {
            Kind::Plain | Kind::Meshlets | Kind::Posed => set,
            Kind::Released(_) => set.with_asset_usage(RenderAssetUsages::RENDER_WORLD),
            Kind::Written(_) => {
                let around = GpuWritten::within(Vec3::splat(-15.0), Vec3::splat(15.0));
                InstanceSet::gpu_written(count.into(), around).unwrap()
            }
            Kind::Scattered(_) => InstanceSet::new(),
        };
        let asset = stage.add(asset);
        let mesh = match &kind {
            Kind::Posed => POSED,
            _ => look.mesh,
        };
        let set = Self {
            entity: stage.spawn((props.paint(look.paint), place)),
            kind,
            asset,
            look: Look { mesh, ..look },
            place,
            parts: Vec::new(),
            detached: Vec::new(),
        };
        set.give_mesh(stage, props);
        match &set.kind {
            Kind::Scattered(scatter) => {
                let scatter = Scatter::clone(scatter);
                stage.entity(set.entity).insert(scatter);
            }
            _ => set.give_asset(stage),
        }
        match &set.kind {
            Kind::Posed => {
                let poses = props.poses.clone().unwrap();
                let mut entity = stage.entity(set.entity);
                entity.insert(InstanceAnimation::from(poses));
            }
            Kind::Written(instances) => {
                let written = (set.asset.id(), InstanceSet::clone(instances));
                let world = stage.app.world_mut();
                world.resource_mut::<Written>().0.push(written);
            }
            _ => {}
        }
        set
    }

    /// Despawns it.
    pub fn remove(self, stage: &mut Stage) {
        stage.entity(self.entity).despawn();
        let world = stage.app.world_mut();
        let mut written = world.resource_mut::<Written>();
        written.0.retain(|(id, _)| *id != self.asset.id());
    }

    pub fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    /// Gives the entity the mesh of its look.
    pub fn give_mesh(&self, stage: &mut Stage, props: &Props) {
        let mut entity = stage.entity(self.entity);
        match &self.kind {
            Kind::Meshlets => drop(entity.insert(props.meshlets(self.look.mesh))),
            _ => drop(entity.insert(props.mesh(self.look.mesh))),
        }
    }

    /// Gives the entity its asset, unless it is to have none.
    pub fn give_asset(&self, stage: &mut Stage) {
        if !self.has(Part::NoInstances) {
            let instances = GpuInstances(self.asset.clone());
            stage.entity(self.entity).insert(instances);
        }
    }

    /// Gives a set that is dropped on the CPU an asset with the same instances: a change of the
    /// tier from or to `Cpu` loses the one that it has.
    pub fn renew(&mut self, stage: &mut Stage) {
        if let Kind::Released(copy) = &self.kind {
            let set = InstanceSet::clone(copy);
            self.asset = stage.add(set.with_asset_usage(RenderAssetUsages::RENDER_WORLD));
            self.give_asset(stage);
        }
    }

    /// Edits the instances, if the CPU can.
    pub fn edit(&mut self, stage: &mut Stage, change: &Edit) {
        match &mut self.kind {
            Kind::Plain | Kind::Meshlets | Kind::Posed => {}
            // The last ones may go though they were dropped.
            Kind::Released(copy) if matches!(change, Edit::Truncate(_)) => edit(copy, change),
            Kind::Released(_) | Kind::Written(_) | Kind::Scattered(_) => return,
        }
        let mut sets = stage.app.world_mut().resource_mut::<Assets<InstanceSet>>();
        edit(&mut sets.get_mut(&self.asset).unwrap(), change);
    }

    pub fn toggle(&mut self, stage: &mut Stage, props: &Props, part: Part) {
        let fits = match part {
            // Meshlets have levels of their own.
            Part::Levels => !matches!(self.kind, Kind::Meshlets),
            // Bevy draws no joints without a skin, and the plugin has the set of a scatter.
            Part::NoInstances => !matches!(self.kind, Kind::Posed | Kind::Scattered(_)),
            _ => true,
        };
        if !fits {
            return;
        }
        let known = self.parts.iter().position(|known| *known == part);
        match known {
            Some(at) => drop(self.parts.swap_remove(at)),
            None => self.parts.push(part),
        }
        let is_on = known.is_none();
        let mut entity = stage.entity(self.entity);
        match (part, is_on) {
            (Part::Hidden, true) => drop(entity.insert(Visibility::Hidden)),
            (Part::Hidden, false) => drop(entity.insert(Visibility::Inherited)),
            (Part::OtherLayer, true) => drop(entity.insert(RenderLayers::layer(2))),
            (Part::OtherLayer, false) => drop(entity.remove::<RenderLayers>()),
            (Part::Levels, true) => {
                // Without an error, it begins at no distance: the peer knows which level is drawn.
                let mesh = self.coarse_mesh();
                let levels = vec![InstanceLod::new(props.mesh(mesh).0, 0.0)];
                entity.insert(InstanceLods {
                    levels,
                    ..default()
                });
            }
            (Part::Levels, false) => drop(entity.remove::<InstanceLods>()),
            (Part::NoSorting, true) => drop(entity.insert(NoInstanceSorting)),
            (Part::NoSorting, false) => drop(entity.remove::<NoInstanceSorting>()),
            (Part::NoInstances, true) => drop(entity.remove::<GpuInstances>()),
            (Part::NoInstances, false) => drop(entity.insert(GpuInstances(self.asset.clone()))),
        }
    }

    /// Index of the mesh of its coarser level.
    fn coarse_mesh(&self) -> usize {
        match self.kind {
            // A level needs joints, too.
            Kind::Posed => POSED,
            _ => COARSE,
        }
    }

    /// Index of the mesh that instances have, if levels are drawn.
    pub fn drawn_mesh(&self, draws_levels: bool) -> usize {
        match draws_levels && self.has(Part::Levels) {
            true => self.coarse_mesh(),
            false => self.look.mesh,
        }
    }

    pub fn detach(&mut self, stage: &mut Stage, id: u16) {
        // The CPU has no instance of the GPU's, and an entity has no meshlets.
        if !matches!(self.kind, Kind::Plain) || self.has(Part::NoInstances) {
            return;
        }
        let visible: Vec<_> = self.shown_in_asset(stage).collect();
        let at = usize::from(id).checked_rem(visible.len()).unwrap_or(0);
        let Some((id, _)) = visible.get(at) else {
            return;
        };
        let world = stage.app.world_mut();
        let entity = world.commands().detach_instance(self.entity, *id).id();
        world.flush();
        self.detached.push((entity, self.look));
    }

    pub fn attach(&mut self, stage: &mut Stage) {
        let Some((entity, look)) = self.detached.pop() else {
            return;
        };
        let world = stage.app.world_mut();
        world.commands().attach_instance(entity);
        world.flush();
        // It stays if the set is gone, or another one, or if an edit has removed the instance, or
        // put another in its place.
        if world.get_entity(entity).is_ok() {
            self.detached.push((entity, look));
        }
    }

    /// The instances that are shown, with their indices, of a set that the CPU has.
    fn shown_in_asset(&self, stage: &Stage) -> impl Iterator<Item = (u32, InstanceTransform)> {
        let sets = stage.app.world().resource::<Assets<InstanceSet>>();
        shown(sets.get(&self.asset).unwrap())
    }

    /// The instances that are shown, with their indices.
    pub fn shown(&self, stage: &Stage, around: &Around) -> Vec<(u32, InstanceTransform)> {
        match &self.kind {
            Kind::Plain | Kind::Meshlets | Kind::Posed => self.shown_in_asset(stage).collect(),
            Kind::Released(set) | Kind::Written(set) => shown(set).collect(),
            Kind::Scattered(scatter) => {
                let to_set = self.place.compute_affine().inverse();
                let eyes = around.eyes().map(|eye| to_set.transform_point3(eye));
                let tiles: BTreeSet<_> = eyes
                    .flat_map(|eye| window(scatter, eye))
                    .map(|tile| tile.to_array())
                    .collect();
                let images = stage.app.world().resource::<Assets<Image>>();
                let tiles = tiles.into_iter().map(IVec2::from);
                (0..)
                    .zip(scatter.plants_in(tiles, images).unwrap())
                    .collect()
            }
        }
    }
}

fn shown(set: &InstanceSet) -> impl Iterator<Item = (u32, InstanceTransform)> {
    let all = (0..).zip(set.iter());
    all.filter(move |(id, _)| !set.is_hidden(*id))
}

fn edit(set: &mut InstanceSet, edit: &Edit) {
    let len = set.len() as u32;
    let more = |count: u16| field_of(count.into(), ScaleKind::Uniform);
    let id = |id: u16| u32::from(id) % len.max(1);
    match edit {
        Edit::Replace(count) => *set = more(*count),
        Edit::Extend(count) => set.extend(more(*count).iter()).unwrap(),
        Edit::Push(place) => drop(set.push(at(*place)).unwrap()),
        Edit::Set(to, place) if len > 0 => set.set(id(*to), at(*place)).unwrap(),
        Edit::Hide(at) if len > 0 => set.hide(id(*at)).unwrap(),
        Edit::Show(at) if len > 0 => set.show(id(*at)).unwrap(),
        Edit::SwapRemove(at) if len > 0 => {
            let _ = set.swap_remove(id(*at)).unwrap();
        }
        Edit::Truncate(at) => set.truncate(id(*at) as usize),
        Edit::Sort => drop(set.sort()),
        _ => {}
    }
}
