//! What the render world has drawn, on whatever thread it runs.

use bevy::{
    prelude::*,
    render::{
        ExtractSchedule, Render, RenderApp, RenderSystems,
        render_asset::RenderAssets,
        render_resource::{PipelineCache, Texture},
        texture::GpuImage,
    },
};
use std::{
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

/// A frame of a software adapter takes seconds at most.
const PATIENCE: Duration = Duration::from_secs(60);

/// Watches the render world.
#[derive(Resource, Clone, Default)]
pub struct Frames(Arc<(Mutex<Seen>, Condvar)>);

#[derive(Default)]
struct Seen {
    target: AssetId<Image>,
    texture: Option<Texture>,
    /// Number of pipelines that are compiled, or whose shaders are not loaded.
    waiting: usize,
    extracted: u64,
    drawn: u64,
}

impl Frames {
    pub fn watch(&self, app: &mut App) {
        if let Some(render_app) = app.get_sub_app_mut(RenderApp) {
            render_app
                .insert_resource(self.clone())
                .add_systems(ExtractSchedule, begin)
                .add_systems(Render, end.in_set(RenderSystems::Cleanup));
        }
    }

    pub fn set_target(&self, target: &Handle<Image>) {
        self.0.0.lock().unwrap().target = target.id();
    }

    /// Waits until the frame that was extracted last is drawn. Returns the texture that it was
    /// drawn to, and how many pipelines it waits for.
    pub fn drawn(&self) -> (Option<Texture>, usize) {
        let (seen, news) = &*self.0;
        let seen = seen.lock().unwrap();
        let is_drawing = |seen: &mut Seen| seen.drawn < seen.extracted;
        let (seen, late) = news.wait_timeout_while(seen, PATIENCE, is_drawing).unwrap();
        assert!(!late.timed_out(), "a frame is not drawn in {PATIENCE:?}");
        (seen.texture.clone(), seen.waiting)
    }
}

fn begin(frames: Res<Frames>) {
    frames.0.0.lock().unwrap().extracted += 1;
}

fn end(
    frames: Res<Frames>,
    images: Option<Res<RenderAssets<GpuImage>>>,
    pipelines: Option<Res<PipelineCache>>,
) {
    let (seen, news) = &*frames.0;
    let mut seen = seen.lock().unwrap();
    let image = images.as_ref().and_then(|images| images.get(seen.target));
    seen.texture = image.map(|image| image.texture.clone());
    seen.waiting = pipelines.map_or(0, |pipelines| pipelines.waiting_pipelines().count());
    seen.drawn = seen.extracted;
    news.notify_all();
}
