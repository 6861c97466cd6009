//! A server for pages on this machine: it hands out files, and takes the pages' answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// A connection that says nothing for so long is closed. Browsers open some in advance.
const SILENCE: Duration = Duration::from_secs(10);

/// Most bytes of an answer.
const MAX_BYTES: usize = 1 << 24;

/// What browsers ask for by themselves.
const ICON: &str = "/favicon.ico";

/// The kinds of files, by the ends of their names. Others are bytes.
const KINDS: [(&str, &str); 6] = [
    ("/", "text/html"),
    (".css", "text/css"),
    (".html", "text/html"),
    (".js", "text/javascript"),
    (".json", "application/json"),
    (".png", "image/png"),
];

/// A server that ends with the program.
pub struct Served {
    /// The address of the first page.
    pub address: String,
    /// What pages send to `/answers`.
    pub answers: Receiver<Vec<u8>>,
    /// Paths that pages asked for in vain.
    pub missing: Receiver<String>,
}

/// Returns the file at a path, which has no query.
type Files = dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync;

/// What answers a connection.
struct Site {
    file: Box<Files>,
    answers: Sender<Vec<u8>>,
    missing: Sender<String>,
}

/// Serves the files that a function returns for paths, on a port of this machine; 0 is a free one.
pub fn serve(
    port: u16,
    file: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static,
) -> Result<Served> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .with_context(|| format!("port {port} is not free"))?;
    let address = format!("http://localhost:{}/", listener.local_addr()?.port());
    let (answers, receiver) = channel();
    let (missing, missed) = channel();
    let site = Arc::new(Site {
        file: Box::new(file),
        answers,
        missing,
    });
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let site = Arc::clone(&site);
            // What is wrong with one connection is no reason to refuse others.
            thread::spawn(move || site.answer(&stream));
        }
    });
    Ok(Served {
        address,
        answers: receiver,
        missing: missed,
    })
}

impl Site {
    /// Answers one request.
    fn answer(&self, mut stream: &TcpStream) -> Result<()> {
        stream.set_read_timeout(Some(SILENCE))?;
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while reader.read_line(&mut head)? > 2 {}
        let length = head.lines().find_map(content_length).unwrap_or(0);
        ensure!(length <= MAX_BYTES, "{length} bytes");
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let mut words = head.split(' ');
        let method = words.next().unwrap_or_default();
        let path = words.next().unwrap_or_default();
        let path = path.split('?').next().unwrap_or_default();
        let found = match (method, path) {
            ("POST", "/answers") => {
                self.answers.send(body)?;
                Some(Vec::new())
            }
            ("GET", _) => (self.file)(path),
            _ => None,
        };
        let status = match found {
            Some(_) => "200 OK",
            None => "404 Not Found",
        };
        // A connection in advance asks for nothing.
        if found.is_none() && path != ICON && method == "GET" {
            // Nobody may want to know.
            let _ = self.missing.send(path.to_owned());
        }
        let found = found.unwrap_or_default();
        let kind = KINDS.iter().find(|(end, _)| path.ends_with(end));
        let kind = kind.map_or("application/octet-stream", |(_, kind)| kind);
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
             Cache-Control: no-cache\r\nConnection: close\r\n\r\n",
            found.len()
        )?;
        stream.write_all(&found)?;
        Ok(())
    }
}

/// The length that a line of a request's head gives.
fn content_length(line: &str) -> Option<usize> {
    let (name, value) = line.split_once(':')?;
    let is_length = name.eq_ignore_ascii_case("content-length");
    is_length.then(|| value.trim().parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(address: &str, text: &str) -> Result<String> {
        let host = address.trim_start_matches("http://").trim_end_matches('/');
        let mut stream = TcpStream::connect(host)?;
        stream.write_all(text.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn served() -> Result<Served> {
        let site = |path: &str| {
            let text = match path {
                "/" => "the page",
                "/a.json" => "[1, 2]",
                _ => return None,
            };
            Some(text.as_bytes().to_vec())
        };
        serve(0, site)
    }

    #[test]
    fn the_page_gets_its_files_and_its_answers_arrive() -> Result<()> {
        let served = served()?;
        let address = &served.address;
        let page = request(address, "GET /?a=b HTTP/1.1\r\n\r\n")?;
        assert!(page.contains("text/html") && page.ends_with("\r\n\r\nthe page"));
        let list = request(address, "GET /a.json HTTP/1.1\r\nHost: x\r\n\r\n")?;
        assert!(list.contains("application/json") && list.ends_with("\r\n\r\n[1, 2]"));
        let post = "POST /answers HTTP/1.1\r\ncontent-length: 5\r\n\r\nhello";
        assert!(request(address, post)?.starts_with("HTTP/1.1 200"));
        assert_eq!(served.answers.recv()?, b"hello");
        Ok(())
    }

    #[test]
    fn what_is_missing_is_told_except_the_icon() -> Result<()> {
        let served = served()?;
        for path in ["/favicon.ico", "/b.png"] {
            let answer = request(&served.address, &format!("GET {path} HTTP/1.1\r\n\r\n"))?;
            assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        }
        assert_eq!(served.missing.try_iter().collect::<Vec<_>>(), ["/b.png"]);
        Ok(())
    }
}
