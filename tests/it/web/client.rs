//! A client of the API, as plain as they come.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use crate::patience::PATIENCE;

/// An answer: its status, its headers in lower case, and its body.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: String,
    pub(super) body: String,
}

impl Answer {
    /// The body, which must be JSON.
    #[track_caller]
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The kind of an error, which must have a message and no more.
    #[track_caller]
    pub(super) fn error(&self) -> String {
        let body = self.json();
        let error = body["error"].as_object().unwrap_or_else(|| panic!("{body}"));
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{body}");
        assert_eq!((body.as_object().unwrap().len(), error.len()), (1, 2), "{body}");
        error["kind"].as_str().unwrap().to_owned()
    }
}

/// Somebody who asks, with or without a token.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) at: SocketAddr,
    pub(super) token: Option<String>,
    pub(super) host: String,
}

impl Client {
    pub(super) fn new(at: SocketAddr) -> Self {
        Client { at, token: None, host: at.to_string() }
    }

    pub(super) fn with(&self, token: &str) -> Self {
        Client { token: Some(token.to_owned()), ..self.clone() }
    }

    /// Sends a request, and leaves the connection open for the answer.
    pub(super) fn send(&self, method: &str, path: &str, more: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let token = self.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n{}{more}\r\n{body}",
            self.host,
            body.len(),
            token.unwrap_or_default()
        );
        // Who is refused early may not read all of it.
        let _ = stream.write_all(request.as_bytes());
        stream
    }

    #[track_caller]
    pub(super) fn ask(&self, method: &str, path: &str, more: &str, body: &str) -> Answer {
        let mut reader = BufReader::new(self.send(method, path, more, body));
        let mut headers = String::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap() <= 2 {
                break;
            }
            headers += &line.to_ascii_lowercase();
        }
        let status = headers.split(' ').nth(1).and_then(|status| status.parse().ok());
        let mut body = String::new();
        let is_chunked = headers.contains("transfer-encoding: chunked");
        match is_chunked {
            false => _ = reader.read_to_string(&mut body),
            true => {
                while let Some(chunk) = chunk(&mut reader) {
                    body += &chunk;
                }
            }
        }
        Answer { status: status.unwrap_or_else(|| panic!("no answer: {headers}")), headers, body }
    }

    #[track_caller]
    pub(super) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", "")
    }

    #[track_caller]
    pub(super) fn send_json(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.ask(method, path, "Content-Type: application/json\r\n", &body.to_string())
    }
}

/// The next part of a body that comes in parts.
pub(super) fn chunk(reader: &mut impl BufRead) -> Option<String> {
    let mut size = String::new();
    reader.read_line(&mut size).ok()?;
    let size = usize::from_str_radix(size.trim(), 16).ok().filter(|size| *size > 0)?;
    let mut bytes = vec![0; size + 2];
    reader.read_exact(&mut bytes).ok()?;
    bytes.truncate(size);
    String::from_utf8(bytes).ok()
}
