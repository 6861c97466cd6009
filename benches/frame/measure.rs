//! Measures one case: an app without a window, first without instances, then with them.

mod seen;

use crate::{
    case::{Case, Peer, Scene, Shadows, name},
    cli::{Lods, Occlusion},
    common::stats::Times,
    end::{self, CleanEnd},
    failure::Failure,
    items,
    likeness::{self, Likeness},
    offscreen::{self, Uploads},
    picture,
    row::{MAIN_PASS, OUR_MAIN_PASSES, Row},
    scenes,
};
use anyhow::{Result, anyhow, bail, ensure};
use bevy::{
    camera::{RenderTarget, ShadowLodOrigin, visibility::VisibleEntities},
    core_pipeline::prepass::DepthPrepass,
    diagnostic::{DiagnosticPath, DiagnosticsStore},
    prelude::*,
    render::{
        diagnostic::RenderDiagnosticsPlugin,
        occlusion_culling::OcclusionCulling,
        renderer::{RenderAdapterInfo, RenderDevice},
    },
};
use bevy_gpu_culling::{
    diagnostics::CPU_TOTAL,
    prelude::{
        BakeImpostor, CullingReport, GpuCullingPlugin, GpuCullingSettings, ImpostorAtlas3d,
        ImpostorPlugin, InstanceOcclusion,
    },
    render::verify::Verifier,
};
use image::RgbImage;
use std::{
    any::TypeId,
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, Instant},
};
use wgpu::DeviceType;

/// How each case is measured.
pub struct Settings {
    pub size: UVec2,
    /// Frames before the measured ones, of each scene.
    pub warm_up: u32,
    pub frames: u32,
    /// File for the picture of the last frame.
    pub out: Option<PathBuf>,
    /// [`InstanceOcclusion::near_pixels`]; `None` for its default.
    pub near_pixels: Option<f32>,
    /// [`AggregateDetail::below_pixels`] of all sets; `None` without the component.
    pub aggregate: Option<f32>,
    /// [`BakeImpostor::below_pixels`] of all sets; `None` without the component.
    pub impostors: Option<f32>,
    /// Whether sets of every scene are drawn by meshlets.
    pub by_meshlets: bool,
    /// The vertices of all meshes are compressed.
    pub compressed: bool,
    /// Whether the sun casts shadows.
    pub shadows: Shadows,
}

/// With fewer measured frames the camera stands still: counters arrive some frames late, and would
/// be of other views.
const FEWEST_OF_A_TURN: u32 = 8;
/// Frames to wait for a pipeline, a picture or a verdict.
const PATIENCE: u32 = 60;
/// Frames to wait for photographs.
const BAKE_PATIENCE: u32 = 1000;
/// Frames after which changed settings are in the picture, and a cut is forgotten.
const SETTLED: u32 = 3;
/// Number of cuts that are measured: as many in each of two directions.
const CUTS: u32 = 8;
/// The least time of a warm-up on a GPU, which reaches its full clock only under load.
const BUSY: Duration = Duration::from_secs(1);

/// Measures a case in a new app.
pub fn row(case: &Case, settings: &Settings) -> Result<Row> {
    // Before the app, because it must be dropped after the app.
    let end = CleanEnd::new();
    let mut stage = Stage::new(case, settings, &end)?;
    stage.warm_up()?;
    let floor = stage.measure()?;
    scenes::fill(stage.app.world_mut(), case)?;
    if settings.compressed {
        scenes::compress(stage.app.world_mut())?;
    }
    if settings.by_meshlets {
        scenes::cut_into_meshlets(stage.app.world_mut())?;
    }
    if let Some(below_pixels) = settings.aggregate {
        scenes::thin_out(stage.app.world_mut(), below_pixels);
    }
    stage.load()?;
    if let Some(below_pixels) = settings.impostors {
        scenes::bake_impostors(stage.app.world_mut(), case.scene, below_pixels)?;
        stage.bake()?;
    }
    stage.warm_up()?;
    let full = stage.measure()?;
    let cut = match case.occlusion {
        Some(Occlusion::Auto | Occlusion::On | Occlusion::Prepass) => Some(stage.cut()?),
        Some(Occlusion::Off) | None => None,
    };
    let verified = stage.verify()?;
    let likeness = stage.likeness()?;
    if let Some(path) = &settings.out {
        stage.save(path)?;
    }
    let kept_over_seen = stage.kept_over_seen()?;
    let info = stage.app.world().resource::<RenderAdapterInfo>();
    let of_instances = |full: f64| (full - floor.triangles.unwrap_or(0.0)).round() as u64;
    Ok(Row {
        scene: name(case.scene),
        count: case.count,
        order: case.order.map(name),
        lods: case.lods.map(name),
        expansion: stage.expansion(),
        occlusion: case.occlusion.map(name),
        shadows: (case.scene != Scene::Demo).then(|| name(settings.shadows)),
        peer: name(case.peer),
        frame_ms: full.median_ms,
        worst_ms: full.worst_ms,
        cut_ms: cut.map(|[cut, _]| rounded(cut)),
        after_cut_ms: cut.map(|[_, after]| rounded(after)),
        floor_ms: floor.median_ms,
        passes_ms: full.passes_ms,
        triangles: full.triangles.map(of_instances),
        visible: full.visible,
        cpu_ms: full.cpu_ms,
        verified,
        kept_over_seen: kept_over_seen.map(rounded),
        psnr: likeness.and_then(|likeness| Some(rounded(likeness.psnr?))),
        differing: likeness.map(|likeness| rounded(likeness.differing)),
        adapter: info.name.clone(),
        driver: format!("{} {}", info.driver, info.driver_info)
            .trim()
            .to_owned(),
        size: settings.size.to_array(),
        frames: settings.frames,
    })
}

/// What a run of frames has shown.
struct Measured {
    median_ms: f64,
    worst_ms: f64,
    /// Median of the primitives that reach the clipper in the main pass, the sky's included.
    triangles: Option<f64>,
    visible: u64,
    passes_ms: BTreeMap<String, f64>,
    cpu_ms: Option<f64>,
}

/// The app, and what is measured in it.
struct Stage<'a> {
    app: App,
    case: &'a Case,
    settings: &'a Settings,
    camera: Entity,
    target: Handle<Image>,
    /// Frames drawn so far. The camera turns once in as many as are measured.
    drawn: u32,
}

impl<'a> Stage<'a> {
    /// Starts the app, with the scene's camera and lights.
    fn new(case: &'a Case, settings: &'a Settings, end: &CleanEnd) -> Result<Self> {
        let mut app = App::new();
        let log = offscreen::log_to_stderr("warn,wgpu_hal=error");
        offscreen::add_bevy(&mut app, end, log, true);
        app.add_plugins(RenderDiagnosticsPlugin)
            .insert_resource(ClearColor(Color::BLACK));
        if case.peer == Peer::Sets {
            app.add_plugins(GpuCullingPlugin::from(GpuCullingSettings {
                expansion: case.expansion.unwrap_or_default(),
                ..default()
            }));
        }
        if settings.impostors.is_some() {
            app.add_plugins(ImpostorPlugin);
        }
        if seen::is_counted(case) {
            items::add_items(&mut app);
        }
        offscreen::start(&mut app);
        let limit = app.world().resource::<RenderDevice>().limits();
        let limit = limit.max_texture_dimension_2d;
        ensure!(
            settings.size.max_element() <= limit,
            "this adapter draws at most {limit} pixels a side"
        );
        let world = app.world_mut();
        let target = picture::target(settings.size);
        let target = world.resource_mut::<Assets<Image>>().add(target);
        let camera = scenes::furnish(world, case);
        // Without a window, Bevy must be told which camera the level of detail of shadows follows.
        world
            .entity_mut(camera)
            .insert((ShadowLodOrigin, RenderTarget::Image(target.clone().into())));
        let mut eye = world.entity_mut(camera);
        match (case.occlusion, case.peer) {
            (None | Some(Occlusion::Off), _) => {}
            (Some(how @ (Occlusion::Auto | Occlusion::On)), Peer::Sets) => {
                let own = InstanceOcclusion::default();
                eye.insert(InstanceOcclusion {
                    near_pixels: settings.near_pixels.unwrap_or(own.near_pixels),
                    may_pause: how == Occlusion::Auto,
                });
            }
            // Bevy's needs a prepass.
            (Some(Occlusion::Prepass), _) | (Some(Occlusion::Auto | Occlusion::On), Peer::Bevy) => {
                eye.insert((DepthPrepass, OcclusionCulling));
            }
        }
        if case.scene != Scene::Demo && settings.shadows != Shadows::Off {
            scenes::cast_shadows(world, settings.shadows == Shadows::Hidden);
        }
        Ok(Self {
            app,
            case,
            settings,
            camera,
            target,
            drawn: 0,
        })
    }

    /// Draws one frame, waits for the GPU, and returns the time in milliseconds.
    fn frame(&mut self) -> Result<f64> {
        let frames = self.settings.frames;
        let share = match frames {
            ..FEWEST_OF_A_TURN => 0.0,
            _ => (self.drawn % frames) as f32 / frames as f32,
        };
        if let Some(rotation) = scenes::pose(self.case.scene, share) {
            let mut camera = self.app.world_mut().entity_mut(self.camera);
            if let Some(mut place) = camera.get_mut::<Transform>() {
                place.rotation = rotation;
            }
        }
        self.drawn += 1;
        self.still_frame()
    }

    /// Draws one frame with a camera that does not move.
    fn still_frame(&mut self) -> Result<f64> {
        end::frame(&mut self.app).map_err(|exit| match Failure::of_app(exit) {
            Some(failure) => anyhow!(failure.message),
            None => anyhow!("the app ended before its work was done"),
        })
    }

    /// Draws until no pipeline waits for a shader.
    fn wait_for_pipelines(&mut self) -> Result<()> {
        let mut waited = 0;
        while {
            self.still_frame()?;
            !offscreen::pipelines_are_ready(&self.app)
        } {
            waited += 1;
            ensure!(
                waited < PATIENCE,
                "the renderer's pipelines are not ready: the log names the shader that fails"
            );
        }
        Ok(())
    }

    /// Draws until no pipeline waits for a shader, then the frames of the warm-up.
    fn warm_up(&mut self) -> Result<()> {
        self.wait_for_pipelines()?;
        let info = self.app.world().resource::<RenderAdapterInfo>();
        let is_software = info.device_type == DeviceType::Cpu;
        let begin = Instant::now();
        let mut drawn = 0;
        while drawn < self.settings.warm_up || !is_software && begin.elapsed() < BUSY {
            self.frame()?;
            drawn += 1;
        }
        Ok(())
    }

    /// Draws until all sets are on the GPU.
    fn load(&mut self) -> Result<()> {
        if self.case.peer == Peer::Bevy {
            return Ok(());
        }
        let mut uploads = Uploads::default();
        // The smallest budget uploads one block of 1,024 instances per frame.
        let max = self.case.count / 1024 + PATIENCE;
        for _ in 0..max {
            self.frame()?;
            if uploads.are_complete(self.app.world_mut()) {
                return Ok(());
            }
        }
        bail!("the sets did not arrive within {max} frames")
    }

    /// Draws until all that asked for photographs has them.
    fn bake(&mut self) -> Result<()> {
        for _ in 0..BAKE_PATIENCE {
            self.still_frame()?;
            let world = self.app.world_mut();
            let mut waiting =
                world.query_filtered::<(), (With<BakeImpostor>, Without<ImpostorAtlas3d>)>();
            if waiting.iter(world).next().is_none() {
                return Ok(());
            }
        }
        bail!("no photographs within {BAKE_PATIENCE} frames: the log says why")
    }

    /// Draws and measures the frames of one turn.
    fn measure(&mut self) -> Result<Measured> {
        // What was measured before is of other frames.
        let mut store = self.app.world_mut().resource_mut::<DiagnosticsStore>();
        store.iter_mut().for_each(|one| one.clear_history());
        self.drawn = 0;
        let (mut times, mut visible) = (Vec::new(), Vec::new());
        for _ in 0..self.settings.frames {
            times.push(self.frame()?);
            visible.push(self.visible() as f64);
        }
        let store = self.app.world().resource::<DiagnosticsStore>();
        let passes = store.iter().filter_map(|one| {
            let pass = one.path().as_str().strip_prefix("render/")?;
            let pass = pass.strip_suffix("/elapsed_gpu")?;
            Some((pass.to_owned(), rounded(median(store, one.path())?)))
        });
        let counted = |pass: &str| {
            let path = format!("render/{pass}/clipper_invocations");
            median(store, &DiagnosticPath::new(path))
        };
        Ok(Measured {
            worst_ms: rounded(times.iter().copied().fold(0.0, f64::max)),
            median_ms: rounded(Times::of(times).median),
            triangles: counted(MAIN_PASS)
                .map(|main| main + OUR_MAIN_PASSES.into_iter().filter_map(counted).sum::<f64>()),
            visible: Times::of(visible).median as u64,
            passes_ms: passes.collect(),
            cpu_ms: median(store, &CPU_TOTAL).map(rounded),
        })
    }

    /// Medians of frames after the camera has turned around, and of the frames of the same view
    /// that follow.
    fn cut(&mut self) -> Result<[f64; 2]> {
        let (mut cuts, mut after) = (Vec::new(), Vec::new());
        for _ in 0..CUTS {
            let mut camera = self.app.world_mut().entity_mut(self.camera);
            if let Some(mut place) = camera.get_mut::<Transform>() {
                place.rotate_y(std::f32::consts::PI);
            }
            cuts.push(self.still_frame()?);
            for _ in 0..SETTLED {
                self.still_frame()?;
            }
            after.push(self.still_frame()?);
        }
        Ok([cuts, after].map(|times| Times::of(times).median))
    }

    /// Number of instances that the camera keeps: by the plugin's counters, which may be some
    /// frames old, or by Bevy's list of visible entities.
    fn visible(&self) -> u64 {
        let world = self.app.world();
        match world.get_resource::<CullingReport>() {
            Some(report) => report.cameras().1,
            None => self.entities_seen() as u64,
        }
    }

    /// Number of entities that Bevy found in the camera's view: sets, or the peer's instances.
    fn entities_seen(&self) -> usize {
        let seen = self.app.world().get::<VisibleEntities>(self.camera);
        seen.map_or(0, |seen| seen.iter(TypeId::of::<Mesh3d>()).count())
    }

    /// How the last view was expanded to meshlets; `None` without meshlets.
    fn expansion(&self) -> Option<String> {
        let report = self.app.world().get_resource::<CullingReport>()?;
        Some(report.expansion?.to_string())
    }

    /// Compares the survivors of the last view with the CPU twin's; `None` for Bevy's entities.
    fn verify(&mut self) -> Result<Option<bool>> {
        let verifier = self.app.world().get_resource::<Verifier>().cloned();
        let Some(verifier) = verifier else {
            return Ok(None);
        };
        verifier.request();
        for _ in 0..PATIENCE {
            self.still_frame()?;
            if let Some(verdicts) = verifier.take() {
                offscreen::check_verdicts(&verdicts, self.entities_seen())
                    .map_err(|reason| anyhow!(reason))?;
                return Ok(Some(true));
            }
        }
        bail!("the verdicts did not come within {PATIENCE} frames")
    }

    /// Compares the last view with the same view in full detail; `None` for a case without levels,
    /// and for entities.
    fn likeness(&mut self) -> Result<Option<Likeness>> {
        if self.case.lods != Some(Lods::On) || self.case.peer == Peer::Bevy {
            return Ok(None);
        }
        let with_levels = self.picture()?;
        // If no error is allowed, everything is drawn in full.
        let levels = self.allow_errors([0.0; 2])?;
        let in_full = self.picture()?;
        self.allow_errors(levels)?;
        likeness::of(&with_levels, &in_full).map(Some)
    }

    /// Sets the pixels by which cameras and shadows may see the errors of levels, and returns what
    /// they were.
    fn allow_errors(&mut self, pixels: [f32; 2]) -> Result<[f32; 2]> {
        let mut settings = self.app.world_mut().resource_mut::<GpuCullingSettings>();
        let before = [settings.lod_pixels, settings.shadow_lod_pixels];
        [settings.lod_pixels, settings.shadow_lod_pixels] = pixels;
        for _ in 0..SETTLED {
            self.still_frame()?;
        }
        Ok(before)
    }

    /// A picture of the last view.
    fn picture(&mut self) -> Result<RgbImage> {
        self.draw_picture()?;
        picture::take(self.app.world_mut()).map_err(|reason| anyhow!(reason))
    }

    /// Writes a picture of the last view.
    fn save(&mut self, path: &std::path::Path) -> Result<()> {
        self.draw_picture()?;
        picture::save(self.app.world_mut(), path)
            .map_err(|failure| anyhow!(failure.message).context("no picture"))
    }

    /// Draws frames until there is a picture of the last view.
    fn draw_picture(&mut self) -> Result<()> {
        picture::request(self.app.world_mut(), self.target.clone());
        let mut waited = 0;
        while !picture::is_there(self.app.world()) {
            self.still_frame()?;
            waited += 1;
            ensure!(
                waited < PATIENCE,
                "the picture did not come within {PATIENCE} frames"
            );
        }
        Ok(())
    }
}

/// Median of the measurements that Bevy keeps of a path.
fn median(store: &DiagnosticsStore, path: &DiagnosticPath) -> Option<f64> {
    let times: Vec<_> = store.get(path)?.values().copied().collect();
    (!times.is_empty()).then(|| Times::of(times).median)
}

/// To a ten-thousandth.
fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}
