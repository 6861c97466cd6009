//! The meshlet stages in the render world.

use crate::{
    cull::{
        BatchKey, CullError, Culler, DrawPart, RetryTimer, Version,
        meshlets::{MeshletCuller, MeshletDraw, MeshletMeshId, MeshletOptions, MeshletRequest},
    },
    meshlet::MeshletMesh,
    render::{bindings::DrawVersion, culler::GpuCuller, settings::GpuCullingSettings},
};
use bevy::{
    platform::collections::{HashMap, HashSet},
    prelude::*,
    render::{
        render_resource::BindGroup, renderer::RenderDevice, sync_world::MainEntityHashMap,
        view::RetainedViewEntity,
    },
};

/// Render world: how much room the meshlet stages start with. For tests, which make it too small.
#[derive(Resource, Default)]
pub struct MeshletRoom(pub MeshletOptions);

/// The meshlet stages, and what their draws bind.
#[derive(Resource, Default)]
pub(in crate::render) struct GpuMeshlets {
    /// `None` on the `Cpu` tier, and until an entity has meshlets.
    pub culler: Option<MeshletCuller>,
    /// [`GpuCuller::generation`] of the culler that the stages follow.
    pub(super) culler_generation: u64,
    /// Runs if the device had no memory for the stages.
    retry: RetryTimer,
    pub(super) known: HashMap<MeshletsKey, KnownMeshlets>,
    /// The id of the newest mesh.
    pub(super) last_id: u64,
    /// Entities that may be drawn by meshlets this frame.
    pub entities: MainEntityHashMap<ExtractedMeshlets>,
    /// The requests of the frame that are drawn by meshlets.
    pub(super) requests: Vec<MeshletRequest>,
    /// The views of the frame with a prepass.
    pub(super) prepasses: HashSet<RetainedViewEntity>,
    /// What the draws of each batch bind.
    pub(super) bindings: HashMap<BatchKey, MeshletBinding>,
}

/// An asset, and the bits of the offset that its bounds have.
pub(super) type MeshletsKey = (AssetId<MeshletMesh>, Option<[u32; 12]>);

/// What the GPU has of an asset.
pub(super) struct KnownMeshlets {
    pub id: MeshletMeshId,
    /// The version of its mesh ([`MadeMesh`](super::component::MadeMesh)).
    pub version: u64,
    /// Whether the engine refused it.
    pub is_refused: bool,
    /// Whether an entity has it in this frame.
    pub is_used: bool,
}

/// One entity's meshlets.
#[derive(Clone, Copy)]
pub(in crate::render) struct ExtractedMeshlets {
    pub id: MeshletMeshId,
    /// The mesh that the entity must have: another one has other triangles.
    pub mesh: AssetId<Mesh>,
}

/// What the meshlet draws of a batch bind.
pub(super) struct MeshletBinding {
    pub made_for: MeshletVersion,
    pub bind_group: BindGroup,
    /// Whether the frame has the batch.
    pub is_used: bool,
}

/// The buffers of a [`MeshletBinding`]. It serves as long as this stays equal.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct MeshletVersion {
    pub draw: DrawVersion,
    /// Version of the survivors of the batch's meshlets.
    pub survivors: Version,
}

/// The draws of a part that is drawn by meshlets.
pub(in crate::render) struct PartedDraw<'a> {
    pub commands: MeshletDraw<'a>,
    /// What the commands of meshlets bind. The command of the whole mesh binds what other sets do.
    pub bind_group: &'a BindGroup,
}

impl GpuMeshlets {
    /// The draws of a part, if it is drawn by meshlets.
    pub fn draw<'a>(&'a self, culler: &'a Culler, part: &DrawPart) -> Option<PartedDraw<'a>> {
        let commands = self.culler.as_ref()?.draw(culler, part)?;
        let batch = culler.batch_version(part.batch)?;
        let bind_group = &self.bindings.get(&batch.key)?.bind_group;
        Some(PartedDraw {
            commands,
            bind_group,
        })
    }

    /// Starts again if the sets have another culler than the one that the stages follow.
    pub(super) fn follow(
        &mut self,
        culling: &GpuCuller,
        settings: &GpuCullingSettings,
        device: &RenderDevice,
        room: MeshletOptions,
    ) {
        let now = culling.extraction.frame;
        let is_new = self.culler_generation != culling.generation;
        if is_new || self.retry.is_due(now) {
            let made = make_culler(culling, settings, device, room);
            if let Err(error) = &made
                && is_new
            {
                error!(
                    "meshes of meshlets are drawn whole, which takes longer and looks the same: {error}"
                );
            }
            *self = Self {
                culler_generation: culling.generation,
                retry: RetryTimer::start_after(made.as_ref().err(), now),
                last_id: self.last_id,
                culler: made.ok().flatten(),
                ..Self::default()
            };
        }
    }
}

/// The stages for the tier of the sets; `None` if it has none, which is logged.
fn make_culler(
    culling: &GpuCuller,
    settings: &GpuCullingSettings,
    device: &RenderDevice,
    room: MeshletOptions,
) -> Result<Option<MeshletCuller>, CullError> {
    let Some(tier) = culling.tier() else {
        return Ok(None);
    };
    let options = MeshletOptions {
        shader_checks: settings.shader_checks,
        expansion: settings.expansion,
        ..room
    };
    let culler = MeshletCuller::new(device.wgpu_device(), tier, options)?;
    if culler.is_none() {
        info!("the tier \"cpu\" draws meshes of meshlets whole");
    }
    Ok(culler)
}
