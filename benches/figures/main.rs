//! Measures crowds: figures that stand still, play a clip, or blend two clips, as sets; and Bevy's
//! skinned entities. The GPU is waited for in each frame.
#![allow(clippy::print_stdout, reason = "a command-line tool talks by printing")]

#[path = "../../examples/orbs/end.rs"]
#[allow(dead_code, unused_imports, reason = "the demo uses the rest")]
mod end;
mod figure;
#[path = "../../examples/orbs/offscreen.rs"]
#[allow(dead_code, unused_imports, reason = "the demo uses the rest")]
mod offscreen;
#[path = "../common/stats.rs"]
mod stats;

use anyhow::{Result, bail, ensure};
use bevy::{
    camera::RenderTarget,
    prelude::*,
    render::{
        render_resource::{PollType, TextureFormat},
        renderer::{RenderAdapterInfo, RenderDevice},
    },
};
use bevy_gpu_culling::prelude::*;
use clap::{Parser, ValueEnum};
use core::time::Duration;
use end::CleanEnd;
use figure::{Figure, Placed};
use stats::Times;
use std::time::Instant;

/// Measures crowds of animated figures.
#[derive(Parser)]
#[command(name = "figures", version)]
struct Args {
    /// Numbers of figures
    #[arg(long, value_delimiter = ',', default_value = "10000,100000")]
    count: Vec<u32>,
    /// What a figure is
    #[arg(long, value_delimiter = ',', default_value = "tube,fox")]
    figure: Vec<Figure>,
    /// What figures do
    #[arg(long, value_delimiter = ',', default_value = "still,clip,blend,bevy")]
    plays: Vec<Plays>,
    /// Measured frames per case, after as many others and a second
    #[arg(long, default_value_t = 150)]
    frames: u32,
    /// Set by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// What figures do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Plays {
    /// A set whose mesh has no joints.
    Still,
    /// Each plays a clip.
    Clip,
    /// Each is in the middle of a change from one clip to another.
    Blend,
    /// Bevy's skinned entities, each with a player. Of foxes only, and of at most 20,000.
    Bevy,
}

/// The longest wait for files, poses and pipelines, in frames.
const PATIENCE: u32 = 4000;

fn main() -> Result<()> {
    let args = Args::parse();
    let end = CleanEnd::new();
    println!("| figure | count | plays | frame ms | CPU ms | ours ms | visible |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for figure in &args.figure {
        for count in &args.count {
            for plays in &args.plays {
                let is_bevys = *plays == Plays::Bevy;
                if is_bevys && (*figure != Figure::Fox || *count > 20_000) {
                    continue;
                }
                let mut stage = Stage::new((*figure, *count, *plays), &end)?;
                stage.measure(args.frames)?;
            }
        }
    }
    Ok(())
}

/// A headless app with a crowd.
struct Stage {
    app: App,
    figure: Figure,
    count: u32,
    plays: Plays,
}

impl Stage {
    fn new((figure, count, plays): (Figure, u32, Plays), end: &CleanEnd) -> Result<Self> {
        let mut app = App::new();
        let log = offscreen::log_to_stderr("warn,wgpu_hal=error,bevy_log=off");
        offscreen::add_bevy(&mut app, end, log, true);
        if plays != Plays::Bevy {
            app.add_plugins(GpuCullingPlugin::default());
        }
        offscreen::start(&mut app);
        let target = Image::new_target_texture(1920, 1080, TextureFormat::Rgba8UnormSrgb, None);
        let world = app.world_mut();
        let target = world.resource_mut::<Assets<Image>>().add(target);
        let side = (count as f32).sqrt() * 1.5;
        let eye = Vec3::new(0.0, side * 0.9, side * 0.9);
        world.spawn((
            Camera3d::default(),
            RenderTarget::Image(target.into()),
            Transform::from_translation(eye).looking_at(Vec3::ZERO, Vec3::Y),
        ));
        world.spawn((
            DirectionalLight::default(),
            Transform::default().looking_to(Vec3::new(1.0, -2.0, -1.0), Vec3::Y),
        ));
        Ok(Self {
            app,
            figure,
            count,
            plays,
        })
    }

    fn places(&self, scale: f32) -> Vec<Transform> {
        let side = (self.count as f32).sqrt().ceil() as u32;
        let place = |at: u32| {
            let [x, z] = [at % side, at / side].map(|at| at as f32 - side as f32 / 2.0);
            Transform::from_xyz(x * 1.5, 0.0, z * 1.5)
                .with_rotation(Quat::from_rotation_y(at as f32))
                .with_scale(Vec3::splat(scale))
        };
        (0..self.count).map(place).collect()
    }

    /// Spawns the crowd, and draws until everything is there.
    fn fill(&mut self) -> Result<()> {
        let placed = figure::load(&mut self.app, self.figure, PATIENCE)?;
        let places = self.places(placed.scale);
        let world = self.app.world_mut();
        if self.plays == Plays::Bevy {
            figure::spawn_entities(world, &placed, places);
        } else {
            spawn_set(world, &placed, self.plays, places)?;
        }
        for _ in 0..PATIENCE {
            self.frame()?;
            let is_there = match self.plays {
                Plays::Bevy => figure::play(self.app.world_mut(), &placed) == self.count as usize,
                _ => self.report().is_some_and(|report| report.instances > 0),
            };
            if is_there && offscreen::pipelines_are_ready(&self.app) {
                return Ok(());
            }
        }
        bail!("the crowd was not complete within {PATIENCE} frames")
    }

    fn report(&self) -> Option<&CullingReport> {
        self.app.world().get_resource()
    }

    /// Draws a frame. Returns its milliseconds with the wait for the GPU, and on the CPU.
    fn frame(&mut self) -> Result<[f64; 2]> {
        let start = Instant::now();
        self.app.update();
        let cpu = start.elapsed();
        let device = self.app.world().resource::<RenderDevice>();
        device.poll(PollType::wait_indefinitely())?;
        ensure!(self.app.should_exit().is_none(), "the app has ended");
        Ok([start.elapsed(), cpu].map(|time| time.as_secs_f64() * 1e3))
    }

    fn measure(&mut self, frames: u32) -> Result<()> {
        self.fill()?;
        let begin = Instant::now();
        let mut drawn = 0;
        while drawn < frames || begin.elapsed() < Duration::from_secs(1) {
            self.frame()?;
            drawn += 1;
        }
        let mut samples: [Vec<f64>; 3] = Default::default();
        for _ in 0..frames {
            let [frame, cpu] = self.frame()?;
            let ours = self.report().map(|report| report.cpu.total());
            let ours = ours.map_or(0.0, |time| time.as_secs_f64() * 1e3);
            for (samples, value) in samples.iter_mut().zip([frame, cpu, ours]) {
                samples.push(value);
            }
        }
        let visible = self.report().map_or(0, |report| {
            let all = report.views.iter().map(|view| view.visible);
            all.sum::<u64>()
        });
        let [frame, cpu, ours] = samples.map(|samples| Times::of(samples).median);
        let (figure, count, plays) = (self.figure, self.count, self.plays);
        println!(
            "| {figure:?} | {count} | {plays:?} | {frame:.2} | {cpu:.2} | {ours:.3} | {visible} |"
        );
        let info = self.app.world().resource::<RenderAdapterInfo>();
        ensure!(!info.name.is_empty(), "there is no adapter");
        Ok(())
    }
}

/// Spawns the crowd as a set.
fn spawn_set(
    world: &mut World,
    placed: &Placed,
    plays: Plays,
    places: Vec<Transform>,
) -> Result<()> {
    let now = world.resource::<Time>().elapsed();
    let state = |index: u32| {
        let begun = Duration::from_millis(u64::from(index * 37 % 1000));
        let clip = AnimationState::play(0, now).begun_before(begun);
        match plays {
            Plays::Blend => clip.change_to(1, now, &placed.poses),
            _ => clip,
        }
    };
    let states = (0..places.len() as u32).map(state).collect();
    let set = InstanceSet::from_transforms(places)?.with_data(states)?;
    let set = GpuInstances(world.resource_mut::<Assets<InstanceSet>>().add(set));
    let (mesh, poses) = match plays {
        Plays::Still => (figure::without_joints(&placed.mesh), None),
        _ => (placed.mesh.clone(), Some(placed.poses.clone())),
    };
    let mesh = Mesh3d(world.resource_mut::<Assets<Mesh>>().add(mesh));
    let set = (mesh, MeshMaterial3d(placed.material.clone()), set);
    let entity = world.spawn(set).id();
    if let Some(poses) = poses {
        let poses = world.resource_mut::<Assets<AnimationPoses>>().add(poses);
        world.entity_mut(entity).insert(InstanceAnimation {
            poses,
            source: AnimationSource::InData { first_word: 0 },
            // As long as the measurement.
            blend_seconds: 100.0,
        });
    }
    Ok(())
}
