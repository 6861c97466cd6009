//! The faces that the pipelines of a set's material draw. They decide what the cones of meshlets
//! may reject.
//!
//! Materials choose the faces in their own code while their pipelines are specialized; so the faces
//! are read from the finished descriptor. If the pipelines of a pass differ, cones treat it as one
//! that draws both sides.

use crate::cull::meshlets::SeenFaces;
use bevy::{
    material::MaterialProperties,
    platform::collections::HashMap,
    prelude::*,
    render::render_resource::{
        CachedRenderPipelineId, CompareFunction, DepthBiasState, Face, FrontFace, PolygonMode,
        PrimitiveState, PrimitiveTopology, RenderPipelineDescriptor,
    },
};
use std::sync::{Arc, Weak};

/// Faces per pipeline and per material.
#[derive(Resource, Default)]
pub(in crate::render) struct DrawnFaces {
    pipelines: HashMap<CachedRenderPipelineId, Drawing>,
    /// By address of the material's properties. The weak reference keeps the address from being
    /// used again.
    materials: HashMap<usize, MaterialFaces>,
    changes: u64,
}

/// The faces of a material.
struct MaterialFaces {
    properties: Weak<MaterialProperties>,
    faces: PassFaces,
    /// Whether all pipelines test depth.
    test_depth: bool,
}

/// What a pipeline draws.
#[derive(Clone, Copy, Default)]
pub(in crate::render) struct Drawing {
    faces: SeenFaces,
    /// Whether it draws filled triangles, and nothing that is behind the depth so far.
    tests_depth: bool,
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
    /// Notes a pipeline of a material. `made` is what it draws, if it was just made.
    pub fn note(
        &mut self,
        properties: &Arc<MaterialProperties>,
        pass: PassKind,
        pipeline: CachedRenderPipelineId,
        made: Option<Drawing>,
    ) {
        if let Some(drawing) = made {
            self.pipelines.insert(pipeline, drawing);
        }
        let drawing = self.pipelines.get(&pipeline).copied().unwrap_or_default();
        let found = drawing.faces;
        let key = Arc::as_ptr(properties) as usize;
        let is_new = !self.materials.contains_key(&key);
        let entry = self.materials.entry(key).or_insert_with(|| MaterialFaces {
            properties: Arc::downgrade(properties),
            faces: PassFaces::default(),
            test_depth: true,
        });
        let before = entry.test_depth && !is_new;
        entry.test_depth &= drawing.tests_depth;
        self.changes += u64::from(entry.test_depth != before);
        let known = match pass {
            PassKind::Main => &mut entry.faces.main,
            PassKind::Prepass => &mut entry.faces.prepass,
        };
        *known = match *known {
            None => Some(found),
            Some(other) if other == found => Some(other),
            Some(_) => Some(SeenFaces::Both),
        };
    }

    /// The faces of a material.
    pub fn get(&self, properties: &Arc<MaterialProperties>) -> PassFaces {
        let known = self.materials.get(&(Arc::as_ptr(properties) as usize));
        known.map(|known| known.faces).unwrap_or_default()
    }

    /// Whether the pipelines of a material draw nothing that is behind the depth that there is.
    /// False before any has been made.
    pub fn test_depth(&self, properties: &Arc<MaterialProperties>) -> bool {
        let known = self.materials.get(&(Arc::as_ptr(properties) as usize));
        known.is_some_and(|known| known.test_depth)
    }

    /// How often the answer of [`Self::test_depth`] has changed for a material.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Drops materials that no longer exist.
    pub fn sweep(&mut self) {
        self.materials
            .retain(|_, known| known.properties.strong_count() > 0);
    }
}

/// What a pipeline draws.
pub(in crate::render) fn drawing_of(descriptor: &RenderPipelineDescriptor) -> Drawing {
    let primitive = &descriptor.primitive;
    let tests_depth = descriptor.depth_stencil.as_ref().is_some_and(|depth| {
        let compares = [CompareFunction::Greater, CompareFunction::GreaterEqual];
        let is_compared = depth
            .depth_compare
            .is_some_and(|compare| compares.contains(&compare));
        is_compared && depth.bias == DepthBiasState::default()
    });
    Drawing {
        faces: seen_faces(primitive),
        tests_depth: tests_depth
            && primitive.polygon_mode == PolygonMode::Fill
            && !primitive.conservative
            && [
                PrimitiveTopology::TriangleList,
                PrimitiveTopology::TriangleStrip,
            ]
            .contains(&primitive.topology),
    }
}

/// The faces that a pipeline draws.
fn seen_faces(primitive: &PrimitiveState) -> SeenFaces {
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
