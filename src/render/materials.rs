//! The materials of sets: the alias under which Bevy's systems find our pipelines and draw functions.
//!
//! 1. `shader_imports`: which of a material's own vertex stages read instances.
//! 2. `alias`: the system that gives sets their aliases; `settled` remembers what its last run found.
//! 3. `pipeline`: Bevy's pipelines with our vertex stage; `faces` are those that they draw.
//! 4. `missing`: a warning for sets without a material.

mod alias;
mod faces;
mod missing;
mod pipeline;
mod settled;
mod shader_imports;

pub(super) use alias::{MaterialAliases, alias_materials};
pub(super) use faces::DrawnFaces;
pub(super) use missing::warn_of_missing_materials;
pub(super) use pipeline::{DrawShaders, SetPipelines, SetPrepassPipelines};
pub(super) use shader_imports::{InstancedShaders, extract_imports};
