//! An app without a window: one frame per update, and what is waited for before a measurement.

use super::end::CleanEnd;
use bevy::{
    app::{PluginsState, TerminalCtrlCHandlerPlugin},
    ecs::message::MessageCursor,
    log::{BoxedFmtLayer, LogPlugin, tracing_subscriber},
    platform::collections::HashMap,
    prelude::*,
    render::{
        RenderApp, RenderPlugin, pipelined_rendering::PipelinedRenderingPlugin,
        render_resource::PipelineCache,
    },
    window::ExitCondition,
    winit::WinitPlugin,
};
use bevy_gpu_culling::{
    instance::InstanceSet,
    prelude::{GpuInstances, InstanceUploadProgress},
    render::verify::Verdict,
};
use std::io::IsTerminal;

/// Adds Bevy without a window and without pipelined rendering, so that an update is a whole frame.
/// With `compiles_first`, a frame waits for its pipelines.
pub fn add_bevy(app: &mut App, end: &CleanEnd, log: LogPlugin, compiles_first: bool) {
    app.add_plugins((
        DefaultPlugins
            .set(log)
            .set(WindowPlugin {
                primary_window: None,
                exit_condition: ExitCondition::DontExit,
                ..default()
            })
            .set(RenderPlugin {
                synchronous_pipeline_compilation: compiles_first,
                ..default()
            })
            .disable::<TerminalCtrlCHandlerPlugin>()
            .disable::<PipelinedRenderingPlugin>()
            .disable::<WinitPlugin>(),
        end.plugin(),
    ));
}

/// Finishes the plugins, as Bevy's runners do. The app is then ready for its first update.
pub fn start(app: &mut App) {
    while app.plugins_state() == PluginsState::Adding {
        bevy::tasks::tick_global_task_pools_on_main_thread();
    }
    app.finish();
    app.cleanup();
}

/// Logs to stderr, because stdout is for reports. `RUST_LOG` overrides the filter.
pub fn log_to_stderr(filter: &str) -> LogPlugin {
    LogPlugin {
        filter: filter.into(),
        fmt_layer: |_| -> Option<BoxedFmtLayer> {
            let layer = tracing_subscriber::fmt::Layer::default().with_writer(std::io::stderr);
            Some(Box::new(layer.with_ansi(std::io::stderr().is_terminal())))
        },
        ..default()
    }
}

/// Whether no pipeline waits for a shader. Shaders load in the background.
pub fn pipelines_are_ready(app: &App) -> bool {
    let cache = app.sub_app(RenderApp).world().resource::<PipelineCache>();
    cache.waiting_pipelines().next().is_none()
}

/// Follows the sets on their way to the GPU.
#[derive(Default)]
pub struct Uploads {
    cursor: MessageCursor<InstanceUploadProgress>,
    arrived: HashMap<AssetId<InstanceSet>, InstanceUploadProgress>,
}

impl Uploads {
    /// Reads new messages. Returns true if every set has arrived.
    pub fn are_complete(&mut self, world: &mut World) -> bool {
        if let Some(messages) = world.get_resource::<Messages<InstanceUploadProgress>>() {
            for progress in self.cursor.read(messages) {
                self.arrived.insert(progress.set, *progress);
            }
        }
        let mut sets = world.query::<&GpuInstances>();
        sets.iter(world).all(|set| {
            let arrived = self.arrived.get(&set.id());
            arrived.is_some_and(InstanceUploadProgress::is_complete)
        })
    }

    /// Number of instances that have arrived.
    pub fn arrived(&self) -> u64 {
        let arrived = self.arrived.values().map(|set| u64::from(set.uploaded));
        arrived.sum()
    }
}

/// An error if a list of survivors differs from the CPU twin's, or if there was none to compare
/// although `sets_seen` sets are in view.
pub fn check_verdicts(verdicts: &[Verdict], sets_seen: usize) -> Result<(), String> {
    if verdicts.is_empty() && sets_seen > 0 {
        return Err("no survivors were compared, although sets are in view".into());
    }
    let wrong = verdicts.iter().filter_map(|verdict| {
        let error = verdict.error.as_ref()?;
        Some(format!(
            "{} of set {}: {error}",
            verdict.name, verdict.entity
        ))
    });
    let wrong: Vec<_> = wrong.collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!(
        "survivors differ from the CPU twin's: {}",
        wrong.join("; ")
    ))
}
