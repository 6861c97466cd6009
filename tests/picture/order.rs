//! Which instances are drawn first. A material without a depth test shows it: what is drawn last is
//! on top.

use crate::scene::{How, SIZE, Stage, assert_same_picture, different_pixels};
use bevy::{
    asset::uuid_handle,
    camera::Viewport,
    core_pipeline::prepass::DepthPrepass,
    mesh::MeshVertexBufferLayoutRef,
    pbr::{MaterialPipeline, MaterialPipelineKey},
    prelude::*,
    reflect::TypePath,
    render::render_resource::{
        AsBindGroup, BlendComponent, BlendFactor, BlendOperation, BlendState, CompareFunction,
        RenderPipelineDescriptor, SpecializedMeshPipelineError,
    },
    shader::ShaderRef,
};
use bevy_gpu_culling::prelude::*;
use image::RgbaImage;

/// Shows the depth of what it covers.
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug, Default)]
struct Tested {
    #[uniform(0)]
    unused: Vec4,
}

/// The same without a depth test.
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug, Default)]
struct Untested {
    #[uniform(0)]
    unused: Vec4,
}

/// Adds a little light for each instance, without a depth test: it shows how many are drawn.
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug, Default)]
struct Counted {
    #[uniform(0)]
    unused: Vec4,
}

/// What is drawn last is on top.
fn do_not_test(descriptor: &mut RenderPipelineDescriptor) {
    if let Some(depth) = &mut descriptor.depth_stencil {
        depth.depth_compare = Some(CompareFunction::Always);
    }
}

impl Material for Counted {
    fn fragment_shader() -> ShaderRef {
        COUNTS_SHADER.into()
    }

    fn specialize(
        _: &MaterialPipeline,
        descriptor: &mut RenderPipelineDescriptor,
        _: &MeshVertexBufferLayoutRef,
        _: MaterialPipelineKey<Self>,
    ) -> Result<(), SpecializedMeshPipelineError> {
        do_not_test(descriptor);
        let one = BlendComponent {
            src_factor: BlendFactor::One,
            dst_factor: BlendFactor::One,
            operation: BlendOperation::Add,
        };
        let targets = descriptor
            .fragment
            .iter_mut()
            .flat_map(|stage| &mut stage.targets);
        for target in targets.flatten() {
            target.blend = Some(BlendState {
                color: one,
                alpha: one,
            });
        }
        Ok(())
    }
}

const COUNTS: &str = "
@fragment
fn fragment() -> @location(0) vec4<f32> {
    return vec4(vec3(0.01, 0.006, 0.003), 0.0);
}";

const COUNTS_SHADER: Handle<Shader> = uuid_handle!("7f0f4f6e-4df0-4c43-9a7c-6a7c1f7f0b03");

const DEPTHS: &str = "
import bevy_pbr::render::forward_io::VertexOutput;
@fragment
fn fragment(in: VertexOutput) -> @location(0) vec4<f32> {
    return vec4(fract(in.world_position.z * vec3(0.13, 0.31, 0.71)), 1.0);
}";

const DEPTHS_SHADER: Handle<Shader> = uuid_handle!("7f0f4f6e-4df0-4c43-9a7c-6a7c1f7f0b02");

impl Material for Tested {
    fn fragment_shader() -> ShaderRef {
        DEPTHS_SHADER.into()
    }
}

impl Material for Untested {
    fn fragment_shader() -> ShaderRef {
        DEPTHS_SHADER.into()
    }

    fn specialize(
        _: &MaterialPipeline,
        descriptor: &mut RenderPipelineDescriptor,
        _: &MeshVertexBufferLayoutRef,
        _: MaterialPipelineKey<Self>,
    ) -> Result<(), SpecializedMeshPipelineError> {
        do_not_test(descriptor);
        Ok(())
    }
}

/// Rows of rectangles behind each other, the farthest first: six blocks of them.
fn far_first() -> InstanceSet {
    let places = (0..6 * 1024).map(|i| {
        let (row, at) = (i / 64, i % 64);
        Vec3::new(at as f32 * 0.3 - 9.6, 0.0, row as f32 * 0.4 - 45.0)
    });
    InstanceSet::from_transforms(places).unwrap()
}

fn stage<M: Material>() -> Stage
where
    M::Data: PartialEq + Eq + core::hash::Hash + Clone,
{
    Stage::with(How::Set(None), |app| {
        app.add_plugins(MaterialPlugin::<M>::default());
        let shader = Shader::from_wesl(DEPTHS, "depths.wesl");
        let mut shaders = app.world_mut().resource_mut::<Assets<Shader>>();
        shaders.insert(DEPTHS_SHADER.id(), shader).unwrap();
        let shader = Shader::from_wgsl(COUNTS, "counts.wesl");
        shaders.insert(COUNTS_SHADER.id(), shader).unwrap();
    })
}

fn draw<M: Material + Default>(more: impl Bundle) -> RgbaImage
where
    M::Data: PartialEq + Eq + core::hash::Hash + Clone,
{
    let mut stage = stage::<M>();
    // Flat, so that neighbors in a row do not hide each other.
    let mesh = stage.mesh(Rectangle::new(0.2, 0.5));
    let material = MeshMaterial3d(stage.add(M::default()));
    let set = stage.spawn_set(&far_first(), (mesh, material), Transform::default());
    stage.entity(set).insert(more);
    // Several samples give more colors, by which the comparison sees that something is drawn.
    stage.camera(ahead(), Msaa::Sample4);
    let picture = stage.picture();
    stage.verify();
    picture
}

fn ahead() -> Transform {
    Transform::from_xyz(0.0, 0.2, 0.0).looking_to(Vec3::NEG_Z, Vec3::Y)
}

#[test]
fn near_instances_come_first_unless_the_set_keeps_its_order() {
    let tested = draw::<Tested>(());
    let in_set_order = draw::<Untested>(NoInstanceSorting);
    assert_same_picture("far first", &in_set_order, &tested);
    // Near instances come first, so far ones cover them.
    let near_first = draw::<Untested>(());
    assert!(different_pixels("near first", &near_first, &tested).is_err());
}

/// Two sets with a level of detail from a distance of 9 on, whose rows alternate, and one without
/// levels far behind them.
fn draw_levels<M: Material + Default>(
    near_levels_from: u32,
    cameras: impl FnOnce(&mut Stage),
) -> RgbaImage
where
    M::Data: PartialEq + Eq + core::hash::Hash + Clone,
{
    let mut stage = stage::<M>();
    let world = stage.app.world_mut();
    world.resource_mut::<GpuCullingSettings>().near_levels_from = near_levels_from;
    let mesh = stage.mesh(Rectangle::new(0.2, 0.5));
    let coarse = stage.mesh(Rectangle::new(0.2, 0.45));
    let pixels = SIZE.y as f32 / 2.0 / (core::f32::consts::FRAC_PI_4 / 2.0).tan();
    let material = MeshMaterial3d(stage.add(M::default()));
    for (at, has_levels) in [
        (Vec3::ZERO, true),
        (Vec3::new(0.1, 0.1, 0.2), true),
        (Vec3::new(0.0, 2.0, -9.0), false),
    ] {
        let parts = (mesh.clone(), material.clone());
        let set = stage.spawn_set(&far_first(), parts, Transform::from_translation(at));
        if has_levels {
            let level = InstanceLod::new(coarse.clone(), 9.0 / pixels);
            stage.entity(set).insert(InstanceLods {
                levels: vec![level],
                ..default()
            });
        }
    }
    cameras(&mut stage);
    let picture = stage.picture();
    let report = stage.report();
    let camera = report.views.iter().find(|view| view.name == "camera");
    let levels = &camera.unwrap().levels;
    // Far rows hide each other.
    let world = stage.app.world_mut();
    let hides = !world.query::<&InstanceOcclusion>().query(world).is_empty();
    let least = if hides { 300 } else { 500 };
    let are_drawn = levels.iter().all(|level| level.visible > least);
    assert!(are_drawn, "{levels:?}");
    stage.verify();
    picture
}

/// The camera ahead.
fn one(more: impl Bundle) -> impl FnOnce(&mut Stage) {
    |stage| {
        let camera = stage.camera(ahead(), Msaa::Sample4);
        stage.entity(camera).insert(more);
    }
}

/// Where the left one of two cameras ends.
const MIDDLE: u32 = SIZE.x * 3 / 4;

/// Two cameras beside each other.
fn two(stage: &mut Stage) {
    let right = Transform::from_xyz(1.0, 0.6, -3.0).looking_to(Vec3::NEG_Z, Vec3::Y);
    for (order, from, to, at) in [(0, 0, MIDDLE, ahead()), (1, MIDDLE, SIZE.x, right)] {
        let viewport = Viewport {
            physical_position: UVec2::new(from, 0),
            physical_size: UVec2::new(to - from, SIZE.y),
            ..default()
        };
        let camera = Camera {
            order,
            viewport: Some(viewport),
            ..default()
        };
        stage.camera(at, camera);
    }
}

#[test]
fn near_levels_of_all_sets_come_first_unless_instances_are_few() {
    // 12,288 instances have levels.
    let (first, not_first) = (12_288, 12_289);
    let plain = draw_levels::<Tested>(not_first, one(()));
    let divided = draw_levels::<Tested>(first, one(()));
    assert_same_picture("near levels first", &divided, &plain);
    let hiding = draw_levels::<Tested>(first, one(InstanceOcclusion::default()));
    assert_same_picture("near levels first, hiding", &hiding, &plain);
    // Each instance is drawn once.
    let counts = [not_first, first].map(|from| draw_levels::<Counted>(from, one(())));
    assert_same_picture("counted", &counts[1], &counts[0]);
    // Far levels of one set cover near levels of the other.
    let set_by_set = draw_levels::<Untested>(not_first, one(()));
    let divided = draw_levels::<Untested>(first, one(()));
    assert!(different_pixels("divided", &divided, &set_by_set).is_err());
    // Behind a prepass nothing hidden is shaded, in any order.
    let prepass = draw_levels::<Untested>(first, one(DepthPrepass));
    assert_same_picture("near levels, prepass", &prepass, &set_by_set);
}

#[test]
fn each_camera_draws_its_near_levels_first() {
    let (first, not_first) = (12_288, 12_289);
    let [plain, divided] = [not_first, first].map(|from| draw_levels::<Tested>(from, two));
    assert_same_picture("two cameras", &divided, &plain);
    let counts = [not_first, first].map(|from| draw_levels::<Counted>(from, two));
    assert_same_picture("two cameras, counted", &counts[1], &counts[0]);
    let [plain, divided] = [not_first, first].map(|from| draw_levels::<Untested>(from, two));
    for (from, to) in [(0, MIDDLE), (MIDDLE, SIZE.x)] {
        let part = |picture: &RgbaImage| {
            image::imageops::crop_imm(picture, from, 0, to - from, SIZE.y).to_image()
        };
        assert!(different_pixels("divided", &part(&divided), &part(&plain)).is_err());
    }
}
