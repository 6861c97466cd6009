//! As much of a writer of glTF binary files as the tree needs.
//!
//! glTF 2.0 Specification, Khronos Group, 2021,
//! <https://registry.khronos.org/glTF/specs/2.0/glTF-2.0.html>.

use serde::Serialize;

/// A corner of a triangle. The material's color is multiplied by its gray, from 0 to 255.
#[derive(Clone, Copy, PartialEq)]
pub struct Vertex {
    pub position: [f32; 3],
    pub normal: [f32; 3],
    pub gray: u8,
}

/// Triangles of one material.
pub struct Primitive {
    material: usize,
    triangles: Vec<[Vertex; 3]>,
}

impl Primitive {
    pub fn new(material: usize, triangles: Vec<[Vertex; 3]>) -> Self {
        Self {
            material,
            triangles,
        }
    }
}

/// A file in the making. Fields have the names and the order that they have in its JSON.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct Glb {
    asset: Generator,
    scene: usize,
    scenes: Vec<Scene>,
    nodes: Vec<Node>,
    materials: Vec<Material>,
    meshes: Vec<Mesh>,
    accessors: Vec<Accessor>,
    buffer_views: Vec<BufferView>,
    buffers: Vec<Buffer>,
    #[serde(skip)]
    binary: Vec<u8>,
}

#[derive(Serialize)]
struct Generator {
    version: &'static str,
    generator: &'static str,
}

impl Default for Generator {
    fn default() -> Self {
        Self {
            version: "2.0",
            generator: "bevy_gpu_culling, tests/app/assets",
        }
    }
}

#[derive(Serialize)]
struct Scene {
    nodes: [usize; 1],
}

/// Parts of the tree, with a transform or none.
#[derive(Serialize)]
pub struct Node {
    pub name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mesh: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translation: Option<[f32; 3]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<[f32; 3]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<usize>>,
}

impl Node {
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            mesh: None,
            translation: None,
            scale: None,
            children: None,
        }
    }

    pub fn of_mesh(name: &'static str, mesh: usize) -> Self {
        Self {
            mesh: Some(mesh),
            ..Self::new(name)
        }
    }
}

/// A material without textures.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Material {
    name: &'static str,
    pbr_metallic_roughness: Surface,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Surface {
    base_color_factor: [f32; 4],
    metallic_factor: f32,
    roughness_factor: f32,
}

impl Material {
    /// `color` is linear.
    pub fn new(name: &'static str, [red, green, blue]: [f32; 3], roughness: f32) -> Self {
        Self {
            name,
            pbr_metallic_roughness: Surface {
                base_color_factor: [red, green, blue, 1.0],
                metallic_factor: 0.0,
                roughness_factor: roughness,
            },
        }
    }
}

#[derive(Serialize)]
struct Mesh {
    name: &'static str,
    primitives: Vec<PrimitiveIndices>,
}

#[derive(Serialize)]
struct PrimitiveIndices {
    attributes: Attributes,
    indices: usize,
    material: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "UPPERCASE")]
struct Attributes {
    position: usize,
    normal: usize,
    color_0: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Accessor {
    buffer_view: usize,
    component_type: u32,
    #[serde(skip_serializing_if = "is_false")]
    normalized: bool,
    count: usize,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<[f32; 3]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<[f32; 3]>,
}

fn is_false(value: &bool) -> bool {
    !value
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BufferView {
    buffer: usize,
    byte_offset: usize,
    byte_length: usize,
    target: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Buffer {
    byte_length: usize,
}

/// Component types.
const UNSIGNED_BYTE: u32 = 5121;
const UNSIGNED_SHORT: u32 = 5123;
const FLOAT: u32 = 5126;
/// Targets of buffer views.
const ARRAY_BUFFER: u32 = 34962;
const ELEMENT_ARRAY_BUFFER: u32 = 34963;

impl Glb {
    pub fn material(&mut self, material: Material) -> usize {
        self.materials.push(material);
        self.materials.len() - 1
    }

    pub fn node(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    pub fn mesh(&mut self, name: &'static str, primitives: Vec<Primitive>) -> usize {
        let primitives = primitives
            .into_iter()
            .map(|primitive| self.primitive(primitive))
            .collect();
        self.meshes.push(Mesh { name, primitives });
        self.meshes.len() - 1
    }

    /// Equal vertices become one.
    fn primitive(&mut self, primitive: Primitive) -> PrimitiveIndices {
        let (mut vertices, mut indices) = (Vec::<Vertex>::new(), Vec::<u16>::new());
        for vertex in primitive.triangles.into_iter().flatten() {
            let known = vertices.iter().position(|known| *known == vertex);
            indices.push(known.unwrap_or(vertices.len()).try_into().unwrap());
            if known.is_none() {
                vertices.push(vertex);
            }
        }
        let extreme = |pick: fn(f32, f32) -> f32| {
            let positions = vertices.iter().map(|vertex| vertex.position);
            positions.reduce(|a, b| [0, 1, 2].map(|axis| pick(a[axis], b[axis])))
        };
        let (min, max) = (extreme(f32::min), extreme(f32::max));
        let floats = |part: fn(&Vertex) -> [f32; 3]| {
            let parts = vertices.iter().flat_map(part);
            parts.flat_map(f32::to_le_bytes).collect::<Vec<u8>>()
        };
        let colors = vertices.iter();
        let colors = colors.flat_map(|vertex| [vertex.gray, vertex.gray, vertex.gray, 255]);
        let accessor = |component_type, count, kind| Accessor {
            buffer_view: 0,
            component_type,
            normalized: component_type == UNSIGNED_BYTE,
            count,
            kind,
            min: None,
            max: None,
        };
        let count = vertices.len();
        let position = Accessor {
            min,
            max,
            ..accessor(FLOAT, count, "VEC3")
        };
        let position = self.accessor(position, ARRAY_BUFFER, &floats(|vertex| vertex.position));
        let normal = accessor(FLOAT, count, "VEC3");
        let normal = self.accessor(normal, ARRAY_BUFFER, &floats(|vertex| vertex.normal));
        let color = accessor(UNSIGNED_BYTE, count, "VEC4");
        let color_0 = self.accessor(color, ARRAY_BUFFER, &colors.collect::<Vec<_>>());
        let bytes: Vec<_> = indices
            .iter()
            .flat_map(|index| index.to_le_bytes())
            .collect();
        let indices = accessor(UNSIGNED_SHORT, indices.len(), "SCALAR");
        PrimitiveIndices {
            attributes: Attributes {
                position,
                normal,
                color_0,
            },
            indices: self.accessor(indices, ELEMENT_ARRAY_BUFFER, &bytes),
            material: primitive.material,
        }
    }

    /// Appends the accessor's bytes, at a multiple of four.
    fn accessor(&mut self, accessor: Accessor, target: u32, bytes: &[u8]) -> usize {
        self.buffer_views.push(BufferView {
            buffer: 0,
            byte_offset: self.binary.len(),
            byte_length: bytes.len(),
            target,
        });
        self.binary.extend(bytes);
        self.binary.resize(self.binary.len().next_multiple_of(4), 0);
        self.accessors.push(Accessor {
            buffer_view: self.buffer_views.len() - 1,
            ..accessor
        });
        self.accessors.len() - 1
    }

    /// The file, whose only scene has this node.
    pub fn into_bytes(mut self, root: usize) -> Vec<u8> {
        self.scenes = vec![Scene { nodes: [root] }];
        self.buffers = vec![Buffer {
            byte_length: self.binary.len(),
        }];
        let mut json = serde_json::to_vec(&self).unwrap();
        json.resize(json.len().next_multiple_of(4), b' ');
        let word = |value: usize| u32::try_from(value).unwrap().to_le_bytes();
        let length = 12 + 8 + json.len() + 8 + self.binary.len();
        [
            b"glTF",
            &word(2)[..],
            &word(length),
            &word(json.len()),
            b"JSON",
            &json,
            &word(self.binary.len()),
            b"BIN\0",
            &self.binary,
        ]
        .concat()
    }
}
