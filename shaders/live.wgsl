// The list that `classify` made. Workgroups stride over it, so a dispatch needs no count from the GPU.

struct Live {
    count: u32,
    blocks: array<u32>,
}

const CROSSED: u32 = 0x80000000u;
