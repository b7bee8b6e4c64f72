//! A web server of one file, which answers ranges, and does everything wrong that it is told to.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// What the server does wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Knows no ranges.
    Whole,
    Missing,
    Forbidden,
    /// Ends an answer early, though its length says otherwise.
    Cut,
    /// Answers with a shorter range than was asked for, as if it were that.
    Short,
    /// Sends far more than the range that it names.
    Long,
    /// Flips a bit of the byte at that offset.
    Flip(u64),
    /// From that request on, the file has another tag; asked for the old one, it says so.
    Changed(usize),
    /// The same without minding what it is asked for.
    ChangedSilently(usize),
    /// The first request of every range fails.
    Busy,
}

/// How the file's state is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    Strong,
    Weak,
    Date,
    Nothing,
}

struct State {
    file: Vec<u8>,
    fault: Fault,
    tag: Tag,
    ranges: Vec<Range<u64>>,
}

/// The server, which ends with the process.
#[derive(Clone)]
pub struct Server {
    state: Arc<Mutex<State>>,
    port: u16,
}

impl Server {
    pub fn new(file: Vec<u8>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let state = State { file, fault: Fault::None, tag: Tag::Strong, ranges: Vec::new() };
        let server = Self { state: Arc::new(Mutex::new(state)), port };
        let own = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = own.clone();
                // A client that goes away is no matter.
                std::thread::spawn(move || own.answer(stream).ok());
            }
        });
        server
    }

    pub fn with(self, fault: Fault, tag: Tag) -> Self {
        {
            let mut state = self.state.lock().expect("not poisoned");
            (state.fault, state.tag) = (fault, tag);
        }
        self
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The ranges that were asked for since the last call.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.state.lock().expect("not poisoned").ranges)
    }

    fn answer(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        let request = lines.next().unwrap_or(Ok(String::new()))?;
        let mut headers = Vec::new();
        for line in lines {
            let line = line?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let header = |name: &str| headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        let range = header("range").and_then(|range| {
            let (start, last) = range.strip_prefix("bytes=")?.split_once('-')?;
            Some(start.parse().ok()?..last.parse::<u64>().ok()? + 1)
        });
        let path = request.split(' ').nth(1).unwrap_or_default();
        let (head, body) = self.say(path, range, header("if-match"));
        let mut stream = stream;
        stream.write_all(format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n").as_bytes())?;
        stream.write_all(&body)?;
        stream.flush()
    }

    fn say(&self, path: &str, range: Option<Range<u64>>, asked: Option<&str>) -> (String, Vec<u8>) {
        let empty = |status: &str| (format!("{status}\r\nContent-Length: 0"), Vec::new());
        if path.starts_with("/moved") {
            return empty(&format!("302 Found\r\nLocation: {}", self.url("/model.p64")));
        }
        let mut state = self.state.lock().expect("not poisoned");
        let len = state.file.len() as u64;
        let first_time = range.as_ref().is_none_or(|range| !state.ranges.contains(range));
        state.ranges.extend(range.clone());
        let changed = match state.fault {
            Fault::Changed(from) | Fault::ChangedSilently(from) => state.ranges.len() > from,
            _ => false,
        };
        let version = if changed { 2 } else { 1 };
        let tag = match state.tag {
            Tag::Strong => Some(format!("\"v{version}\"")),
            Tag::Weak => Some(format!("W/\"v{version}\"")),
            Tag::Date | Tag::Nothing => None,
        };
        match &state.fault {
            Fault::Missing => return empty("404 Not Found"),
            Fault::Forbidden => {
                let body = b"you may not\nread this".to_vec();
                return (format!("403 Forbidden\r\nContent-Length: {}", body.len()), body);
            }
            Fault::Busy if first_time => return empty("503 Service Unavailable"),
            Fault::Changed(_) if asked.is_some() && asked != tag.as_deref() => return empty("412 Precondition Failed"),
            Fault::Whole => return (format!("200 OK\r\nContent-Length: {len}"), state.file.clone()),
            _ => {}
        }
        let Some(range) = range else { return empty("400 Bad Request") };
        let range = range.start..range.end.min(len);
        if range.start >= range.end {
            return empty("416 Range Not Satisfiable");
        }
        let at = |offset: u64| usize::try_from(offset).expect("small");
        let mut body = state.file[at(range.start)..at(range.end)].to_vec();
        if let Fault::Flip(offset) = state.fault
            && range.contains(&offset)
        {
            body[at(offset - range.start)] ^= 0x10;
        }
        let mut length = body.len();
        match state.fault {
            Fault::Cut => body.truncate(body.len() / 2),
            Fault::Long => {
                body.resize(body.len() + (1 << 20), 0);
                length = body.len();
            }
            Fault::Short => {
                body.truncate(body.len() / 2);
                length = body.len();
            }
            _ => {}
        }
        let mut head = format!(
            "206 Partial Content\r\nContent-Length: {length}\r\nContent-Range: bytes {}-{}/{len}",
            range.start,
            range.end - 1
        );
        if let Some(tag) = tag {
            head += &format!("\r\nETag: {tag}");
        }
        if state.tag == Tag::Date {
            head += &format!("\r\nLast-Modified: Wed, 21 Oct 2015 07:28:0{version} GMT");
        }
        (head, body)
    }
}
