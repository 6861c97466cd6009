//! Random apps: sets of instances, of meshlets, of figures, of instances that the GPU writes or
//! scatters or that the CPU drops, and crowds of small sets come, go, are edited, exchanged, moved,
//! hidden and detached; cameras, viewports, lights, an interface and settings change; the render
//! world is on its own thread, or not. Each frame that follows an act is compared with the twin,
//! and the picture of each tenth, and of the last, with Bevy's entities.
//!
//! A run tries one app, from seed 0. `SOAK_SEED=7` tries the app from seed 7 instead, and
//! `SOAK_MINUTES=60` goes on with the next seeds for an hour (`cargo xtask soak`). An app that
//! fails is made smaller: what is left of its acts is printed, and kept in a file.
//! `SOAK_ACTS=<file>` tries the acts in a file, whatever the seeds are by then.

mod acts;
mod around;
mod model;
mod props;
mod set;

use crate::scene::{How, MAX_BORDERLINE, Stage, assert_right, different_pixels};
use acts::{Act, Thing};
use around::Around;
use bevy::{
    light::{DirectionalLightShadowMap, PointLightShadowMap},
    prelude::*,
    render::{ExtractSchedule, RenderApp, renderer::RenderGraph},
    time::TimeUpdateStrategy,
};
use bevy_gpu_culling::{
    prelude::*,
    render::verify::{Verdict, Verifier},
};
use model::Model;
use props::{Props, Written};
use std::{
    panic::catch_unwind,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// Asks for a comparison of the next frame with the twin, and has the verdicts of the one before.
/// Both happen at extraction, when the frame before is drawn: the main world need not wait for it.
#[derive(Resource, Clone, Default)]
struct Watch(Arc<Mutex<Watched>>);

#[derive(Default)]
struct Watched {
    asks: bool,
    /// Whether the frame before was to be compared.
    waits: bool,
    verdicts: Option<Vec<Verdict>>,
}

fn watch(watch: Res<Watch>, verifier: Res<Verifier>) {
    let mut watch = watch.0.lock().unwrap();
    if watch.waits {
        watch.verdicts = verifier.take();
    }
    watch.waits = watch.asks;
    if watch.asks {
        verifier.request();
    }
}

fn small_shadows(app: &mut App) {
    app.insert_resource(DirectionalLightShadowMap { size: 256 })
        .insert_resource(PointLightShadowMap { size: 128 });
}

/// The app of the sets, in which the GPU writes some.
fn prepare(app: &mut App, watched: &Watch) {
    small_shadows(app);
    app.init_resource::<Written>()
        // Until everything is loaded, the clock stands.
        .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::ZERO));
    let render_app = app.get_sub_app_mut(RenderApp).unwrap();
    render_app
        .init_resource::<Written>()
        .insert_resource(watched.clone())
        .add_systems(
            ExtractSchedule,
            (
                props::extract_written,
                watch.before(GpuCullingSystems::Extract),
            ),
        )
        .add_systems(
            RenderGraph,
            props::write.in_set(GpuCullingSystems::WriteInstances),
        );
}

/// How far the clock goes on per frame: three ticks of the animations, and a bit.
const STEP: Duration = Duration::from_millis(3);

/// Frames until what no set uses any more is released.
const QUIET: usize = 140;

/// Bytes on the GPU that a scene may leave: up to 4,096 slots are kept for the next one.
const MAX_LEFT: u64 = 4 << 20;

/// Number of frames of which one picture is compared.
const PICTURE_EVERY: usize = 10;

/// An app with sets, and one with Bevy's entities.
struct Soak {
    stage: Stage,
    peer: Stage,
    /// Of both.
    props: [Props; 2],
    model: Model,
    watch: Watch,
    /// Number of frames that were compared with the twin.
    compared: usize,
    /// Number of acts until the next frame.
    at_once: u8,
    /// Bytes on the GPU without a set.
    bytes_before: u64,
}

impl Soak {
    fn new(acts: &[Act]) -> Self {
        let watch = Watch::default();
        let start = acts.iter().find_map(Act::start).unwrap_or_default();
        let mut stage = Stage::behind(How::Set(None), start, |app| prepare(app, &watch));
        let mut peer = Stage::with(How::Entities, small_shadows);
        let props = [&mut stage, &mut peer].map(Props::new);
        let mut around = Around::new(vec![Thing::SunShadows, Thing::Occlusion]);
        around.spawn(&mut stage);
        stage.update(QUIET);
        let bytes_before = stage.report().gpu_bytes;
        stage.tick(STEP);
        Self {
            stage,
            peer,
            props,
            model: Model::new(around),
            watch,
            compared: 0,
            at_once: 0,
            bytes_before,
        }
    }

    fn play(&mut self, act: &Act) {
        self.model.act(&mut self.stage, &self.props[0], act);
        let frames = match act {
            Act::Start { .. } => 0,
            Act::Frames(count) => *count,
            Act::AtOnce(count) => {
                self.at_once = *count;
                0
            }
            _ => {
                self.at_once = self.at_once.saturating_sub(1);
                u8::from(self.at_once == 0)
            }
        };
        for _ in 0..frames {
            self.draw();
        }
    }

    /// Draws a frame that is to be compared with the twin, and looks at the verdicts of the one
    /// before.
    ///
    /// Frames in which pipelines are compiled for a picture are not compared: to read the lists of
    /// a crowd in all views takes seconds on a software adapter.
    fn draw(&mut self) {
        self.watch.0.lock().unwrap().asks = true;
        self.stage.update(1);
        self.watch.0.lock().unwrap().asks = false;
        if self.judge() && self.compared.is_multiple_of(PICTURE_EVERY) {
            self.compare();
        }
    }

    /// Panics if the twin differs from the last frame that has verdicts. Returns whether there were
    /// some: there are none while all sets are on their way to the GPU.
    fn judge(&mut self) -> bool {
        let verdicts = self.watch.0.lock().unwrap().verdicts.take();
        let Some(verdicts) = verdicts else {
            return false;
        };
        assert_right(&verdicts, MAX_BORDERLINE);
        self.compared += 1;
        true
    }

    /// Compares the picture with one of entities, and what it shows with the twin.
    fn compare(&mut self) {
        let Self {
            stage,
            peer,
            props,
            model,
            compared,
            ..
        } = self;
        // The time stands, and all sets arrive.
        stage.tick(Duration::ZERO);
        let world = stage.app.world_mut();
        let mut settings = world.resource_mut::<GpuCullingSettings>();
        let before = settings.clone();
        settings.upload_budget = None;
        if model.has_unknown_levels() {
            (settings.lod_pixels, settings.shadow_lod_pixels) = (0.0, 0.0);
        }
        model.spawn_entities(stage, peer, &props[1]);
        stage.settle();
        peer.settle();
        let [ours, bevys] = [stage.picture(), peer.picture()];
        if let Err(error) = different_pixels(&format!("soak-{compared}"), &ours, &bevys) {
            panic!("after {compared} frames: {error}");
        }
        stage.verify();
        let world = stage.app.world_mut();
        *world.resource_mut::<GpuCullingSettings>() = before;
        stage.tick(STEP);
    }

    /// Compares once more, and has all sets go.
    fn end(mut self) {
        self.compare();
        self.judge();
        for set in self.model.sets.drain(..) {
            set.remove(&mut self.stage);
        }
        self.stage.update(QUIET);
        let left = self.stage.report();
        assert_eq!((left.instances, left.draw_calls), (0, 0), "{left:?}");
        let more = left.gpu_bytes.saturating_sub(self.bytes_before);
        assert!(more < MAX_LEFT, "{more} bytes are left on the GPU");
    }
}

/// Runs an app, and panics if it is wrong.
fn run(acts: &[Act]) {
    let mut soak = Soak::new(acts);
    for act in acts {
        soak.play(act);
    }
    soak.end();
}

/// Number of apps after which the bound of memory is set. Before, a software driver compiles most
/// of the pipelines that apps have, and keeps them for as long as the process runs.
const WARM_UP: u32 = 20;

/// The most bytes that the process may hold until it has tried twice as many apps, if it holds this
/// many now: a quarter more for pipelines that no app had before, which become rare, and what an
/// allocator keeps of a large app. If each app leaves something behind, that is too much at some
/// time.
fn max_held(now: u64) -> u64 {
    now + now / 4 + (256 << 20)
}

/// Bytes that the process holds; 0 if the system does not say.
fn held() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let held = lines.find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix("kB"));
    let held = held.and_then(|held| held.trim().parse::<u64>().ok());
    held.unwrap_or(0) << 10
}

/// Tries an app. If it fails, tries for this long which of its acts it needs for that, and panics.
fn try_app(name: &str, acts: &[Act], patience: Duration) {
    let fails = |acts: &[Act]| catch_unwind(|| run(acts)).is_err();
    if !fails(acts) {
        return;
    }
    let end = Instant::now() + patience;
    let left = acts::shrunk(acts, |acts| Instant::now() < end && fails(acts));
    let text = acts::to_text(&left);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("soak.acts");
    std::fs::write(&path, &text).unwrap();
    panic!(
        "{name} fails, and so does an app with these acts, which SOAK_ACTS={} tries again:\n{text}",
        path.display()
    );
}

/// The number in an environment variable.
fn number(name: &str) -> Option<f64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_apps_look_like_bevys_entities() {
    let minutes = number("SOAK_MINUTES").unwrap_or(0.0);
    let patience = Duration::from_secs_f64(60.0 * minutes.max(10.0));
    if let Ok(path) = std::env::var("SOAK_ACTS") {
        let text = std::fs::read_to_string(&path).unwrap();
        try_app(&format!("SOAK_ACTS={path}"), &acts::read(&text), patience);
        return;
    }
    let end = Instant::now() + Duration::from_secs_f64(60.0 * minutes);
    let (mut apps, mut most) = (0u32, u64::MAX);
    for seed in number("SOAK_SEED").unwrap_or(0.0) as u64.. {
        try_app(&format!("SOAK_SEED={seed}"), &acts::of_seed(seed), patience);
        let held = held();
        println!("seed {seed}: as it should be, {} MiB held", held >> 20);
        assert!(
            held <= most,
            "SOAK_SEED={seed}: the process holds {held} bytes, {most} at most after that number of apps"
        );
        apps += 1;
        if apps.is_multiple_of(WARM_UP) && (apps / WARM_UP).is_power_of_two() {
            most = max_held(held);
        }
        if Instant::now() >= end {
            break;
        }
    }
}
