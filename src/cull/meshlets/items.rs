//! The vote by items: an [`Expander`] takes the survivors of all rows of a batch, each with the
//! number of its meshlets, and each (survivor, meshlet) is one item.

mod batch;
mod needs;

pub(super) use batch::ItemBatch;
pub(super) use needs::Needs;

use super::{
    expansion::MeshletExpansion,
    kernels::{MeshletStage, Resource, StageEdit},
    options::MeshletOptions,
};
use crate::cull::{
    CullError, CullingTier, Expander, Expansion, Version,
    expand::{ExpandCode, ExpanderOptions},
    gpu::{
        binding::{Access, layout_entry},
        guard::guarded,
        on_demand::OnDemand,
    },
    shaders::kernels,
};
use wgpu::{BindGroupLayout, BindGroupLayoutDescriptor, Device};

/// Storage buffers of the last pass: two of the expansion, and the ones of [`VOTES`].
const STORAGE_BUFFERS: u32 = 9;
/// The same of late lists.
const LATE_STORAGE_BUFFERS: u32 = STORAGE_BUFFERS + 1;

/// What pass 1 of the expansion binds as group 1: it asks for the number of a survivor's meshlets.
const COUNTS: &[(Resource, Access)] = &[
    (Resource::Sizes, Access::Uniform),
    (Resource::Rows, Access::Read),
    (Resource::Spans, Access::Write),
];

/// What pass 2 binds as group 1: it votes.
const VOTES: &[(Resource, Access)] = &[
    (Resource::Sizes, Access::Uniform),
    (Resource::Rows, Access::Read),
    (Resource::Instances, Access::Read),
    (Resource::Scales, Access::Read),
    (Resource::Survivors, Access::Read),
    (Resource::Spans, Access::Write),
    (Resource::Meshlets, Access::Read),
    (Resource::Words, Access::Write),
];

/// What the vote of late lists binds besides.
const LATE: &[(Resource, Access)] = &[
    (Resource::Pyramid, Access::Read),
    (Resource::PyramidShape, Access::Uniform),
];

/// The kernels of one expansion.
pub(super) struct ItemKernels {
    /// Its kernels are shared by the expanders of all batches.
    expander: Expander,
    counts: BindGroupLayout,
    votes: BindGroupLayout,
    /// What `votes` binds.
    vote_resources: Vec<(Resource, Access)>,
    /// Batches hold an expander of this version.
    version: Version,
}

impl ItemKernels {
    /// The expansion that runs.
    pub fn expansion(&self) -> Expansion {
        self.expander.expansion()
    }

    /// Compiles the kernels, of late lists or of others.
    ///
    /// # Errors
    /// [`CullError::MeshletExpansionUnsupported`], [`CullError::Pipeline`], [`CullError::Gpu`].
    fn build(
        device: &Device,
        (tier, expansion, is_late): (CullingTier, Expansion, bool),
        options: &MeshletOptions,
        edit: &StageEdit,
    ) -> Result<Self, CullError> {
        let limit = device.limits().max_storage_buffers_per_shader_stage;
        let (needed, composed, more) = match is_late {
            true => (
                LATE_STORAGE_BUFFERS,
                &kernels::MESHLET_VOTE_ITEMS_LATE,
                LATE,
            ),
            false => (STORAGE_BUFFERS, &kernels::MESHLET_VOTE_ITEMS, &[][..]),
        };
        if limit < needed {
            return Err(CullError::MeshletExpansionUnsupported {
                expansion: expansion.name(),
                needed,
                limit,
            });
        }
        // The tiers differ in the expansion, not in what it does with an item.
        let wgsl = composed.on(CullingTier::Workgroup);
        let wgsl = wgsl.replace("@group(0)", "@group(1)");
        let vote_resources = [VOTES, more].concat();
        let [counts, votes] = guarded(device, "layouts of meshlets", || {
            [COUNTS, &vote_resources].map(|resources| {
                let entry = |(resource, access): &(Resource, Access)| {
                    layout_entry(*resource as u32, *access)
                };
                device.create_bind_group_layout(&BindGroupLayoutDescriptor {
                    label: Some("gpu_culling meshlet items"),
                    entries: &resources.iter().map(entry).collect::<Vec<_>>(),
                })
            })
        })?;
        // Both passes count items, so the whole text declares `items_of`.
        let body = ExpandCode {
            wgsl: "",
            layout: Some(&votes),
        };
        let expander_options = ExpanderOptions {
            expansion,
            shader_checks: options.shader_checks,
            counting: Some(ExpandCode {
                wgsl: &wgsl,
                layout: Some(&counts),
            }),
            ..ExpanderOptions::new(tier, body)
        };
        let edit_pass = |name: &str, source: String| match name.starts_with("expand_items") {
            true => edit(MeshletStage::Vote, source),
            false => edit(MeshletStage::Expand, source),
        };
        let expander = Expander::edited(device, &expander_options, edit_pass)?;
        Ok(Self {
            expander,
            counts,
            votes,
            vote_resources,
            version: Version::new(),
        })
    }
}

/// The way in which survivors are expanded, and the kernels for it, which are compiled when a batch
/// first needs them.
pub(super) struct Items {
    way: MeshletExpansion,
    tier: CullingTier,
    options: MeshletOptions,
    edit: Box<StageEdit>,
    /// The expansion that was asked for, and its kernels: of early and other lists, then of late
    /// ones.
    built: [Option<(Expansion, OnDemand<ItemKernels>)>; 2],
    notes: Vec<String>,
}

impl Items {
    pub fn new(tier: CullingTier, options: MeshletOptions, edit: Box<StageEdit>) -> Self {
        Self {
            way: options.expansion,
            tier,
            options,
            edit,
            built: [None, None],
            notes: Vec::new(),
        }
    }

    pub fn edit(&self) -> &StageEdit {
        &*self.edit
    }

    #[cfg(feature = "bevy")]
    pub fn way(&self) -> MeshletExpansion {
        self.way
    }

    /// Changes the way from the next frame on.
    pub fn set(&mut self, way: MeshletExpansion) {
        self.way = way;
    }

    /// Compiles what the expansion of late lists, or of others, needs, unless it is there.
    pub fn ready(&mut self, device: &Device, is_late: bool, now: u64) {
        let Some(expansion) = self.way.choose() else {
            return;
        };
        let known = self.built[usize::from(is_late)].take();
        let known = known.filter(|(asked, _)| *asked == expansion);
        let mut kernels = known.map_or_else(OnDemand::default, |(_, kernels)| kernels);
        let was_told = kernels.has_failed();
        let mut is_new = false;
        let built = kernels.get_or_make(now, || {
            is_new = true;
            let kernels = (self.tier, expansion, is_late);
            ItemKernels::build(device, kernels, &self.options, &self.edit)
        });
        let note = match built {
            _ if !is_new => None,
            Ok(built) => built.expander.fallback().map(|reason| {
                let instead = built.expansion();
                (format!("\"{instead}\""), reason.to_string())
            }),
            Err(_) if was_told => None,
            Err(error) => Some(("\"division\"".to_owned(), error.to_string())),
        };
        if let Some((instead, reason)) = note {
            self.note(&instead, &reason);
        }
        self.built[usize::from(is_late)] = Some((expansion, kernels));
    }

    /// The kernels of the expansion of late lists, or of others; `None` for the division.
    pub fn kernels(&self, is_late: bool) -> Option<&ItemKernels> {
        let expansion = self.way.choose()?;
        let (asked, kernels) = self.built[usize::from(is_late)].as_ref()?;
        kernels.get().filter(|_| *asked == expansion)
    }

    /// Notes which expansion is used instead of the one that was asked for.
    pub fn note(&mut self, instead: &str, reason: &str) {
        self.notes
            .push(format!("meshlets are expanded by {instead}: {reason}"));
    }

    pub fn take_notes(&mut self) -> Vec<String> {
        core::mem::take(&mut self.notes)
    }
}
