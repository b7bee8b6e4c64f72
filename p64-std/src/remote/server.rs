//! Requests for ranges of one file, which must stay the same file.

use crate::error::{Error, Result};
use futures_util::TryStreamExt as _;
use object_store::http::{HttpBuilder, HttpStore};
use object_store::path::Path as Location;
use object_store::{ClientOptions, GetOptions, GetRange, ObjectMeta, ObjectStore, RetryConfig};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::Runtime;

/// How long a server may take to accept a connection, and to send the next bytes of an answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often a request is made again after answers that may be of the moment, and for how long.
const RETRIES: usize = 3;
const RETRY_FOR: Duration = Duration::from_secs(60);
/// Longest part of a server's own words in an error.
const MAX_WORDS: usize = 300;

/// What has gone over the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Requests, without those made again.
    pub requests: u64,
    /// Bytes of the file that came.
    pub bytes: u64,
}

/// A file on a server.
pub(super) struct Server {
    url: String,
    label: PathBuf,
    store: HttpStore,
    runtime: Runtime,
    len: u64,
    /// What tells one state of the file from another.
    tag: Option<String>,
    modified: i64,
    traffic: Traffic,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("label", &self.label).field("len", &self.len).finish_non_exhaustive()
    }
}

impl Server {
    /// Asks for the first bytes of the file, at most `first`, which also tells its length.
    pub fn open(url: &str, first: u64) -> Result<(Self, Vec<u8>)> {
        let label = label(url);
        let remote = |reason: String| Error::Remote { url: label.display().to_string(), reason };
        if !super::is_url(Path::new(url)) {
            return Err(remote("this is no address that begins with https:// or http://".to_owned()));
        }
        // Another part of the program may have chosen a provider; then that one serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = ClientOptions::new()
            .with_allow_http(true)
            .with_timeout_disabled()
            .with_connect_timeout(PATIENCE)
            .with_read_timeout(PATIENCE);
        let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_FOR, ..RetryConfig::default() };
        let store = HttpBuilder::new().with_url(url).with_client_options(client).with_retry(retry).build();
        let store = store.map_err(|error| remote(words(&error, url, &label)))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| remote(format!("no runtime for requests: {error}")))?;
        let traffic = Traffic::default();
        let url = url.to_owned();
        let mut server = Self { url, label, store, runtime, len: 0, tag: None, modified: 0, traffic };
        let (bytes, meta) = server.get(0..first, None)?;
        server.len = meta.size;
        server.modified = meta.last_modified.timestamp();
        server.tag = meta.e_tag;
        let expected = first.min(server.len);
        if bytes.len() as u64 != expected {
            return Err(server.short(bytes.len(), expected));
        }
        Ok((server, bytes))
    }

    pub fn label(&self) -> &Path {
        &self.label
    }

    /// Length of the file in bytes.
    pub const fn len(&self) -> u64 {
        self.len
    }

    pub const fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// The bytes of a range that lies in the file.
    pub fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        let wanted = range.end.saturating_sub(range.start);
        if wanted == 0 {
            return Ok(Vec::new());
        }
        // A weak tag promises too little to be asked for; it is compared all the same.
        let tag = self.tag.clone().filter(|tag| !tag.starts_with("W/"));
        let (bytes, meta) = self.get(range, tag)?;
        if (meta.size, meta.last_modified.timestamp(), &meta.e_tag) != (self.len, self.modified, &self.tag) {
            return Err(self.changed());
        }
        if bytes.len() as u64 != wanted {
            return Err(self.short(bytes.len(), wanted));
        }
        Ok(bytes)
    }

    fn get(&mut self, range: Range<u64>, tag: Option<String>) -> Result<(Vec<u8>, ObjectMeta)> {
        let range = Some(GetRange::Bounded(range));
        let options = GetOptions { range, if_match: tag, ..GetOptions::default() };
        self.traffic.requests = self.traffic.requests.saturating_add(1);
        let answer = self.runtime.block_on(async {
            let found = self.store.get_opts(&Location::default(), options).await?;
            let meta = found.meta.clone();
            let wanted = found.range.end.saturating_sub(found.range.start);
            let (mut stream, mut bytes) = (found.into_stream(), Vec::new());
            // A server may send more than it said it would: what is too long by then is refused by its length.
            while let Some(piece) = stream.try_next().await? {
                bytes.extend_from_slice(&piece);
                if bytes.len() as u64 > wanted {
                    break;
                }
            }
            Ok::<_, object_store::Error>((bytes, meta))
        });
        match answer {
            Ok((bytes, meta)) => {
                self.traffic.bytes = self.traffic.bytes.saturating_add(bytes.len() as u64);
                Ok((bytes, meta))
            }
            Err(error) => Err(self.explain(&error)),
        }
    }

    fn explain(&self, error: &object_store::Error) -> Error {
        let reason = match error {
            object_store::Error::Precondition { .. } => return self.changed(),
            object_store::Error::NotFound { .. } => "there is no such file on the server (404)".to_owned(),
            object_store::Error::NotSupported { .. } => {
                "the server does not answer requests for a part of a file; download the whole file and open that"
                    .to_owned()
            }
            other => words(other, &self.url, &self.label),
        };
        Error::Remote { url: self.label.display().to_string(), reason }
    }

    fn changed(&self) -> Error {
        Error::SourceChanged { path: self.label.clone() }
    }

    fn short(&self, found: usize, expected: u64) -> Error {
        let reason = format!("the server sent {found} of {expected} bytes; try again");
        Error::Remote { url: self.label.display().to_string(), reason }
    }
}

/// An address without what may be secret in it: signed ones carry their secret in the query.
pub(super) fn label(url: &str) -> PathBuf {
    let bare = url.split(['?', '#']).next().unwrap_or(url);
    let parts = bare.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?)));
    match parts {
        Some((scheme, (before, host))) if !before.contains('/') => PathBuf::from(format!("{scheme}://{host}")),
        _ => PathBuf::from(bare),
    }
}

/// An error and what led to it, on one line, without what may be secret.
fn words(error: &dyn std::error::Error, url: &str, label: &Path) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let own = source.to_string();
        // Most say their cause themselves.
        if !text.contains(&own) {
            text = format!("{text}: {own}");
        }
        next = source.source();
    }
    let text = text.replace(url, &label.display().to_string());
    let user = url.split_once("://").and_then(|(_, rest)| Some(rest.split_once('@')?.0));
    let text = user.map_or(text.clone(), |user| text.replace(&format!("{user}@"), ""));
    let query = url.split_once('?').map(|(_, query)| query).filter(|query| !query.is_empty());
    let text = query.map_or(text.clone(), |query| text.replace(query, "..."));
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_WORDS) {
        Some((at, _)) => format!("{}...", line.get(..at).unwrap_or_default()),
        None => line,
    }
}
