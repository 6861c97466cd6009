//! The kernels of the engine.

/// A kernel: entry points of a file, composed with features. `subgroup` is added on its tier.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    pub name: &'static str,
    /// The file that has the entry points, or imports them.
    pub file: &'static str,
    pub entries: &'static [&'static str],
    pub features: &'static [&'static str],
}

const fn kernel(
    name: &'static str,
    file: &'static str,
    entries: &'static [&'static str],
    features: &'static [&'static str],
) -> Kernel {
    Kernel {
        name,
        file,
        entries,
        features,
    }
}

const VOTE_ITEMS: &[&str] = &["items_of", "expand_item", "expand_done"];

/// The kernels of the engine.
#[rustfmt::skip]
pub const KERNELS: &[Kernel] = &[
    kernel("bound", "cull/bound", &["bound"], &[]),
    kernel("classify", "cull/classify", &["classify"], &[]),
    kernel("order_rings", "cull/order", &["order_rings"], &[]),
    kernel("order", "cull/order", &["order"], &[]),
    kernel("order_strips", "cull/order", &["order"], &["strips", "subgroup"]),
    kernel("vote", "cull/vote", &["vote"], &["counted"]),
    kernel("vote_block_per_subgroup", "cull/vote", &["vote_block_per_subgroup"], &["counted", "subgroup"]),
    kernel("vote_words", "cull/vote", &["vote"], &[]),
    kernel("vote_crossed_subgroup", "cull/vote_crossed_subgroup", &["vote"], &["subgroup"]),
    kernel("vote_crossed_workgroup", "cull/vote_crossed_workgroup", &["vote"], &[]),
    kernel("vote_crossed_block_per_subgroup", "cull/vote_crossed_block_per_subgroup", &["vote"], &["subgroup"]),
    kernel("recall", "occlusion/recall", &["recall"], &[]),
    kernel("occlude_words", "occlusion/occlude", &["occlude_words"], &[]),
    kernel("occlude", "occlusion/occlude", &["occlude"], &[]),
    kernel("scan", "cull/scan", &["scan"], &[]),
    kernel("compact", "cull/compact", &["compact"], &[]),
    kernel("look_back", "cull/look_back", &["cull"], &["subgroup"]),
    kernel("look_back_near_first", "cull/look_back", &["cull"], &["near_first", "subgroup"]),
    kernel("far_first_spans", "cull/far_first", &["make_spans"], &["makes_spans"]),
    kernel("far_first_keys", "cull/far_first", &["make_keys"], &[]),
    kernel("far_first_count", "cull/far_first", &["count_digits"], &[]),
    kernel("far_first_scan", "cull/far_first", &["scan_counts"], &[]),
    kernel("far_first_scatter", "cull/far_first", &["scatter"], &[]),
    kernel("pyramid", "occlusion/pyramid", &["reduce"], &["from_depth", "single_sampled"]),
    kernel("pyramid_multisampled", "occlusion/pyramid", &["reduce"], &["from_depth", "multisampled"]),
    kernel("pyramid_second", "occlusion/pyramid", &["reduce"], &["second"]),
    kernel("pyramid_third", "occlusion/pyramid", &["reduce"], &["third"]),
    // The functions of a depth test; kernels import them.
    kernel("footprint", "occlusion/footprint", &["occlusion_of", "is_hidden"], &[]),
    kernel("meshlet_expand", "meshlets/expand", &["expand"], &[]),
    kernel("meshlet_vote", "meshlets/vote", &["vote"], &[]),
    kernel("meshlet_vote_late", "meshlets/vote", &["vote"], &["late"]),
    // WGSL for the kernels of an expansion.
    kernel("meshlet_vote_items", "meshlets/vote_items", VOTE_ITEMS, &[]),
    kernel("meshlet_vote_items_late", "meshlets/vote_items", VOTE_ITEMS, &["late"]),
    kernel("meshlet_clear", "meshlets/clear", &["clear"], &[]),
    kernel("meshlet_scan", "meshlets/scan", &["scan", "spine"], &[]),
    kernel("meshlet_compact", "meshlets/compact", &["compact"], &[]),
    kernel("meshlet_args", "meshlets/args", &["write_args"], &[]),
    // No kernel of the engine packs instances; callers join the file to their own.
    kernel("instance_pack", "shared/instance_pack", &["hidden", "pack", "unpack"], &[]),
    kernel("scatter", "scatter/scatter", &["scatter"], &[]),
    kernel("fill_rows", "cull/fill_rows", &["fill_rows"], &[]),
    kernel("gather_draws", "cull/gather_draws", &["gather_draws"], &[]),
    kernel("mesh_uniforms", "draw/mesh_uniforms", &["mesh_uniforms"], &[]),
    kernel("expand_scan_table", "expand/scan", &["scan_table"], &["table"]),
    kernel("expand_bits_po2_buckets", "expand/po2_buckets", &["count", "write"], &[]),
    kernel("expand_few_po2_buckets", "expand/po2_buckets", &["count_few", "write_few"], &[]),
    kernel("expand_spine_po2_buckets", "expand/po2_buckets", &["spine"], &[]),
    kernel("expand_items_po2_buckets", "expand/po2_buckets", &["expand"], &["items"]),
    kernel("expand_bits_one_bucket", "expand/one_bucket", &["count", "write"], &[]),
    kernel("expand_few_one_bucket", "expand/one_bucket", &["count_few", "write_few"], &[]),
    kernel("expand_spine_one_bucket", "expand/one_bucket", &["spine"], &[]),
    kernel("expand_items_one_bucket", "expand/one_bucket", &["expand"], &["items"]),
];

/// What the cargo feature `study` adds.
#[rustfmt::skip]
pub const STUDY_KERNELS: &[Kernel] = &[
    kernel("naive_atomic", "study/naive_atomic", &["compact"], &[]),
    kernel("subgroup_atomic", "study/subgroup_atomic", &["compact"], &["subgroup"]),
    kernel("workgroup_atomic", "study/workgroup_atomic", &["compact"], &[]),
    kernel("hillis_steele", "study/hillis_steele", &["scan", "compact"], &[]),
    kernel("args_sums", "study/hillis_steele", &["write_args"], &[]),
    kernel("workgroup_scan", "study/workgroup_scan", &["compact"], &[]),
    kernel("ballot_scan", "study/ballot_scan", &["compact"], &["subgroup"]),
    kernel("flags", "study/hillis_steele", &["vote_flags"], &[]),
    kernel("regions", "study/regions", &["clear_rows", "write_args"], &[]),
    kernel("expand_scan_items", "expand/scan", &["scan"], &[]),
    kernel("expand_scan_groups", "expand/scan", &["scan"], &["groups"]),
    kernel("expand_list", "study/list", &["list"], &[]),
    kernel("expand_list_groups", "study/list", &["list"], &["groups"]),
    kernel("expand_measure", "study/fixed_max", &["measure", "plan_fixed"], &[]),
    kernel("expand_items_fixed", "study/fixed_max", &["expand"], &["items"]),
    kernel("expand_spine_list", "study/item_list", &["spine"], &[]),
    kernel("expand_items_list", "study/item_list", &["expand"], &["items"]),
    kernel("expand_spine_groups", "study/workgroup_items", &["spine"], &[]),
    kernel("expand_items_groups", "study/workgroup_items", &["expand"], &["items"]),
    kernel("expand_spine_items", "study/prefix_search", &["spine"], &[]),
    kernel("expand_items_search", "study/prefix_search", &["expand"], &["items"]),
    kernel("expand_spine_spans", "study/workgroup_search", &["spine"], &[]),
    kernel("expand_items_spans", "study/workgroup_search", &["expand"], &["items"]),
    kernel("expand_pack", "study/packed_atomic", &["clear_packed", "pack", "plan_packed"], &[]),
    kernel("expand_items_packed", "study/packed_atomic", &["expand"], &["items"]),
];

/// All kernels, those for study too.
pub fn kernels() -> impl Iterator<Item = &'static Kernel> {
    KERNELS.iter().chain(STUDY_KERNELS)
}

/// The features of a kernel on a tier.
pub fn features(kernel: &Kernel, is_subgroup: bool) -> Vec<&'static str> {
    let mut features = kernel.features.to_vec();
    if is_subgroup && !features.contains(&"subgroup") {
        features.push("subgroup");
    }
    features
}
