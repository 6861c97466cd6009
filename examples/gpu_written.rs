//! A million orbs in a vortex. A compute pass (`assets/shaders/vortex.wesl`) writes all of them in
//! each frame, and nothing is read back.

use bevy::{
    prelude::*,
    render::{
        Render, RenderApp, RenderStartup, RenderSystems,
        extract_resource::{ExtractResource, ExtractResourcePlugin},
        render_resource::{
            BindGroup, BindGroupEntries, BindGroupLayoutDescriptor, BindGroupLayoutEntries,
            CachedComputePipelineId, ComputePassDescriptor, ComputePipelineDescriptor,
            PipelineCache, ShaderStages, ShaderType, UniformBuffer,
            binding_types::{storage_buffer_sized, uniform_buffer},
        },
        renderer::{RenderContext, RenderDevice, RenderGraph, RenderQueue},
    },
};
use bevy_gpu_culling::{prelude::*, render::InstanceBuffers};

const SHADER: &str = "shaders/vortex.wesl";

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .insert_resource(Count(1_000_000))
        .run()
}

/// Number of orbs.
#[derive(Resource)]
pub struct Count(pub u32);

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.add_plugins(ExtractResourcePlugin::<Swarm>::default())
        .add_systems(Startup, spawn)
        .add_systems(Update, tick);
    if let Some(render_app) = app.get_sub_app_mut(RenderApp) {
        render_app
            .init_resource::<Passes>()
            .add_systems(RenderStartup, make_pipeline)
            .add_systems(Render, bind.in_set(RenderSystems::PrepareBindGroups))
            // Before culling reads the instances.
            .add_systems(RenderGraph, swirl.in_set(GpuCullingSystems::WriteInstances));
    }
}

/// The render world's knowledge of the set.
#[derive(Resource, Clone, ExtractResource)]
#[extract_app(RenderApp)]
struct Swarm {
    set: AssetId<InstanceSet>,
    time: f32,
}

fn spawn(
    mut commands: Commands,
    count: Res<Count>,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) -> Result {
    let around = GpuWritten::within(Vec3::new(-45.0, -21.0, -45.0), Vec3::new(45.0, 23.0, 45.0));
    // For a camera with a motion vector prepass, add `keep_previous(true)`.
    let set = sets.add(InstanceSet::gpu_written(count.0, around.with_scales(1.5))?);
    commands.insert_resource(Swarm {
        set: set.id(),
        time: 0.0,
    });
    commands.spawn((
        Mesh3d(meshes.add(Sphere::new(0.1).mesh().ico(1)?)),
        MeshMaterial3d(materials.add(Color::srgb(0.45, 0.65, 0.95))),
        GpuInstances(set),
    ));
    commands.spawn((
        Camera3d::default(),
        Transform::from_xyz(0.0, 12.0, 52.0).looking_at(Vec3::new(0.0, -3.0, 0.0), Vec3::Y),
    ));
    commands.spawn((
        DirectionalLight::default(),
        Transform::default().looking_to(Vec3::new(1.0, -1.5, -0.7), Vec3::Y),
    ));
    Ok(())
}

fn tick(time: Res<Time>, mut swarm: ResMut<Swarm>) {
    swarm.time = time.elapsed_secs();
}

/// `Vortex` of the shader.
#[derive(ShaderType, Default)]
struct Vortex {
    time: f32,
    count: u32,
    first: u32,
    capacity: u32,
}

/// The pass: its pipeline, and a uniform, a bind group and the number of workgroups per buffer of
/// the set.
#[derive(Resource, Default)]
struct Passes {
    layout: Option<(BindGroupLayoutDescriptor, CachedComputePipelineId)>,
    bound: Vec<(UniformBuffer<Vortex>, BindGroup, UVec2)>,
    version: u64,
}

fn make_pipeline(mut passes: ResMut<Passes>, server: Res<AssetServer>, cache: Res<PipelineCache>) {
    let entries = BindGroupLayoutEntries::sequential(
        ShaderStages::COMPUTE,
        (
            uniform_buffer::<Vortex>(false),
            storage_buffer_sized(false, None),
            storage_buffer_sized(false, None),
        ),
    );
    let layout = BindGroupLayoutDescriptor::new("vortex", &entries);
    let pipeline = cache.queue_compute_pipeline(ComputePipelineDescriptor {
        label: Some("vortex".into()),
        layout: vec![layout.clone()],
        shader: server.load(SHADER),
        entry_point: Some("swirl".into()),
        ..default()
    });
    passes.layout = Some((layout, pipeline));
}

/// Uploads the time, and binds the set's buffers again if they were replaced.
fn bind(
    mut passes: ResMut<Passes>,
    swarm: Option<Res<Swarm>>,
    buffers: Res<InstanceBuffers>,
    cache: Res<PipelineCache>,
    (device, queue): (Res<RenderDevice>, Res<RenderQueue>),
) {
    let passes = &mut *passes;
    let Some((swarm, buffer)) = swarm.and_then(|swarm| {
        let buffer = buffers.get(swarm.set)?;
        Some((swarm, buffer))
    }) else {
        passes.bound.clear();
        return;
    };
    let Some((layout, _)) = &passes.layout else {
        return;
    };
    if passes.version != buffer.version() || passes.bound.len() != buffer.regions().len() {
        passes.version = buffer.version();
        let layout = cache.get_bind_group_layout(layout);
        passes.bound.clear();
        // One region, or several if one binding cannot hold the set.
        for region in buffer.regions() {
            let mut uniform = UniformBuffer::from(Vortex {
                count: buffer.live(),
                first: region.first,
                capacity: region.capacity,
                ..default()
            });
            uniform.write_buffer(&device, &queue);
            let (Some(vortex), Some(scales)) = (uniform.binding(), region.scales_binding()) else {
                return;
            };
            let entries =
                BindGroupEntries::sequential((vortex, region.instances_binding(), scales));
            let bind_group = device.create_bind_group("vortex", &layout, &entries);
            let workgroups = region.capacity.div_ceil(64);
            let width = workgroups.min(device.limits().max_compute_workgroups_per_dimension);
            let workgroups = UVec2::new(width, workgroups.div_ceil(width));
            passes.bound.push((uniform, bind_group, workgroups));
        }
    }
    for (uniform, ..) in &mut passes.bound {
        uniform.get_mut().time = swarm.time;
        uniform.get_mut().count = buffer.live();
        uniform.write_buffer(&device, &queue);
    }
}

/// Records the pass.
fn swirl(passes: Res<Passes>, cache: Res<PipelineCache>, mut context: RenderContext) {
    let Some(pipeline) = passes
        .layout
        .as_ref()
        .and_then(|(_, pipeline)| cache.get_compute_pipeline(*pipeline))
    else {
        return;
    };
    let encoder = context.command_encoder();
    let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor {
        label: Some("vortex"),
        timestamp_writes: None,
    });
    pass.set_pipeline(pipeline);
    for (_, bind_group, workgroups) in &passes.bound {
        pass.set_bind_group(0, bind_group, &[]);
        pass.dispatch_workgroups(workgroups.x, workgroups.y, 1);
    }
}
