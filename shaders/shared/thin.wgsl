// Which instances are kept of those that are too small to be seen one by one, and how much larger
// these are drawn. The twin is `reference::thin`.
//
// Source: Cook, Halstead, Planck and Ryu, "Stochastic Simplification of Aggregate Detail" (2007).
//
//     share of the instances   0 .. 1                1 .. THIN_SHARE          from THIN_SHARE on
//     kept, by threshold       those below it        all                      all
//     their area               shared by all kept    some begin to shrink     unchanged

// From this share on, instances are drawn as they are. From here down to its threshold, an
// instance grows as those that are gone leave area behind, and in the last third shrinks to
// nothing.
const THIN_SHARE: f32 = 1.5;
// Smaller shares count as this one.
const LEAST_SHARE: f32 = 5.9604645e-8;
// An instance grows by at most this, over the square root of its share, or by this above share 1.
// It is the square root of 1.2.
const THIN_GROWTH: f32 = 1.0954452;

fn hash(value: u32) -> u32 {
    var x = value * 0x9e3779b1u;
    x = (x ^ (x >> 16u)) * 0x7feb352du;
    x = (x ^ (x >> 15u)) * 0x846ca68bu;
    return x ^ (x >> 16u);
}

// The share at which instance `i` of a region vanishes: its threshold, in [0, 1), in steps of
// 2^-24. The thresholds of a word are stratified: each 32nd part of [0, 1) has one. Words differ,
// so that no pattern is seen.
fn threshold_of(i: u32) -> f32 {
    return f32((reverseBits(i & 31u) ^ hash(i >> 5u)) >> 8u) * 5.9604645e-8;
}

// How much an instance grows that does not shrink. Summed over all thresholds, the area stays the
// same.
fn thinned_growth(share: f32) -> f32 {
    let whole = share / THIN_SHARE;
    let area = select(3.0 - whole - 1.0 / whole, 0.8333333 * share, share <= 1.0);
    return select(inverseSqrt(area), 1.0, share >= THIN_SHARE);
}

// The scale at which an instance of this threshold is drawn; 0 if it is not kept.
fn thinned_scale(share: f32, threshold: f32) -> f32 {
    let left = clamp(3.0 - 3.0 * threshold / share, 0.0, 1.0);
    return select(sqrt(left) * thinned_growth(share), 1.0, share >= THIN_SHARE);
}
