// Sums of all strips before one, in the very pass that counts them, by decoupled look-back (Merrill and Garland,
// "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016): a strip publishes its total, adds up those of
// the strips before it until it meets one that knows its own prefix, then publishes its prefix.
//
//     totals       3  1  4  2
//     published    P3 P4 A4 .      P: prefix, its own total included; A: its total
//     strip 3      4 + 4 = 8       looks back over A4, up to P4
//
// Workgroups take strips in order, so a strip's predecessors have workgroups that run or have run. Nothing says that
// these run on while ours waits, so after SPINS looks the missing strip is counted here (`count_strip`, strip.wgsl) and
// published for all (as in Smith, Levien and Owens, "Decoupled Fallback: A Portable Single-Pass GPU Scan", 2025). Every loop
// counts its turns: nothing here waits for ever, whatever others do.

struct LookBack {
    // Dispatches so far; the last bit says which half of the statuses is this one's.
    epoch: atomic<u32>,
    // Strips of this dispatch that have a workgroup.
    taken: atomic<u32>,
    // Workgroups of this dispatch that need no status any more.
    finished: atomic<u32>,
    // Of each strip, twice: zero until it has published something. A dispatch clears the other half for the next.
    statuses: array<atomic<u32>>,
}

@group(0) @binding(7) var<storage, read_write> look_back: LookBack;

const AGGREGATE: u32 = 0x40000000u;
const PREFIX: u32 = 0x80000000u;
const STATUS_VALUE: u32 = 0x3fffffffu;
// The survivors of a batch fit.
const_assert MOST_TILES * SCAN_TILE * BLOCK <= STATUS_VALUE;
// Looks at a strip that has published nothing until it is counted here.
const SPINS: u32 = 64u;

// What a strip has published; before the first strip all is known.
fn status_of(half: u32, strip: i32) -> u32 {
    var status = PREFIX;
    if (strip >= 0) {
        status = atomicLoad(&look_back.statuses[half + u32(strip)]);
    }
    return status;
}

// The sum of all strips before `strip`, for all lanes of the subgroup that calls; `half` is where this dispatch's begin.
fn sum_before(half: u32, strip: u32, lane: u32, size: u32) -> u32 {
    let lanes = min(size, 32u);
    var sum = 0u;
    var at = strip;
    // A turn that gets no strip further waits for one, and the next turn gets further. To add up at once what the wait has
    // seen costs a third of the speed.
    for (var turns = 2u * strip; turns > 0u && at > 0u; turns -= 1u) {
        // A strip a lane, from the last backwards.
        let status = status_of(half, i32(at) - 1 - i32(lane));
        let first_prefix = firstTrailingBit(subgroupBallot((lane < lanes) & (status >= PREFIX)).x);
        let first_missing = firstTrailingBit(subgroupBallot((lane < lanes) & (status == 0u)).x);
        // Lanes that count: up to the first prefix, and before the first that is missing.
        let end = min(min(first_prefix, lanes - 1u) + 1u, first_missing);
        sum += subgroupAdd(select(0u, status & STATUS_VALUE, lane < end));
        if (first_prefix < first_missing) {
            break;
        }
        at -= end;
        if (first_missing < lanes && !is_published(half + at - 1u, lane)) {
            let total = count_strip(at - 1u, lane, size);
            if (lane == 0u) {
                // Not over a prefix that has come meanwhile.
                atomicMax(&look_back.statuses[half + at - 1u], AGGREGATE | total);
            }
        }
    }
    return sum;
}

// Waits for a strip, for SPINS looks. One lane looks: where all of them do, they slow down those that they wait for.
fn is_published(at: u32, lane: u32) -> bool {
    for (var spin = 0u; spin < SPINS; spin += 1u) {
        var is_there = false;
        if (lane == 0u) {
            is_there = atomicLoad(&look_back.statuses[at]) != 0u;
        }
        if (subgroupAny(is_there)) {
            return true;
        }
    }
    return false;
}
