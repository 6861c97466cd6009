//! Stages that draw one scene after the other. An app takes longer to start than to draw.

use super::{How, Stage};
use bevy::pbr::DefaultOpaqueRendererMethod;
use bevy_gpu_culling::prelude::GpuCullingSettings;
use image::RgbaImage;
use std::cell::RefCell;

/// One stage for each way to draw that was asked for.
pub struct Stages<'a> {
    start: &'a dyn Fn(How) -> Stage,
    stages: RefCell<Vec<(Stage, Option<GpuCullingSettings>)>>,
}

impl Stages<'_> {
    /// Stages that all start in this way.
    pub fn new(start: &dyn Fn(How) -> Stage) -> Stages<'_> {
        let stages = RefCell::default();
        Stages { start, stages }
    }

    /// Runs `act` with an empty stage that draws like this, with the settings with which it
    /// started.
    pub fn with<T>(&self, how: How, act: impl FnOnce(&mut Stage) -> T) -> T {
        let mut stages = self.stages.borrow_mut();
        let at = stages.iter().position(|(stage, _)| stage.how == how);
        let at = at.unwrap_or_else(|| {
            let stage = (self.start)(how);
            let settings = stage.app.world().get_resource::<GpuCullingSettings>();
            let settings = settings.cloned();
            stages.push((stage, settings));
            stages.len() - 1
        });
        let (stage, settings) = &mut stages[at];
        stage.clear();
        stage
            .app
            .insert_resource(DefaultOpaqueRendererMethod::forward());
        let world = stage.app.world_mut();
        if let (Some(settings), Some(mut now)) =
            (settings, world.get_resource_mut::<GpuCullingSettings>())
            && *now != *settings
        {
            *now = settings.clone();
        }
        act(stage)
    }

    /// The picture of a scene. Survivors are compared with the twin.
    pub fn draw(&self, how: How, build: impl FnOnce(&mut Stage)) -> RgbaImage {
        self.with(how, |stage| {
            build(stage);
            let picture = stage.picture();
            if how != How::Entities {
                stage.verify();
            }
            picture
        })
    }
}
