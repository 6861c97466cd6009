//! A color per instance: the extension of Bevy's standard material by the color that a tag holds.

use super::materials::{add_module, installs_late};
use bevy::{
    asset::Asset,
    color::ColorToPacked,
    mesh::MeshVertexBufferLayoutRef,
    pbr::{
        ExtendedMaterial, MaterialExtension, MaterialExtensionKey, MaterialExtensionPipeline,
        PbrPlugin,
    },
    prelude::*,
    render::{
        erased_render_asset::ErasedRenderAssetPlugin,
        render_resource::{
            AsBindGroup, AsBindGroupError, BindGroupBuilder, BindGroupLayout, BindGroupLayoutEntry,
            BindlessDescriptor, BindlessSlabResourceLimit, RenderPipelineDescriptor,
            SpecializedMeshPipelineError,
        },
        renderer::RenderDevice,
    },
    shader::ShaderRef,
};

/// Fragment stage of the main passes and the deferred prepass.
const TINT_PBR: &str = "embedded://bevy_gpu_culling/tint_pbr.wesl";
/// Fragment stage of all other prepasses and of shadow maps.
const TINT_PREPASS: &str = "embedded://bevy_gpu_culling/tint_prepass.wesl";

/// Bevy's [`StandardMaterial`] in the color of each instance. Add [`InstanceTintPlugin`] to use it.
pub type TintedMaterial = ExtendedMaterial<StandardMaterial, InstanceTint>;

/// Multiplies the base color of a [`StandardMaterial`] by the color of each instance, as Bevy does
/// with vertex colors. The color is in the instance's tag; [`tag`](Self::tag) makes one.
///
/// It acts in all passes: alpha decides what a masked instance leaves out, in prepasses and shadow
/// maps, too. Emissive light has no tint. Tag 0 is white, so an instance without a tag has the
/// material's own color.
///
/// On an ordinary mesh entity, the tag is Bevy's [`MeshTag`](bevy::mesh::MeshTag). Of an entity
/// with [`GpuInstances`](crate::render::GpuInstances), the instances' own tags count.
///
/// ```
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// // With `app.add_plugins(InstanceTintPlugin)`.
/// fn spawn(
///     mut commands: Commands,
///     mut sets: ResMut<Assets<InstanceSet>>,
///     mut meshes: ResMut<Assets<Mesh>>,
///     mut materials: ResMut<Assets<TintedMaterial>>,
/// ) -> Result {
///     let hue = |i: u32| InstanceTint::tag(Hsla::hsl(i as f32 * 3.6, 0.8, 0.5));
///     let places = (0..100).map(|i| Transform::from_xyz(i as f32, 0.0, 0.0));
///     let set = InstanceSet::from_transforms(places)?.with_tags((0..100).map(hue).collect())?;
///     commands.spawn((
///         Mesh3d(meshes.add(Sphere::new(0.4))),
///         MeshMaterial3d(materials.add(InstanceTint::material(Color::WHITE))),
///         GpuInstances(sets.add(set)),
///     ));
///     Ok(())
/// }
/// ```
#[derive(Asset, Reflect, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[reflect(Default, Clone, Debug, PartialEq, Hash)]
pub struct InstanceTint;

impl InstanceTint {
    /// The tag of a color, for [`InstanceSet::with_tags`](crate::instance::InstanceSet::with_tags),
    /// `push_tagged` and `set_tag`, and for Bevy's [`MeshTag`](bevy::mesh::MeshTag). Opaque white
    /// has tag 0.
    ///
    /// It is the bitwise complement of red, green, blue and alpha in sRGB, 8 bits each, with red in
    /// the lowest. Components beyond 0 to 1 are clamped.
    pub fn tag(color: impl Into<Srgba>) -> u32 {
        !u32::from_le_bytes(color.into().to_u8_array())
    }

    /// The color that a tag holds.
    pub fn color(tag: u32) -> Srgba {
        Srgba::from_u8_array((!tag).to_le_bytes())
    }

    /// A tinted material, from a [`StandardMaterial`], a color or the handle of a texture.
    pub fn material(base: impl Into<StandardMaterial>) -> TintedMaterial {
        TintedMaterial {
            base: base.into(),
            extension: Self,
        }
    }
}

/// It binds nothing, so it does not keep the standard material from being bindless.
impl AsBindGroup for InstanceTint {
    type Data = ();
    type Param = ();

    fn label() -> &'static str {
        "InstanceTint"
    }

    fn bindless_slot_count() -> Option<BindlessSlabResourceLimit> {
        Some(BindlessSlabResourceLimit::Auto)
    }

    fn bind_group_data(&self) {}

    fn build_bind_group(
        &self,
        _layout: &BindGroupLayout,
        _device: &RenderDevice,
        _param: &mut (),
        _force_no_bindless: bool,
        _output: &mut BindGroupBuilder,
    ) -> Result<(), AsBindGroupError> {
        Ok(())
    }

    fn bind_group_layout_entries(
        _device: &RenderDevice,
        _force_no_bindless: bool,
    ) -> Vec<BindGroupLayoutEntry> {
        Vec::new()
    }

    fn bindless_descriptor() -> Option<BindlessDescriptor> {
        Some(BindlessDescriptor {
            resources: Vec::new().into(),
            buffers: Vec::new().into(),
            index_tables: Vec::new().into(),
        })
    }
}

impl MaterialExtension for InstanceTint {
    fn fragment_shader() -> ShaderRef {
        TINT_PBR.into()
    }

    fn deferred_fragment_shader() -> ShaderRef {
        TINT_PBR.into()
    }

    fn prepass_fragment_shader() -> ShaderRef {
        TINT_PREPASS.into()
    }

    /// The tint goes the way of vertex colors. The vertex stage has them only if the mesh does.
    fn specialize(
        _pipeline: &MaterialExtensionPipeline,
        descriptor: &mut RenderPipelineDescriptor,
        layout: &MeshVertexBufferLayoutRef,
        _key: MaterialExtensionKey<Self>,
    ) -> Result<(), SpecializedMeshPipelineError> {
        if let Some(fragment) = &mut descriptor.fragment {
            let has_colors = layout.0.contains(Mesh::ATTRIBUTE_COLOR);
            let def = if has_colors {
                "MESH_COLORS"
            } else {
                "VERTEX_COLORS"
            };
            fragment.shader_defs.push(def.into());
        }
        Ok(())
    }
}

/// Adds [`TintedMaterial`] to an app. It needs Bevy's `PbrPlugin`, which is one of
/// `DefaultPlugins`; added after it, assets can be made at once.
///
/// ```no_run
/// use bevy::prelude::*;
/// use bevy_gpu_culling::prelude::*;
///
/// App::new()
///     .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), InstanceTintPlugin))
///     .run();
/// ```
///
/// It is no part of [`GpuCullingPlugin`](crate::render::GpuCullingPlugin), because each type of
/// material adds systems to every frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct InstanceTintPlugin;

impl Plugin for InstanceTintPlugin {
    fn build(&self, app: &mut App) {
        if app.is_plugin_added::<PbrPlugin>() {
            install(app);
        }
    }

    /// Installs what had to wait because `PbrPlugin` was added later.
    fn finish(&self, app: &mut App) {
        type Materials = MaterialPlugin<TintedMaterial>;
        if installs_late::<Materials>(app, "InstanceTintPlugin", install) {
            // Bevy does not finish plugins that are added this late.
            ErasedRenderAssetPlugin::<MeshMaterial3d<TintedMaterial>>::default().finish(app);
        }
    }
}

fn install(app: &mut App) {
    // Before the material asks for its shaders: a file that is not there yet fails for good.
    for (name, source) in [
        ("tint", include_str!("../../shaders/draw/tint.wesl")),
        ("tint_pbr", include_str!("../../shaders/draw/tint_pbr.wesl")),
        (
            "tint_prepass",
            include_str!("../../shaders/draw/tint_prepass.wesl"),
        ),
    ] {
        add_module(app, name, source.as_bytes());
    }
    if !app.is_plugin_added::<MaterialPlugin<TintedMaterial>>() {
        app.add_plugins(MaterialPlugin::<TintedMaterial>::default());
    }
    app.register_type::<InstanceTint>()
        .register_asset_reflect::<TintedMaterial>();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_0_is_white_and_red_is_in_the_lowest_bits() {
        assert_eq!(InstanceTint::tag(Color::WHITE), 0);
        assert_eq!(InstanceTint::color(0), Srgba::WHITE);
        assert_eq!(
            !InstanceTint::tag(Srgba::rgba_u8(1, 2, 3, 4)),
            0x04_03_02_01
        );
    }

    #[test]
    fn each_tag_is_the_tag_of_its_color() {
        for tag in (0..=u32::MAX).step_by(0x0001_0103) {
            assert_eq!(InstanceTint::tag(InstanceTint::color(tag)), tag);
        }
    }

    #[test]
    fn components_out_of_range_are_clamped() {
        let tag = InstanceTint::tag(Srgba::new(-1.0, 7.0, f32::INFINITY, 2.0));
        assert_eq!(InstanceTint::color(tag), Srgba::rgba_u8(0, 255, 255, 255));
        // No color has it, but no input may panic.
        InstanceTint::tag(Srgba::new(f32::NAN, 0.0, 0.0, 1.0));
    }
}
