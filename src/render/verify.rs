//! A check of the survivors on the GPU against the CPU twins, per view and id.
//!
//! For tests, demos and bug reports, with the cargo feature `testing`: it waits for the GPU, and
//! copies whole sets. The survivors of an unordered compaction are sorted first.

mod compare;
mod verifier;

pub use verifier::{Verdict, Verifier};

use super::{
    culler::GpuCuller, extract::extract_sets, report::finish_culling, settings::GpuCullingSystems,
};
use crate::instance::InstanceSet;
use bevy::{
    app::SubApp,
    prelude::*,
    render::{Extract, renderer::RenderGraph},
};
use compare::verify_survivors;

/// Adds the render world's part. The worlds share the verifier.
pub(super) fn build_render(render_app: &mut SubApp, verifier: Verifier) {
    render_app
        .insert_resource(verifier)
        .add_systems(
            ExtractSchedule,
            copy_sets
                .after(extract_sets)
                .in_set(GpuCullingSystems::Extract),
        )
        .add_systems(
            RenderGraph,
            verify_survivors
                .after(finish_culling)
                .in_set(GpuCullingSystems::Finish),
        );
}

/// Copies what a requested check compares the GPU with.
fn copy_sets(
    sets: Res<GpuCuller>,
    assets: Extract<Res<Assets<InstanceSet>>>,
    verifier: Res<Verifier>,
) {
    if !verifier.is_requested() {
        return;
    }
    for (asset, known) in &sets.known {
        if known.used_in == sets.listed_in
            && known.is_current()
            && let Some(set) = assets.get(*asset)
        {
            verifier.keep(known.current.id, set, known.current.arrived);
        }
    }
}
