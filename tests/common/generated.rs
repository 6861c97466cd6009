//! Parts of documents that tests generate.

use std::{fs, path::Path};

/// Panics unless a document has this between two texts; with `UPDATE_DOCS` set, writes it there. An
/// empty text is the document's begin or end. `test` is what cargo runs to update it.
pub fn assert_generated(document: &str, [begin, end]: [&str; 2], expected: &str, test: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let text = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{document}: {error}"))
        .replace("\r\n", "\n");
    let find = |part: &str, from: usize| {
        let at = text[from..].find(part);
        from + at.unwrap_or_else(|| panic!("{document} has no {part:?}"))
    };
    let from = find(begin, 0) + begin.len();
    let to = match end {
        "" => text.len(),
        end => find(end, from),
    };
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let (before, after) = (&text[..from], &text[to..]);
        fs::write(&path, format!("{before}{expected}{after}")).unwrap();
        return;
    }
    let (mut stored, mut wanted) = (text[from..to].lines(), expected.lines());
    loop {
        let (stored, wanted) = (stored.next(), wanted.next());
        assert!(
            stored == wanted,
            "{document} is out of date: UPDATE_DOCS=1 cargo test --test {test}\n\
             it has    {stored:?}\nbut needs {wanted:?}"
        );
        if stored.is_none() {
            return;
        }
    }
}
