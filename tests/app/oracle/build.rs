//! Builds the scene of a combination.

use super::{
    axes::{Combination, Eye, Light, Matter, Pass},
    materials::{self, Extended, ShowPrepass, Stripes, Swollen, Tagged, Tint, Wavy},
    oblique::Oblique,
    tinted,
};
use crate::scene::{How, SIZE, Stage, field_of};
use bevy::{
    camera::{Hdr, Viewport, visibility::NoFrustumCulling},
    core_pipeline::prepass::{DeferredPrepass, DepthPrepass, MotionVectorPrepass, NormalPrepass},
    image::Image,
    light::{NotShadowCaster, Skybox},
    material::OpaqueRendererMethod,
    mesh::{MeshCompressionArgs, MeshTag, UvChannel},
    pbr::{DistanceFog, FogFalloff, ScreenSpaceAmbientOcclusion, ScreenSpaceTransmission},
    post_process::{bloom::Bloom, motion_blur::MotionBlur},
    prelude::*,
};
use bevy_gpu_culling::prelude::*;

const INSTANCES: usize = 250;

/// Translation per frame.
#[derive(Component, Clone, Copy)]
pub struct Drift(pub Vec3);

pub fn drift(mut moving: Query<(&Drift, &mut Transform)>) {
    for (drift, mut transform) in &mut moving {
        transform.translation += drift.0;
    }
}

/// A stretched and rotated transform, because an entity's transform may do both to a set.
pub fn moved() -> Transform {
    Transform::from_xyz(0.3, 0.2, -1.0)
        .with_rotation(Quat::from_rotation_y(0.3))
        .with_scale(Vec3::new(1.1, 0.9, 1.2))
}

pub fn eye() -> Transform {
    Transform::from_xyz(0.0, 3.0, 8.0).looking_at(Vec3::new(0.5, 0.0, 0.0), Vec3::Y)
}

/// The entities that `Stage::spawn_set` spawned: the set's entity, or one entity per instance.
pub fn members(stage: &Stage, of: Entity) -> Vec<Entity> {
    match stage.app.world().get::<Children>(of) {
        Some(children) => children.to_vec(),
        None => vec![of],
    }
}

impl Combination {
    /// Builds the scene.
    pub fn build(&self, stage: &mut Stage) {
        let set = self.spawn_set(stage);
        if self.pass == Pass::FullPrepass {
            let drift = Drift(Vec3::new(0.06, 0.02, 0.0));
            stage.entity(set).insert(drift);
        }
        ground(stage);
        lights(stage, self.light);
        self.cameras(stage);
    }

    fn spawn_set(&self, stage: &mut Stage) -> Entity {
        let mesh = self.mesh();
        let mesh = stage.mesh(mesh);
        let set = field_of(INSTANCES, self.scales());
        let at = self.place();
        match self.matter {
            Matter::Extended => {
                let base = self.standard(stage);
                let set = with_data(set, |i| [!i, i]);
                let tint = LinearRgba::rgb(0.5, 1.0, 0.7);
                let material = stage.add(Extended {
                    base,
                    extension: Tint { tint },
                });
                let spawned = stage.spawn_set(&set, (mesh, MeshMaterial3d(material)), at);
                tag_entities(stage, spawned);
                spawned
            }
            Matter::CustomFragment => {
                let color = LinearRgba::rgb(0.2, 0.8, 0.9);
                let material = stage.add(Stripes { color });
                stage.spawn_set(&set, (mesh, MeshMaterial3d(material)), at)
            }
            Matter::CustomVertex | Matter::CompressedCustomVertex => {
                let set = with_data(set, |i| [!i, 7, 8, i]);
                let color = LinearRgba::rgb(0.9, 0.5, 0.1);
                let material = stage.add(Swollen { color });
                let spawned = stage.spawn_set(&set, (mesh, MeshMaterial3d(material)), at);
                reach_further(stage, spawned);
                tag_entities(stage, spawned);
                spawned
            }
            Matter::MeshVertex => {
                let set = with_data(set, |i| [i, 7, 8]);
                let material = stage.add(Wavy {});
                let spawned = stage.spawn_set(&set, (mesh, MeshMaterial3d(material)), at);
                reach_further(stage, spawned);
                tag_members(stage, spawned);
                spawned
            }
            Matter::FragmentTag | Matter::CompressedFragmentTag => {
                let set = with_data(set, |i| i);
                let base = self.standard(stage);
                let material = stage.add(Tagged {
                    base,
                    extension: default(),
                });
                let spawned = stage.spawn_set(&set, (mesh, MeshMaterial3d(material)), at);
                tag_members(stage, spawned);
                spawned
            }
            Matter::Tinted | Matter::TintedVertexColors => {
                let base = self.standard(stage);
                // Blended instances are sorted within a set.
                let is_one_set = self.pass == Pass::Blend;
                tinted::spawn(stage, &set, (mesh, base), at, is_one_set)
            }
            _ => {
                let material = self.standard(stage);
                let material = stage.standard(material);
                stage.spawn_set(&set, (mesh, material), at)
            }
        }
    }

    /// A transform that does not stretch for transmission. The entity's scale, not the instance's,
    /// scales the thickness, so only a set without scales and stretch looks like Bevy's entities.
    fn place(&self) -> Transform {
        match self.pass {
            Pass::Transmission | Pass::BlendTransmission => moved().with_scale(Vec3::ONE),
            _ => moved(),
        }
    }

    fn mesh(&self) -> Mesh {
        let cuboid = Mesh::from(Cuboid::new(0.5, 0.4, 0.6));
        match self.matter {
            Matter::Textured | Matter::Tinted => cuboid.with_generated_tangents().unwrap(),
            Matter::Compressed | Matter::CompressedCustomVertex | Matter::CompressedFragmentTag => {
                compressed(cuboid.with_generated_tangents().unwrap())
            }
            Matter::VertexColors | Matter::TintedVertexColors => {
                materials::colored(Sphere::new(0.35).mesh().ico(2).unwrap())
            }
            Matter::TwoUvSets => materials::with_second_uvs(cuboid),
            Matter::NonIndexed => cuboid
                .with_duplicated_vertices()
                .with_computed_flat_normals(),
            Matter::CustomFragment => Mesh::from(Torus::new(0.15, 0.4)),
            _ => cuboid,
        }
    }

    fn standard(&self, stage: &mut Stage) -> StandardMaterial {
        let mut material = StandardMaterial {
            base_color: Color::srgb(0.9, 0.4, 0.3),
            perceptual_roughness: 0.5,
            ..default()
        };
        if matches!(
            self.matter,
            Matter::Textured | Matter::TwoUvSets | Matter::Tinted | Matter::Compressed
        ) {
            material.base_color = Color::WHITE;
            material.base_color_texture = Some(stage.add(materials::checker()));
            let glow = stage.add(materials::texture(true, |x, y| {
                [0, if x == 3 { 255 } else { 0 }, (y * 8) as u8, 255]
            }));
            material.emissive_texture = Some(glow);
            material.emissive = LinearRgba::rgb(0.5, 0.5, 0.5);
        }
        match self.matter {
            Matter::Textured | Matter::Tinted | Matter::Compressed => {
                self.add_maps(stage, &mut material);
            }
            Matter::TwoUvSets => material.base_color_channel = UvChannel::Uv1,
            _ => {}
        }
        match self.pass {
            Pass::Deferred => material.opaque_render_method = OpaqueRendererMethod::Deferred,
            Pass::Mask | Pass::MaskPrepass => material.alpha_mode = AlphaMode::Mask(0.6),
            Pass::AlphaToCoverage => material.alpha_mode = AlphaMode::AlphaToCoverage,
            Pass::Blend => {
                material.alpha_mode = AlphaMode::Blend;
                material.base_color.set_alpha(0.6);
            }
            Pass::Transmission | Pass::BlendTransmission => {
                material.specular_transmission = 0.8;
                material.thickness = 0.3;
                material.ior = 1.3;
                if self.pass == Pass::BlendTransmission {
                    material.alpha_mode = AlphaMode::Blend;
                    material.base_color.set_alpha(0.8);
                }
            }
            Pass::Forward | Pass::DepthPrepass | Pass::FullPrepass => {}
        }
        material
    }

    fn add_maps(&self, stage: &mut Stage, material: &mut StandardMaterial) {
        let bumps = |x: u32, y: u32| [128 + 8 * (x % 8) as u8, 100 + 8 * (y % 8) as u8, 230, 255];
        material.normal_map_texture = Some(stage.add(materials::texture(false, bumps)));
        let rough = |x: u32, y: u32| {
            [
                (200 - 4 * y) as u8,
                60 + 12 * (y as u8),
                (x * 15) as u8,
                255,
            ]
        };
        let rough = stage.add(materials::texture(false, rough));
        material.occlusion_texture = Some(rough.clone());
        material.metallic_roughness_texture = Some(rough);
        material.metallic = 0.7;
        material.perceptual_roughness = 0.9;
    }

    fn cameras(&self, stage: &mut Stage) {
        let first = stage.camera(eye(), self.msaa);
        let mut cameras = vec![first];
        if self.eye == Eye::SplitScreen {
            let away = Transform::from_xyz(-7.0, 2.0, 3.0).looking_at(Vec3::ZERO, Vec3::Y);
            cameras.push(stage.camera(away, self.msaa));
        }
        let look = self.eye_image(stage);
        for (order, camera) in cameras.iter().enumerate() {
            let mut entity = stage.entity(*camera);
            if cameras.len() > 1 {
                let half = UVec2::new(SIZE.x / 2, SIZE.y);
                let viewport = Viewport {
                    physical_position: UVec2::new(half.x * order as u32, 0),
                    physical_size: half,
                    ..default()
                };
                entity.insert(Camera {
                    order: order as isize,
                    viewport: Some(viewport),
                    ..default()
                });
            }
            match self.pass {
                Pass::DepthPrepass => {
                    entity.insert(DepthPrepass);
                }
                Pass::MaskPrepass => {
                    entity.insert((DepthPrepass, NormalPrepass, MotionVectorPrepass));
                }
                Pass::FullPrepass => {
                    entity.insert((DepthPrepass, NormalPrepass, MotionVectorPrepass));
                    entity.insert(Drift(Vec3::new(0.0, 0.03, -0.05)));
                }
                Pass::Deferred => {
                    entity.insert((DepthPrepass, DeferredPrepass));
                }
                // Without it, Bevy draws the material as if nothing went through.
                Pass::Transmission | Pass::BlendTransmission => {
                    entity.insert(ScreenSpaceTransmission::default());
                }
                _ => {}
            }
            match self.eye {
                Eye::Perspective | Eye::SplitScreen => {}
                Eye::Orthographic => {
                    entity.insert(Projection::from(OrthographicProjection {
                        scale: 0.035,
                        ..OrthographicProjection::default_3d()
                    }));
                }
                Eye::Custom => {
                    entity.insert(Projection::custom(Oblique { aspect: 1.0 }));
                }
                Eye::Hdr => {
                    entity.insert(Hdr);
                }
                Eye::Skybox => {
                    entity.insert(Skybox {
                        image: look.clone(),
                        brightness: 800.0,
                        ..default()
                    });
                }
                Eye::Fog => {
                    entity.insert(DistanceFog {
                        color: Color::srgb(0.5, 0.6, 0.7),
                        falloff: FogFalloff::Linear {
                            start: 4.0,
                            end: 16.0,
                        },
                        ..default()
                    });
                }
                Eye::Ssao => {
                    entity.insert(ScreenSpaceAmbientOcclusion::default());
                }
                Eye::Bloom => {
                    entity.insert(Bloom::NATURAL);
                }
                Eye::MotionBlur => {
                    entity.insert(MotionBlur::default());
                }
            }
            // A pane before the camera shows the prepasses' textures.
            if self.pass == Pass::FullPrepass && self.eye != Eye::MotionBlur {
                let camera = *camera;
                pane(stage, camera);
            }
        }
    }

    fn eye_image(&self, stage: &mut Stage) -> Option<Handle<Image>> {
        (self.eye == Eye::Skybox).then(|| stage.add(materials::cubemap()))
    }
}

pub fn pane(stage: &mut Stage, camera: Entity) {
    let mesh = stage.mesh(Rectangle::new(20.0, 12.0));
    let material = stage.add(ShowPrepass::default());
    stage.spawn((
        Mesh3d(mesh),
        MeshMaterial3d(material),
        Transform::from_xyz(0.0, 0.0, -1.0),
        NotShadowCaster,
        ChildOf(camera),
    ));
}

/// The mesh with all of its attributes and indices compressed.
fn compressed(mesh: Mesh) -> Mesh {
    let mesh = mesh.compressed_mesh(&MeshCompressionArgs::regular());
    mesh.map_err(|(_, errors)| errors).unwrap()
}

/// Bevy tests the box of the original mesh, so it would reject entities that the vertex shader
/// moves into view.
fn reach_further(stage: &mut Stage, of: Entity) {
    for entity in members(stage, of) {
        let how = stage.how;
        let mut entity = stage.entity(entity);
        match how {
            How::Set(_) => entity.insert(CullingRadius(1.0)),
            How::Entities => entity.insert(NoFrustumCulling),
        };
    }
}

/// Gives each instance data that depends on its index.
fn with_data<T: bytemuck::Pod>(set: InstanceSet, data: impl Fn(u32) -> T) -> InstanceSet {
    let data = (0..set.len() as u32).map(data).collect();
    set.with_data(data).unwrap()
}

/// Gives Bevy's entities the indices of instances as tags.
fn tag_entities(stage: &mut Stage, of: Entity) {
    if stage.how == How::Entities {
        for (tag, entity) in (0..).zip(members(stage, of)) {
            stage.entity(entity).insert(MeshTag::new(tag));
        }
    }
}

/// Same as [`tag_entities`]. The set is drawn with mesh uniforms, so that `get_tag` finds its tags.
fn tag_members(stage: &mut Stage, of: Entity) {
    tag_entities(stage, of);
    if stage.how != How::Entities {
        for entity in members(stage, of) {
            stage.entity(entity).insert(InstanceMeshUniforms);
        }
    }
}

/// The ground that receives the shadows: an ordinary mesh in both pictures.
pub fn ground(stage: &mut Stage) -> Entity {
    let ground = stage.mesh(Plane3d::new(Vec3::Y, Vec2::splat(12.0)));
    let gray = stage.standard(StandardMaterial::from(Color::srgb(0.5, 0.5, 0.55)));
    stage.spawn((Mesh3d(ground), gray, Transform::from_xyz(0.0, -3.0, 0.0)))
}

pub fn lights(stage: &mut Stage, light: Light) {
    if matches!(light, Light::Directional | Light::All) {
        sun(stage);
    }
    if matches!(light, Light::Point | Light::All) {
        lamp(stage);
    }
    if matches!(light, Light::Spot | Light::All) {
        spot(stage);
    }
    if light == Light::None {
        let sun = sun(stage);
        let mut sun = stage.entity(sun);
        sun.get_mut::<DirectionalLight>()
            .unwrap()
            .shadow_maps_enabled = false;
    }
}

pub fn sun(stage: &mut Stage) -> Entity {
    stage.spawn((
        DirectionalLight {
            illuminance: 5_000.0,
            shadow_maps_enabled: true,
            ..default()
        },
        Transform::from_xyz(4.0, 9.0, 3.0).looking_at(Vec3::ZERO, Vec3::Y),
    ))
}

/// A point light in the middle of the field, so that each of its faces sees some instances.
pub fn lamp(stage: &mut Stage) -> Entity {
    stage.spawn((
        PointLight {
            intensity: 3_000_000.0,
            range: 14.0,
            shadow_maps_enabled: true,
            color: Color::srgb(0.4, 0.6, 1.0),
            ..default()
        },
        Transform::from_xyz(-1.0, 1.5, 0.5),
    ))
}

pub fn spot(stage: &mut Stage) -> Entity {
    stage.spawn((
        SpotLight {
            intensity: 9_000_000.0,
            range: 25.0,
            outer_angle: 0.7,
            inner_angle: 0.5,
            shadow_maps_enabled: true,
            ..default()
        },
        Transform::from_xyz(3.0, 8.0, 5.0).looking_at(Vec3::ZERO, Vec3::Y),
    ))
}
