//! The page's server: it hands out the page and the kernels, and takes the answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

const PAGE: &str = include_str!("page.html");

/// A connection that says nothing for so long is closed. Browsers open some in advance.
const SILENCE: Duration = Duration::from_secs(10);

/// Most bytes of the answers.
const MAX_BYTES: usize = 1 << 24;

/// Serves on a free port of this machine. Returns the page's address, and what the page will send.
/// The server ends with the program.
pub fn serve(kernels: String) -> Result<(String, Receiver<String>)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    let address = format!("http://localhost:{}/", listener.local_addr()?.port());
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (kernels, sender) = (kernels.clone(), sender.clone());
            // What is wrong with one connection is no reason to refuse others.
            thread::spawn(move || answer(&stream, &kernels, &sender));
        }
    });
    Ok((address, receiver))
}

/// Answers one request.
fn answer(mut stream: &TcpStream, kernels: &str, sender: &Sender<String>) -> Result<()> {
    stream.set_read_timeout(Some(SILENCE))?;
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head)? > 2 {}
    let length = head.lines().find_map(content_length).unwrap_or(0);
    ensure!(length <= MAX_BYTES, "{length} bytes");
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut words = head.split(' ');
    let (status, kind, text) = match (words.next(), words.next()) {
        (Some("GET"), Some("/")) => ("200 OK", "text/html", PAGE),
        (Some("GET"), Some("/kernels")) => ("200 OK", "application/json", kernels),
        (Some("POST"), Some("/answers")) => {
            sender.send(String::from_utf8(body)?)?;
            ("200 OK", "text/plain", "")
        }
        _ => ("404 Not Found", "text/plain", ""),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )?;
    Ok(())
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

    #[test]
    fn the_page_gets_the_kernels_and_its_answers_arrive() -> Result<()> {
        let (address, answers) = serve("[1, 2]".into())?;
        let page = request(&address, "GET / HTTP/1.1\r\n\r\n")?;
        assert!(page.contains("requestAdapter"), "{page}");
        let kernels = request(&address, "GET /kernels HTTP/1.1\r\nHost: x\r\n\r\n")?;
        assert!(kernels.ends_with("\r\n\r\n[1, 2]"), "{kernels}");
        let other = request(&address, "GET /favicon.ico HTTP/1.1\r\n\r\n")?;
        assert!(other.starts_with("HTTP/1.1 404"), "{other}");
        let post = "POST /answers HTTP/1.1\r\ncontent-length: 5\r\n\r\nhello";
        assert!(request(&address, post)?.starts_with("HTTP/1.1 200"));
        assert_eq!(answers.recv()?, "hello");
        Ok(())
    }
}
