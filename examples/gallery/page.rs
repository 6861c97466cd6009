//! A page: an example or the demo on its canvas, as its query says. `cargo xtask web` writes the
//! pages.
//!
//! * `query`: the part of the address behind `?`.
//! * `touch`: fingers fly the camera.
//! * `demo`: the demo, made of its files in `examples/orbs`.
//! * `check`: draws a picture without the canvas, and compares survivors with the CPU twin's.

#[path = "page/check.rs"]
mod check;
#[path = "page/demo.rs"]
mod demo;
#[path = "page/query.rs"]
mod query;
#[path = "page/touch.rs"]
mod touch;

use crate::list::Example;
use bevy::{
    asset::AssetMetaCheck,
    camera_controller::free_camera::{FreeCamera, FreeCameraPlugin},
    input::common_conditions::input_just_pressed,
    prelude::*,
};
use bevy_gpu_culling::prelude::*;
use query::Query as PageQuery;

/// The page's canvas.
const CANVAS: &str = "#canvas";

/// Shows what the query names. An unknown name or flag is an error in the console, which the page
/// shows.
pub fn run() -> AppExit {
    let query = PageQuery::of_page();
    if query.has("check") {
        check::start(query);
        return AppExit::Success;
    }
    let mut app = App::new();
    let window = WindowPlugin {
        primary_window: Some(Window {
            canvas: Some(CANVAS.into()),
            fit_canvas_to_parent: true,
            ..default()
        }),
        ..default()
    };
    app.add_plugins(DefaultPlugins.set(assets()).set(window));
    match add(&mut app, &query) {
        Ok(()) => app.add_plugins(touch::TouchPlugin).run(),
        Err(reason) => {
            error!("{reason}");
            AppExit::error()
        }
    }
}

/// Files lie beside the page, without Bevy's files about them.
fn assets() -> AssetPlugin {
    AssetPlugin {
        meta_check: AssetMetaCheck::Never,
        ..default()
    }
}

/// Adds what the query names, to fly through.
fn add(app: &mut App, query: &PageQuery) -> Result<(), String> {
    if query.example() == demo::NAME {
        return demo::add(app, query);
    }
    add_example(app, query)?;
    app.add_plugins(CullingOverlayPlugin::default())
        .add_systems(PostStartup, equip)
        .add_systems(
            Update,
            more_or_less.run_if(input_just_pressed(KeyCode::KeyI)),
        );
    if !app.is_plugin_added::<FreeCameraPlugin>() {
        app.add_plugins(FreeCameraPlugin);
    }
    Ok(())
}

/// Adds a small example with the query's number of instances.
fn add_example(app: &mut App, query: &PageQuery) -> Result<&'static Example, String> {
    let example = Example::find(query.example())?;
    app.add_plugins((GpuCullingPlugin::default(), example.scene));
    if let Some((few, set)) = example.count {
        set(app, query.number("count")?.unwrap_or(few));
    }
    Ok(example)
}

/// Gives the camera a pilot, if the example has only one camera and that has none.
fn equip(mut commands: Commands, cameras: Query<(Entity, Has<FreeCamera>), With<Camera3d>>) {
    if let Ok((camera, false)) = cameras.single() {
        commands.entity(camera).insert(FreeCamera::default());
    }
}

fn more_or_less(mut detail: ResMut<OverlayDetail>) {
    *detail = detail.next();
}
