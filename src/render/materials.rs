//! The materials of sets: the aliases under which Bevy's systems find our pipelines and draw
//! functions.
//!
//! 1. `shader_imports`: which of a material's own vertex stages read instances.
//! 2. `draw_mode`: how sets with a material are drawn.
//! 3. `pipeline`: Bevy's pipelines with our vertex stage of `modules`; `faces`: the faces that they
//!    draw.
//! 4. `alias`: the system that makes the aliases, with the `properties` of their materials.
//!    `settled` is what its last run found, and `reshown` what comes into view.
//! 5. `missing`: a warning for sets without a material.
//! 6. `late`: plugins of materials, which may come before Bevy's.

mod alias;
mod draw_mode;
mod faces;
mod late;
mod missing;
mod modules;
mod pipeline;
mod properties;
mod reshown;
mod settled;
mod shader_imports;
mod used;

pub(super) use alias::{MaterialAliases, alias_materials};
pub(super) use faces::{DrawnFaces, PassFaces};
pub(super) use late::installs_late;
pub(super) use missing::warn_of_missing_materials;
pub(super) use modules::{DrawShaders, add_module};
pub(super) use pipeline::{SetPipelines, SetPrepassPipelines};
pub(super) use properties::is_blended;
pub(super) use reshown::{ReshownSets, extract_reshown};
pub(super) use shader_imports::{InstancedShaders, extract_imports};
pub(super) use used::UsedAlias;
