//! A camera that hides instances draws the same picture, in each frame of each sequence.

mod cameras;
mod colors;
mod joined;
mod order;
mod pauses;
mod random;
mod sequences;
mod shadows;
mod truth;

use crate::scene::Stage;
use bevy::{core_pipeline::prepass::DepthPrepass, prelude::*};
use bevy_gpu_culling::{
    prelude::*,
    render::{OcclusionReport, ViewKind, ViewReport},
};
use image::RgbaImage;

/// How a camera hides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Not at all.
    Off,
    /// In its main pass.
    Forward,
    /// In Bevy's prepasses.
    Prepass,
    /// Not the camera, but all lights, in their shadow maps.
    Shadows,
}

impl Way {
    /// Gives a camera what it needs. The picture with a prepass is compared with one with a
    /// prepass.
    fn equip(self, camera: &mut EntityWorldMut<'_>, with_prepass: bool) {
        if with_prepass {
            camera.insert(DepthPrepass);
        }
        match self {
            Self::Off | Self::Shadows => {}
            Self::Forward | Self::Prepass => {
                // Large instances would not be hidden.
                camera.insert(InstanceOcclusion {
                    near_pixels: 1e9,
                    ..default()
                });
            }
        }
    }
}

/// Panics unless the pictures are equal to the bit.
fn assert_equal(name: &str, hiding: &RgbaImage, plain: &RgbaImage) {
    let colors: std::collections::HashSet<_> = plain.pixels().collect();
    assert!(colors.len() > 50, "{name}: the reference shows nothing");
    compare(name, hiding, plain).unwrap();
}

/// Saves the pictures if they are not equal to the bit.
fn compare(name: &str, hiding: &RgbaImage, plain: &RgbaImage) -> Result<(), String> {
    let differ = hiding.pixels().zip(plain.pixels()).filter(|(a, b)| a != b);
    let differ = differ.count();
    if differ > 0 {
        let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
        std::fs::create_dir_all(&folder).unwrap();
        hiding
            .save(folder.join(format!("{name}-hiding.png")))
            .unwrap();
        plain
            .save(folder.join(format!("{name}-plain.png")))
            .unwrap();
        return Err(format!(
            "{name}: {differ} pixels differ; both pictures are in {}",
            folder.display()
        ));
    }
    Ok(())
}

/// The counters of the camera of a stage.
fn camera_report(stage: &mut Stage) -> (u64, Option<OcclusionReport>) {
    sum_of(stage, |view| view.kind == ViewKind::Camera)
}

/// The sums of the counters of some views of a stage.
fn sum_of(
    stage: &mut Stage,
    is_wanted: impl Fn(&ViewReport) -> bool,
) -> (u64, Option<OcclusionReport>) {
    let report = stage.report();
    let views = || report.views.iter().filter(|view| is_wanted(view));
    assert!(views().count() > 0, "{:?}", report.views);
    let visible = views().map(|view| view.visible).sum();
    let lists = views().filter_map(|view| view.occlusion);
    (visible, lists.reduce(|sum, lists| sum + lists))
}
