//! The text that people read in a file: comments, the documents' paragraphs, messages.

/// Lines of comments and documents are at most this wide.
const WIDTH: usize = 100;

/// A string literal of at least this many words in a row is a message.
const WORDS_OF_A_MESSAGE: usize = 3;

/// How a file is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Rust,
    Wgsl,
    Toml,
    Markdown,
}

impl Kind {
    /// By the file's extension. `None` if the file is not read.
    pub fn of(file: &str) -> Option<Self> {
        match file.rsplit_once('.')?.1 {
            "rs" => Some(Self::Rust),
            "wgsl" | "wesl" => Some(Self::Wgsl),
            "toml" => Some(Self::Toml),
            "md" => Some(Self::Markdown),
            _ => None,
        }
    }
}

/// Text that belongs together, its lines joined by one space.
pub struct Paragraph {
    /// Without code blocks, code spans and the targets of links.
    pub text: String,
    /// The start of each line in `text`, and its number in the file, from 1.
    lines: Vec<(usize, usize)>,
}

impl Paragraph {
    /// The number of the line in the file that this byte of `text` is from.
    pub fn line_of(&self, offset: usize) -> usize {
        let behind = self.lines.partition_point(|&(start, _)| start <= offset);
        self.lines[behind.max(1) - 1].1
    }
}

/// Collects lines into paragraphs.
#[derive(Default)]
struct Paragraphs {
    done: Vec<Paragraph>,
    open: Vec<(usize, String)>,
    /// In a fenced block of code.
    code: bool,
}

impl Paragraphs {
    fn end(&mut self) {
        let mut joined = Paragraph {
            text: String::new(),
            lines: Vec::new(),
        };
        // Code spans may go over a line's end, so they are blanked out in the joined text.
        for (number, line) in self.open.drain(..) {
            if !joined.text.is_empty() {
                joined.text.push(' ');
            }
            joined.lines.push((joined.text.len(), number));
            joined.text.push_str(line.trim());
        }
        if !joined.text.is_empty() {
            joined.text = without_code(&joined.text);
            self.done.push(joined);
        }
    }

    /// One line of Markdown, as documents and comments have it.
    fn line(&mut self, number: usize, line: &str) {
        let text = line.trim();
        if text.starts_with("```") || text.starts_with("~~~") {
            self.end();
            self.code = !self.code;
            return;
        }
        if self.code {
            return;
        }
        let begins = ["* ", "- ", "+ ", "#", "|", ">"];
        let begins = text.is_empty() || begins.iter().any(|mark| text.starts_with(mark));
        if begins {
            self.end();
        }
        self.open.push((number, text.into()));
        if text.starts_with('#') || text.starts_with('|') {
            self.end();
        }
    }

    /// What is no comment lies between: the paragraph ends, and a block of code with it.
    fn gap(&mut self) {
        self.end();
        self.code = false;
    }
}

/// All text of a file, in its order.
pub fn paragraphs(kind: Kind, source: &str) -> Vec<Paragraph> {
    let mut paragraphs = Paragraphs::default();
    if kind == Kind::Markdown {
        for (index, line) in source.lines().enumerate() {
            paragraphs.line(index + 1, line);
        }
        paragraphs.end();
        return paragraphs.done;
    }
    let mut messages = Vec::new();
    let mut last = 0;
    for piece in pieces(kind, source) {
        match piece {
            Piece::Comment { line, text, alone } => {
                if line != last + 1 || !alone {
                    paragraphs.gap();
                }
                last = line;
                paragraphs.line(line, text);
                if !alone {
                    last = 0;
                }
            }
            Piece::Message { line, text } => {
                let words = text.split_whitespace();
                let is_word = |word: &str| {
                    let word = word.trim_end_matches([',', '.', ':', ';', '?', '!', ')']);
                    let word = word.trim_start_matches('(');
                    !word.is_empty() && word.chars().all(|c| c.is_alphabetic() || c == '\'')
                };
                let count = words.filter(|&word| is_word(word)).count();
                if count >= WORDS_OF_A_MESSAGE && !is_code(&text) {
                    messages.push(Paragraph {
                        text: without_code(&text),
                        lines: vec![(0, line)],
                    });
                }
            }
        }
    }
    paragraphs.end();
    paragraphs.done.extend(messages);
    paragraphs
        .done
        .sort_by_key(|paragraph| paragraph.lines[0].1);
    paragraphs.done
}

/// The comments and documents that are wider than [`WIDTH`]: number and width. Tables, links and
/// code may be.
pub fn wide_lines(kind: Kind, source: &str) -> Vec<(usize, usize)> {
    let comments: Vec<usize> = pieces(kind, source)
        .into_iter()
        .filter_map(|piece| match piece {
            Piece::Comment { line, .. } => Some(line),
            Piece::Message { .. } => None,
        })
        .collect();
    let mut code = false;
    let mut wide = Vec::new();
    for (index, line) in source.lines().enumerate() {
        let text = line.trim_start().trim_start_matches(['/', '!', '#', ' ']);
        if text.starts_with("```") {
            code = !code;
        }
        let read = kind == Kind::Markdown || comments.binary_search(&(index + 1)).is_ok();
        let link = line.contains("](") || line.contains("://") || text.starts_with('[');
        let width = line.chars().count();
        if width > WIDTH && read && !code && !link && !text.starts_with('|') {
            wide.push((index + 1, width));
        }
    }
    wide
}

/// Code in a string: shaders in tests, command lines, formats.
fn is_code(text: &str) -> bool {
    let marks = [
        "fn ",
        "let ",
        "var<",
        "var ",
        "@group",
        "@compute",
        "@location",
        "struct ",
        "#import",
        "use ",
        ";\n",
        "<svg",
        "\": ",
    ];
    marks.iter().any(|mark| text.contains(mark))
}

/// Blanks out code spans and the targets of links, so that offsets stay.
fn without_code(text: &str) -> String {
    let blank = |part: &str| "\u{7f}".repeat(part.len());
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('`') {
        let ticks = rest[start..]
            .bytes()
            .take_while(|&byte| byte == b'`')
            .count();
        let mark = &rest[start..start + ticks];
        let inside = start + ticks;
        let Some(length) = rest[inside..].find(mark) else {
            break;
        };
        let end = inside + length + ticks;
        result.push_str(&rest[..start]);
        result.push_str(&blank(&rest[start..end]));
        rest = &rest[end..];
    }
    result.push_str(rest);
    let mut from = 0;
    while let Some(start) = result[from..].find("](") {
        let start = from + start + 1;
        let Some(length) = result[start..].find(')') else {
            break;
        };
        let end = start + length + 1;
        result.replace_range(start..end, &"\u{7f}".repeat(end - start));
        from = end;
    }
    result
}

/// A piece of a source file that may be prose.
enum Piece<'a> {
    /// One line of a comment without its mark, and whether no code stands before it.
    Comment {
        line: usize,
        text: &'a str,
        alone: bool,
    },
    /// A string literal with its escapes resolved as far as words need it.
    Message { line: usize, text: String },
}

/// Comments and string literals, in their order.
fn pieces(kind: Kind, source: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let bytes = source.as_bytes();
    let (mut at, mut line, mut line_start) = (0, 1, 0);
    while at < bytes.len() {
        let rest = &source[at..];
        let alone = source[line_start..at].trim().is_empty();
        let mark = if kind == Kind::Toml { "#" } else { "//" };
        if kind != Kind::Markdown && rest.starts_with(mark) {
            let end = rest.find('\n').unwrap_or(rest.len());
            let text = rest[..end].trim_start_matches(&mark[..1]);
            let text = text.strip_prefix('!').unwrap_or(text);
            pieces.push(Piece::Comment { line, text, alone });
            at += end;
        } else if matches!(kind, Kind::Rust | Kind::Wgsl) && rest.starts_with("/*") {
            let end = rest.find("*/").map_or(rest.len(), |end| end + 2);
            for text in rest[..end].lines() {
                let text = text.trim_matches(['/', '*', ' ']);
                pieces.push(Piece::Comment { line, text, alone });
                line += 1;
            }
            line -= 1;
            at += end;
        } else if kind == Kind::Rust && literal(rest).is_some() {
            let (length, text) = literal(rest).unwrap_or_default();
            if let Some(text) = text {
                pieces.push(Piece::Message { line, text });
            }
            line += rest[..length].matches('\n').count();
            at += length;
        } else if kind == Kind::Toml && (bytes[at] == b'"' || bytes[at] == b'\'') {
            let end = rest[1..].find([char::from(bytes[at]), '\n']);
            at += end.map_or(rest.len(), |end| end + 2);
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
            if bytes[at - 1] == b'\n' {
                line += 1;
                line_start = at;
            }
        }
    }
    pieces
}

/// The literal or identifier that `rest` begins with: its length, and its text if it is a string.
fn literal(rest: &str) -> Option<(usize, Option<String>)> {
    let bytes = rest.as_bytes();
    match bytes[0] {
        b'"' => {
            let mut text = String::new();
            let mut at = 1;
            while at < bytes.len() && bytes[at] != b'"' {
                if bytes[at] == b'\\' {
                    match bytes.get(at + 1) {
                        Some(b'\n') => {
                            let next = rest[at + 1..].find(|c: char| !c.is_whitespace());
                            at += 1 + next.unwrap_or(0);
                            continue;
                        }
                        Some(b'n' | b't') => text.push(' '),
                        Some(b'"') => text.push('"'),
                        _ => {}
                    }
                    at += 2;
                } else {
                    let next = rest[at..].chars().next()?;
                    text.push(next);
                    at += next.len_utf8();
                }
            }
            Some((bytes.len().min(at + 1), Some(text)))
        }
        // A character or a lifetime.
        b'\'' => {
            if bytes.get(1) == Some(&b'\\') {
                return Some((rest[3..].find('\'').map_or(2, |end| end + 4), None));
            }
            let next = rest[1..].chars().next()?;
            let end = 1 + next.len_utf8();
            Some((
                if bytes.get(end) == Some(&b'\'') {
                    end + 1
                } else {
                    1
                },
                None,
            ))
        }
        b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => {
            let word = |c: char| c == '_' || c.is_alphanumeric();
            let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
            if !matches!(&rest[..end], "r" | "br" | "cr") {
                return Some((end, None));
            }
            let hashes = rest[end..].bytes().take_while(|&byte| byte == b'#').count();
            if bytes.get(end + hashes) != Some(&b'"') {
                return Some((end, None));
            }
            let start = end + hashes + 1;
            let close = format!("\"{}", "#".repeat(hashes));
            let length = rest[start..].find(&close)?;
            let text = rest[start..start + length].to_string();
            Some((start + length + close.len(), Some(text)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(kind: Kind, source: &str) -> Vec<String> {
        let paragraphs = paragraphs(kind, source);
        let blank = |text: &String| text.replace('\u{7f}', "");
        paragraphs
            .iter()
            .map(|paragraph| blank(&paragraph.text))
            .collect()
    }

    #[test]
    fn comments_are_joined_and_code_is_left_out() {
        let source = "//! One\n//! two `a where b`.\n//!\n//! ```text\n//! no\n//! ```\n\n\
            fn f<'a>(c: char) -> bool where { c == '\"' } // three\n/* four\n * five */\n";
        assert_eq!(
            texts(Kind::Rust, source),
            ["One two .", "three", "four five"]
        );
    }

    #[test]
    fn messages_are_strings_of_several_words() {
        let source = "f(\"a b\", \"not {x} so \\\n    long\", r#\"raw \"it\" is fine\"#, \
            \"fn main where it\");";
        assert_eq!(
            texts(Kind::Rust, source),
            ["not {x} so long", "raw \"it\" is fine"]
        );
    }

    #[test]
    fn the_line_of_a_word_is_found() {
        let source = "# One\n\ntwo\nthree `x\ny` four\n";
        let paragraphs = paragraphs(Kind::Markdown, source);
        let text = &paragraphs[1].text;
        let line = |word| paragraphs[1].line_of(text.find(word).expect(word));
        assert_eq!([line("two"), line("three"), line("four")], [3, 4, 5]);
    }

    #[test]
    fn links_targets_and_blocks_of_code_are_no_prose() {
        let source = "See [it](where.md) now.\n\n```sh\nwhere\n```\n| a | where |\n";
        assert_eq!(
            texts(Kind::Markdown, source),
            ["See [it] now.", "| a | where |"]
        );
    }

    #[test]
    fn toml_has_comments_and_shaders_have_no_strings() {
        assert_eq!(texts(Kind::Toml, "a = \"x # y\" # z\n"), ["z"]);
        assert_eq!(texts(Kind::Wgsl, "let a = 1; // it's\n"), ["it's"]);
    }

    #[test]
    fn wide_lines_are_comments_and_documents() {
        let long = "x".repeat(101);
        let source = format!("// {long}\nfn {long}() {{}}\n/// [a](b) {long}\n/// | {long} |\n");
        assert_eq!(wide_lines(Kind::Rust, &source), [(1, 104)]);
        let source = format!("{long}\n| {long} |\n```\n{long}\n```\n");
        assert_eq!(wide_lines(Kind::Markdown, &source), [(1, 101)]);
    }
}
