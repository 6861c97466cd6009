//! The axes of the scenes: pass, light, mesh and material, and camera.

use bevy::render::view::Msaa;
use bevy_gpu_culling::instance::ScaleKind;

/// How the set's material is drawn, and into which textures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    Forward,
    DepthPrepass,
    /// Depth, normals and motion vectors. The picture shows all three, and the set and the camera
    /// move.
    FullPrepass,
    Deferred,
    Mask,
    /// A mask, with prepasses of depth, normals and motion vectors.
    MaskPrepass,
    AlphaToCoverage,
    /// The set is in no order: it is sorted by depth, as Bevy sorts entities.
    Blend,
    Transmission,
    /// Transmission of a material that also blends: Bevy draws it with the transmissive ones.
    BlendTransmission,
}

/// The lights, which cast shadows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Light {
    None,
    Directional,
    Point,
    Spot,
    All,
}

/// The mesh and the material.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matter {
    Plain,
    /// Base color, normal, metallic-roughness, emissive and occlusion maps.
    Textured,
    VertexColors,
    TwoUvSets,
    NonIndexed,
    Extended,
    CustomFragment,
    /// A vertex shader that imports `bevy_gpu_culling::draw_instance`.
    CustomVertex,
    /// A vertex shader that calls Bevy's `mesh_functions` with `get_tag`, and does not know
    /// instances.
    MeshVertex,
    /// `StandardMaterial` with `InstanceMeshUniforms`: its fragment shader calls `get_tag`.
    FragmentTag,
    /// `TintedMaterial` with the same maps as `Textured`, a color per instance. Some instances are
    /// in a set with `InstanceMeshUniforms`, and some are ordinary meshes.
    Tinted,
    /// The same without maps, on a mesh with vertex colors.
    TintedVertexColors,
    /// `Textured`, on a mesh whose attributes and indices are compressed (`Mesh::compress_mesh`).
    Compressed,
    /// `CustomVertex` on a compressed mesh.
    CompressedCustomVertex,
    /// `FragmentTag` on a compressed mesh.
    CompressedFragmentTag,
}

/// The camera and its effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eye {
    Perspective,
    Orthographic,
    /// An oblique, infinite projection that is off-center.
    Custom,
    SplitScreen,
    Hdr,
    Skybox,
    Fog,
    Ssao,
    Bloom,
    MotionBlur,
}

/// One scene.
pub struct Combination {
    pub pass: Pass,
    pub msaa: Msaa,
    pub light: Light,
    pub matter: Matter,
    pub eye: Eye,
}

impl Combination {
    pub fn name(&self) -> String {
        format!(
            "{:?}-{:?}-{:?}-{:?}-{:?}",
            self.pass, self.msaa, self.light, self.matter, self.eye
        )
        .to_lowercase()
    }

    /// The set's scales: about half of the scenes have one per axis. Transmission has none, because
    /// its thickness follows the entity's scale, not the instance's.
    pub fn scales(&self) -> ScaleKind {
        match (self.pass, self.light) {
            (Pass::Transmission | Pass::BlendTransmission, _) => ScaleKind::One,
            (_, Light::Directional | Light::None) => ScaleKind::NonUniform,
            _ => ScaleKind::Uniform,
        }
    }

    /// Least number of views that see the set: the cameras, at least two cascades per camera, the
    /// six faces of a point light and one view of a spot light.
    pub fn min_views(&self) -> usize {
        let cameras = if self.eye == Eye::SplitScreen { 2 } else { 1 };
        cameras
            + match self.light {
                Light::None => 0,
                Light::Directional => 2 * cameras,
                Light::Point => 6,
                Light::Spot => 1,
                Light::All => 2 * cameras + 7,
            }
    }
}

const fn c(pass: Pass, msaa: Msaa, light: Light, matter: Matter, eye: Eye) -> Combination {
    Combination {
        pass,
        msaa,
        light,
        matter,
        eye,
    }
}

const OFF: Msaa = Msaa::Off;
const TWO: Msaa = Msaa::Sample2;
const FOUR: Msaa = Msaa::Sample4;
const EIGHT: Msaa = Msaa::Sample8;

/// The combinations. Every value of every axis occurs, most of them several times.
#[rustfmt::skip]
pub const COMBINATIONS: &[Combination] = &[
    c(Pass::Forward,         OFF,   Light::None,        Matter::Plain,          Eye::Perspective),
    c(Pass::Forward,         FOUR,  Light::Directional, Matter::Plain,          Eye::Perspective),
    c(Pass::Forward,         FOUR,  Light::Point,       Matter::Textured,       Eye::Perspective),
    c(Pass::Forward,         FOUR,  Light::Spot,        Matter::VertexColors,  Eye::Orthographic),
    c(Pass::Forward,         OFF,   Light::Directional, Matter::TwoUvSets,      Eye::Custom),
    c(Pass::Forward,         FOUR,  Light::All,         Matter::Plain,          Eye::SplitScreen),
    c(Pass::Forward,         FOUR,  Light::All,         Matter::Extended,       Eye::Perspective),
    c(Pass::Forward,         OFF,   Light::Point,       Matter::CustomFragment, Eye::Perspective),
    c(Pass::Forward,         FOUR,  Light::Directional, Matter::CustomVertex,   Eye::Perspective),
    c(Pass::Forward,         OFF,   Light::Spot,        Matter::NonIndexed,     Eye::Perspective),
    c(Pass::Forward,         TWO,   Light::Directional, Matter::Plain,          Eye::Perspective),
    c(Pass::Forward,         EIGHT, Light::Directional, Matter::Plain,          Eye::Perspective),
    c(Pass::Forward,         FOUR,  Light::Point,       Matter::Plain,          Eye::Hdr),
    c(Pass::Forward,         FOUR,  Light::Directional, Matter::Textured,       Eye::Orthographic),
    c(Pass::DepthPrepass,    FOUR,  Light::Directional, Matter::Plain,          Eye::Perspective),
    c(Pass::DepthPrepass,    OFF,   Light::Spot,        Matter::Textured,       Eye::SplitScreen),
    c(Pass::DepthPrepass,    FOUR,  Light::None,        Matter::NonIndexed,     Eye::Custom),
    c(Pass::FullPrepass,     OFF,   Light::None,        Matter::Plain,          Eye::Perspective),
    c(Pass::FullPrepass,     FOUR,  Light::Directional, Matter::Textured,       Eye::Perspective),
    c(Pass::FullPrepass,     OFF,   Light::None,        Matter::VertexColors,  Eye::Orthographic),
    c(Pass::FullPrepass,     OFF,   Light::None,        Matter::CustomFragment, Eye::Hdr),
    c(Pass::Deferred,        OFF,   Light::All,         Matter::Plain,          Eye::Perspective),
    c(Pass::Deferred,        OFF,   Light::Directional, Matter::Textured,       Eye::Orthographic),
    c(Pass::Deferred,        OFF,   Light::Point,       Matter::TwoUvSets,      Eye::Hdr),
    c(Pass::Deferred,        OFF,   Light::Spot,        Matter::Extended,       Eye::SplitScreen),
    c(Pass::Mask,            FOUR,  Light::Directional, Matter::Textured,       Eye::Perspective),
    c(Pass::Mask,            OFF,   Light::Point,       Matter::Textured,       Eye::Custom),
    c(Pass::Mask,            OFF,   Light::Spot,        Matter::TwoUvSets,      Eye::Perspective),
    c(Pass::AlphaToCoverage, FOUR,  Light::Directional, Matter::Textured,       Eye::Perspective),
    c(Pass::AlphaToCoverage, FOUR,  Light::None,        Matter::VertexColors,  Eye::Hdr),
    c(Pass::Blend,           FOUR,  Light::Directional, Matter::Plain,          Eye::Perspective),
    c(Pass::Blend,           OFF,   Light::Point,       Matter::Textured,       Eye::Perspective),
    c(Pass::Transmission,    OFF,   Light::Directional, Matter::Plain,          Eye::Perspective),
    c(Pass::Transmission,    FOUR,  Light::Point,       Matter::Textured,       Eye::Hdr),
    c(Pass::Forward,         FOUR,  Light::Directional, Matter::Plain,          Eye::Skybox),
    c(Pass::Forward,         FOUR,  Light::Spot,        Matter::Plain,          Eye::Fog),
    c(Pass::Forward,         OFF,   Light::Directional, Matter::Plain,          Eye::Ssao),
    c(Pass::Forward,         FOUR,  Light::Point,       Matter::Textured,       Eye::Bloom),
    c(Pass::FullPrepass,     OFF,   Light::Directional, Matter::Plain,          Eye::MotionBlur),
    c(Pass::Forward,         OFF,   Light::Directional, Matter::MeshVertex,     Eye::Perspective),
    c(Pass::Forward,         FOUR,  Light::All,         Matter::MeshVertex,     Eye::SplitScreen),
    c(Pass::FullPrepass,     FOUR,  Light::Spot,        Matter::MeshVertex,     Eye::Orthographic),
    c(Pass::Forward,         OFF,   Light::Point,       Matter::FragmentTag,    Eye::Perspective),
    c(Pass::FullPrepass,     OFF,   Light::Directional, Matter::FragmentTag,    Eye::Perspective),
    c(Pass::Forward,         OFF,   Light::None,        Matter::Tinted,         Eye::Ssao),
    c(Pass::Forward,         FOUR,  Light::Spot,        Matter::TintedVertexColors, Eye::Orthographic),
    c(Pass::FullPrepass,     OFF,   Light::None,        Matter::Tinted,         Eye::Perspective),
    c(Pass::Deferred,        OFF,   Light::None,        Matter::Tinted,         Eye::Perspective),
    c(Pass::MaskPrepass,     OFF,   Light::Directional, Matter::Tinted,         Eye::Perspective),
    c(Pass::AlphaToCoverage, FOUR,  Light::None,        Matter::TintedVertexColors, Eye::Perspective),
    c(Pass::Blend,           OFF,   Light::Spot,        Matter::Tinted,         Eye::Perspective),
    c(Pass::BlendTransmission, OFF, Light::Directional, Matter::Plain,          Eye::Perspective),
    c(Pass::Blend,           OFF,   Light::Point,       Matter::Compressed,     Eye::Perspective),
    c(Pass::Forward,         FOUR,  Light::Point,       Matter::Compressed,     Eye::Perspective),
    c(Pass::Forward,         OFF,   Light::All,         Matter::Compressed,     Eye::SplitScreen),
    c(Pass::DepthPrepass,    FOUR,  Light::Directional, Matter::Compressed,     Eye::Orthographic),
    c(Pass::FullPrepass,     OFF,   Light::None,        Matter::Compressed,     Eye::Perspective),
    c(Pass::Deferred,        OFF,   Light::Spot,        Matter::Compressed,     Eye::Hdr),
    c(Pass::MaskPrepass,     OFF,   Light::Directional, Matter::Compressed,     Eye::Perspective),
    c(Pass::Forward,         OFF,   Light::Directional, Matter::CompressedCustomVertex, Eye::Perspective),
    c(Pass::FullPrepass,     OFF,   Light::Point,       Matter::CompressedFragmentTag, Eye::Perspective),
];
