//! A check of an example in a browser: its picture, drawn without the canvas, and its survivors
//! against the CPU twin's. The page passes both on.
//!
//! A browser answers between the turns of its event loop. So nothing here waits: it pauses.

use super::{add_example, assets, demo, query::Query as PageQuery};
use crate::stage::{FRAMES, SETTLED, STEP, is_loaded, redirect};
use bevy::{
    app::PluginsState,
    asset::UntypedAssetLoadFailedEvent,
    diagnostic::FrameCount,
    prelude::*,
    render::{
        RenderApp,
        render_resource::PipelineCache,
        renderer::RenderQueue,
        view::screenshot::{Screenshot, ScreenshotCaptured},
    },
    time::TimeUpdateStrategy,
    window::ExitCondition,
    winit::WinitPlugin,
};
use bevy_gpu_culling::{
    prelude::*,
    render::verify::{self, Verdict, Verifier},
};
use js_sys::{Function, Promise, Reflect, Uint8Array};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};

/// Width and height of the picture in pixels.
const SIZE: UVec2 = UVec2::new(640, 360);
/// The longest wait for assets, the picture or the verdicts, in turns of the event loop.
const PATIENCE: u32 = 20_000;

/// What the page is told.
struct Checked {
    tier: String,
    verdicts: Vec<Verdict>,
    /// Red, green, blue and alpha of each pixel.
    pixels: Vec<u8>,
}

/// Begins the check.
pub fn start(query: PageQuery) {
    spawn_local(async move {
        let told = match draw(&query).await {
            Ok(checked) => tell(&checked.told(), &checked.pixels),
            Err(reason) => tell(&json!({ "error": reason }).to_string(), &[]),
        };
        if let Err(error) = told {
            error!("the page takes no answer: {error:?}");
        }
    });
}

async fn draw(query: &PageQuery) -> Result<Checked, String> {
    let mut app = App::new();
    let no_window = WindowPlugin {
        primary_window: None,
        exit_condition: ExitCondition::DontExit,
        ..default()
    };
    app.add_plugins(
        DefaultPlugins
            .set(assets())
            .set(no_window)
            .disable::<WinitPlugin>(),
    );
    let (mut is_ready, mut flight): (fn(&mut World) -> bool, _) = (|_| true, 0);
    if query.example() == demo::NAME {
        demo::add_still(&mut app, query)?;
    } else {
        let example = add_example(&mut app, query)?;
        (is_ready, flight) = (example.is_ready, example.flight);
    }
    let target = redirect(&mut app, SIZE);
    while app.plugins_state() == PluginsState::Adding {
        pause().await;
    }
    app.finish();
    app.cleanup();

    // As the gallery's command line does it.
    set_step(&mut app, Duration::ZERO);
    settle(&mut app, is_ready).await?;
    set_step(&mut app, STEP);
    app.insert_resource(FrameCount(1));
    if flight > 0 {
        for _ in 0..flight {
            frame(&mut app).await?;
        }
        set_step(&mut app, Duration::ZERO);
        settle(&mut app, is_ready).await?;
    }
    for _ in 0..FRAMES {
        frame(&mut app).await?;
    }
    result(&mut app, target).await
}

/// Draws one more frame, and returns what it shows.
async fn result(app: &mut App, target: Handle<Image>) -> Result<Checked, String> {
    let captured = Screenshot::image(target);
    app.world_mut().spawn(captured).observe(
        |captured: On<ScreenshotCaptured>, mut commands: Commands| {
            commands.insert_resource(Captured(captured.image.data.clone().unwrap_or_default()));
        },
    );
    let verifier = app.world().resource::<Verifier>().clone();
    verifier.request();
    frame(app).await?;
    let mut verdicts = verifier.take();
    for _ in 0..PATIENCE {
        if verdicts.is_some() {
            break;
        }
        // No frame is drawn meanwhile.
        pause().await;
        verify::go_on(app).map_err(|error| error.to_string())?;
        verdicts = verifier.take();
    }
    let verdicts = verdicts.ok_or("the verdicts do not come")?;
    for _ in 0..PATIENCE {
        if let Some(Captured(pixels)) = app.world_mut().remove_resource() {
            let report = app.world().resource::<CullingReport>();
            return Ok(Checked {
                tier: report
                    .tier
                    .map_or_else(String::new, |tier| tier.to_string()),
                verdicts,
                pixels,
            });
        }
        frame(app).await?;
    }
    Err("the picture does not come".into())
}

/// The picture, when it is there.
#[derive(Resource)]
struct Captured(Vec<u8>);

fn set_step(app: &mut App, step: Duration) {
    app.insert_resource(TimeUpdateStrategy::ManualDuration(step));
}

/// Draws until everything is there.
async fn settle(app: &mut App, is_ready: fn(&mut World) -> bool) -> Result<(), String> {
    let mut settled = 0;
    for _ in 0..PATIENCE {
        frame(app).await?;
        let failures: &Messages<UntypedAssetLoadFailedEvent> = app.world().resource();
        if !failures.is_empty() {
            return Err("a file does not load: the console says which".into());
        }
        let pipelines = app.sub_app(RenderApp).world().resource::<PipelineCache>();
        let is_settled = pipelines.waiting_pipelines().next().is_none()
            && is_loaded(app.world_mut())
            && is_ready(app.world_mut());
        settled = if is_settled { settled + 1 } else { 0 };
        if settled == SETTLED {
            return Ok(());
        }
    }
    Err("something does not load".into())
}

/// Draws a frame, and pauses until the GPU has done it.
async fn frame(app: &mut App) -> Result<(), String> {
    app.update();
    if app.should_exit().is_some() {
        return Err("the app ended: the console says why".into());
    }
    let done = Arc::new(AtomicBool::new(false));
    let when_done = Arc::clone(&done);
    app.world()
        .resource::<RenderQueue>()
        .on_submitted_work_done(move || when_done.store(true, Ordering::Release));
    while !done.load(Ordering::Acquire) {
        pause().await;
    }
    Ok(())
}

/// One turn of the event loop, at least.
async fn pause() {
    let next_turn = Promise::new(&mut |resolve: Function, _| {
        let window = web_sys::window();
        let set = window.map(|window| {
            window.set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, 1)
        });
        if !matches!(set, Some(Ok(_))) {
            error!("the browser has no clock");
        }
    });
    // It is never rejected.
    let _ = JsFuture::from(next_turn).await;
}

impl Checked {
    /// All but the pixels, as JSON.
    fn told(&self) -> String {
        let sum = |number: fn(&Verdict) -> u32| -> u64 {
            self.verdicts.iter().map(|one| u64::from(number(one))).sum()
        };
        let wrong = self.verdicts.iter().filter_map(|verdict| {
            let error = verdict.error.as_ref()?;
            Some(format!(
                "{} of set {}: {error}",
                verdict.name, verdict.entity
            ))
        });
        let wrong: Vec<_> = wrong.collect();
        json!({
            "tier": self.tier,
            "lists": self.verdicts.len(),
            "tested": sum(|verdict| verdict.tested),
            "visible": sum(|verdict| verdict.visible),
            "borderline": sum(|verdict| verdict.borderline),
            "wrong": wrong,
            "width": SIZE.x,
            "height": SIZE.y,
        })
        .to_string()
    }
}

/// Calls the page's function `checked`.
fn tell(told: &str, pixels: &[u8]) -> Result<(), JsValue> {
    let function = Reflect::get(&js_sys::global(), &"checked".into())?;
    let function: Function = function.dyn_into()?;
    function.call2(&JsValue::NULL, &told.into(), &Uint8Array::from(pixels))?;
    Ok(())
}
