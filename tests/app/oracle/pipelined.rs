//! Apps as they are by default: a frame is drawn while the main world is at the next, and pipelines
//! are compiled in the background, so that the first frames lack some draws.

use super::{
    axes::{COMBINATIONS, Combination, Light, Pass},
    register, views_are_wrong,
};
use crate::scene::{How, Stage, different_pixels};
use bevy::{prelude::*, render::occlusion_culling::OcclusionCulling};
use bevy_gpu_culling::prelude::*;
use image::RgbaImage;

/// Such an app, once it is needed.
#[derive(Default)]
pub struct Pipelined {
    stage: Option<Stage>,
    /// Number of combinations that it drew.
    pub drawn: usize,
}

impl Pipelined {
    /// What is wrong with the combination, if it is the first of its pass with shadows. `bevys` is
    /// the picture of Bevy's entities.
    pub fn check(&mut self, combination: &Combination, bevys: &RgbaImage) -> Vec<String> {
        let of_pass = |one: &&Combination| one.pass == combination.pass && one.light != Light::None;
        let first = COMBINATIONS.iter().find(of_pass);
        // In full prepasses, all moves from the first frame on.
        let is_still = combination.pass != Pass::FullPrepass;
        let name = combination.name();
        if !is_still || first.is_none_or(|first| first.name() != name) {
            return Vec::new();
        }
        self.drawn += 1;
        let name = format!("{name}-pipelined");
        let start = || Stage::pipelined(How::Set(None), register);
        let stage = self.stage.get_or_insert_with(start);
        stage.clear();
        combination.build(stage);
        let camera = camera(stage);
        let mut hiding = stage.entity(camera);
        match combination.pass {
            Pass::DepthPrepass => {
                hiding.insert((
                    OcclusionCulling,
                    InstanceOcclusion {
                        near_pixels: 1e9,
                        ..default()
                    },
                ));
            }
            Pass::Forward | Pass::Mask => {
                hiding.insert(InstanceOcclusion {
                    near_pixels: 1e9,
                    ..default()
                });
            }
            _ => {}
        }
        stage.settle();
        let settled = different_pixels(&name, &stage.picture_now(), bevys);

        // What comes back into view was not seen in the frame before: if the camera hides, all of
        // it is late.
        let here = *stage.entity(camera).get::<Transform>().unwrap();
        stage
            .entity(camera)
            .insert(here.looking_to(Vec3::Y, Vec3::X));
        stage.update(3);
        stage.entity(camera).insert(here);
        let back = stage.picture_now();
        let back = different_pixels(&format!("{name}-back"), &back, bevys);
        println!("{name}: {settled:?}, back in view: {back:?}");

        let views = views_are_wrong(stage, combination).map(|wrong| format!("{name}: {wrong}"));
        let wrong = [settled.err(), back.err(), views];
        wrong.into_iter().flatten().collect()
    }
}

/// The camera of a combination that has one.
fn camera(stage: &mut Stage) -> Entity {
    let world = stage.app.world_mut();
    let mut cameras = world.query_filtered::<Entity, With<Camera3d>>();
    cameras.single(world).unwrap()
}
