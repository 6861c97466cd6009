//! What one row measures: a scene, a number of instances, their order, how they are expanded to
//! meshlets, and whether they are sets or entities.

use crate::cli::{DrawOrder, Lods, Occlusion};
use crate::scenes::forest;
use bevy_gpu_culling::prelude::MeshletExpansion;
use clap::ValueEnum;

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scene {
    /// The demo's field of orbs
    Demo,
    /// Spheres in a cube, 1.5 units apart on average
    Dense,
    /// Spheres in a cube, 4 units apart on average
    Sparse,
    /// Spheres of 9,680 triangles in a cube, 4 units apart on average; sets are drawn by meshlets
    Meshlets,
    /// A canyon of boulders of 5,120 triangles, seen from its ground
    Canyon,
    /// A wall of leaves: alpha-masked quads, several layers deep
    Leaves,
    /// Trees of 20,000 triangles on hills: bark and alpha-masked leaves
    Forest,
}

/// What the instances are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Peer {
    /// Sets of this crate
    Sets,
    /// One entity per instance, on Bevy's own path
    Bevy,
}

/// Whether the sun casts shadows, in scenes other than the demo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Shadows {
    /// None
    #[default]
    Off,
    /// Of all instances that the light reaches
    On,
    /// The same ones, without instances of sets that are hidden from the light
    Hidden,
}

/// The most entities for the comparison with Bevy. More take minutes to start.
pub const MAX_ENTITIES: u32 = 4_000_000;

/// One row of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub scene: Scene,
    /// Number of instances.
    pub count: u32,
    pub peer: Peer,
    /// The order of the sets' instances; `None` for Bevy's entities, which Bevy orders.
    pub order: Option<DrawOrder>,
    /// Whether there are levels of detail, for entities by Bevy's `VisibilityRange`; `None` for
    /// scenes and entities that have none.
    pub lods: Option<Lods>,
    /// How sets are expanded to meshlets; `None` for scenes and entities without meshlets.
    pub expansion: Option<MeshletExpansion>,
    /// Whether the camera hides instances of sets, or of the canyon's entities; `None` for other
    /// entities, and for the scene of meshlets, whose rows compare expansions.
    pub occlusion: Option<Occlusion>,
}

/// What to measure, as the command line names it.
pub struct Selection<'a> {
    pub scenes: &'a [Scene],
    pub counts: &'a [u32],
    pub orders: &'a [DrawOrder],
    pub lods: &'a [Lods],
    pub expansions: &'a [MeshletExpansion],
    pub occlusion: &'a [Occlusion],
    pub peers: &'a [Peer],
}

impl Selection<'_> {
    /// All cases, and those that are left out because they have too many entities.
    pub fn cases(&self) -> (Vec<Case>, Vec<Case>) {
        let mut cases = Vec::new();
        for &scene in self.scenes {
            for &count in self.counts {
                for &peer in self.peers {
                    let orders: Vec<_> = match peer {
                        Peer::Sets => self.orders.iter().copied().map(Some).collect(),
                        Peer::Bevy => vec![None],
                    };
                    let lods: Vec<_> = match (scene, peer) {
                        (Scene::Forest, _)
                        | (Scene::Demo | Scene::Meshlets | Scene::Canyon, Peer::Sets) => {
                            self.lods.iter().copied().map(Some).collect()
                        }
                        _ => vec![None],
                    };
                    let expansions: Vec<_> = match (scene, peer) {
                        (Scene::Meshlets, Peer::Sets) => {
                            self.expansions.iter().copied().map(Some).collect()
                        }
                        _ => vec![None],
                    };
                    let occlusion: Vec<_> = match (scene, peer) {
                        (Scene::Meshlets, _) => vec![None],
                        (Scene::Canyon, _) | (_, Peer::Sets) => {
                            self.occlusion.iter().copied().map(Some).collect()
                        }
                        (_, Peer::Bevy) => vec![None],
                    };
                    for &order in &orders {
                        for &lods in &lods {
                            for &expansion in &expansions {
                                cases.extend(occlusion.iter().map(|occlusion| Case {
                                    scene,
                                    count,
                                    peer,
                                    order,
                                    lods,
                                    expansion,
                                    occlusion: *occlusion,
                                }));
                            }
                        }
                    }
                }
            }
        }
        cases
            .into_iter()
            .partition(|case| case.peer == Peer::Sets || case.entities() <= MAX_ENTITIES.into())
    }
}

impl Case {
    /// The most entities that Bevy draws this case with.
    fn entities(&self) -> u64 {
        let each = match (self.scene, self.lods) {
            (Scene::Forest, Some(Lods::On)) => forest::MAX_MESHES,
            (Scene::Forest, _) => forest::PARTS,
            _ => 1,
        };
        u64::from(self.count) * u64::from(each)
    }

    /// The flags that name this case alone.
    pub fn flags(&self) -> Vec<String> {
        let mut flags = vec![
            "--scene".into(),
            name(self.scene),
            "--count".into(),
            self.count.to_string(),
            "--peer".into(),
            name(self.peer),
        ];
        if let Some(order) = self.order {
            flags.extend(["--order".into(), name(order)]);
        }
        if let Some(lods) = self.lods {
            flags.extend(["--lods".into(), name(lods)]);
        }
        if let Some(expansion) = self.expansion {
            flags.extend(["--expansion".into(), expansion.to_string()]);
        }
        if let Some(occlusion) = self.occlusion {
            flags.extend(["--occlusion".into(), name(occlusion)]);
        }
        flags
    }
}

impl core::fmt::Display for Case {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} {} {}", name(self.scene), self.count, name(self.peer))?;
        if let Some(order) = self.order {
            write!(f, " {}", name(order))?;
        }
        if let Some(lods) = self.lods {
            write!(f, " lods {}", name(lods))?;
        }
        if let Some(expansion) = self.expansion {
            write!(f, " {expansion}")?;
        }
        match self.occlusion {
            Some(occlusion) => write!(f, " occlusion {}", name(occlusion)),
            None => Ok(()),
        }
    }
}

/// The name of a value in flags, tables and JSON.
pub fn name(value: impl ValueEnum) -> String {
    value
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}
