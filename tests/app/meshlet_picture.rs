//! A set drawn by meshlets looks like the same set drawn whole: from outside, inside and near, with
//! closed and open meshes, with shadows and prepasses, and after changes at run time.

mod assets;
mod changes;
mod levels;
mod offsets;

use crate::scene::{
    How, Stage, assert_same_picture, field, field_of,
    normals::{Normals, add_normals},
};
use bevy::{
    camera::ScalingMode,
    core_pipeline::prepass::{DeferredPrepass, DepthPrepass, MotionVectorPrepass, NormalPrepass},
    pbr::DefaultOpaqueRendererMethod,
    prelude::*,
    reflect::TypePath,
    render::render_resource::{AsBindGroup, Face},
    shader::ShaderRef,
};
use bevy_gpu_culling::{
    cull::CullingTier,
    meshlet::{MeshletMesh, MeshletSettings},
    prelude::*,
    render::MeshletReport,
};
use image::RgbaImage;

/// A closed mesh of 4,096 triangles.
fn torus() -> Mesh {
    let shape = Torus::new(0.2, 0.5).mesh();
    shape.major_resolution(64).minor_resolution(32).build()
}

/// A smooth closed mesh of 5,120 triangles.
fn ball() -> Mesh {
    Sphere::new(0.4).mesh().ico(15).unwrap()
}

/// An open, bumpy sheet of 2,048 triangles that face up.
fn sheet() -> Mesh {
    let mut mesh = Mesh::from(
        Plane3d::new(Vec3::Y, Vec2::splat(0.6))
            .mesh()
            .subdivisions(31),
    );
    let values = mesh.attribute_mut(Mesh::ATTRIBUTE_POSITION).unwrap();
    let bevy::mesh::VertexAttributeValues::Float32x3(points) = values else {
        panic!("positions must be three f32")
    };
    for [x, y, z] in points {
        *y = (*x * 9.0).sin() * (*z * 7.0).cos() * 0.25;
    }
    mesh.with_duplicated_vertices().with_computed_normals()
}

fn red() -> StandardMaterial {
    StandardMaterial {
        base_color: Color::srgb(0.9, 0.3, 0.2),
        perceptual_roughness: 0.4,
        ..default()
    }
}

/// A material without lights.
fn colored(stage: &mut Stage) -> MeshMaterial3d<Normals> {
    let color = LinearRgba::rgb(0.9, 0.7, 0.6);
    MeshMaterial3d(stage.add(Normals::new(color)))
}

/// Spawns a set without a transform, whole or by meshlets.
fn spawn<M: Component + Clone>(
    stage: &mut Stage,
    by_meshlets: bool,
    set: &InstanceSet,
    mesh: &Mesh,
    material: M,
) -> Entity {
    spawn_at(stage, by_meshlets, set, mesh, material, Transform::IDENTITY)
}

fn spawn_at<M: Component + Clone>(
    stage: &mut Stage,
    by_meshlets: bool,
    set: &InstanceSet,
    mesh: &Mesh,
    material: M,
    at: Transform,
) -> Entity {
    if !by_meshlets {
        let mesh = stage.mesh(mesh.clone());
        return stage.spawn_set(set, (mesh, material), at);
    }
    let meshlets = MeshletMesh::from_mesh(mesh, &MeshletSettings::default()).unwrap();
    assert!(meshlets.meshlets().len() > 15);
    let meshlets = MeshletMesh3d(stage.add(meshlets));
    let set = GpuInstances(stage.add(set.clone()));
    stage.spawn((meshlets, material, set, at))
}

/// Two apps that draw the same scenes, one whole and one by meshlets.
struct Pair {
    whole: Stage,
    parts: Stage,
}

impl Pair {
    fn new(how: How) -> Self {
        Self::with(how, |_| ())
    }

    fn with(how: How, more: impl Fn(&mut App)) -> Self {
        let [whole, parts] = [(), ()].map(|()| {
            Stage::with(how, |app| {
                add_normals(app);
                more(app);
            })
        });
        Self { whole, parts }
    }

    /// Compares the pictures of a scene and returns the meshlets' counters of cameras and shadows.
    fn compare(
        &mut self,
        name: &str,
        build: impl Fn(&mut Stage, bool),
    ) -> (MeshletReport, MeshletReport) {
        let Self { whole, parts } = self;
        for (stage, by_meshlets) in [(&mut *whole, false), (&mut *parts, true)] {
            stage.clear();
            build(stage, by_meshlets);
        }
        let (picture, report) = parts.picture_and_report();
        keep(name, &picture);
        assert_same_picture(name, &picture, &whole.picture());
        (report.meshlets, report.shadow_meshlets)
    }
}

impl Drop for Pair {
    /// What is drawn whole counts no meshlets.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.whole.report().meshlets, MeshletReport::default());
        }
    }
}

/// Saves the picture if `KEEP_PICTURES` names a folder.
fn keep(name: &str, picture: &RgbaImage) {
    if let Some(folder) = std::env::var_os("KEEP_PICTURES") {
        let folder = std::path::Path::new(&folder);
        picture
            .save(folder.join(format!("meshlets-{name}.png")))
            .unwrap();
    }
}

/// Rows whose meshlets do not fit are drawn whole, and they stay whole if the buffers cannot grow.
#[test]
fn rows_without_room_are_drawn_whole() {
    use bevy::render::RenderApp;
    use bevy_gpu_culling::{cull::meshlets::MeshletOptions, render::MeshletRoom};
    let build = |sets: &'static [(f32, usize)]| {
        move |stage: &mut Stage, by_meshlets: bool| {
            for (x, count) in sets {
                let (set, at) = (field(*count, false), Transform::from_xyz(*x, 0.0, 0.0));
                let material = colored(stage);
                spawn_at(stage, by_meshlets, &set, &torus(), material, at);
            }
            let eye = Transform::from_xyz(0.0, 3.0, 12.0).looking_at(Vec3::ZERO, Vec3::Y);
            stage.camera(eye, ());
        }
    };
    let small = |app: &mut App| {
        let room = MeshletRoom(MeshletOptions {
            cell_capacity: 1,
            survivor_capacity: 1,
            keeps_capacity: true,
            ..MeshletOptions::default()
        });
        if let Some(render_app) = app.get_sub_app_mut(RenderApp) {
            render_app.insert_resource(room);
        }
    };
    // One set, and two in one page, so that a row's commands begin at different places.
    let mut pair = Pair::with(How::Set(None), small);
    for sets in [&[(0.0, 60)][..], &[(-2.0, 40), (2.0, 60)]] {
        let name = format!("without-room-{}", sets.len());
        let (report, _) = pair.compare(&name, build(sets));
        let expected = (sets.len() as u64, 0);
        assert_eq!(
            (report.rows_drawn_whole, report.drawn),
            expected,
            "{report:?}"
        );
    }
}

fn culls_both_ways(report: &MeshletReport) {
    assert!(report.culled_by_cone * 10 > report.tested, "{report:?}");
    assert!(report.culled_by_frustum > 0, "{report:?}");
    assert!(
        report.triangles * 10 < report.whole_triangles * 9,
        "{report:?}"
    );
    let sum = report.culled_by_frustum + report.culled_by_cone + report.drawn;
    assert_eq!(sum, report.tested);
    assert_eq!(report.rows_drawn_whole, 0);
}

fn eyes() -> [(&'static str, Transform); 3] {
    let outside = Transform::from_xyz(0.0, 9.0, 20.0).looking_at(Vec3::ZERO, Vec3::Y);
    let inside = Transform::from_xyz(0.5, 0.0, 2.0).looking_at(Vec3::new(-1.0, 0.2, -3.0), Vec3::Y);
    // The first instance, so near that it fills the picture.
    let target = field(150, true).iter().next().unwrap().translation;
    let near = Transform::from_translation(target + Vec3::new(0.45, 0.5, 0.6));
    [
        ("outside", outside),
        ("inside", inside),
        ("near", near.looking_at(target, Vec3::Y)),
    ]
}

#[test]
fn closed_and_open_meshes_look_whole_from_outside_inside_and_near() {
    let mut pair = Pair::new(How::Set(None));
    for (mesh_name, mesh) in [("torus", torus()), ("ball", ball()), ("sheet", sheet())] {
        for (eye_name, eye) in eyes() {
            let name = format!("{mesh_name}-{eye_name}");
            let (cameras, _) = pair.compare(&name, |stage, by_meshlets| {
                let material = colored(stage);
                let set = field(150, true);
                spawn(stage, by_meshlets, &set, &mesh, material);
                stage.camera(eye, ());
            });
            assert!(
                cameras.culled_by_cone * 20 > cameras.tested,
                "{name}: {cameras:?}"
            );
            if eye_name == "inside" {
                culls_both_ways(&cameras);
            }
        }
    }
}

/// Sets that mirror, stretch and rotate, with a perspective and an orthographic camera.
#[test]
fn stretched_and_mirrored_sets_look_whole() {
    let mirrors = [
        Vec3::new(1.0, 0.5, 1.6),
        Vec3::new(-1.0, 0.7, 1.2),
        Vec3::new(-1.0, -1.0, -0.6),
    ];
    let mut pair = Pair::new(How::Set(None));
    for (index, scale) in mirrors.into_iter().enumerate() {
        for orthographic in [false, true] {
            let name = format!("stretched-{index}-{orthographic}");
            let (cameras, _) = pair.compare(&name, |stage, by_meshlets| {
                let material = colored(stage);
                let at = Transform::from_xyz(0.3, -0.2, 0.5)
                    .with_rotation(Quat::from_euler(EulerRot::XYZ, 0.4, 0.9, -0.3))
                    .with_scale(scale);
                spawn_at(
                    stage,
                    by_meshlets,
                    &field(150, true),
                    &torus(),
                    material,
                    at,
                );
                let eye = Transform::from_xyz(0.0, 3.0, 6.0).looking_at(Vec3::ZERO, Vec3::Y);
                let camera = stage.camera(eye, ());
                if orthographic {
                    let projection = OrthographicProjection {
                        scaling_mode: ScalingMode::FixedVertical {
                            viewport_height: 5.0,
                        },
                        ..OrthographicProjection::default_3d()
                    };
                    let mut camera = stage.entity(camera);
                    camera.insert(Projection::Orthographic(projection));
                }
            });
            culls_both_ways(&cameras);
        }
    }
}

#[test]
fn shadows_are_those_of_the_whole() {
    let mut pair = Pair::new(How::Set(None));
    for (name, mesh) in [("torus", torus()), ("sheet", sheet())] {
        let (cameras, shadows) = pair.compare(&format!("shadows-{name}"), |stage, by_meshlets| {
            let material = stage.standard(red());
            let at = Transform::from_xyz(0.0, 2.0, 0.0);
            spawn_at(stage, by_meshlets, &field(60, false), &mesh, material, at);
            let ground = stage.mesh(Plane3d::new(Vec3::Y, Vec2::splat(12.0)));
            let gray = stage.standard(StandardMaterial::from(Color::srgb(0.5, 0.5, 0.55)));
            stage.spawn((Mesh3d(ground), gray, Transform::from_xyz(0.0, -2.5, 0.0)));
            stage.lights(true);
            stage.camera(eyes()[0].1, ());
        });
        assert!(cameras.culled_by_cone > 0);
        culls_both_ways(&shadows);
    }
}

#[test]
fn prepasses_and_deferred_are_those_of_the_whole() {
    let all = (DepthPrepass, NormalPrepass, MotionVectorPrepass, Msaa::Off);
    let mut pair = Pair::new(How::Set(None));
    for deferred in [false, true] {
        let name = format!("prepass-{deferred}");
        let (cameras, _) = pair.compare(&name, |stage, by_meshlets| {
            if deferred {
                let method = DefaultOpaqueRendererMethod::deferred();
                stage.app.insert_resource(method);
            }
            let material = stage.standard(red());
            let set = field_of(70, ScaleKind::NonUniform);
            spawn(stage, by_meshlets, &set, &torus(), material);
            stage.lights(true);
            let camera = stage.camera(eyes()[1].1, all.clone());
            if deferred {
                stage.entity(camera).insert(DeferredPrepass);
            }
        });
        culls_both_ways(&cameras);
    }
}

/// The faces that a material draws decide which meshlets a cone may reject.
#[test]
fn faces_follow_the_material() {
    let mut pair = Pair::new(How::Set(None));
    for (name, cull_mode) in [("both", None), ("fronts-off", Some(Face::Front))] {
        for mask in [false, true] {
            let name = format!("{name}-{mask}");
            let (cameras, _) = pair.compare(&name, |stage, by_meshlets| {
                let material = stage.standard(StandardMaterial {
                    cull_mode,
                    double_sided: cull_mode.is_none(),
                    alpha_mode: if mask {
                        AlphaMode::Mask(0.5)
                    } else {
                        AlphaMode::Opaque
                    },
                    ..red()
                });
                let set = field_of(70, ScaleKind::NonUniform);
                spawn(stage, by_meshlets, &set, &sheet(), material);
                stage.lights(true);
                stage.camera(eyes()[1].1, ());
            });
            if cull_mode.is_none() {
                assert_eq!(cameras.culled_by_cone, 0);
                assert!(cameras.culled_by_frustum > 0);
            } else {
                culls_both_ways(&cameras);
            }
        }
    }
}

#[derive(Asset, TypePath, AsBindGroup, Clone, Debug)]
struct Stripes {
    #[uniform(0)]
    color: LinearRgba,
}

const STRIPES: &str = "
import bevy_pbr::render::forward_io::VertexOutput;
@group(constants::MATERIAL_BIND_GROUP) @binding(0) var<uniform> color: vec4<f32>;
@fragment
fn fragment(
    in: VertexOutput,
    @if(GPU_INSTANCES) @location(14) @interpolate(flat) instance: vec2<u32>,
) -> @location(0) vec4<f32> {
    var shade = 1.0;
    @if(GPU_INSTANCES)
    shade = 0.5 + 0.1 * f32(instance.y % 6u);
    let stripe = step(0.5, fract(in.world_position.y * 2.0));
    return vec4(color.rgb * shade * (0.4 + 0.6 * stripe) * (0.6 + 0.4 * in.world_normal.y), 1.0);
}";

const STRIPES_SHADER: Handle<Shader> =
    bevy::asset::uuid_handle!("7f0f4f6e-4df0-4c43-9a7c-6a7c1f7f0b31");

impl Material for Stripes {
    fn fragment_shader() -> ShaderRef {
        STRIPES_SHADER.into()
    }
}

/// A custom material that shades instances differently.
#[test]
fn a_custom_material_looks_whole() {
    let more = |app: &mut App| {
        app.add_plugins(MaterialPlugin::<Stripes>::default());
        let shader = Shader::from_wesl(STRIPES, "stripes.wesl");
        let mut shaders = app.world_mut().resource_mut::<Assets<Shader>>();
        shaders.insert(STRIPES_SHADER.id(), shader).unwrap();
    };
    let mut pair = Pair::with(How::Set(None), more);
    let (cameras, _) = pair.compare("custom", |stage, by_meshlets| {
        let color = LinearRgba::rgb(0.2, 0.8, 0.9);
        let material = MeshMaterial3d(stage.add(Stripes { color }));
        let set = field(150, true);
        spawn(stage, by_meshlets, &set, &torus(), material);
        stage.camera(eyes()[1].1, ());
    });
    culls_both_ways(&cameras);
}

/// The mesh that the meshlets hold: the same triangles in another order, which is visible with a
/// blended material.
fn reordered(mesh: &Mesh) -> Mesh {
    let meshlets = MeshletMesh::from_mesh(mesh, &MeshletSettings::default()).unwrap();
    meshlets.to_mesh().unwrap()
}

/// Sets are drawn whole if the order of triangles matters, if vertices may move, or if the tier is
/// `Cpu`.
#[test]
fn what_cannot_be_parted_is_drawn_whole() {
    let blend = |stage: &mut Stage, by_meshlets: bool| {
        let material = stage.standard(StandardMaterial {
            base_color: Color::srgba(0.9, 0.3, 0.2, 0.5),
            alpha_mode: AlphaMode::Blend,
            ..default()
        });
        let set = field(60, false);
        let mesh = if by_meshlets {
            torus()
        } else {
            reordered(&torus())
        };
        spawn(stage, by_meshlets, &set, &mesh, material);
        stage.lights(false);
        stage.camera(eyes()[1].1, ());
    };
    let nothing = MeshletReport::default();
    let mut pair = Pair::new(How::Set(None));
    assert_eq!(pair.compare("blend", blend).0, nothing);
    let opaque = |stage: &mut Stage, by_meshlets: bool| {
        let material = stage.standard(red());
        let set = field(60, false);
        let set = spawn(stage, by_meshlets, &set, &torus(), material);
        stage.lights(false);
        stage.camera(eyes()[1].1, ());
        set
    };
    let report = pair.compare("radius", |stage, by_meshlets| {
        let set = opaque(stage, by_meshlets);
        stage.entity(set).insert(CullingRadius(0.8));
    });
    assert_eq!(report.0, nothing);
    // The tiers draw the same.
    let whole = pair.whole.picture();
    for tier in [CullingTier::Cpu, CullingTier::Workgroup] {
        let mut stage = Stage::new(How::Set(Some(tier)));
        opaque(&mut stage, true);
        let (picture, report) = stage.picture_and_report();
        assert_same_picture(&tier.to_string(), &picture, &whole);
        if tier == CullingTier::Cpu {
            assert_eq!(report.meshlets, nothing);
        } else {
            culls_both_ways(&report.meshlets);
        }
    }
}
