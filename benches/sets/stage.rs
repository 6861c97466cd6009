//! Measures one case, in a new app.

use crate::{
    Peer, Row, Settings,
    city::{self, City},
    common::stats::Times,
    end::CleanEnd,
    offscreen::{self, Uploads},
    schedule::{self, Marks},
};
use anyhow::{Result, anyhow, bail, ensure};
use bevy::{
    camera::{RenderTarget, ShadowLodOrigin, visibility::VisibleEntities},
    prelude::*,
    render::{
        render_resource::{PollType, TextureFormat},
        renderer::{RenderAdapterInfo, RenderDevice},
    },
};
use bevy_gpu_culling::{
    prelude::{CullingReport, GpuCullingPlugin, GpuInstances},
    render::{CpuStage, verify::Verifier},
};
use core::any::TypeId;
use std::time::{Duration, Instant};
use wgpu::DeviceType;

/// The longest wait for a pipeline, a set or a verdict, in frames.
const PATIENCE: u32 = 2000;
/// The least time of a warm-up on a GPU, which reaches its full clock only under load.
const BUSY: Duration = Duration::from_secs(1);

/// An app without a window that draws a city.
pub struct Stage {
    app: App,
    city: City,
    peer: Peer,
    settings: Settings,
    camera: Entity,
    marks: Marks,
    /// When the frame that was drawn last began.
    began: Instant,
    /// Frames drawn so far. The camera turns once in as many as are measured.
    drawn: u32,
}

impl Stage {
    pub fn new(city: City, peer: Peer, settings: Settings, end: &CleanEnd) -> Result<Self> {
        let mut app = App::new();
        let log = offscreen::log_to_stderr("warn,wgpu_hal=error,bevy_log=off");
        offscreen::add_bevy(&mut app, end, log, true);
        if peer == Peer::Sets {
            app.add_plugins(GpuCullingPlugin::default());
        }
        app.add_systems(Update, city::step);
        let marks = schedule::add(&mut app);
        offscreen::start(&mut app);
        let UVec2 { x, y } = settings.size;
        let target = Image::new_target_texture(x, y, TextureFormat::Rgba8UnormSrgb, None);
        let world = app.world_mut();
        let target = world.resource_mut::<Assets<Image>>().add(target);
        let camera = city.furnish(world, peer);
        // Without a window, Bevy must be told which camera the level of detail of shadows follows.
        world
            .entity_mut(camera)
            .insert((ShadowLodOrigin, RenderTarget::Image(target.into())));
        city.fill(world, peer, settings.moving)?;
        Ok(Self {
            app,
            city,
            peer,
            settings,
            camera,
            marks,
            began: Instant::now(),
            drawn: 0,
        })
    }

    /// Measures the case.
    pub fn row(mut self) -> Result<Row> {
        self.load()?;
        self.warm_up()?;
        self.drawn = 0;
        self.marks.take(self.began);
        let mut samples: [Vec<f64>; 3] = Default::default();
        let mut seen = Vec::new();
        let mut schedule = Vec::new();
        let mut stages: [Vec<f64>; CpuStage::ALL.len()] = Default::default();
        for _ in 0..self.settings.frames {
            let [cpu, frame] = self.frame()?;
            schedule.push(self.marks.take(self.began));
            let ours = self.report().map(|report| report.cpu.total());
            let ours = ours.map_or(0.0, |time| time.as_secs_f64() * 1e3);
            for (samples, value) in samples.iter_mut().zip([cpu, frame, ours]) {
                samples.push(value);
            }
            let times = self.report().map(|report| report.cpu).unwrap_or_default();
            for (stage, samples) in CpuStage::ALL.into_iter().zip(&mut stages) {
                samples.push(times.of(stage).as_secs_f64() * 1e3);
            }
            seen.push(self.seen() as f64);
        }
        let stages = stages.map(|samples| Times::of(samples).median);
        let stages = CpuStage::ALL.map(CpuStage::name).into_iter().zip(stages);
        let worst_ms = samples[1].iter().copied().fold(0.0, f64::max);
        let report = self.report();
        let draw_calls = report.map(|report| report.draw_calls);
        let uploaded_bytes = report.map(|report| report.uploaded_bytes);
        let gpu_bytes = report.map(|report| report.gpu_bytes);
        let verified = self.verify()?;
        let info = self.app.world().resource::<RenderAdapterInfo>();
        let [cpu_ms, frame_ms, ours_ms] = samples.map(|samples| Times::of(samples).median);
        Ok(Row {
            peer: self.peer,
            city: self.city,
            moving: self.settings.moving,
            cpu_ms,
            ours_ms: (self.peer == Peer::Sets).then_some(ours_ms),
            stages_ms: (self.peer == Peer::Sets).then(|| stages.collect()),
            schedule_ms: schedule::medians(schedule),
            frame_ms,
            worst_ms,
            seen: Times::of(seen).median as usize,
            draw_calls,
            uploaded_bytes,
            gpu_bytes,
            verified,
            adapter: info.name.clone(),
            driver: format!("{} {}", info.driver, info.driver_info)
                .trim()
                .to_owned(),
            size: self.settings.size.to_array(),
            frames: self.settings.frames,
        })
    }

    /// Draws a frame. Returns its milliseconds on the CPU, and with the wait for the GPU.
    fn frame(&mut self) -> Result<[f64; 2]> {
        let share = (self.drawn % self.settings.frames) as f32 / self.settings.frames as f32;
        self.drawn += 1;
        let mut camera = self.app.world_mut().entity_mut(self.camera);
        if let Some(mut place) = camera.get_mut::<Transform>() {
            *place = city::pose(share);
        }
        self.still_frame()
    }

    /// Draws a frame before the measured ones. If they are the first turn of the camera, it stands.
    fn unmeasured_frame(&mut self) -> Result<[f64; 2]> {
        match self.settings.first_turn {
            true => self.still_frame(),
            false => self.frame(),
        }
    }

    /// Draws a frame with a camera that does not move.
    fn still_frame(&mut self) -> Result<[f64; 2]> {
        let start = Instant::now();
        self.began = start;
        self.app.update();
        let cpu = start.elapsed();
        let device = self.app.world().resource::<RenderDevice>();
        device.poll(PollType::wait_indefinitely())?;
        let frame = start.elapsed();
        ensure!(
            self.app.should_exit().is_none(),
            "the app ended before its work was done"
        );
        Ok([cpu, frame].map(|time| time.as_secs_f64() * 1e3))
    }

    /// The report of the frame before this one; `None` for Bevy's entities.
    fn report(&self) -> Option<&CullingReport> {
        self.app.world().get_resource()
    }

    /// Number of sets or entities that Bevy found in the camera's view.
    fn seen(&self) -> usize {
        let seen = self.app.world().get::<VisibleEntities>(self.camera);
        seen.map_or(0, |seen| seen.iter(TypeId::of::<Mesh3d>()).count())
    }

    /// Draws until all sets are on the GPU and no pipeline waits for a shader.
    fn load(&mut self) -> Result<()> {
        let mut uploads = Uploads::default();
        for _ in 0..PATIENCE {
            self.unmeasured_frame()?;
            let has_arrived = self.peer != Peer::Sets || uploads.are_complete(self.app.world_mut());
            if has_arrived && offscreen::pipelines_are_ready(&self.app) {
                return Ok(());
            }
        }
        bail!("the city was not complete within {PATIENCE} frames")
    }

    fn warm_up(&mut self) -> Result<()> {
        let info = self.app.world().resource::<RenderAdapterInfo>();
        let is_software = info.device_type == DeviceType::Cpu;
        let begin = Instant::now();
        let mut drawn = 0;
        // A set that is seen for the first time costs more: the camera turns once.
        let turn = match self.settings.first_turn {
            true => 0,
            false => self.settings.frames,
        };
        let least = self.settings.warm_up.max(turn);
        while drawn < least || !is_software && begin.elapsed() < BUSY {
            self.unmeasured_frame()?;
            drawn += 1;
        }
        Ok(())
    }

    /// Compares the survivors of the last view with the CPU twin's; `None` for Bevy's entities.
    fn verify(&mut self) -> Result<Option<bool>> {
        let verifier = self.app.world().get_resource::<Verifier>().cloned();
        let Some(verifier) = verifier else {
            return Ok(None);
        };
        let world = self.app.world_mut();
        let sets = world.query::<&GpuInstances>().iter(world).count();
        ensure!(sets > 0, "there is no set");
        verifier.request();
        for _ in 0..PATIENCE {
            self.still_frame()?;
            if let Some(verdicts) = verifier.take() {
                offscreen::check_verdicts(&verdicts, self.seen())
                    .map_err(|reason| anyhow!(reason))?;
                return Ok(Some(true));
            }
        }
        bail!("the verdicts did not come within {PATIENCE} frames")
    }
}
