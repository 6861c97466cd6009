//! Copies of what is photographed, in a square before two cameras.
//!
//! Each copy is turned so that its view's direction points to the cameras. One draw of a mesh shows
//! all its views.

use super::{
    develop::SAMPLES,
    grid::Grid,
    octahedron::turn_of,
    parts::Part,
    photo::{Photo, PhotoMaterial, Subject, photographed},
};
use crate::cull::BoundingSphere;
use bevy::{
    camera::{
        RenderTarget, ScalingMode,
        visibility::{NoFrustumCulling, RenderLayers},
    },
    light::{NotShadowCaster, NotShadowReceiver},
    math::{Affine3A, Mat3A},
    prelude::*,
    render::{
        render_resource::{TextureFormat, TextureUsages},
        view::{DebandDither, Tonemapping},
    },
};

/// The first of two render layers that only photographs use.
const LAYER: usize = 62;

/// The order of the first of two cameras: before the app's.
const ORDER: isize = isize::MIN + 1;

/// On the cameras and the copies with which photographs are taken
/// ([`BakeImpostor`](super::BakeImpostor)). They are in the world for some frames, on render layers
/// 62 and 63.
///
/// Systems that expect one camera leave these out:
///
/// ```
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// fn fly(camera: Single<&mut Transform, (With<Camera3d>, Without<ImpostorStage>)>) {}
/// ```
#[derive(Component, Clone, Copy, Debug, Default)]
pub struct ImpostorStage;

/// What a stage is made with.
pub(super) struct Studio<'a, 'w, 's> {
    pub commands: &'a mut Commands<'w, 's>,
    pub images: &'a mut Assets<Image>,
    pub materials: &'a Assets<StandardMaterial>,
    pub photos: &'a mut Assets<PhotoMaterial>,
}

/// The parts of a stage.
pub(super) struct Stage {
    /// The parent of all.
    pub root: Entity,
    /// What the cameras draw to: colors and shapes.
    pub pictures: [Handle<Image>; 2],
}

impl Studio<'_, '_, '_> {
    /// Sets up copies and cameras. `sphere` is around all parts.
    pub fn set_up(&mut self, parts: &[Part], sphere: BoundingSphere, grid: Grid) -> Stage {
        let root = self
            .commands
            .spawn((Transform::default(), Visibility::Visible))
            .id();
        let subjects = [(0, Subject::Colors), (1, Subject::Shapes)];
        let pictures = subjects.map(|(at, subject)| {
            let layers = RenderLayers::layer(LAYER + at);
            let picture = self.camera(root, at as isize, layers.clone(), sphere, grid);
            for part in parts {
                let material = self.materials.get(&part.material);
                let material = self.photos.add(PhotoMaterial {
                    base: material.map(photographed).unwrap_or_default(),
                    extension: Photo {
                        grid,
                        radius: sphere.radius,
                        subject,
                    },
                });
                for cell in 0..grid.side * grid.side {
                    let cell = [cell % grid.side, cell / grid.side];
                    let place = place_of(cell, sphere, grid) * part.offset;
                    self.commands.spawn((
                        Mesh3d(part.mesh.clone()),
                        MeshMaterial3d(material.clone()),
                        Transform::from_matrix(place.into()),
                        layers.clone(),
                        (NotShadowCaster, NotShadowReceiver, NoFrustumCulling),
                        ImpostorStage,
                        ChildOf(root),
                    ));
                }
            }
            picture
        });
        Stage { root, pictures }
    }

    /// A camera before the grid, and what it draws to.
    fn camera(
        &mut self,
        root: Entity,
        at: isize,
        layers: RenderLayers,
        sphere: BoundingSphere,
        grid: Grid,
    ) -> Handle<Image> {
        let pixels = grid.width() * SAMPLES;
        let format = TextureFormat::Rgba8UnormSrgb;
        let mut picture = Image::new_target_texture(pixels, pixels, format, None);
        picture.texture_descriptor.usage |= TextureUsages::COPY_SRC;
        picture.data = None;
        picture.copy_on_resize = false;
        let picture = self.images.add(picture);
        let (radius, size) = (sphere.radius, 2.0 * sphere.radius * grid.side as f32);
        let projection = OrthographicProjection {
            scaling_mode: ScalingMode::Fixed {
                width: size,
                height: size,
            },
            near: 0.0,
            far: 4.0 * radius,
            ..OrthographicProjection::default_3d()
        };
        self.commands.spawn((
            ImpostorStage,
            Camera3d::default(),
            Camera {
                order: ORDER + at,
                clear_color: ClearColorConfig::Custom(Color::NONE),
                ..default()
            },
            RenderTarget::from(picture.clone()),
            Projection::Orthographic(projection),
            Transform::from_xyz(0.5 * size, -0.5 * size, 2.0 * radius),
            (
                Msaa::Off,
                Tonemapping::None,
                DebandDither::Disabled,
                layers,
                ChildOf(root),
            ),
        ));
        picture
    }
}

/// Where the copy of a view stands: cell after cell to the right, and row after row downwards.
fn place_of([x, y]: [u32; 2], sphere: BoundingSphere, grid: Grid) -> Affine3A {
    let turn = Mat3A::from(turn_of([x, y], grid.side, grid.sides));
    let middle = sphere.radius * Vec3::new(2.0 * x as f32 + 1.0, -2.0 * y as f32 - 1.0, 0.0);
    Affine3A {
        matrix3: turn,
        translation: (middle - turn * sphere.center).into(),
    }
}
