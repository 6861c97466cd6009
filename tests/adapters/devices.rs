//! The simulated devices and the expected results on each.

use crate::{
    log::Log,
    scene::{How, Stage, assert_same_picture, field},
};
use bevy::{
    prelude::*,
    render::{
        renderer::RenderDevice,
        settings::{WgpuFeatures, WgpuLimits, WgpuSettings, WgpuSettingsPriority},
    },
};
use bevy_gpu_culling::prelude::*;
use image::RgbaImage;
use std::process::Command;

/// The expected result of drawing sets on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expected {
    /// The sets are drawn, and this tier tests their instances.
    Drawn(CullingTier),
    /// The sets are not drawn, and one error names this limit.
    Refused(&'static str),
    /// Bevy 0.20.1 itself ends an app there, with or without sets. At most one of the errors is
    /// ours, and it names the limit.
    BevyEnds(Option<&'static str>),
}

/// A simulated device.
pub struct Device {
    pub name: &'static str,
    /// Features that the device lacks.
    without: WgpuFeatures,
    /// Lowers the adapter's limits to the device's.
    limits: fn(&mut WgpuLimits),
    webgl2: bool,
    pub expected: Expected,
}

const FULL: Device = Device {
    name: "",
    without: WgpuFeatures::empty(),
    limits: |_| (),
    webgl2: false,
    expected: Expected::Drawn(CullingTier::Subgroup),
};

const fn drawn(tier: CullingTier) -> Expected {
    Expected::Drawn(tier)
}

const STORAGE: &str = "max_storage_buffers_per_shader_stage";

/// The limits that a WebGPU implementation guarantees.
fn webgpu(limits: &mut WgpuLimits) {
    *limits = WgpuLimits::default();
}

pub const DEVICES: &[Device] = &[
    Device {
        name: "all that the adapter has",
        ..FULL
    },
    Device {
        name: "without `SUBGROUP`",
        without: WgpuFeatures::SUBGROUP,
        expected: drawn(CullingTier::Workgroup),
        ..FULL
    },
    Device {
        name: "without `MULTI_DRAW_INDIRECT_COUNT`",
        without: WgpuFeatures::MULTI_DRAW_INDIRECT_COUNT,
        ..FULL
    },
    Device {
        name: "without `INDIRECT_FIRST_INSTANCE`",
        without: WgpuFeatures::INDIRECT_FIRST_INSTANCE,
        expected: drawn(CullingTier::Cpu),
        ..FULL
    },
    Device {
        name: "WebGPU's limits, `INDIRECT_FIRST_INSTANCE` and `SUBGROUP` only",
        without: WgpuFeatures::all()
            .difference(WgpuFeatures::INDIRECT_FIRST_INSTANCE)
            .difference(WgpuFeatures::SUBGROUP),
        limits: webgpu,
        ..FULL
    },
    Device {
        name: "WebGPU's limits, `INDIRECT_FIRST_INSTANCE` only",
        without: WgpuFeatures::all().difference(WgpuFeatures::INDIRECT_FIRST_INSTANCE),
        limits: webgpu,
        expected: drawn(CullingTier::Workgroup),
        ..FULL
    },
    Device {
        name: "WebGPU's limits, no feature",
        without: WgpuFeatures::all(),
        limits: webgpu,
        expected: drawn(CullingTier::Cpu),
        ..FULL
    },
    Device {
        name: "WebGL2's limits",
        without: WgpuFeatures::all(),
        webgl2: true,
        expected: Expected::Refused(STORAGE),
        ..FULL
    },
    Device {
        name: "8 storage buffers per stage",
        limits: |limits| limits.max_storage_buffers_per_shader_stage = 8,
        ..FULL
    },
    Device {
        name: "7 storage buffers per stage",
        limits: |limits| limits.max_storage_buffers_per_shader_stage = 7,
        expected: Expected::Drawn(CullingTier::Cpu),
        ..FULL
    },
    Device {
        name: "6 storage buffers per stage",
        limits: |limits| limits.max_storage_buffers_per_shader_stage = 6,
        expected: Expected::BevyEnds(Some(STORAGE)),
        ..FULL
    },
    Device {
        name: "5 storage buffers per stage",
        limits: |limits| limits.max_storage_buffers_per_shader_stage = 5,
        expected: Expected::BevyEnds(Some(STORAGE)),
        ..FULL
    },
    Device {
        name: "no storage buffer",
        limits: |limits| limits.max_storage_buffers_per_shader_stage = 0,
        expected: Expected::BevyEnds(Some(STORAGE)),
        ..FULL
    },
    Device {
        name: "bindings of 128 MiB",
        limits: |limits| limits.max_storage_buffer_binding_size = 128 << 20,
        ..FULL
    },
    Device {
        name: "bindings of 16 MiB",
        limits: |limits| limits.max_storage_buffer_binding_size = 16 << 20,
        ..FULL
    },
    Device {
        name: "15 variables between vertex and fragment stage",
        limits: |limits| limits.max_inter_stage_shader_variables = 15,
        ..FULL
    },
    Device {
        name: "256 workgroups per dimension",
        limits: |limits| limits.max_compute_workgroups_per_dimension = 256,
        expected: drawn(CullingTier::Cpu),
        ..FULL
    },
    Device {
        name: "65,535 workgroups per dimension",
        limits: |limits| limits.max_compute_workgroups_per_dimension = 65_535,
        ..FULL
    },
    Device {
        name: "workgroups of 128 threads",
        limits: |limits| limits.max_compute_invocations_per_workgroup = 128,
        expected: Expected::BevyEnds(None),
        ..FULL
    },
];

impl Device {
    fn settings(&self) -> WgpuSettings {
        // Constraints can only lower the adapter's limits.
        let mut limits = unlimited();
        (self.limits)(&mut limits);
        let priority = match self.webgl2 {
            true => WgpuSettingsPriority::WebGL2,
            false => WgpuSettingsPriority::Functionality,
        };
        WgpuSettings {
            priority,
            limits: match self.webgl2 {
                true => WgpuLimits::downlevel_webgl2_defaults(),
                false => WgpuLimits::default(),
            },
            disabled_features: Some(self.without),
            constrained_limits: (!self.webgl2).then_some(limits),
            ..default()
        }
    }
}

/// The adapter's own limits, which constrain nothing.
fn unlimited() -> WgpuLimits {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let options = wgpu::RequestAdapterOptions {
        power_preference: wgpu::PowerPreference::HighPerformance,
        ..default()
    };
    pollster::block_on(instance.request_adapter(&options))
        .unwrap()
        .limits()
}

/// Builds a scene with a set in front of an ordinary mesh.
fn build(stage: &mut Stage, with_set: bool) {
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let material = stage.standard(StandardMaterial::from(Color::srgb(0.9, 0.3, 0.2)));
    if with_set {
        let at = Transform::from_xyz(0.3, 0.0, 0.0);
        stage.spawn_set(&field(1500, true), (mesh.clone(), material.clone()), at);
    }
    let wall = stage.mesh(Sphere::new(2.0));
    let gray = stage.standard(StandardMaterial::from(Color::srgb(0.5, 0.5, 0.55)));
    stage.spawn((Mesh3d(wall), gray, Transform::from_xyz(0.0, 0.0, -6.0)));
    stage.lights(false);
    let eye = Transform::from_xyz(0.0, 3.0, 7.0).looking_at(Vec3::new(0.5, 0.0, 0.0), Vec3::Y);
    stage.camera(eye, ());
}

fn picture(device: &Device, how: How, with_set: bool) -> (RgbaImage, Stage) {
    let mut stage = Stage::on(how, device.settings(), |_| ());
    build(&mut stage, with_set);
    let picture = stage.picture();
    stage.assert_runs(device.name);
    (picture, stage)
}

/// Environment variable of a child process: the index of its device. Each device gets a separate
/// process, because Bevy decides some things once per process.
const DEVICE: &str = "TEST_DEVICE";
const NAME: &str = "devices::every_device_draws_sets_as_entities_or_says_why_not";

#[test]
fn every_device_draws_sets_as_entities_or_says_why_not() {
    if let Some(index) = std::env::var(DEVICE)
        .ok()
        .and_then(|index| index.parse::<usize>().ok())
    {
        draw(&DEVICES[index]);
        return;
    }
    let mut failures = Vec::new();
    for (index, device) in DEVICES.iter().enumerate() {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture"])
            .env(DEVICE, index.to_string())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        let is_drawn = output.status.success() && text.contains("1 passed");
        println!("{}: {:?}, {is_drawn}", device.name, device.expected);
        if !is_drawn {
            failures.push(format!("{}:\n{text}", device.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Draws until Bevy ends the app, and checks the log. No device error may come from this crate's
/// objects.
fn draw_until_bevy_ends(device: &Device, limit: Option<&str>) {
    let log = Log::start();
    let run = |how, with_set| {
        let mut stage = Stage::on(how, device.settings(), |_| ());
        build(&mut stage, with_set);
        stage.update(6);
        stage.app.should_exit()
    };
    assert!(run(How::Set(None), true).is_some(), "{}", device.name);
    // The labels of this crate's GPU objects begin with this text.
    let text = log.text();
    assert!(!text.contains("'gpu_culling"), "{}: {text}", device.name);
    let ours = log.lines();
    let named = ours
        .iter()
        .filter(|line| limit.is_some_and(|limit| line.contains(limit)));
    let expected = usize::from(limit.is_some());
    assert_eq!(
        (named.count(), ours.len()),
        (expected, expected),
        "{}: {ours:#?}",
        device.name
    );
    assert!(
        run(How::Entities, false).is_some(),
        "{}: Bevy runs without sets, so it does not end the app itself",
        device.name
    );
}

fn draw(device: &Device) {
    if let Expected::BevyEnds(limit) = device.expected {
        draw_until_bevy_ends(device, limit);
        return;
    }
    let log = Log::start();
    let (set, mut stage) = picture(device, How::Set(None), true);
    // Bevy requests this feature even if it is disabled.
    let always = WgpuFeatures::TEXTURE_ADAPTER_SPECIFIC_FORMAT_FEATURES;
    let has = stage.app.world().resource::<RenderDevice>().features() & device.without;
    assert_eq!(has - always, WgpuFeatures::empty(), "{}", device.name);
    let report = stage.report();
    if report.tier.is_some() {
        stage.verify();
    }
    stage.assert_runs(device.name);
    let said = log.lines();
    drop(stage);
    let with_set = matches!(device.expected, Expected::Drawn(_));
    let (entities, _) = picture(device, How::Entities, with_set);
    let name = device.name.replace([' ', '`', ',', '\''], "-");
    assert_same_picture(&format!("device-{name}"), &set, &entities);
    match device.expected {
        Expected::Drawn(tier) => {
            assert_eq!(report.tier, Some(tier), "{}", device.name);
            assert_eq!(said, Vec::<String>::new(), "{}", device.name);
        }
        Expected::Refused(limit) => {
            assert_eq!(report.tier, None, "{}", device.name);
            let named = said.iter().filter(|line| line.contains(limit)).count();
            assert_eq!((named, said.len()), (1, 1), "{}: {said:#?}", device.name);
        }
        Expected::BevyEnds(_) => {}
    }
}
