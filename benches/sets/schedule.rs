//! CPU time of the parts of a frame, ours and Bevy's: the marks between them, in both worlds.

use crate::common::stats::Times;
use bevy::{
    camera::visibility::VisibilitySystems,
    prelude::*,
    render::{Render, RenderApp, RenderSystems},
};
use std::{
    sync::{Arc, Mutex},
    time::Instant,
};

/// What ends at each mark, in the order of the frame.
const PARTS: [&str; 13] = [
    "before visibility",
    "bounds and frusta",
    "visibility",
    "end of main",
    "extraction",
    "assets and meshes",
    "views",
    "specialize",
    "prepare views",
    "queue",
    "sort",
    "prepare",
    "draw and submit",
];

/// Marks of the frame: when each part ended. Part 0 starts with the frame.
#[derive(Resource, Clone, Default)]
pub struct Marks(Arc<Mutex<Vec<(usize, Instant)>>>);

impl Marks {
    fn add(&self, part: usize) {
        if let Ok(mut marks) = self.0.lock() {
            marks.push((part, Instant::now()));
        }
    }

    /// The milliseconds of each part of a frame that started at `start`.
    pub fn take(&self, start: Instant) -> [f64; PARTS.len()] {
        let mut parts = [0.0; PARTS.len()];
        let marks = self.0.lock().map(|mut marks| core::mem::take(&mut *marks));
        let mut before = start;
        for (part, now) in marks.unwrap_or_default() {
            parts[part] += (now - before).as_secs_f64() * 1e3;
            before = now;
        }
        parts
    }
}

/// The medians of the parts, by name.
pub fn medians(samples: Vec<[f64; PARTS.len()]>) -> Vec<(&'static str, f64)> {
    let median = |part: usize| {
        let of_part = samples.iter().map(|parts| parts[part]).collect();
        (PARTS[part], Times::of(of_part).median)
    };
    (0..PARTS.len()).map(median).collect()
}

/// A system that marks the end of a part.
fn mark(part: usize) -> impl Fn(Res<Marks>) {
    move |marks| marks.add(part)
}

/// Adds the marks to an app.
pub fn add(app: &mut App) -> Marks {
    let marks = Marks::default();
    app.insert_resource(marks.clone()).add_systems(
        PostUpdate,
        (
            mark(0).before(VisibilitySystems::CalculateBounds),
            mark(1)
                .after(VisibilitySystems::UpdateFrusta)
                .after(VisibilitySystems::CalculateBounds)
                .before(VisibilitySystems::CheckVisibility),
            mark(2).after(VisibilitySystems::MarkNewlyHiddenEntitiesInvisible),
        ),
    );
    app.add_systems(Last, mark(3));
    if let Some(render) = app.get_sub_app_mut(RenderApp) {
        let after = |part: usize, set: RenderSystems, next: RenderSystems| {
            mark(part).after(set).before(next)
        };
        use RenderSystems::{
            Cleanup, CreateViews, ExtractCommands, PhaseSort, Prepare, PrepareMeshes, PrepareViews,
            Queue, Specialize,
        };
        render.insert_resource(marks.clone());
        render.add_systems(
            Render,
            (
                mark(4).before(ExtractCommands),
                after(5, PrepareMeshes, CreateViews),
                after(6, CreateViews, Specialize),
                after(7, Specialize, PrepareViews),
                after(8, PrepareViews, Queue),
                after(9, Queue, PhaseSort),
                after(10, PhaseSort, Prepare),
                after(11, Prepare, RenderSystems::Render),
                after(12, RenderSystems::Render, Cleanup),
            ),
        );
    }
    marks
}
