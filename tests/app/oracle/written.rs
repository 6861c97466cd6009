//! The user's side of a set that the GPU writes: a compute pass in the system set that is reserved
//! for it.

use super::{
    axes::Light,
    build::{self, eye, ground, moved},
    materials::{Extended, Tint},
    stage,
};
use crate::scene::{How, Stage, different_pixels, field};
use bevy::{
    platform::collections::HashMap,
    prelude::*,
    render::{
        Extract, ExtractSchedule, RenderApp,
        renderer::{RenderContext, RenderDevice, RenderGraph},
    },
};
use bevy_gpu_culling::{cull::shaders, prelude::*, render::InstanceBuffers};
use wgpu::util::DeviceExt;

/// The instances that the pass writes into each set.
#[derive(Resource, Clone, Default)]
pub struct Writes(pub HashMap<AssetId<InstanceSet>, InstanceSet>);

const KERNEL: &str = "
@group(0) @binding(0) var<storage, read> given: array<PackedInstance>;
@group(0) @binding(1) var<storage, read> given_scales: array<f32>;
@group(0) @binding(2) var<storage, read_write> written: array<PackedInstance>;
@group(0) @binding(3) var<storage, read_write> scales: array<f32>;
@group(0) @binding(4) var<storage, read> given_data: array<u32>;
@group(0) @binding(5) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(64)
fn write(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&given)) {
        let instance = unpack(given[id.x]);
        written[id.x] = pack(instance.position, instance.rotation);
        // One number per instance, or three.
        let floats = arrayLength(&given_scales) / arrayLength(&given);
        for (var k = id.x * floats; k < (id.x + 1u) * floats; k += 1u) {
            scales[k] = given_scales[k];
        }
        // None, or up to four.
        let words = arrayLength(&given_data) / arrayLength(&given);
        for (var k = id.x * words; k < (id.x + 1u) * words; k += 1u) {
            data[k] = given_data[k];
        }
    }
}
";

pub fn register(app: &mut App) {
    app.init_resource::<Writes>();
    if let Some(render_app) = app.get_sub_app_mut(RenderApp) {
        render_app
            .init_resource::<Writes>()
            .add_systems(ExtractSchedule, extract)
            .add_systems(RenderGraph, write.in_set(GpuCullingSystems::WriteInstances));
    }
}

fn extract(mut writes: ResMut<Writes>, from: Extract<Res<Writes>>) {
    writes.0.clone_from(&from.0);
}

fn write(
    writes: Res<Writes>,
    buffers: Option<Res<InstanceBuffers>>,
    device: Res<RenderDevice>,
    mut pipeline: Local<Option<wgpu::ComputePipeline>>,
    mut context: RenderContext,
) {
    let Some(buffers) = buffers else { return };
    let device = device.wgpu_device();
    let pipeline = pipeline.get_or_insert_with(|| {
        let source = [shaders::INSTANCE, shaders::INSTANCE_PACK, KERNEL].join("\n");
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(source.into()),
        });
        device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("write"),
            compilation_options: Default::default(),
            cache: None,
        })
    });
    for (id, set) in &writes.0 {
        let Some(buffer) = buffers.get(*id) else {
            continue;
        };
        assert_eq!(buffer.regions().len(), 1);
        let region = &buffer.regions()[0];
        let ones = vec![1.0; set.len()];
        let input = |contents: &[u8]| {
            device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
                label: None,
                contents,
                usage: wgpu::BufferUsages::STORAGE,
            })
        };
        let given = input(bytemuck::cast_slice(set.packed()));
        let scales = match set.scale_floats() {
            [] => &ones,
            scales => scales,
        };
        let given_scales = input(bytemuck::cast_slice(scales));
        let none = input(&[0; 4]);
        let given_data = match set.data_words() {
            [] => input(&[0; 4]),
            data => input(bytemuck::cast_slice(data)),
        };
        let resources = [
            given.as_entire_binding(),
            given_scales.as_entire_binding(),
            region.instances_binding(),
            region.scales_binding().unwrap(),
            given_data.as_entire_binding(),
            (region.data_binding()).unwrap_or(none.as_entire_binding()),
        ];
        let entries: Vec<_> = (0..)
            .zip(resources)
            .map(|(binding, resource)| wgpu::BindGroupEntry { binding, resource })
            .collect();
        let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        let encoder = context.command_encoder();
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(pipeline);
        pass.set_bind_group(0, &bind_group, &[]);
        pass.dispatch_workgroups(set.len().div_ceil(64) as u32, 1, 1);
    }
}

fn spawn(stage: &mut Stage, written: Option<GpuWritten>, set: &InstanceSet) -> Entity {
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    // Its color depends on the data of an instance.
    let material = MeshMaterial3d(stage.add(Extended {
        base: StandardMaterial::from(Color::srgb(0.9, 0.4, 0.3)),
        extension: Tint {
            tint: LinearRgba::WHITE,
        },
    }));
    let entity = match written {
        Some(settings) => {
            let empty = InstanceSet::gpu_written(set.len() as u32, settings).unwrap();
            let handle = stage.add(empty);
            let mut writes = stage.app.world_mut().resource_mut::<Writes>();
            writes.0.insert(handle.id(), set.clone());
            stage.spawn((Mesh3d(mesh), material, GpuInstances(handle), moved()))
        }
        None => stage.spawn_set(set, (mesh, material), moved()),
    };
    ground(stage);
    build::lights(stage, Light::Point);
    stage.camera(eye(), ());
    entity
}

#[test]
fn a_written_set_looks_like_the_same_instances_uploaded() {
    let data = (0..3000u32).map(|i| [!i, i]).collect();
    let set = field(3000, true).with_data(data).unwrap();
    let around = GpuWritten::within(Vec3::splat(-9.0), Vec3::splat(9.0))
        .with_scales(1.2)
        .with_data(8);
    let mut uploaded = stage(How::Set(None));
    spawn(&mut uploaded, None, &set);
    let expected = uploaded.picture();
    let survivors = uploaded.verify();
    for (tier, compaction, classify) in [
        (CullingTier::Subgroup, Compaction::LookBack, true),
        (CullingTier::Subgroup, Compaction::LookBack, false),
        (CullingTier::Subgroup, Compaction::VoteScanCompact, true),
        (CullingTier::Subgroup, Compaction::Classify, true),
        (CullingTier::Workgroup, Compaction::Classify, true),
        (CullingTier::Workgroup, Compaction::Classify, false),
    ] {
        let mut stage = stage(How::Set(Some(tier)));
        let mut settings = stage.app.world_mut().resource_mut::<GpuCullingSettings>();
        settings.compaction = compaction;
        let name = format!("written-{tier}-{compaction}-{classify}");
        let settings = around.with_classify(classify);
        let entity = spawn(&mut stage, Some(settings), &set);
        let result = different_pixels(&name, &stage.picture(), &expected);
        assert_eq!(result.map(|found| found.share), Ok(0.0), "{name}");
        assert_eq!(stage.verify(), survivors, "{name}");
        // The CPU lowers the number of live instances.
        let world = stage.app.world_mut();
        let handle = world.get::<GpuInstances>(entity).unwrap().0.clone();
        let mut sets = world.resource_mut::<Assets<InstanceSet>>();
        sets.get_mut(&handle).unwrap().set_live(100).unwrap();
        stage.update(2);
        assert!(stage.verify().1 <= 100 * survivors.0 as u32, "{name}");
        assert_eq!(stage.report().instances, 100, "{name}");
    }
}

/// The impostor of a written set draws what the compute pass writes.
#[test]
fn a_written_set_has_an_impostor() {
    let set = field(1500, true);
    let around = GpuWritten::within(Vec3::splat(-9.0), Vec3::splat(9.0)).with_scales(1.2);
    let draw = |how, written| {
        let mut stage = stage(how);
        let parent = spawn(&mut stage, written, &set);
        let card = Mesh3d(stage.mesh(Rectangle::new(0.6, 0.5)));
        let blue = stage.standard(StandardMaterial::from(Color::srgb(0.2, 0.4, 0.9)));
        let impostor = InstanceImpostor { error: 0.05 };
        stage.spawn((impostor, card, blue, ChildOf(parent)));
        let picture = stage.picture();
        let report = stage.report();
        let camera = report.views.iter().find(|view| view.name == "camera");
        let levels = camera.unwrap().levels.clone();
        assert!(levels.len() == 2, "{levels:?}");
        assert!(levels.iter().all(|level| level.visible > 50), "{levels:?}");
        (picture, stage.verify(), levels)
    };
    let expected = draw(How::Set(None), None);
    for tier in [CullingTier::Subgroup, CullingTier::Workgroup] {
        let (picture, verified, levels) = draw(How::Set(Some(tier)), Some(around));
        let name = format!("written-impostor-{tier}");
        different_pixels(&name, &picture, &expected.0).unwrap();
        assert_eq!((verified, levels), (expected.1, expected.2.clone()));
    }
}

/// The tier `Cpu` cannot read instances that the GPU writes. It draws none of them, and everything
/// else still works.
#[test]
fn a_written_set_is_refused_on_the_tier_cpu() {
    let around = GpuWritten::within(Vec3::splat(-9.0), Vec3::splat(9.0)).with_scales(1.2);
    let mut empty = stage(How::Set(None));
    spawn(&mut empty, None, &InstanceSet::new());
    let expected = empty.picture();
    let mut stage = stage(How::Set(Some(CullingTier::Cpu)));
    spawn(&mut stage, Some(around), &field(500, true));
    let result = different_pixels("written-cpu", &stage.picture(), &expected);
    assert_eq!(result.map(|found| found.share), Ok(0.0));
}

/// A new set under the same handle is hidden until it is written, even if it has the same size.
#[test]
fn a_written_set_that_is_swapped_shows_nothing_of_the_old_one() {
    let around = GpuWritten::within(Vec3::splat(-9.0), Vec3::splat(9.0)).with_scales(1.2);
    let mut stage = stage(How::Set(None));
    let set = field(500, true);
    let entity = spawn(&mut stage, Some(around), &set);
    assert!(stage.report().cameras().1 > 0);
    stage.app.insert_resource(Writes::default());
    let kept = stage.report().cameras().1;
    assert!(kept > 0, "without a new write, the instances stay");
    let world = stage.app.world_mut();
    let handle = world.get::<GpuInstances>(entity).unwrap().0.clone();
    let mut sets = world.resource_mut::<Assets<InstanceSet>>();
    let other = InstanceSet::gpu_written(set.len() as u32, around).unwrap();
    *sets.get_mut(&handle).unwrap() = other;
    assert_eq!(stage.report().cameras().1, 0);
}
