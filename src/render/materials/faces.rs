//! Which faces the pipelines of a set's material draw: what its meshlets' cones may cull.
//!
//! Bevy's materials choose it when their pipelines are specialised, by whatever means they like; so it is read off the
//! finished descriptor. Passes whose pipelines differ draw both sides, as far as cones are concerned.

use crate::cull::meshlets::SeenFaces;
use bevy::{
    material::MaterialProperties,
    platform::collections::HashMap,
    prelude::*,
    render::render_resource::{
        CachedRenderPipelineId, Face, FrontFace, PrimitiveState, PrimitiveTopology,
    },
};
use std::sync::{Arc, Weak};

/// Faces by pipeline and by material.
#[derive(Resource, Default)]
pub(in crate::render) struct DrawnFaces {
    pipelines: HashMap<CachedRenderPipelineId, SeenFaces>,
    /// By address of the material's properties, which the weak reference keeps from being used again.
    materials: HashMap<usize, (Weak<MaterialProperties>, PassFaces)>,
}

/// Faces that a material's pipelines draw; `None` before any has been made.
#[derive(Clone, Copy, Default)]
pub(in crate::render) struct PassFaces {
    /// In main passes.
    pub main: Option<SeenFaces>,
    /// In prepasses and shadow maps.
    pub prepass: Option<SeenFaces>,
}

/// The kind of pass that a pipeline is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::render) enum PassKind {
    Main,
    Prepass,
}

impl DrawnFaces {
    /// Notes a pipeline of a material. `made` is what its descriptor says, if it has just been made.
    pub fn note(
        &mut self,
        properties: &Arc<MaterialProperties>,
        pass: PassKind,
        pipeline: CachedRenderPipelineId,
        made: Option<SeenFaces>,
    ) {
        if let Some(faces) = made {
            self.pipelines.insert(pipeline, faces);
        }
        let found = self.pipelines.get(&pipeline).copied().unwrap_or_default();
        let key = Arc::as_ptr(properties) as usize;
        let entry = self
            .materials
            .entry(key)
            .or_insert_with(|| (Arc::downgrade(properties), PassFaces::default()));
        let known = match pass {
            PassKind::Main => &mut entry.1.main,
            PassKind::Prepass => &mut entry.1.prepass,
        };
        *known = match *known {
            None => Some(found),
            Some(other) if other == found => Some(other),
            Some(_) => Some(SeenFaces::Both),
        };
    }

    /// What is known of a material.
    pub fn get(&self, properties: &Arc<MaterialProperties>) -> PassFaces {
        let known = self.materials.get(&(Arc::as_ptr(properties) as usize));
        known.map(|(_, faces)| *faces).unwrap_or_default()
    }

    /// Forgets materials that are gone.
    pub fn sweep(&mut self) {
        self.materials
            .retain(|_, (properties, _)| properties.strong_count() > 0);
    }
}

/// The faces that a pipeline draws.
pub(in crate::render) fn seen_faces(primitive: &PrimitiveState) -> SeenFaces {
    if primitive.topology != PrimitiveTopology::TriangleList {
        return SeenFaces::Both;
    }
    let turned = primitive.front_face == FrontFace::Cw;
    match primitive.cull_mode {
        None => SeenFaces::Both,
        Some(Face::Back) if turned => SeenFaces::Back,
        Some(Face::Back) => SeenFaces::Front,
        Some(Face::Front) if turned => SeenFaces::Front,
        Some(Face::Front) => SeenFaces::Back,
    }
}
