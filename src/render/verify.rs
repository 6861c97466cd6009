//! A check of the survivors on the GPU against the CPU twins, per view and id.
//!
//! For tests, demos and bug reports, with the cargo feature `testing`: it waits for the GPU, and
//! copies whole sets. The survivors of an unordered compaction are sorted first.
//!
//! A browser cannot wait. There, after the frame, let its event loop turn and [`go_on`] until the
//! verdicts are there, and draw no frame meanwhile.

mod compare;
mod verifier;

pub use verifier::{Verdict, Verifier};

use super::{
    culler::GpuCuller, extract::extract_sets, report::finish_culling, settings::GpuCullingSystems,
};
use crate::{cull::forget_reads, instance::InstanceSet};
use bevy::{
    app::SubApp,
    prelude::*,
    render::{Extract, RenderApp, renderer::RenderGraph},
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
            (forget_reads, verify_survivors)
                .chain()
                .after(finish_culling)
                .in_set(GpuCullingSystems::Finish),
        );
}

/// Goes on with a check of the last frame, whose survivors a browser was still reading.
///
/// # Errors
/// The app has no renderer, or not this plugin.
pub fn go_on(app: &mut App) -> Result {
    let render_app = app.get_sub_app_mut(RenderApp).ok_or("no renderer")?;
    Ok(render_app.world_mut().run_system_cached(verify_survivors)?)
}

/// Copies what a requested check compares the GPU with.
fn copy_sets(
    culling: Res<GpuCuller>,
    assets: Extract<Res<Assets<InstanceSet>>>,
    verifier: Res<Verifier>,
) {
    if !verifier.is_requested() {
        return;
    }
    let extraction = &culling.extraction;
    for (asset, known) in &extraction.known {
        if known.used_in == extraction.lists.listed_in
            && known.is_current()
            && let Some(set) = assets.get(*asset)
        {
            verifier.keep(known.current.id, set, known.current.arrived);
        }
    }
}
