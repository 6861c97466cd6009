//! The conclusions of the article (Devsh Graphics Programming, 2020), and the results on this
//! adapter.

use crate::case::{Address, Case, Operation};
use serde::Serialize;

/// The result of one case.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    #[serde(flatten)]
    pub case: Case,
    /// Median in microseconds.
    pub us: f64,
    /// Distance from the 10th to the 90th percentile of the runs, as a share of the median.
    pub spread: f64,
    /// Billions of invocations per second.
    pub g_per_s: f64,
    /// Whether the counters were right after every run.
    pub verified: bool,
}

/// A conclusion of the article.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    pub article: &'static str,
    /// The comparison on this adapter, with its ratio.
    pub here: String,
    pub agrees: bool,
}

/// The median of a case in microseconds, if it was measured.
fn us(
    all: &[Measured],
    address: Address,
    operation: Operation,
    reduced: bool,
    used: bool,
) -> Option<f64> {
    let case = Case {
        address,
        operation,
        reduced,
        used,
    };
    all.iter()
        .find(|measured| measured.case == case)
        .map(|measured| measured.us)
}

/// The conclusions for which the necessary cases were measured.
pub fn judge(all: &[Measured]) -> Vec<Claim> {
    use Address::{Lane, One, Subgroup, Workgroup};
    use Operation::{Add, CompareExchange, Exchange, Max, Or, Store};
    let at = |address, operation, reduced, used| us(all, address, operation, reduced, used);
    let mut claims = Vec::new();
    let mut claim = |article, ratio: Option<f64>, what: &str, agrees: &dyn Fn(f64) -> bool| {
        if let Some(ratio) = ratio {
            let here = format!("{what}: {ratio:.2} times");
            claims.push(Claim {
                article,
                here,
                agrees: agrees(ratio),
            });
        }
    };
    let ratio = |a: Option<f64>, b: Option<f64>| Some(a? / b?);
    let naive = at(One, Add, false, false);
    let ballot = at(One, Add, true, false);

    claim(
        "A separate address per lane is 10 to 30 times slower than one address for all.",
        ratio(at(Lane, Add, false, false), naive),
        "time with one address per lane, relative to one address",
        &|ratio| ratio >= 2.0,
    );
    let spread = [
        at(Subgroup, Add, false, false),
        at(Workgroup, Add, false, false),
    ];
    claim(
        "Spreading the counter over subgroups or groups gains a few percent at best.",
        ratio(naive, spread.into_iter().flatten().reduce(f64::min)),
        "time with one address, relative to the better of one per subgroup and one per workgroup",
        &|ratio| ratio <= 1.1,
    );
    claim(
        "The compiler reduces an atomicAdd to one address by itself, so a manual ballot changes little.",
        ratio(naive, ballot),
        "time without a ballot, relative to with one",
        &|ratio| (0.75..=1.33).contains(&ratio),
    );
    claim(
        "The naive atomicAdd is twice as fast as a plain store to the same address.",
        ratio(at(One, Store, false, false), naive),
        "time of the store, relative to the atomicAdd",
        &|ratio| ratio >= 1.5,
    );
    claim(
        "A store by one elected lane is 2 to 10 % faster than the naive atomicAdd.",
        ratio(naive, at(One, Store, true, false)),
        "time of the atomicAdd, relative to the elected store",
        &|ratio| (1.0..=1.25).contains(&ratio),
    );
    let others = [Max, Or, Exchange, CompareExchange];
    let min = |reduced| {
        let times = others.map(|operation| at(One, operation, reduced, false));
        times.into_iter().flatten().reduce(f64::min)
    };
    claim(
        "Max, Or, Exchange and compare-exchange are 40 times slower than atomicAdd: only Add is reduced.",
        ratio(min(false), naive),
        "time of the fastest of the four, relative to atomicAdd",
        &|ratio| ratio >= 2.0,
    );
    claim(
        "With a manual ballot the others are as fast as atomicAdd.",
        ratio(min(true), ballot),
        "time of the fastest of the four with a ballot, relative to atomicAdd with one",
        &|ratio| (0.75..=1.33).contains(&ratio),
    );
    claim(
        "The compiler reduces only an atomicAdd whose result is not used (the article's guess).",
        ratio(at(One, Add, false, true), naive),
        "time with the result used, relative to unused",
        &|ratio| ratio >= 1.5,
    );
    claims
}

/// One sentence of advice for this adapter.
pub fn advice(all: &[Measured]) -> String {
    let used = |reduced| us(all, Address::One, Operation::Add, reduced, true);
    match (used(false), used(true)) {
        (Some(naive), Some(ballot)) if ballot < naive * 0.9 => format!(
            "To append (the result is used), reduce with a ballot: it is {:.1} times faster here than one atomicAdd per invocation.",
            naive / ballot
        ),
        (Some(naive), Some(ballot)) => format!(
            "To append (the result is used), a ballot gains nothing here: it takes {:.2} times as long as one atomicAdd per invocation.",
            ballot / naive
        ),
        _ => "Without subgroups there is no ballot to compare with.".into(),
    }
}
