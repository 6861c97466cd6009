//! The demo on a page. Its flags are in the query: `example=orbs&count=20000&tier=workgroup`.

#[path = "../../orbs/cli.rs"]
pub mod cli;
#[path = "../../orbs/field.rs"]
pub mod field;
#[path = "../../orbs/fly.rs"]
pub mod fly;
#[path = "../../orbs/freeze.rs"]
pub mod freeze;
#[path = "../../orbs/help.rs"]
pub mod help;
#[path = "../../orbs/look.rs"]
pub mod look;
#[path = "../../orbs/scene.rs"]
pub mod scene;

use super::query::Query as PageQuery;
use bevy::prelude::*;
use bevy_gpu_culling::prelude::*;
use clap::Parser;
use cli::Cli;
use scene::Field;

/// What the query calls it.
pub const NAME: &str = "orbs";

/// The demo to fly through.
pub fn add(app: &mut App, query: &PageQuery) -> Result<(), String> {
    let cli = flags(query)?;
    let field = Field::new(&cli);
    let sets = field.generate().map_err(|error| error.to_string())?;
    fly::add(app, &cli, field, sets);
    Ok(())
}

/// The demo as its picture without a window shows it.
pub fn add_still(app: &mut App, query: &PageQuery) -> Result<(), String> {
    let cli = flags(query)?;
    let field = Field::new(&cli);
    let sets = field.generate().map_err(|error| error.to_string())?;
    app.add_plugins(GpuCullingPlugin::from(GpuCullingSettings {
        tier: cli.tier.map(|tier| tier.0),
        compaction: cli.compaction.0,
        ..default()
    }))
    .insert_resource(ClearColor(Color::BLACK));
    let mut opening = Some((field, sets));
    app.add_systems(Startup, move |world: &mut World| {
        let Some((field, sets)) = opening.take() else {
            return;
        };
        let radius = field.radius();
        scene::show(world, field, sets);
        let camera = look::camera(world, radius);
        let mut camera = world.spawn(camera);
        // As software adapters draw it. A browser does not tell that its adapter is one.
        camera.insert(Msaa::Off);
        look::equip(&mut camera, cli.occlusion());
    });
    Ok(())
}

fn flags(query: &PageQuery) -> Result<Cli, String> {
    let flags = query.flags(&["example", "check"]);
    let flags = [NAME.to_owned()].into_iter().chain(flags);
    Cli::try_parse_from(flags).map_err(|error| error.to_string())
}
