//! The phrases that break a rule of writing, and what to write instead.

use std::ops::Range;

use regex_lite::Regex;

/// A phrase that is not to be used.
pub struct Tic {
    phrase: Regex,
    idiom: &'static str,
    /// Whether it is fine here after all: the text before the phrase, the phrase, the text behind.
    fine: fn(&str, &str, &str) -> bool,
}

/// What may follow "an" or "a" for "per".
const UNITS: &str = "instance|view|frame|lane|subgroup|workgroup|group|thread|survivor|row|block|\
    word|set|page|batch|draw|chunk|cell|meshlet|triangle|vertex|item|source|strip|bucket|tile|pass|\
    stage|plane|pixel|mesh|entity|orb|camera|light|cascade|command|kernel|counter|bit|binding|\
    dispatch|compaction|expansion|request|second|step|task|feature|benchmark|axis|channel|primitive";

/// What is counted in them.
const COUNTED: &str = "bytes|bits|lanes|threads|words|atomics|instances|survivors|items|triangles|\
    vertices|meshlets|rows|cells|commands|dispatches|workgroups|B|KiB|MiB|GiB|ms|us|ns|%";

/// What stands between "a" and "a" without being counted.
const NOT_COUNTED: [&str; 78] = [
    "a", "after", "also", "an", "and", "are", "as", "at", "be", "becomes", "before", "begins",
    "behind", "between", "beyond", "but", "by", "can", "does", "draws", "during", "fills", "finds",
    "for", "from", "gets", "gives", "had", "has", "have", "holds", "if", "in", "inside", "into",
    "is", "keeps", "least", "leaves", "like", "loses", "makes", "may", "means", "meets", "most",
    "must", "needs", "nor", "not", "of", "on", "only", "or", "over", "owns", "per", "plus",
    "reads", "sees", "shows", "such", "takes", "tests", "than", "that", "then", "through", "times",
    "to", "under", "until", "uses", "was", "when", "with", "without", "writes",
];

/// Words behind which "where" asks for a place.
const WHERE_AFTER: [&str; 36] = [
    "about",
    "ask",
    "asks",
    "decides",
    "determines",
    "exactly",
    "find",
    "finds",
    "found",
    "from",
    "index",
    "is",
    "just",
    "knew",
    "know",
    "known",
    "knows",
    "matter",
    "names",
    "of",
    "on",
    "place",
    "places",
    "point",
    "position",
    "records",
    "remembers",
    "said",
    "say",
    "says",
    "see",
    "seen",
    "sees",
    "show",
    "shows",
    "tell",
];

/// Words behind which "who" means people.
const WHO_AFTER: [&str; 16] = [
    "people",
    "users",
    "user",
    "anyone",
    "everyone",
    "someone",
    "those",
    "readers",
    "reader",
    "contributors",
    "contributor",
    "person",
    "developer",
    "developers",
    "nobody",
    "authors",
];

/// All phrases.
pub fn all() -> Vec<Tic> {
    let tic = |phrase: &str, idiom, fine| Tic {
        phrase: Regex::new(&format!("(?i){phrase}")).expect("a list of fixed expressions"),
        idiom,
        fine,
    };
    let never: fn(&str, &str, &str) -> bool = |_, _, _| false;
    let per = "write \"per\"";
    let number = r"(?:an?|one|two|three|four|five|six|eight|nine|ten|[0-9][0-9.,/]*)";
    let plural = r"(?:two|three|four|five|six|eight|nine|ten|[0-9][0-9.,/]*)";
    let mut tics = vec![
        tic(r"\bwhere\b", "if, when", |before, phrase, after| {
            let cell = before.trim_end().ends_with('|') && after.trim_start().starts_with('|');
            let to = next_word(after) == Some("to");
            // "Where it lies", as a noun.
            let sentence = after.split(['.', ';', ':']).next().unwrap_or_default();
            let clause = sentence
                .split_once(',')
                .map(|(_, clause)| clause.trim_start());
            let noun = phrase.starts_with('W')
                && clause
                    .is_none_or(|clause| ["and", "or"].contains(&next_word(clause).unwrap_or("")));
            cell || to || noun || WHERE_AFTER.contains(&last_word(before).as_str())
        }),
        // "a row a lane", "one atomic a survivor".
        tic(
            &format!(r"\b{number} [a-z%]+ an? (?:{UNITS})\b"),
            per,
            counts_nothing,
        ),
        // "one a line".
        tic(
            &format!(r"\b(?:one|two|three|four|eight) an? (?:{UNITS}|line)\b"),
            per,
            never,
        ),
        // "16 shared bytes an instance".
        tic(
            &format!(r"\b{plural} [a-z-]+ [a-z]+s an? (?:{UNITS})\b"),
            per,
            counts_nothing,
        ),
        tic(
            &format!(r"\b(?:an?|one) [a-z-]+ [a-rt-z]+ an? (?:{UNITS})\b"),
            per,
            |before, phrase, after| {
                let noun = phrase.rsplit(' ').nth(2).unwrap_or_default();
                !matches!(
                    noun,
                    "sum"
                        | "word"
                        | "bit"
                        | "row"
                        | "draw"
                        | "thread"
                        | "atomic"
                        | "command"
                        | "block"
                        | "load"
                        | "store"
                        | "id"
                        | "uniform"
                ) || counts_nothing(before, phrase, after)
            },
        ),
        // "bytes an instance".
        tic(
            &format!(r"\b(?:{COUNTED}) an? (?:{UNITS})\b"),
            per,
            |_, _, after| is_subject(after),
        ),
        tic(r"\bso many\b", "name the constant or the number", never),
        tic(
            r"\bas (?:many|much|large|long|far) as there (?:are|is)\b",
            "name the number",
            never,
        ),
        tic(
            r"\bof (?:its|their|your|one's|our|his|her) own\b|\bof (?:ours|yours|theirs|mine|one's)\b",
            "own, custom, private, separate",
            never,
        ),
        tic(
            r"\bside by side\b",
            "concurrently, contiguous, beside",
            never,
        ),
        tic(
            r"\b(?:that|those) of\b",
            "same as, or repeat the noun",
            |before, phrase, _| {
                let word = last_word(before);
                phrase.to_lowercase().starts_with("that")
                    && ["so", "such", "say", "says", "means", "sure"].contains(&word.as_str())
            },
        ),
        tic(
            r"\b(?:find|finds|found|finding) (?:no |any |its |their )?room\b",
            "fits, does not fit, overflows",
            never,
        ),
        tic(r"\banew\b", "again", never),
        tic(r"\bbut for\b", "except", never),
        tic(
            r"\bin whole(?:[.,;:)]|$| and\b| or\b)",
            "whole, entirely",
            never,
        ),
        tic(r"\b(?:has|have|had) come\b", "arrived, appeared", never),
        tic(r"\bwhom?\b", "which, that", |before, _, _| {
            before.matches('"').count() % 2 == 1 || WHO_AFTER.contains(&last_word(before).as_str())
        }),
        tic(
            r"\b(?:is|are|was|were|be) of (?:no |any |some |little )?use\b",
            "helps, is useful, is useless",
            never,
        ),
        tic(
            r"\bculled\b",
            "tested, kept, rejected",
            |before, _, after| {
                last_word(before) == "not"
                    || after.trim_start().starts_with("away")
                    || after.trim_start().starts_with("on the GPU")
            },
        ),
        tic(
            r"\bseeds\b",
            "cite the articles by author and year",
            |before, _, _| last_word(before) == "random",
        ),
        tic(
            r"\barticles? [0-9]\b|\bthe articles?'s? (?:first|second|third|last)\b",
            "cite the article by author and year",
            never,
        ),
    ];
    tics.extend(BRITISH.map(|(phrase, idiom)| tic(phrase, idiom, never)));
    tics
}

/// British spellings, and the American ones.
const BRITISH: [(&str, &str); 26] = [
    (r"\bcent(?:re|res|red|ring)\b", "center"),
    (r"\b(?:dis)?colour\w*", "color"),
    (r"\bbehaviour\w*", "behavior"),
    (r"\bneighbour\w*", "neighbor"),
    (r"\bfavour\w*", "favor"),
    (r"\bhonour\w*", "honor"),
    (r"\b(?:lab|flav|harb|vap|rig|hum)our\w*", "-or"),
    (r"\bgrey\w*", "gray"),
    (r"\b(?:kilo|centi|milli)?metres?\b", "meter"),
    (r"\b(?:lit|fib|theat|spect)res?\b", "-er"),
    (r"\bcatalogue\w*", "catalog"),
    (r"\banalys(?:e|ed|ing)\b", "analyze"),
    (r"\blicenc(?:e|es|ed|ing)\b", "license"),
    (r"\b(?:defence|offence|pretence)s?\b", "-ense"),
    (r"\bpractis(?:e|es|ed|ing)\b", "practice"),
    (r"\bjudgements?\b", "judgment"),
    (r"\bartefacts?\b", "artifact"),
    (r"\bfulfil(?:s|ment)?\b", "fulfill"),
    (r"\b(?:whilst|amongst)\b", "while, among"),
    (r"\bprogrammes?\b", "program"),
    (
        r"\b\w*(?:label|cancel|travel|model|signal|channel|total|equal|dial|level)(?:led|ling)\b",
        "one l",
    ),
    (
        r"\b\w*(?:optim|normal|serial|initial|organ|recogn|minim|maxim|visual|special|general)is(?:e|es|ed|er|ers|ing|able|ation|ations)\b",
        "-ize, -ization",
    ),
    (
        r"\b\w*(?:synchron|util|summar|parallel|quant|categor|prioritis|custom|stabil|random|raster)is(?:e|es|ed|er|ers|ing|able|ation|ations)\b",
        "-ize, -ization",
    ),
    (
        r"\b(?:un)?(?:real|material|final|local|global|vector|linear|token|capital|popular|formal|apolog|emphas)is(?:e|es|ed|er|ers|ing|able|ation|ations)\b",
        "-ize, -ization",
    ),
    (r"\bmemois(?:e|es|ed|ing|ation|ations)\b", "memoize"),
    (r"\bsceptic\w*", "skeptic"),
];

/// Whether no number of things precedes: "in a pass a block ...", "a block takes a word".
fn counts_nothing(_before: &str, phrase: &str, after: &str) -> bool {
    let words: Vec<&str> = phrase.split(' ').collect();
    let noun = words[words.len() - 3].to_lowercase();
    if NOT_COUNTED.contains(&noun.as_str()) || is_subject(after) {
        return true;
    }
    let one = matches!(words[0].to_lowercase().as_str(), "a" | "an" | "one" | "1");
    // One of them, and its verb; several, and theirs.
    let plural = noun.ends_with('s') && !noun.ends_with("ss");
    let unit = ["b", "kib", "mib", "gib", "ms", "us", "ns", "%"].contains(&noun.as_str());
    !unit && words.len() > 4 && one == plural
}

/// Whether a verb follows: "how many survivors a row has".
fn is_subject(after: &str) -> bool {
    let verbs = [
        "has", "is", "holds", "takes", "keeps", "reads", "needs", "writes",
    ];
    next_word(after).is_some_and(|word| verbs.contains(&word))
}

/// The last word of a text, in lower case, without marks.
fn last_word(text: &str) -> String {
    let word = text.trim_end().rsplit(' ').next().unwrap_or_default();
    word.trim_matches(|c: char| !c.is_alphanumeric())
        .to_lowercase()
}

fn next_word(text: &str) -> Option<&str> {
    text.split_whitespace().next()
}

/// The phrases in a paragraph, in their order, each with its idiom. No phrase is reported twice.
pub fn found(tics: &[Tic], text: &str) -> Vec<(Range<usize>, &'static str)> {
    let mut found: Vec<(Range<usize>, &'static str)> = Vec::new();
    for tic in tics {
        for phrase in tic.phrase.find_iter(text) {
            let (before, after) = (&text[..phrase.start()], &text[phrase.end()..]);
            let seen =
                |range: &Range<usize>| range.start < phrase.end() && phrase.start() < range.end;
            if !(tic.fine)(before, phrase.as_str(), after)
                && !found.iter().any(|(range, _)| seen(range))
            {
                found.push((phrase.range(), tic.idiom));
            }
        }
    }
    found.sort_by_key(|(range, _)| range.start);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each phrase a sentence that has it, and one like it that may stay.
    const SENTENCES: &[(&str, &str)] = &[
        (
            "Where none is found, it ends.",
            "Where the picture goes, and when.",
        ),
        (
            "It is kept where a view sees it.",
            "This says where it lies.",
        ),
        (
            "Adapters, where subgroups are missing.",
            "It knows where to write.",
        ),
        ("It prints one a line.", "It prints one as a line."),
        ("Reads a row a lane.", "A row is a lane's work."),
        ("It adds a sum a subgroup.", "It adds a sum per subgroup."),
        (
            "They take 16 bytes an instance.",
            "They take 16 bytes per instance.",
        ),
        ("It is 176 B a survivor and view.", "A block takes a word."),
        (
            "It writes one atomic a survivor.",
            "One workgroup takes a block.",
        ),
        (
            "It has two storage buffers a stage.",
            "Two threads share a block.",
        ),
        (
            "It reads bytes an instance.",
            "How many bytes a row has now.",
        ),
        ("One indirect draw a view.", "It is a pass behind a pass."),
        ("After so many frames they go.", "After 120 frames they go."),
        ("As many as there are.", "As many as the set has."),
        ("It has a buffer of its own.", "It has its own buffer."),
        ("A pass of yours runs.", "Your pass runs."),
        ("They lie side by side.", "They are contiguous."),
        (
            "The test is that of Bevy.",
            "So that of nine sets one is left.",
        ),
        (
            "Those of the last frame stay.",
            "The ids of the last frame stay.",
        ),
        ("It finds no room.", "It does not fit."),
        ("It begins anew.", "It is new."),
        ("All but for one.", "All except one."),
        ("Drawn in whole.", "Drawn in whole blocks."),
        ("What has come is drawn.", "What arrived is drawn."),
        ("Sets who wait.", "Users who wait say \"who is it\"."),
        ("It is of no use there.", "The use of it is known."),
        ("The first n are culled.", "It is not culled."),
        ("Of the seeds it is the last.", "It takes random seeds."),
        ("See article 3.", "See the article."),
        (
            "The colour at the centre is grey.",
            "The color at the center is gray.",
        ),
        (
            "It is normalised and labelled.",
            "It is normalized, and wise.",
        ),
    ];

    #[test]
    fn each_phrase_is_found_and_its_idiom_is_not() {
        let tics = all();
        for &(caught, fine) in SENTENCES {
            assert!(!found(&tics, caught).is_empty(), "not found: {caught}");
            let wrong = found(&tics, fine);
            assert!(wrong.is_empty(), "{fine}: {wrong:?}");
        }
    }

    #[test]
    fn every_phrase_has_a_sentence() {
        for tic in all() {
            let is_spelling = BRITISH.iter().any(|(_, idiom)| *idiom == tic.idiom);
            let seen = SENTENCES.iter().any(|(text, _)| tic.phrase.is_match(text));
            assert!(seen || is_spelling, "no sentence for {}", tic.phrase);
        }
    }
}
