//! `p64 tokenize`: text to token ids.

use crate::command::text::read_text;
use crate::failure::{Failure, Result};
use crate::input::Input;
use crate::output::Ui;
use crate::output::table::{Align, Table, one_line};
use p64_core::validate::Integrity;
use p64_std::map::MapOptions;
use p64_std::tokenizer::Tokenizer;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  p64 tokenize model.p64 \"Hello world\"
  p64 tokenize model.p64 --special \"<|im_start|>user\"
  p64 tokenize model.gguf --ids --file story.txt
  echo -n \"Hello\" | p64 tokenize model.p64 -

By default the text is tokenized as it stands: the names of special tokens are text, and
no BOS or EOS is added. `p64 run` adds them as the model asks (--add-special here).";

/// Turn text into token ids
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The model, .p64 or GGUF
    model: PathBuf,
    /// The text, or - for stdin
    #[arg(required_unless_present = "file", conflicts_with = "file", allow_hyphen_values = true)]
    text: Option<String>,
    /// Read the text from a file
    #[arg(short, long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Read the names of special tokens (<|im_start|>) as those tokens
    #[arg(long)]
    special: bool,
    /// Add BOS and EOS where the model asks for them
    #[arg(long)]
    add_special: bool,
    /// Print the ids alone, on one line
    #[arg(long)]
    ids: bool,
}

pub fn run(args: &Args, ui: &Ui) -> Result<u8> {
    let text = read_text(args.text.as_deref(), args.file.as_deref())?
        .ok_or_else(|| Failure::Usage("there is no text; give it as an argument or with --file".to_owned()))?;
    let options = MapOptions { integrity: Integrity::Lazy, ..MapOptions::default() };
    let tokenizer = Input::open(&args.model, &options)?.tokenizer()?;
    let ids = tokenizer.encode(&text, args.add_special, args.special);
    if ui.json() {
        let pieces: Vec<String> = ids.iter().map(|&id| piece(&tokenizer, id)).collect();
        ui.object(&json!({ "ids": ids, "pieces": pieces, "count": ids.len() }))?;
    } else if args.ids {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        ui.line(ids.join(" "))?;
    } else {
        let mut table = Table::new([("id", Align::Right), ("piece", Align::Left)]);
        for &id in &ids {
            table.row([id.to_string(), format!("\"{}\"", one_line(&piece(&tokenizer, id)))]);
        }
        ui.text(&table.render())?;
        ui.note(format_args!("{} tokens, {} bytes", ids.len(), text.len()));
    }
    Ok(0)
}

/// The text of a token; bytes that are no text alone are written as `<0xE2>`.
fn piece(tokenizer: &Tokenizer, id: u32) -> String {
    let bytes = tokenizer.token_bytes(id, true);
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| out.push_str(&format!("<0x{byte:02X}>")));
    }
    out
}
