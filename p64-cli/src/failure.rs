//! How a command fails: one line on stderr, an object on stdout under `--json`, an exit code.

use crate::output::Ui;
use p64_std::gguf::Problem;
use p64_std::sniff::Kind;
use serde_json::{Value, json};
use std::io;
use std::path::PathBuf;

/// Result of a command.
pub type Result<T> = std::result::Result<T, Failure>;

/// Why a command ended early.
#[derive(Debug)]
pub enum Failure {
    /// The library's answer.
    Std(p64_std::Error),
    /// A request that cannot be met as it stands.
    Usage(String),
    /// An input that cannot be used, with what to do about it.
    Input { path: PathBuf, reason: String },
    /// Writing to stdout.
    Output(io::Error),
}

impl From<p64_std::Error> for Failure {
    fn from(error: p64_std::Error) -> Self {
        Self::Std(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl Failure {
    /// The exit code. A reader that has gone away (`p64 inspect x | head`) is no failure.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Std(error) => error.exit_code(),
            Self::Input { .. } => 1,
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Usage(_) | Self::Output(_) => 2,
        }
    }

    /// The sentence after `error: `: where, what, and the next step.
    pub fn message(&self) -> String {
        match self {
            Self::Std(error) => format!("{error}{}", next_step(error)),
            Self::Usage(reason) => reason.clone(),
            Self::Input { path, reason } => format!("{}: {reason}", path.display()),
            Self::Output(error) => format!("cannot write to stdout: {error}"),
        }
    }

    /// The same as an object.
    pub fn object(&self) -> Value {
        let mut object = json!({ "message": self.message(), "exit_code": self.exit_code() });
        let details = match self {
            Self::Std(error) => details(error),
            Self::Usage(_) => json!({ "kind": "usage" }),
            Self::Input { path, .. } => json!({ "kind": "input", "path": path.display().to_string() }),
            Self::Output(_) => json!({ "kind": "io" }),
        };
        if let (Some(object), Value::Object(details)) = (object.as_object_mut(), details) {
            object.extend(details);
        }
        object
    }

    /// Tells the user, and says how the process ends.
    pub fn report(&self, ui: &Ui) -> u8 {
        let code = self.exit_code();
        if code != 0 {
            self.report_object(ui);
            ui.error(&self.message());
        }
        code
    }

    /// The object alone, under `--json`.
    pub fn report_object(&self, ui: &Ui) {
        if ui.json() {
            // Without a stdout there is still the line on stderr and the exit code.
            let _ = ui.object(&json!({ "error": self.object() }));
        }
    }
}

/// What to do about errors whose own sentence does not say it.
fn next_step(error: &p64_std::Error) -> &'static str {
    use p64_std::Error;
    match error {
        Error::NotAFile { what: "a folder", .. } => "; name a .p64, .gguf or .safetensors file in it",
        Error::NotAFile { .. } => "; copy it to a file first",
        Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => "; check the path",
        Error::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => "; check the permissions",
        Error::Core { path, .. } if p64_std::edit::journal_path(path).exists() => {
            "; an edit of the file was interrupted: complete it with p64 edit --recover"
        }
        Error::Io { source, .. } if source.kind() == io::ErrorKind::ResourceBusy => "; try again when it is done",
        Error::Core { source, .. } if source.kind() == p64_core::Kind::Malformed => {
            "; the file is damaged: convert or fetch it again"
        }
        Error::Gguf { source, .. } => match source.problem {
            // These say it themselves.
            Problem::Short { .. }
            | Problem::DataShort { .. }
            | Problem::BigEndian
            | Problem::RemovedType { .. }
            | Problem::SplitName { .. }
            | Problem::SplitNotFirst { .. } => "",
            // The rule of lengths that do not fit what is left.
            _ if source.rule() == "G4" => "; the file is cut short or damaged: fetch it again",
            _ => "; the file is damaged or was made by a faulty program: fetch or make it again",
        },
        Error::WrongFormat { found: Kind::Safetensors | Kind::SafetensorsIndex, .. } => {
            "; make one of it first: `p64 convert`"
        }
        Error::SameFile { .. } => "; give another name to the output",
        _ => "",
    }
}

fn details(error: &p64_std::Error) -> Value {
    use p64_std::Error;
    match error {
        Error::Core { path, source } => json!({
            "kind": kind(source.kind()),
            "path": path.display().to_string(),
            "code": source.code.slug(),
            "number": source.code.number(),
            "place": source.place.to_string(),
            "offset": Some(source.offset).filter(|&offset| offset != p64_core::Error::NO_OFFSET),
            "expected": source.expected,
            "found": source.found,
            "clause": source.code.clause(),
        }),
        Error::Gguf { path, source } => json!({
            "kind": "malformed",
            "path": path.display().to_string(),
            "rule": source.rule(),
            "place": source.place.to_string(),
            "offset": source.offset,
        }),
        Error::Safetensors { path, source } => json!({
            "kind": "malformed",
            "path": path.display().to_string(),
            "rule": source.rule(),
            "place": source.place.to_string(),
        }),
        Error::Io { path, source, .. } => json!({
            "kind": "io",
            "path": path.display().to_string(),
            "os_error": source.raw_os_error(),
        }),
        Error::NotAModel { path, .. }
        | Error::WrongFormat { path, .. }
        | Error::TooLarge { path, .. }
        | Error::Refused { path, .. } => json!({ "kind": "input", "path": path.display().to_string() }),
        Error::Remote { url, .. } => json!({ "kind": "remote", "url": url }),
        Error::NotAFile { path, .. } | Error::SameFile { path } | Error::SourceChanged { path } => {
            json!({ "kind": "io", "path": path.display().to_string() })
        }
        _ => json!({ "kind": "usage" }),
    }
}

fn kind(kind: p64_core::Kind) -> &'static str {
    match kind {
        p64_core::Kind::Malformed => "malformed",
        p64_core::Kind::Limit => "limit",
        p64_core::Kind::Unsupported => "unsupported",
        p64_core::Kind::Environment => "io",
        _ => "usage",
    }
}
