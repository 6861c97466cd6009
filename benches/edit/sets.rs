//! Many sets of which one changes in each frame, against all still.

use super::{Stage, WARM_UP, common::stats::Times};
use anyhow::{Result, anyhow};
use bevy::prelude::*;
use bevy_gpu_culling::{
    instance::InstanceSet,
    prelude::GpuInstances,
    render::{CpuStage, FrameWork, NoOcclusionCulling},
};
use clap::ValueEnum;
use serde::Serialize;
use std::time::Duration;

/// What happens to one of the sets in each frame.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Change {
    /// Nothing.
    Still,
    /// Its entity moves.
    Moving,
    /// One of its instances moves.
    Edited,
    /// It gets an instance, or loses it again.
    Resized,
    /// It enters the view, or leaves it.
    Entering,
    /// Its material changes.
    Material,
    /// It gets a component, or loses it again.
    Component,
    /// An entity with a new set comes, or the last one that came goes.
    Coming,
}

/// The cases take turns, so that the machine's state is the same for all.
const ROUNDS: u32 = 3;

/// What a case has shown.
#[derive(Serialize)]
struct Row {
    change: Change,
    sets: u32,
    /// Median CPU time of the plugin.
    cpu_ms: f64,
    /// The same, divided by the time with all sets still.
    ratio: f64,
    /// Median CPU time of each stage.
    stages: Vec<(&'static str, f64)>,
    /// Median time of a frame, GPU included.
    frame_ms: f64,
    /// Work of the last frame.
    plans: u64,
    moved: u64,
    materials: u64,
    slot_bytes: u64,
    uploaded_bytes: u64,
    adapter: String,
}

/// The set that changes, and its material.
struct One {
    entity: Entity,
    set: Handle<InstanceSet>,
    material: Handle<StandardMaterial>,
    /// What a set that comes is made of.
    more: More,
}

/// What sets are made of.
struct More {
    mesh: Handle<Mesh>,
    material: Handle<StandardMaterial>,
    instances: Vec<Vec3>,
    at: Transform,
    /// The entity that came.
    came: Option<Entity>,
}

/// What the frames of a case took.
#[derive(Clone, Default)]
struct Samples {
    cpu_ms: Vec<f64>,
    frame_ms: Vec<f64>,
    stages: [Vec<f64>; CpuStage::ALL.len()],
    /// Work, and uploaded bytes, of the last frame.
    work: FrameWork,
    uploaded_bytes: u64,
}

/// Measures all cases with `sets` sets of `count` instances in all.
pub fn run(stage: &mut Stage, [sets, count, frames]: [u32; 3], json: bool) -> Result<()> {
    let mut one = spawn(stage, sets, count)?;
    for _ in 0..4 * WARM_UP {
        stage.frame()?;
    }
    let cases = Change::value_variants();
    let mut samples = vec![Samples::default(); cases.len()];
    for _ in 0..ROUNDS {
        for (change, samples) in cases.iter().zip(&mut samples) {
            for frame in 0..WARM_UP + frames.div_ceil(ROUNDS) {
                one.change(stage, *change, frame)?;
                let frame_ms = stage.frame()?;
                if frame < WARM_UP {
                    continue;
                }
                // Its report is of the frame before, in which the same happened.
                let report = stage.report();
                let ms = |time: Duration| time.as_secs_f64() * 1e3;
                samples.cpu_ms.push(ms(report.cpu.total()));
                samples.frame_ms.push(frame_ms);
                for (times, stage) in samples.stages.iter_mut().zip(CpuStage::ALL) {
                    times.push(ms(report.cpu.of(stage)));
                }
                (samples.work, samples.uploaded_bytes) = (report.work, report.uploaded_bytes);
            }
            one.reset(stage)?;
            for _ in 0..WARM_UP {
                stage.frame()?;
            }
        }
    }
    stage.verify()?;
    if !json {
        println!("{sets} sets of {count} instances in all; one changes in each frame");
        println!(
            "{:<10}{:>10}{:>8}{:>10}{:>7}{:>7}{:>11}{:>12}{:>16}",
            "change",
            "cpu_ms",
            "ratio",
            "frame_ms",
            "plans",
            "moved",
            "materials",
            "slot_bytes",
            "uploaded_bytes"
        );
    }
    let mut still_ms = None;
    for (change, samples) in cases.iter().zip(samples) {
        let cpu_ms = Times::of(samples.cpu_ms).median;
        let work = samples.work;
        let stages = CpuStage::ALL.into_iter().zip(samples.stages);
        let row = Row {
            change: *change,
            sets,
            cpu_ms,
            ratio: cpu_ms / *still_ms.get_or_insert(cpu_ms),
            stages: stages
                .map(|(stage, times)| (stage.name(), Times::of(times).median))
                .collect(),
            frame_ms: Times::of(samples.frame_ms).median,
            plans: work.plans,
            moved: work.moved,
            materials: work.materials,
            slot_bytes: work.slot_bytes,
            uploaded_bytes: samples.uploaded_bytes,
            adapter: stage.adapter(),
        };
        if json {
            println!("{}", serde_json::to_string(&row)?);
            continue;
        }
        let name = change.to_possible_value();
        println!(
            "{:<10}{:>10.3}{:>8.2}{:>10.3}{:>7}{:>7}{:>11}{:>12}{:>16}",
            name.as_ref().map_or("", |name| name.get_name()),
            row.cpu_ms,
            row.ratio,
            row.frame_ms,
            row.plans,
            row.moved,
            row.materials,
            row.slot_bytes,
            row.uploaded_bytes
        );
    }
    Ok(())
}

/// Spawns the sets in a square in front of the camera. Returns one in the middle.
fn spawn(stage: &mut Stage, sets: u32, count: u32) -> Result<One> {
    let world = stage.app.world_mut();
    let mesh = Triangle3d::default();
    let mesh = world.resource_mut::<Assets<Mesh>>().add(mesh);
    let mut materials = world.resource_mut::<Assets<StandardMaterial>>();
    let [shared, own] = [0.8, 0.2].map(|gray| materials.add(Color::srgb(gray, gray, gray)));
    let side = sets.isqrt().max(1);
    let each = (count / sets).max(1);
    let row = each.isqrt().max(1);
    let place = |i: u32| {
        let (x, y) = ((i % row) as f32, (i / row) as f32);
        Vec3::new(x, y, 0.0) / row as f32
    };
    let instances: Vec<_> = (0..each).map(place).collect();
    let mut one = None;
    for index in 0..sets {
        let set = InstanceSet::from_transforms(instances.iter().copied())?;
        let set = world.resource_mut::<Assets<InstanceSet>>().add(set);
        let at = Vec2::new((index % side) as f32, (index / side) as f32) - side as f32 / 2.0;
        let is_one = index == sets / 2;
        let material = if is_one { &own } else { &shared };
        let entity = world.spawn((
            Mesh3d(mesh.clone()),
            MeshMaterial3d(material.clone()),
            GpuInstances(set.clone()),
            Transform::from_xyz(at.x, at.y, -2.0 * side as f32),
        ));
        let entity = entity.id();
        if is_one {
            one = Some(One {
                entity,
                set,
                material: own.clone(),
                more: More {
                    mesh: mesh.clone(),
                    material: shared.clone(),
                    instances: instances.clone(),
                    at: Transform::from_xyz(0.0, 0.0, -2.0 * side as f32),
                    came: None,
                },
            });
        }
    }
    one.ok_or_else(|| anyhow!("there is no set"))
}

impl One {
    fn change(&mut self, stage: &mut Stage, change: Change, frame: u32) -> Result<()> {
        let is_odd = frame % 2 == 1;
        let step = (frame % 8) as f32 / 8.0;
        let world = stage.app.world_mut();
        match change {
            Change::Still => {}
            Change::Moving => {
                let mut at = world.get_mut::<Transform>(self.entity);
                at.as_mut()
                    .ok_or_else(|| anyhow!("the entity is gone"))?
                    .rotation = Quat::from_rotation_z(step);
            }
            Change::Edited | Change::Resized => {
                let mut sets = world.resource_mut::<Assets<InstanceSet>>();
                let mut set = sets
                    .get_mut(&self.set)
                    .ok_or_else(|| anyhow!("the set is gone"))?;
                match change {
                    Change::Edited => set.set(0, Vec3::Y * step)?,
                    _ if is_odd => drop(set.pop()),
                    _ => drop(set.push(Vec3::Y * step)?),
                }
            }
            Change::Entering => {
                let mut visibility = world.get_mut::<Visibility>(self.entity);
                let visibility = visibility
                    .as_mut()
                    .ok_or_else(|| anyhow!("the entity is gone"))?;
                **visibility = if is_odd {
                    Visibility::Hidden
                } else {
                    Visibility::Inherited
                };
            }
            Change::Material => {
                let mut materials = world.resource_mut::<Assets<StandardMaterial>>();
                let material = materials.get_mut(&self.material);
                let mut material = material.ok_or_else(|| anyhow!("the material is gone"))?;
                material.base_color = Color::srgb(step, 0.5, 0.5);
            }
            Change::Component => {
                let mut entity = world.entity_mut(self.entity);
                if is_odd {
                    entity.insert(NoOcclusionCulling);
                } else {
                    entity.remove::<NoOcclusionCulling>();
                }
            }
            Change::Coming => self.more.come_or_go(world)?,
        }
        Ok(())
    }

    /// Shows the set, without the component, and without the entity that came.
    fn reset(&mut self, stage: &mut Stage) -> Result<()> {
        let world = stage.app.world_mut();
        if self.more.came.is_some() {
            self.more.come_or_go(world)?;
        }
        let mut entity = world.entity_mut(self.entity);
        entity.remove::<NoOcclusionCulling>();
        entity.insert(Visibility::Inherited);
        Ok(())
    }
}

impl More {
    /// Spawns an entity with a new set, or despawns the one that came.
    fn come_or_go(&mut self, world: &mut World) -> Result<()> {
        if let Some(entity) = self.came.take() {
            world.despawn(entity);
            return Ok(());
        }
        let set = InstanceSet::from_transforms(self.instances.iter().copied())?;
        let set = world.resource_mut::<Assets<InstanceSet>>().add(set);
        let entity = world.spawn((
            Mesh3d(self.mesh.clone()),
            MeshMaterial3d(self.material.clone()),
            GpuInstances(set),
            self.at,
        ));
        self.came = Some(entity.id());
        Ok(())
    }
}
