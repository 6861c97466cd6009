//! A device that runs out of memory.

use crate::{
    log::Log,
    scene::{How, Stage, assert_same_picture, field},
};
use bevy::{
    prelude::*,
    render::{renderer::RenderAdapterInfo, settings::WgpuSettings},
};
use bevy_gpu_culling::prelude::*;
use std::process::Command;
use wgpu::DeviceType;

/// Environment variable of the child process that has little memory.
const LITTLE_MEMORY: &str = "TEST_WITH_LITTLE_MEMORY";
const NAME: &str = "memory::a_set_that_does_not_fit_is_left_out_and_named";
/// Most virtual memory of the child process, in KiB. The app fits, the large set does not.
const LIMIT: u64 = 8 << 20;

#[test]
fn a_set_that_does_not_fit_is_left_out_and_named() {
    if std::env::var_os(LITTLE_MEMORY).is_some() {
        draw_too_much();
        return;
    }
    if !cfg!(target_os = "linux") || adapter().device_type != DeviceType::Cpu {
        println!("skipped: only a software adapter's memory can be limited");
        return;
    }
    let test = std::env::current_exe().unwrap();
    let limited = format!("ulimit -v {LIMIT} && exec \"$0\" --exact {NAME} --nocapture");
    let output = Command::new("sh")
        .args(["-c", &limited])
        .arg(test)
        .env(LITTLE_MEMORY, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("1 passed") && text.contains("drew the rest"),
        "{text}"
    );
}

fn adapter() -> wgpu::AdapterInfo {
    let stage = Stage::new(How::Entities);
    let info = stage.app.world().resource::<RenderAdapterInfo>();
    (**info).clone()
}

fn draw_too_much() {
    let log = Log::start();
    let draw = |with_large| {
        // Where memory is short, the driver says so to the app.
        let mut stage = Stage::on(How::Set(None), WgpuSettings::default(), |_| ());
        let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
        let material = stage.standard(StandardMaterial::from(Color::srgb(0.9, 0.3, 0.2)));
        let parts = (mesh.clone(), material.clone());
        stage.spawn_set(&field(500, false), parts, Transform::IDENTITY);
        stage.lights(false);
        let eye = Transform::from_xyz(0.0, 3.0, 7.0).looking_at(Vec3::ZERO, Vec3::Y);
        stage.camera(eye, ());
        let mut large = None;
        if with_large {
            // 9.6 GB, all of it in GPU memory.
            let around = GpuWritten::within(Vec3::splat(-1.0), Vec3::splat(1.0));
            let set = stage.add(InstanceSet::gpu_written(600_000_000, around).unwrap());
            large = Some(stage.spawn((Mesh3d(mesh), material, GpuInstances(set))));
        }
        let picture = stage.picture();
        stage.assert_runs("little memory");
        (picture, large)
    };
    let (without, _) = draw(false);
    let (with_large, large) = draw(true);
    let line = log.assert_once(&["out of memory"]);
    let entity = large.unwrap();
    assert!(
        line.contains(&format!("GpuInstances on {entity}")) && line.contains("InstanceSet"),
        "{line}"
    );
    assert_same_picture("little-memory", &with_large, &without);
    println!("drew the rest");
}
