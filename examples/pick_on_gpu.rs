//! The GPU says which instance is under the pointer: the one whose pixel is seen, whatever shader
//! or mask drew it. The instance is marked.
//!
//! The fragment shader (`assets/shaders/pick_on_gpu.wesl`) writes the index to a buffer, which
//! Bevy reads back some frames later. To ask in the same frame, see the example `picking`.

use bevy::{
    asset::RenderAssetUsages,
    core_pipeline::prepass::DepthPrepass,
    pbr::{ExtendedMaterial, MaterialExtension},
    prelude::*,
    reflect::TypePath,
    render::{
        gpu_readback::{Readback, ReadbackComplete},
        render_resource::{AsBindGroup, Extent3d, ShaderType, TextureDimension, TextureFormat},
        storage::ShaderBuffer,
    },
    shader::ShaderRef,
};
use bevy_gpu_culling::prelude::*;

const SHADER: &str = "shaders/pick_on_gpu.wesl";
const COUNT: u32 = 20_000;

/// Bevy's own material. Its fragment shader notes which instance is under the pointer.
#[derive(Asset, TypePath, AsBindGroup, Clone)]
struct Pick {
    #[uniform(100)]
    pointer: Pointer,
    #[storage(101, visibility(fragment))]
    picked: Handle<ShaderBuffer>,
}

/// What the shader reads.
#[derive(ShaderType, Clone, Copy, PartialEq)]
struct Pointer {
    /// In physical pixels.
    place: UVec2,
    /// Index of the instance to mark.
    marked: u32,
    pad: u32,
}

impl MaterialExtension for Pick {
    fn fragment_shader() -> ShaderRef {
        SHADER.into()
    }
}

type PickMaterial = ExtendedMaterial<StandardMaterial, Pick>;

/// What the shader wrote: the last frame with an instance under the pointer, and its index.
#[derive(Resource, Default)]
struct Picked {
    frame: u32,
    instance: Option<u32>,
}

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .run()
}

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.add_plugins(MaterialPlugin::<PickMaterial>::default())
        .init_resource::<Picked>()
        .add_systems(Startup, spawn)
        .add_systems(Update, point);
}

fn spawn(
    mut commands: Commands,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<PickMaterial>>,
    mut images: ResMut<Assets<Image>>,
    mut buffers: ResMut<Assets<ShaderBuffer>>,
) -> Result {
    let picked = buffers.add(ShaderBuffer::from(vec![0u32; 2]));
    commands
        .spawn(Readback::buffer(picked.clone()))
        .observe(read);
    // A sunflower of rings.
    let places = (0..COUNT).map(|i| {
        let (turn, radius) = (i as f32 * 2.399_963, (i as f32).sqrt() * 0.55);
        let place = Vec3::new(
            turn.cos() * radius,
            (radius * 0.6).sin(),
            turn.sin() * radius,
        );
        Transform::from_translation(place).with_rotation(Quat::from_rotation_y(i as f32))
    });
    commands.spawn((
        Mesh3d(meshes.add(Rectangle::new(1.1, 1.1))),
        MeshMaterial3d(materials.add(PickMaterial {
            base: StandardMaterial {
                base_color_texture: Some(images.add(ring())),
                alpha_mode: AlphaMode::Mask(0.5),
                double_sided: true,
                cull_mode: None,
                ..default()
            },
            extension: Pick {
                pointer: Pointer {
                    place: UVec2::MAX,
                    marked: u32::MAX,
                    pad: 0,
                },
                picked,
            },
        })),
        GpuInstances(sets.add(InstanceSet::from_transforms(places)?.sorted())),
    ));
    commands.spawn((
        Camera3d::default(),
        // The shader compares its depth with what is seen.
        DepthPrepass,
        Msaa::Off,
        Transform::from_xyz(0.0, 7.0, 13.0).looking_at(Vec3::ZERO, Vec3::Y),
    ));
    commands.spawn((
        DirectionalLight::default(),
        Transform::default().looking_to(Vec3::new(0.4, -1.0, -0.8), Vec3::Y),
    ));
    Ok(())
}

/// A texture of a ring. A ray would also meet the square that it is drawn on.
fn ring() -> Image {
    const SIDE: u32 = 64;
    let texel = |i: u32| {
        let place = UVec2::new(i % SIDE, i / SIDE).as_vec2() * 2.0 / SIDE as f32 - 1.0;
        let is_ring = (0.55..0.95).contains(&place.length());
        [110, 170, 235, if is_ring { 255 } else { 0 }]
    };
    Image::new(
        Extent3d {
            width: SIDE,
            height: SIDE,
            depth_or_array_layers: 1,
        },
        TextureDimension::D2,
        (0..SIDE * SIDE).flat_map(texel).collect(),
        TextureFormat::Rgba8UnormSrgb,
        RenderAssetUsages::RENDER_WORLD,
    )
}

/// Takes what the shader wrote in an earlier frame.
fn read(read: On<ReadbackComplete>, mut picked: ResMut<Picked>) {
    let [frame, instance]: [u32; 2] = read.to_shader_type();
    // If nothing is under the pointer, nothing was written: the frame is an old one.
    let is_new = frame != picked.frame;
    *picked = Picked {
        frame,
        instance: is_new.then_some(instance),
    };
}

/// Tells the shader the place of the pointer.
fn point(
    window: Single<&Window>,
    picked: Res<Picked>,
    material: Single<&MeshMaterial3d<PickMaterial>>,
    mut materials: ResMut<Assets<PickMaterial>>,
) {
    let place = window.physical_cursor_position();
    let pointer = Pointer {
        place: place.map_or(UVec2::MAX, |place| place.as_uvec2()),
        marked: picked.instance.unwrap_or(u32::MAX),
        pad: 0,
    };
    // A changed material costs a bind group.
    let is_new = (materials.get(*material)).is_some_and(|known| known.extension.pointer != pointer);
    if is_new && let Some(mut known) = materials.get_mut(*material) {
        known.extension.pointer = pointer;
    }
}
