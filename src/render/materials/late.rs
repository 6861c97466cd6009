//! Plugins of materials, which an app may add before Bevy's `PbrPlugin`.

use bevy::{pbr::PbrPlugin, prelude::*};

/// In `finish` of the plugin `name`, installs what had to wait for `PbrPlugin`, unless there are
/// its `Materials` already. Returns whether it did.
pub(in crate::render) fn installs_late<Materials: Plugin>(
    app: &mut App,
    name: &str,
    install: fn(&mut App),
) -> bool {
    if app.is_plugin_added::<Materials>() {
        return false;
    }
    let can_install = app.is_plugin_added::<PbrPlugin>();
    if can_install {
        install(app);
    } else {
        error!("{name} does nothing: the app has no PbrPlugin. Add DefaultPlugins");
    }
    can_install
}
