//! The demo's field of orbs, with the demo's camera, lights, sky and mist.

#[path = "../../../examples/orbs/scene.rs"]
#[allow(dead_code, reason = "the demo also draws meshlets in colors")]
mod orbs;

use crate::{
    case::{Case, Peer, name},
    cli::{self, Cli},
    field, look,
};
use bevy::prelude::*;
use bevy_gpu_culling::instance::InstanceError;
use clap::Parser;
use orbs::Field;

/// Spawns the demo's camera and lights.
pub fn furnish(world: &mut World, case: &Case) -> Entity {
    let field = field(case);
    let radius = field.radius();
    orbs::show(world, field, Vec::new());
    let camera = look::camera(world, radius);
    world.spawn(camera).id()
}

/// Adds the orbs.
pub fn fill(world: &mut World, case: &Case) -> Result<(), InstanceError> {
    let field = field(case);
    let sets = field.generate()?;
    orbs::show(world, field, sets);
    Ok(())
}

/// The field that the demo draws with the case's flags.
fn field(case: &Case) -> Field {
    Field::new(&Cli::parse_from(flags(case)))
}

/// The demo's command line for a case.
pub fn flags(case: &Case) -> Vec<String> {
    let mut flags = vec!["orbs".into(), "--count".into(), case.count.to_string()];
    if let Some(order) = case.order {
        flags.extend(["--order".into(), name(order)]);
    }
    if let Some(lods) = case.lods {
        flags.extend(["--lods".into(), name(lods)]);
    }
    if case.peer == Peer::Bevy {
        flags.extend(["--peer".into(), "bevy".into()]);
    }
    flags
}
