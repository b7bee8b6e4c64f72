//! The image: validates the model in flash, tells a story, and says what that took.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod firmware {
    use board::{console, exit, stack};
    use core::hint::black_box;
    use cortex_m_rt::entry;
    use p64_core::crc32c::Checksum;
    use p64_core::stream::{ReadAt, ReadFault, Step, Validator};
    use p64_core::validate::{OpenOptions, Storage};
    use p64_core::{Container, Error};
    use static_cell::ConstStaticCell;
    use story::{FLASH, Memory, PROMPT};

    static MEMORY: ConstStaticCell<Memory> = ConstStaticCell::new(Memory::EMPTY);

    #[entry]
    fn main() -> ! {
        // What lies in flash is not the compiler's to know.
        let file = black_box(&FLASH.0[..]);
        match run(file) {
            Ok(()) => exit(true),
            Err(error) => {
                console::line("error", error.code.number().into());
                console::line("offset", error.offset);
                exit(false)
            }
        }
    }

    fn run(file: &'static [u8]) -> Result<(), Error> {
        console::line("file_bytes", file.len() as u64);
        let painted = stack::paint();
        let container = open(file)?;
        console::line("stack_open", painted.used());

        let painted = stack::paint();
        open_stream(file)?;
        console::line("stack_stream", painted.used());

        let painted = stack::paint();
        let story = story::tell(&container, &PROMPT, MEMORY.take())?;
        console::line("stack_decode", painted.used());

        console::text("ids");
        for id in story.ids {
            console::text(" ");
            console::number(id.into());
        }
        console::text("\nlogits ");
        console::hex(story.logits);
        console::text("\n");
        Ok(())
    }

    /// Every check, every checksum, with the smallest table.
    #[inline(never)]
    fn open(file: &'static [u8]) -> Result<Container<'static>, Error> {
        let options = OpenOptions { checksum: Checksum::BYTES_64, ..OpenOptions::default() };
        Container::open_with(file, &options, Storage::default(), &mut |_| ())
    }

    /// The same through reads of 256 bytes, as from flash behind a bus.
    #[inline(never)]
    fn open_stream(file: &'static [u8]) -> Result<(), Error> {
        let options = OpenOptions { checksum: Checksum::BYTES_64, ..OpenOptions::default() };
        let mut buffer = [0; 256];
        let mut validator = Validator::new(Bus(file), &mut buffer, Storage::default(), &options)?;
        // A watchdog would be fed between two steps.
        while validator.step(&mut |_| ())? == Step::More {}
        validator.finish().map(|_| ())
    }

    /// Flash that is read, not mapped; the copy stands for the transfer.
    struct Bus(&'static [u8]);

    impl ReadAt for Bus {
        fn len(&self) -> u64 {
            self.0.len() as u64
        }

        fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadFault> {
            let range = offset as usize..offset as usize + buffer.len();
            buffer.copy_from_slice(self.0.get(range).ok_or(ReadFault(1))?);
            Ok(())
        }
    }
}

/// The image is for a machine without an operating system; elsewhere there is `host`.
#[cfg(not(target_os = "none"))]
fn main() {}
