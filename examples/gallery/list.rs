//! The small examples. Each is included unchanged, and knows nothing of the gallery.

#[path = "../city.rs"]
mod city;
#[path = "../crowd.rs"]
mod crowd;
#[path = "../custom_material.rs"]
mod custom_material;
#[path = "../dynamic.rs"]
mod dynamic;
#[path = "../edit.rs"]
mod edit;
#[path = "../from_file.rs"]
mod from_file;
#[path = "../gltf_forest.rs"]
mod gltf_forest;
#[path = "../gpu_written.rs"]
mod gpu_written;
#[path = "../herd.rs"]
mod herd;
#[path = "../impostors.rs"]
mod impostors;
#[path = "../lod.rs"]
mod lod;
#[path = "../minimal.rs"]
mod minimal;
#[path = "../motion_blur.rs"]
mod motion_blur;
#[path = "../occlusion.rs"]
mod occlusion;
#[path = "../pick_on_gpu.rs"]
mod pick_on_gpu;
#[path = "../picking.rs"]
mod picking;
#[path = "../scatter.rs"]
mod scatter;
#[path = "../shadows.rs"]
mod shadows;
#[path = "../split_screen.rs"]
mod split_screen;
#[path = "still.rs"]
mod still;
#[path = "../streaming_chunks.rs"]
mod streaming_chunks;
#[path = "../tags.rs"]
mod tags;
#[path = "../tint.rs"]
mod tint;
#[path = "../wind.rs"]
mod wind;

use bevy::prelude::*;
use bevy_gpu_culling::prelude::InstanceImpostor;

/// A small example, and what its picture needs.
#[derive(Clone, Copy)]
pub struct Example {
    pub name: &'static str,
    pub scene: fn(&mut App),
    /// The number of instances, and how to set it.
    pub count: Option<(u32, SetCount)>,
    /// Whether the work that only the example knows of is done.
    pub is_ready: fn(&mut World) -> bool,
    /// Number of frames that are drawn and timed before the picture. Then the clock stops.
    pub flight: usize,
    pub still: Option<Still>,
}

pub type SetCount = fn(&mut App, u32);

/// A still version of an example.
#[derive(Clone, Copy)]
pub struct Still {
    /// Changes the example.
    pub change: fn(&mut App),
    pub is_ready: fn(&mut World) -> bool,
}

/// An example.
macro_rules! example {
    ($name:ident) => {
        Example {
            name: stringify!($name),
            scene: $name::scene,
            count: None,
            is_ready: |_| true,
            flight: 0,
            still: None,
        }
    };
    // With a default number of instances: software draws them in seconds.
    ($name:ident, $count:literal) => {
        Example {
            count: Some(($count, |app, count| {
                app.insert_resource($name::Count(count));
            })),
            ..example!($name)
        }
    };
}

pub const EXAMPLES: [Example; 23] = [
    example!(city),
    example!(crowd, 1_500),
    example!(custom_material),
    example!(dynamic),
    example!(edit),
    example!(from_file),
    example!(gltf_forest, 1_000),
    Example {
        still: Some(still::ORBS),
        ..example!(gpu_written, 20_000)
    },
    Example {
        is_ready: herd::is_ready,
        ..example!(herd, 700)
    },
    Example {
        is_ready: |world| {
            let mut cards = world.query_filtered::<(), With<InstanceImpostor>>();
            cards.iter(world).next().is_some()
        },
        ..example!(impostors, 2_000)
    },
    example!(lod, 400),
    example!(minimal),
    example!(motion_blur),
    Example {
        still: Some(still::FROM_ABOVE),
        ..example!(occlusion, 1_000)
    },
    example!(pick_on_gpu),
    example!(picking, 19_600),
    example!(scatter),
    example!(shadows),
    example!(split_screen),
    Example {
        is_ready: |world| {
            let land = world.get_resource::<streaming_chunks::Land>();
            land.is_some_and(streaming_chunks::Land::is_complete)
        },
        flight: 30,
        ..example!(streaming_chunks, 1_000)
    },
    example!(tags, 100_000),
    example!(tint, 20_000),
    example!(wind, 5_000),
];

impl Example {
    /// The example with this name.
    pub fn find(name: &str) -> Result<&'static Self, String> {
        const ALL: &[Example] = &EXAMPLES;
        let found = ALL.iter().find(|example| example.name == name);
        found.ok_or_else(|| "no such example; without a name, they are listed".into())
    }
}
