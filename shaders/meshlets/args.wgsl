// Commands: one workgroup per row writes the row's commands, one per visible meshlet, in the
// order of the meshlets, with one instance per survivor that shows it. After them come commands
// that draw nothing. If the row did not fit, the command before them draws the whole mesh for every
// survivor, and the commands of the meshlets draw nothing.

import package::meshlets::layout::{
    CELL_TILE, GpuMeshlet, MeshletResult, MeshletSpan, MeshletTotals, ROW_THREADS, meshlet_rows,
    sizes,
};
import package::shared::layout::{DrawCommand, Totals};

@group(0) @binding(2) var<storage, read> args: Args;
@group(0) @binding(6) var<storage, read> spans: MeshletSpans;
@group(0) @binding(7) var<storage, read> meshlets: array<GpuMeshlet>;
@group(0) @binding(9) var<storage, read> counts: array<u32>;
@group(0) @binding(10) var<storage, read> partials: array<u32>;
@group(0) @binding(12) var<storage, read_write> draws: array<DrawCommand>;
@group(0) @binding(13) var<storage, read_write> results: MeshletResults;

struct Args {
    totals: Totals,
    draws: array<DrawCommand>,
}

struct MeshletSpans {
    totals: MeshletTotals,
    rows: array<MeshletSpan>,
}

struct MeshletResults {
    totals: MeshletTotals,
    rows: array<MeshletResult>,
}

var<workgroup> drawn: array<u32, ROW_THREADS>;
var<workgroup> triangles_low: atomic<u32>;
var<workgroup> triangles_high: atomic<u32>;

fn place_of(cell: u32) -> u32 {
    return counts[cell] + partials[cell / CELL_TILE];
}

// Adds triangles to a sum of 64 bits. The words may be added one by one: exactly one addition sees
// each carry.
fn add_triangles(meshlets_drawn: u32, triangles: u32) {
    // A product of less than 31 and less than 9 bits, by halves of 16 bits.
    let low = (meshlets_drawn & 0xffffu) * triangles;
    let high = (meshlets_drawn >> 16u) * triangles;
    add_word(low);
    add_word(high << 16u);
    atomicAdd(&triangles_high, high >> 16u);
}

fn add_word(value: u32) {
    let before = atomicAdd(&triangles_low, value);
    if (before > 0xffffffffu - value) {
        atomicAdd(&triangles_high, 1u);
    }
}

@compute @workgroup_size(ROW_THREADS)
fn write_args(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    for (var r = workgroup.x; r < sizes.row_count; r += workgroups.x) {
        write_row(r, thread);
    }
    if (workgroup.x == 0u && thread == 0u) {
        results.totals = spans.totals;
        results.totals.needed_survivors = place_of(spans.totals.cell_count);
    }
}

fn write_row(r: u32, thread: u32) {
    let span = spans.rows[r];
    let meshlet_count = meshlet_rows[r].meshlet_count;
    let first_meshlet = meshlet_rows[r].first_meshlet;
    let first_index = meshlet_rows[r].first_index;
    let base_vertex = meshlet_rows[r].base_vertex;
    let first_draw = meshlet_rows[r].first_draw;
    var whole = span.tile_count == 0u && span.survivor_count > 0u;
    if (!whole) {
        whole = place_of(span.first_cell + span.tile_count * meshlet_count) > sizes.survivor_capacity;
    }
    atomicStore(&triangles_low, 0u);
    atomicStore(&triangles_high, 0u);
    workgroupBarrier();

    var draw_count = 0u;
    var visible = 0u;
    for (var first = 0u; first < meshlet_count; first += ROW_THREADS) {
        let m = first + thread;
        var command = DrawCommand();
        if (m < meshlet_count && !whole) {
            let cell = span.first_cell + m * span.tile_count;
            let place = place_of(cell);
            let meshlet = meshlets[first_meshlet + m];
            let instances = place_of(cell + span.tile_count) - place;
            let index = first_index + meshlet.first_index;
            let base = bitcast<u32>(base_vertex);
            command = DrawCommand(meshlet.index_count, instances, index, base, place);
            add_triangles(instances, meshlet.index_count / 3u);
        }
        let is_drawn = select(0u, 1u, command.instance_count > 0u);
        drawn[thread] = is_drawn;
        workgroupBarrier();
        for (var reach = 1u; reach < ROW_THREADS; reach *= 2u) {
            var before = 0u;
            if (thread >= reach) {
                before = drawn[thread - reach];
            }
            workgroupBarrier();
            drawn[thread] += before;
            workgroupBarrier();
        }
        // Commands that draw nothing go to the end, backwards.
        let rank = drawn[thread] - is_drawn;
        let total = drawn[ROW_THREADS - 1u];
        if (m < meshlet_count) {
            if (is_drawn != 0u) {
                draws[first_draw + 1u + draw_count + rank] = command;
            } else {
                let before = m - (draw_count + rank);
                draws[first_draw + meshlet_count - before] = DrawCommand();
            }
        }
        draw_count += total;
        visible += command.instance_count;
        workgroupBarrier();
    }
    drawn[thread] = visible;
    workgroupBarrier();
    for (var half = ROW_THREADS / 2u; half > 0u; half /= 2u) {
        if (thread < half) {
            drawn[thread] += drawn[thread + half];
        }
        workgroupBarrier();
    }
    if (thread == 0u) {
        var command = DrawCommand();
        if (whole) {
            command = args.draws[meshlet_rows[r].draw_row];
            add_triangles(command.instance_count, command.element_count / 3u);
        }
        draws[first_draw] = command;
        results.rows[r] = MeshletResult(
            draw_count,
            span.survivor_count,
            drawn[0],
            span.outside,
            atomicLoad(&triangles_low),
            atomicLoad(&triangles_high),
            select(0u, 1u, whole),
            span.hidden);
    }
    workgroupBarrier();
}
