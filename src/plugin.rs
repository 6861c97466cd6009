//! The plugin: it adds the rooms of the crate to an app.

use crate::{
    diagnostics,
    render::{
        GpuCullingPlugin,
        plugin::{has_phases, install_main, install_render},
    },
};
use bevy::{prelude::*, render::RenderApp};

impl Plugin for GpuCullingPlugin {
    /// Installs what the plugins so far allow. The rest waits for `finish`, so that this plugin may
    /// be added before others.
    fn build(&self, app: &mut App) {
        if app.world().contains_resource::<AssetServer>() {
            self.install_main(app);
            if has_phases(app) {
                install_render(app);
            }
        }
    }

    fn finish(&self, app: &mut App) {
        if !app.world().contains_resource::<AssetServer>() {
            error!("GpuCullingPlugin does nothing: the app has no AssetPlugin. Add DefaultPlugins");
            return;
        }
        self.install_main(app);
        #[cfg(feature = "gltf")]
        crate::render::plugin::finish_main(app);
        if has_phases(app) {
            install_render(app);
        } else if app.get_sub_app(RenderApp).is_some() {
            warn!("GpuCullingPlugin: the app has no PbrPlugin; no GpuInstances are drawn. Add it");
        } else {
            warn!(
                "GpuCullingPlugin: the app has no renderer; no GpuInstances are drawn. Add DefaultPlugins, or leave the \
                 plugin out of servers and tests"
            );
        }
    }
}

impl GpuCullingPlugin {
    fn install_main(&self, app: &mut App) {
        if install_main(app, self.settings.clone()) {
            diagnostics::register(app);
        }
    }
}
