//! How a material draws sets.

use super::shader_imports::VertexStage;
use bevy::{asset::UntypedAssetId, prelude::*};

/// How sets with a material are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum DrawMode {
    /// By a vertex stage that reads instances.
    Instances,
    /// The same, and instances fade by Bevy's dither pattern.
    Fading,
    /// By Bevy's own pipelines, from one `MeshUniform` per survivor.
    Expanded,
    /// Not at all: a shader is not loaded yet.
    Loading,
    /// Not at all: the vertex stage reads a `MeshUniform`, and the tier cannot write them.
    Refused,
    /// Not at all: some vertex stages read instances, and others a `MeshUniform`.
    Mixed,
    /// Not at all: the vertex stage has more storage buffers, with ours, than the device binds.
    Crowded,
    /// Not at all: the device draws no sets, or not this one.
    Off,
}

/// What an entity asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct EntityNeeds {
    /// One `MeshUniform` per survivor.
    pub expanded: bool,
    /// That instances fade.
    pub fading: bool,
    /// A lightmap, which instances cannot share.
    pub lightmap: bool,
}

/// What the device can do for materials.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct DeviceSupport {
    /// Whether sets are drawn at all.
    pub is_on: bool,
    /// Whether a compute pass can write one `MeshUniform` per survivor.
    pub can_expand: bool,
    /// Number of storage buffers that a vertex stage may have.
    pub vertex_buffers: u32,
}

impl DrawMode {
    /// How a vertex stage with this number of storage buffers draws a set that asks for this.
    pub fn new(vertex: VertexStage, buffers: u32, asked: EntityNeeds, able: DeviceSupport) -> Self {
        match vertex {
            _ if !able.is_on || asked.lightmap => Self::Off,
            VertexStage::Loading => Self::Loading,
            VertexStage::Mixed => Self::Mixed,
            VertexStage::Foreign if able.can_expand => Self::Expanded,
            VertexStage::Foreign => Self::Refused,
            VertexStage::Default if asked.expanded && able.can_expand => Self::Expanded,
            _ if buffers > able.vertex_buffers => Self::Crowded,
            VertexStage::Default | VertexStage::Fading if asked.fading => Self::Fading,
            VertexStage::Default | VertexStage::Instanced | VertexStage::Fading => Self::Instances,
        }
    }

    /// Whether sets are drawn.
    pub fn is_drawn(self) -> bool {
        matches!(self, Self::Instances | Self::Fading | Self::Expanded)
    }

    /// Logs why sets with a material are not drawn, if that is an error.
    pub fn log(self, material: UntypedAssetId) {
        match self {
            Self::Crowded => error!(
                "material {material:?}: its storage buffers and the ones of GpuInstances are more than this device binds in a vertex \
                 stage: sets with it are not drawn; let its vertex stage see fewer (#[storage(.., visibility(fragment))])"
            ),
            Self::Mixed => error!(
                "material {material:?}: some of its vertex shaders (main pass, prepass, deferred) import \
                 bevy_gpu_culling::draw_instance and some do not: sets with it are not drawn; import it in all of \
                 them, or in none"
            ),
            Self::Refused => error!(
                "material {material:?} has a vertex shader of its own, which does not read GpuInstances, and the tier \
                 \"cpu\" writes no MeshUniforms for it: sets with it are not drawn; import \
                 bevy_gpu_culling::draw_instance in it, or use a fragment shader only"
            ),
            Self::Instances | Self::Fading | Self::Expanded | Self::Loading | Self::Off => {}
        }
    }
}
