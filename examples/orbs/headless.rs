//! Frames without a window: warm up, measure, then wait for the picture, the counters and the
//! verdicts.

use crate::{
    Failure,
    cli::Cli,
    end::{self, CleanEnd},
    field::LayerSet,
    freeze::{FreezePlugin, way_out},
    log_plugin, look, offscreen, picture,
    report::{Report, Start, Upload, View},
    scene::{Field, Orbs, show},
    upload::{Watch, plain_rate},
    zoom,
};
use bevy::{
    camera::{RenderTarget, ShadowLodOrigin, visibility::VisibleEntities},
    math::ops,
    post_process::bloom::Bloom,
    prelude::*,
    render::{diagnostic::RenderDiagnosticsPlugin, renderer::RenderDevice},
};
use bevy_gpu_culling::{
    instance::InstanceError,
    prelude::{CullingReport, FreezeCulling, GpuCullingPlugin},
    render::verify::{Verdict, Verifier},
};
use indicatif::{ProgressBar, ProgressStyle};
use std::{any::TypeId, time::Instant};

/// Orbs to warm up with if the large field's upload is measured.
const SMALL: u32 = 100_000;

/// Updates to wait for a pipeline, a counter or a picture.
const PATIENCE: u32 = 60;

/// How far the camera turns before a picture of what is late, in radians.
const TURN: f32 = 0.1;

/// Draws the frames that the flags ask for, and reports.
pub fn run(cli: &Cli, end: &CleanEnd) -> Result<(), Failure> {
    let begin = Instant::now();
    let progress = Progress::new(cli);
    let (mut stage, mut start) = Stage::set(cli, end, &progress)?;
    if let Some(frames) = cli.end_after {
        return (0..frames).try_for_each(|_| stage.frame().map(drop));
    }
    let warm_up = Instant::now();
    stage.warm_up(&progress)?;
    let upload = stage.load(cli, &progress)?;
    start.warm_up = milliseconds(warm_up);
    start.total = milliseconds(begin);
    let frames = stage.measure(cli, &progress)?;
    let verdicts = stage.wait_for_results(cli, &progress)?;
    progress.done();

    if let Some(path) = &cli.out {
        picture::save(stage.app.world_mut(), path)?;
    }
    let report = Report::new(
        cli,
        stage.app.world(),
        frames,
        stage.views(cli, verdicts.as_deref()),
        (start, upload),
    );
    print!("{report}");
    if cli.json {
        println!("{}", report.json());
    }
    match verdicts {
        Some(verdicts) => offscreen::check_verdicts(&verdicts, stage.orbs_seen())
            .map_err(|reason| Failure::new(Failure::WORK, reason)),
        None => Ok(()),
    }
}

/// The app and its parts.
struct Stage {
    app: App,
    camera: Entity,
    target: Handle<Image>,
    /// The field whose upload is measured after the warm-up.
    later: Option<(Field, Vec<LayerSet>)>,
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

impl Stage {
    /// Builds the app and the field.
    fn set(cli: &Cli, end: &CleanEnd, progress: &Progress) -> Result<(Self, Start), Failure> {
        progress.say("starting the renderer");
        let begin = Instant::now();
        let mut app = app(cli, end);
        let renderer = milliseconds(begin);
        let device = app.world().resource::<RenderDevice>();
        let limit = device.limits().max_texture_dimension_2d;
        if cli.size.max_element() > limit {
            let message = format!(
                "--size {}x{}: this adapter draws at most {limit} pixels a side",
                cli.size.x, cli.size.y
            );
            return Err(Failure::new(Failure::USAGE, message));
        }
        progress.say("scattering the orbs");
        let field = Field::new(cli);
        let radius = field.radius();
        let begin = Instant::now();
        let wrong = |error: InstanceError| Failure::new(Failure::WORK, error.to_string());
        let sets = field.generate().map_err(wrong)?;
        let (sets, tangent) = choose(cli, radius, sets)?;
        let start = Start {
            renderer,
            generate: milliseconds(begin),
            ..Start::default()
        };
        let mut later = None;
        let world = app.world_mut();
        if cli.upload {
            // Of the same radius, so that the camera sees the same layers and no pipeline is left
            // to compile.
            let step = (field.count / SMALL).max(1) as usize;
            let few = |layer: &LayerSet| {
                let takes: Vec<_> = (0..layer.set.len()).step_by(step).collect();
                layer.take(&takes)
            };
            let few = sets.iter().map(few).collect::<Result<_, _>>();
            show(world, field.clone(), few.map_err(wrong)?);
            later = Some((field, sets));
        } else {
            show(world, field, sets);
        }
        let target = world
            .resource_mut::<Assets<Image>>()
            .add(picture::target(cli.size));
        let camera = look::camera(world, radius);
        // Without a window, Bevy must be told which camera the level of detail of shadows follows.
        let camera = world
            .spawn((
                camera,
                ShadowLodOrigin,
                RenderTarget::Image(target.clone().into()),
            ))
            .id();
        if cli.peer.is_none() {
            look::equip(&mut world.entity_mut(camera), cli.occlusion());
        }
        if cli.size.x > 16 * cli.size.y {
            // For a picture that is one long strip, Bevy's bloom makes textures beyond the limit.
            world.entity_mut(camera).remove::<Bloom>();
        }
        if let Some(tangent) = tangent
            && let Some(mut lens) = world.get_mut::<Projection>(camera)
            && let Projection::Perspective(perspective) = &mut *lens
        {
            perspective.fov = 2.0 * ops::atan(tangent);
        }
        for view in 1..cli.views {
            let picture = picture::target(UVec2::splat(64));
            let picture = world.resource_mut::<Assets<Image>>().add(picture);
            let mut place = look::start(radius);
            place.rotate_around(Vec3::ZERO, Quat::from_rotation_y(view as f32));
            let order = -(view as isize);
            world.spawn((
                Camera3d::default(),
                Camera { order, ..default() },
                Msaa::Off,
                look::lens(radius),
                place,
                RenderTarget::Image(picture.into()),
            ));
        }
        let stage = Self {
            app,
            camera,
            target,
            later,
        };
        Ok((stage, start))
    }

    /// Draws until all sets are on the GPU. With `--upload`, the large field is added now and
    /// measured.
    fn load(&mut self, cli: &Cli, progress: &Progress) -> Result<Option<Upload>, Failure> {
        if cli.peer.is_some() || cli.count == 0 {
            return Ok(None);
        }
        progress.say("uploading");
        let mut watch = Watch::default();
        let measured = self.later.take();
        if let Some((field, sets)) = measured {
            // Removed first, so that the first frame does not include its removal.
            show(self.app.world_mut(), field.clone(), Vec::new());
            self.frame()?;
            self.frame()?;
            show(self.app.world_mut(), field, sets);
        }
        // The smallest budget uploads one block of 1,024 instances per frame.
        let max = u64::from(cli.count) / 1024 + u64::from(PATIENCE);
        let mut frames = 0;
        while !watch.is_complete(self.app.world_mut()) {
            if frames > max {
                let message = format!("the sets did not arrive within {max} frames");
                return Err(Failure::new(Failure::WORK, message));
            }
            frames += 1;
            let time = self.frame()?;
            watch.is_complete(self.app.world_mut());
            watch.note(time);
        }
        if !cli.upload {
            return Ok(None);
        }
        let bytes = self.app.world().resource::<Field>().bytes;
        let plain = plain_rate(&self.app, bytes, cli.upload_bytes());
        Ok(Some(watch.report(bytes, plain)))
    }

    /// Draws until no pipeline waits for a shader.
    fn warm_up(&mut self, progress: &Progress) -> Result<(), Failure> {
        progress.say("warming up");
        for _ in 0..PATIENCE {
            self.frame()?;
            if offscreen::pipelines_are_ready(&self.app) {
                return Ok(());
            }
        }
        Err(Failure::new(
            Failure::WORK,
            "the renderer's pipelines are not ready: the log names the shader that fails",
        ))
    }

    /// Draws the frames and returns their times in milliseconds.
    fn measure(&mut self, cli: &Cli, progress: &Progress) -> Result<Vec<f64>, Failure> {
        let radius = self.app.world().resource::<Field>().radius();
        progress.count(cli.frames);
        (1..=cli.frames)
            .map(|frame| {
                match cli.freeze_at {
                    Some(at) if frame == at => {
                        self.app
                            .world_mut()
                            .entity_mut(self.camera)
                            .insert(FreezeCulling::default());
                    }
                    Some(at) if frame > at => {
                        let place = way_out(radius, (frame - at) as f32 / (cli.frames - at) as f32);
                        let mist = look::fog(place.translation, radius);
                        self.app
                            .world_mut()
                            .entity_mut(self.camera)
                            .insert((place, mist));
                    }
                    _ => {}
                }
                let milliseconds = self.frame()?;
                progress.step();
                Ok(milliseconds)
            })
            .collect()
    }

    /// One frame from start to end, including the GPU's part. The next frame does not overlap it.
    fn frame(&mut self) -> Result<f64, Failure> {
        end::frame(&mut self.app).map_err(|exit| {
            let quit = || Failure::new(Failure::WORK, "the app ended before its work was done");
            Failure::of_app(exit).unwrap_or_else(quit)
        })
    }

    /// Draws the same picture until the results that come some frames later are there.
    fn wait_for_results(
        &mut self,
        cli: &Cli,
        progress: &Progress,
    ) -> Result<Option<Vec<Verdict>>, Failure> {
        progress.say("waiting for the results");
        let target = self.target.clone();
        let world = self.app.world_mut();
        if cli.color_occlusion
            && let Some(mut place) = world.get_mut::<Transform>(self.camera)
        {
            place.rotate_y(TURN);
        }
        if cli.out.is_some() {
            picture::request(world, target);
        }
        let verifier = world
            .get_resource::<Verifier>()
            .filter(|_| cli.verify)
            .cloned();
        if let Some(verifier) = &verifier {
            verifier.request();
        }
        let mut verdicts = None;
        let mut missing = "";
        for updates in 1..=PATIENCE {
            self.frame()?;
            let world = self.app.world();
            if let Some(verifier) = &verifier {
                verdicts = verdicts.or_else(|| verifier.take());
            }
            let counted = world
                .get_resource::<CullingReport>()
                .is_none_or(|report| !report.views.is_empty());
            missing = if cli.out.is_some() && !picture::is_there(world) {
                "the picture"
            } else if verifier.is_some() && verdicts.is_none() {
                "the verdicts"
            } else if !counted && self.orbs_seen() > 0 {
                "the counters"
            } else {
                ""
            };
            // The counters are a frame or two old, and must belong to the last measured frame.
            if missing.is_empty() && updates >= 2 {
                return Ok(verdicts);
            }
        }
        Err(Failure::new(
            Failure::WORK,
            format!("{missing} did not come within {PATIENCE} frames"),
        ))
    }

    /// The number of entities with orbs that Bevy found in the camera's view: sets, or the peer's
    /// orbs.
    fn orbs_seen(&self) -> usize {
        let world = self.app.world();
        let seen = world.get::<VisibleEntities>(self.camera);
        seen.into_iter()
            .flat_map(|seen| seen.iter(TypeId::of::<Mesh3d>()))
            .filter(|entity| world.get::<Orbs>(**entity).is_some())
            .count()
    }

    /// Each view's counters: the plugin's, or the number of entities that Bevy found visible.
    fn views(&self, cli: &Cli, verdicts: Option<&[Verdict]>) -> Vec<View> {
        let world = self.app.world();
        let mut views: Vec<View> = Vec::new();
        if let Some(report) = world.get_resource::<CullingReport>() {
            for view in &report.views {
                let at = views
                    .iter()
                    .position(|one| one.name == view.name)
                    .unwrap_or_else(|| {
                        views.push(View::new(&view.name));
                        views.len() - 1
                    });
                if let Some(lists) = view.occlusion {
                    let sum = views[at].occlusion.get_or_insert_default();
                    sum.in_frustum += view.in_frustum();
                    sum.early += lists.early;
                    sum.late += lists.late;
                    sum.hidden += lists.hidden;
                    sum.too_small += lists.too_small;
                }
                views[at].tested += view.tested;
                views[at].visible += view.visible;
            }
        }
        if cli.peer.is_some() && cli.count > 0 {
            views.push(View {
                tested: cli.count.into(),
                visible: self.orbs_seen() as u64,
                ..View::new("camera")
            });
        }
        for view in &mut views {
            view.verified = verdicts.map(|verdicts| {
                let mut of_view = verdicts
                    .iter()
                    .filter(|verdict| verdict.name == view.name)
                    .peekable();
                of_view.peek().is_some() && of_view.all(|verdict| verdict.error.is_none())
            });
        }
        views
    }
}

/// The orbs to draw, and the tangent of half the field of view if the flags ask for one.
fn choose(
    cli: &Cli,
    radius: f32,
    sets: Vec<LayerSet>,
) -> Result<(Vec<LayerSet>, Option<f32>), Failure> {
    if cli.visible.is_none() && cli.keep.is_none() {
        return Ok((sets, None));
    }
    let aspect = cli.size.x as f32 / cli.size.y as f32;
    let tangents = zoom::tangents(&sets, &look::start(radius), aspect);
    let tangent = match (cli.visible, look::lens(radius)) {
        (Some(visible), _) => zoom::tangent_for(&tangents, visible),
        (None, Projection::Perspective(lens)) => ops::tan(lens.fov / 2.0),
        (None, _) => 1.0,
    };
    let Some(keep) = cli.keep else {
        return Ok((sets, Some(tangent)));
    };
    match zoom::keep(sets, &tangents, tangent, keep) {
        Some(Ok(kept)) => Ok((kept, Some(tangent))),
        Some(Err(error)) => Err(Failure::new(Failure::WORK, error.to_string())),
        None => Err(Failure::new(
            Failure::USAGE,
            format!("--keep {keep}: the camera sees more orbs than that; narrow it with --visible"),
        )),
    }
}

/// Bevy without a window, one frame per update.
fn app(cli: &Cli, end: &CleanEnd) -> App {
    let mut app = App::new();
    // `--end-after` is about ends while pipelines are being compiled.
    let compiles_first = cli.end_after.is_none();
    offscreen::add_bevy(&mut app, end, log_plugin(), compiles_first);
    app.add_plugins((RenderDiagnosticsPlugin, FreezePlugin))
        .insert_resource(ClearColor(Color::BLACK));
    if cli.peer.is_none() {
        app.add_plugins(GpuCullingPlugin::from(cli.settings()));
    }
    offscreen::start(&mut app);
    app
}

/// A progress bar on stderr, if that is a terminal.
struct Progress(ProgressBar);

impl Progress {
    fn new(cli: &Cli) -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_prefix(format!("{} orbs", cli.count));
        let style = ProgressStyle::with_template("{spinner} {prefix}: {msg} [{elapsed}]");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
        Self(bar)
    }

    fn say(&self, what: &'static str) {
        self.0.set_message(what);
    }

    fn count(&self, frames: u32) {
        let style = ProgressStyle::with_template(
            "{spinner} {prefix}: frame {pos} of {len} {wide_bar} {elapsed}, {eta} left",
        );
        self.0
            .set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.0.set_length(frames.into());
    }

    fn step(&self) {
        self.0.inc(1);
    }

    fn done(&self) {
        self.0.finish_and_clear();
    }
}
