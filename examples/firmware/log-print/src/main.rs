//! `log-print IMAGE <LOG`: prints the defmt log that an image wrote, with the texts that stand in the image's symbols.

use defmt_decoder::{DecodeError, Table};
use std::error::Error;
use std::io::{Read, stdin};

fn main() -> Result<(), Box<dyn Error>> {
    let image = std::env::args_os().nth(1).ok_or("usage: log-print IMAGE <LOG")?;
    let table = Table::parse(&std::fs::read(image)?)?.ok_or("the image has no defmt section")?;
    let mut log = Vec::new();
    stdin().read_to_end(&mut log)?;
    let mut decoder = table.new_stream_decoder();
    decoder.received(&log);
    loop {
        match decoder.decode() {
            Ok(frame) => {
                let level = frame.level().map_or("-", |level| level.as_str());
                println!("{level} {}", frame.display_message());
            }
            Err(DecodeError::UnexpectedEof) => return Ok(()),
            Err(DecodeError::Malformed) => return Err("the log is damaged".into()),
        }
    }
}
