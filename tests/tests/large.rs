//! Files of 4 GiB and more (spec §15.1), as holes: what they hold beyond that border is real, what lies before it takes no
//! room on the disk.

use p64_core::layout::hparams::RawHParams;
use p64_core::layout::tensor::RawTensorEntry;
use p64_core::stream::StreamContainer;
use p64_core::validate::{Integrity, OpenOptions, Policy, Storage};
use p64_core::{Code, Container, DType, Place, Role, Shape};
use p64_std::convert::{ConvertOptions, ConvertReport, convert_gguf};
use p64_std::export::export_gguf;
use p64_std::map::{CHECKSUM, MapOptions, MappedContainer};
use p64_std::model::LoadedModel;
use p64_std::session::{Session, SessionOptions};
use p64_std::write::{Holes, Model, Plan, TensorDescription, write};
use p64_tests::assemble::Assembly;
use p64_tests::far::Far;
use p64_tests::gguf::GgufBuilder;
use p64_tests::mutate::{at, entry, put_u16, put_u32, refix, u32_at, usize_at};
use p64_tests::{agree, data};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

const GIB: u64 = 1 << 30;
const STRICT: MapOptions = MapOptions { policy: Policy::Strict, integrity: Integrity::Full, threads: 0 };

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn options(policy: Policy, integrity: Integrity) -> OpenOptions {
    OpenOptions { policy, integrity, checksum: CHECKSUM }
}

fn convert(input: &Path, output: &Path, options: &ConvertOptions) -> ConvertReport {
    convert_gguf(input, output, options, &mut |_| ()).expect("converts")
}

/// A layout whose every layer begins on the next GiB.
fn spread(page_size: u32) -> ConvertOptions {
    ConvertOptions { page_size, ..ConvertOptions::default() }
}

/// Bytes that the file takes on the disk, where that can be told.
#[cfg(unix)]
fn on_disk(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).expect("there").blocks() * 512
}

#[cfg(not(unix))]
fn on_disk(_path: &Path) -> u64 {
    0
}

/// A GGUF whose last tensor, of layer 0, has 2^32 + 128 bytes, all of them a hole.
fn large_gguf(folder: &Path) -> PathBuf {
    let huge = GgufBuilder::new(3).small_model().tensor("blk.0.ffn_gate_exps.weight", DType::I8, &[0, 2]);
    let mut bytes = huge.build();
    // Its header with 2^31 + 64 columns. It has no payload yet, and nothing follows it in the table.
    let name = b"blk.0.ffn_gate_exps.weight";
    let columns = bytes.windows(name.len()).position(|window| window == name).expect("in the table") + name.len() + 4;
    bytes[columns..columns + 8].copy_from_slice(&(2 * GIB + 64).to_le_bytes());
    let path = folder.join("large.gguf");
    std::fs::write(&path, &bytes).expect("written");
    let len = bytes.len() as u64 + 4 * GIB + 128;
    File::options().write(true).open(&path).expect("there").set_len(len).expect("a sparse file");
    path
}

/// Converted, verified, read back and exported, with one tensor longer than 4 GiB and all others behind it.
#[test]
fn a_gguf_past_4_gib_goes_in_and_comes_out() {
    let folder = folder();
    let gguf = large_gguf(folder.path());
    let p64 = folder.path().join("large.p64");
    let report = convert(&gguf, &p64, &ConvertOptions::default());
    assert!(report.bytes > 4 * GIB && p64.metadata().expect("there").len() == report.bytes);
    assert!(on_disk(&p64) < 1 << 20, "{} bytes on the disk", on_disk(&p64));

    // The export below takes every tensor, and thereby verifies each.
    let lazy = MapOptions { integrity: Integrity::Lazy, ..STRICT };
    let (mapped, warnings) = MappedContainer::open(&p64, &lazy).expect("strict");
    assert_eq!(warnings, []);
    let container = mapped.container();
    assert_eq!(container.header().version.get(), 5);
    let huge = container.find("blk.0.ffn_gate_exps.weight").expect("there");
    assert_eq!(huge.extent().len(), 4 * GIB + 128);
    let layers: Vec<_> = container.layers().collect();
    assert!(layers[0].extent.start() < 4 * GIB && layers[0].extent.end() > 4 * GIB);
    assert!(layers[1].extent.start() > 4 * GIB);
    assert_eq!(container.layer(1), Some(layers[1]));

    // So says a second reading of the specification, which does not share a line with the first.
    let mut checker = Command::new("python3");
    let checked = checker.arg(data::workspace("scripts/check_p64.py")).arg("--canonical").arg(&p64).output();
    let checked = checked.expect("python3 is installed");
    assert!(
        checked.status.success(),
        "{}{}",
        String::from_utf8_lossy(&checked.stdout),
        String::from_utf8_lossy(&checked.stderr)
    );

    // What lies behind it has the bytes that it has in the source.
    let source = std::fs::read(GgufBuilder::new(3).small_model().write(folder.path(), "small.gguf")).expect("there");
    let small = folder.path().join("small.p64");
    convert(&folder.path().join("small.gguf"), &small, &ConvertOptions::default());
    let (small, _) = MappedContainer::open(&small, &STRICT).expect("strict");
    let mut compared = 0;
    for info in small.container().tensors().filter(|info| !info.name().starts_with("p64.")) {
        let [own, large] = [small.container(), container]
            .map(|c| c.tensor_named(info.name()).expect("verified").expect("there").bytes());
        assert_eq!(own, large, "{}", info.name());
        assert!(source.windows(own.len()).any(|window| window == large), "{}", info.name());
        compared += 1;
    }
    assert_eq!(compared, 10);

    let back = folder.path().join("back.gguf");
    let report = export_gguf(&p64, &back, &mut |_| ()).expect("exported");
    assert_eq!(report.identical, Some(true));
    assert_eq!(back.metadata().expect("there").len(), gguf.metadata().expect("there").len());
    assert!(on_disk(&back) < 1 << 20, "{} bytes on the disk", on_disk(&back));
}

/// The bundled model with a page of 1 GiB before each layer: the last layer and all globals lie past 4 GiB, and it says what
/// the small file says, to the bit.
#[test]
fn a_model_past_4_gib_runs_alike() {
    let folder = folder();
    let gguf = data::data("tiny/tiny-stories-q8_0.gguf");
    let [small, large] = ["small.p64", "large.p64"].map(|name| folder.path().join(name));
    convert(&gguf, &small, &ConvertOptions::default());
    let report = convert(&gguf, &large, &spread(1 << 30));
    assert!(report.bytes > 4 * GIB, "{}", report.bytes);
    assert!(on_disk(&large) < 16 << 20, "{} bytes on the disk", on_disk(&large));

    let lazy = MapOptions { integrity: Integrity::Lazy, ..STRICT };
    let model = LoadedModel::open(&large, &lazy).expect("opens");
    let container = model.container().expect("a container");
    assert_eq!(container.header().version.get(), 5);
    assert!(container.find_role(Role::OutputNorm, container.n_layer()).expect("there").extent().start() > 4 * GIB);
    let reference = LoadedModel::open(&small, &MapOptions::default()).expect("opens");
    let options = SessionOptions { threads: 1, context: Some(32), ..SessionOptions::default() };
    let mut sessions = [&reference, &model].map(|model| Session::new(model, &options).expect("fits"));
    let [expected, found] = &mut sessions;
    let bits = |logits: &[f32]| logits.iter().map(|logit| logit.to_bits()).collect::<Vec<_>>();
    let prompt = [1, 5, 9, 13, 2, 40];
    assert_eq!(bits(expected.prefill(&prompt).expect("runs")), bits(found.prefill(&prompt).expect("runs")));
    assert_eq!(bits(expected.step(7).expect("runs")), bits(found.step(7).expect("runs")));
}

/// Memory that has not been written to, so that only what is written takes room.
struct Memory {
    bytes: Vec<u8>,
    at: u64,
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let start = usize::try_from(self.at).expect("a 64-bit machine");
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Memory {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::Current(by) => self.at.checked_add_signed(by).expect("inside"),
            SeekFrom::End(_) => unreachable!("the writer does not ask for the end"),
        };
        Ok(self.at)
    }
}

fn tensor(name: &str, n_layer: u32, dims: &[u32]) -> TensorDescription {
    let shape = Shape::new(dims).expect("a rank");
    let size = shape.elements().expect("fits");
    TensorDescription::from_gguf(name, n_layer, DType::I8, shape, size, 0)
}

/// Four layers of two tensors and a global one, each group on a GiB of its own: 5 GiB and 70 bytes, rounded up.
fn spread_model() -> Model {
    let names = (0..4).flat_map(|layer| ["attn_q", "ffn_up"].map(|role| format!("blk.{layer}.{role}.weight")));
    Model {
        hparams: RawHParams { n_layer: 4.into(), ..RawHParams::default() },
        raw_transcode: true,
        tokenizer: None,
        tensors: names.chain(["output_norm.weight".into()]).map(|name| tensor(&name, 4, &[7, 10])).collect(),
    }
}

/// The file in memory; payloads are the tensor's position, repeated.
fn in_memory(model: &Model, options: &ConvertOptions) -> Vec<u8> {
    let plan = Plan::new(model, options).expect("plannable");
    let bytes = vec![0; usize::try_from(plan.file_len()).expect("a 64-bit machine")];
    let mut out = Holes::new(Memory { bytes, at: 0 });
    write(&plan, &mut out, |index, sink| -> io::Result<()> {
        let size = usize::try_from(model.tensors[index].size).expect("small");
        sink.write_all(&vec![u8::try_from(index + 1).expect("few"); size])
    })
    .expect("written");
    out.into_inner().bytes
}

/// Writes both halves of a number of entry `index`, `field` being its low word's place and `high` its high word's.
fn put_wide(file: &mut [u8], index: usize, [field, high]: [usize; 2], value: u64) {
    let [low, top] = [value, value >> 32].map(|half| u32::try_from(half & u64::from(u32::MAX)).expect("masked"));
    let [low_at, high_at] = [field, high].map(|field| entry(file, index, field));
    put_u32(file, low_at, low);
    put_u32(file, high_at, top);
}

const OFFSET: [usize; 2] = [32, 56];
const SIZE: [usize; 2] = [36, 60];

/// One verdict, on the file as it is and on what hostile hands make of its high words.
#[test]
fn slice_and_stream_agree_past_4_gib() {
    let model = spread_model();
    let mut file = in_memory(&model, &spread(1 << 30));
    assert_eq!(file.len() as u64, 5 * GIB + 128);
    let verdict = |file: &[u8], integrity| agree::compare(file, &options(Policy::Strict, integrity), false, 1 << 20);
    assert_eq!(verdict(&file, Integrity::Full), Ok(()));
    {
        let container = Container::open(&file).expect("valid");
        let last = container.find("output_norm.weight").expect("there");
        assert_eq!((last.extent().start(), last.extent().len()), (5 * GIB, 70));
        assert_eq!(container.tensor(&last).expect("verified").bytes(), [9; 70]);
        let unit = container.layer(3).expect("there");
        assert_eq!((unit.extent.start(), unit.extent.end()), (4 * GIB, 4 * GIB + 256 + 70));
    }

    // Layer 3 has entries 6 and 7 and schedule record 3.
    let last = 4 * GIB;
    let record = |file: &[u8], field: usize| usize_at(file, at::ROLE_TABLE) + 3 * 64 + field;
    type Change<'c> = &'c dyn Fn(&mut [u8]);
    let cases: [(Code, Place, Change<'_>); 9] = [
        // Its low word alone is the place of something else.
        (Code::BlobFloor, Place::Tensor(6), &|file| put_wide(file, 6, OFFSET, 0)),
        (Code::BlobOrder, Place::Tensor(7), &|file| put_wide(file, 7, OFFSET, GIB)),
        (Code::BlobBounds, Place::Tensor(8), &|file| put_wide(file, 8, OFFSET, 1 << 62)),
        // The last place there is: its end would not fit 64 bits.
        (Code::BlobBounds, Place::Tensor(8), &|file| put_wide(file, 8, OFFSET, u64::MAX - (GIB - 1))),
        (Code::BlobSize, Place::Tensor(7), &|file| put_wide(file, 7, SIZE, (1 << 32) + 70)),
        (Code::ScheduleBegin, Place::Layer(3), &|file| put_u32(file, record(file, 16), 2)),
        (Code::ScheduleEnd, Place::Layer(3), &|file| put_u32(file, record(file, 20), 0)),
        (Code::ScheduleReserved, Place::Layer(3), &|file| put_u32(file, record(file, 24), 1)),
        (Code::FileTooLarge, Place::Section(p64_core::Section::Header), &|file| put_u16(file, at::VERSION, 4)),
    ];
    assert_eq!(u64::from(u32_at(&file, entry(&file, 6, 32))) + (1 << 32), last);
    let front = usize_at(&file, at::CHECKSUMS) + 64;
    let original = file[..front].to_vec();
    for (code, place, change) in cases {
        change(&mut file);
        refix(&mut file);
        let error = verdict(&file, Integrity::Lazy).expect_err("broken");
        assert_eq!((error.code, error.place), (code, place), "{error}");
        file[..front].copy_from_slice(&original);
    }
    // A byte in the hole, and one of a payload behind it.
    for (at, code) in [(3 * GIB - 1, Code::BlobPadding), (4 * GIB + 69, Code::TensorChecksum)] {
        let at = usize::try_from(at).expect("a 64-bit machine");
        file[at] ^= 1;
        assert_eq!(verdict(&file, Integrity::Full).expect_err("broken").code, code);
        file[at] ^= 1;
    }
    assert_eq!(verdict(&file, Integrity::Full), Ok(()));
}

/// Three tensors of nearly 6 GiB each: what a 64-bit machine maps, a small one reads in pieces.
#[test]
fn tensors_of_many_gib_each() {
    let n = 3;
    let model = Model {
        hparams: RawHParams::default(),
        raw_transcode: true,
        tokenizer: None,
        tensors: (0..n).map(|i| tensor(&format!("t{i}"), 0, &[3_000_000_001, 2])).collect(),
    };
    let plan = Plan::new(&model, &ConvertOptions::default()).expect("plannable");
    assert_eq!((plan.version(), plan.payload_len()), (5, 3 * 6_000_000_002));

    let folder = folder();
    let path = folder.path().join("zeros.p64");
    let piece = vec![0; 4 << 20];
    let mut out = Holes::new(File::create(&path).expect("created"));
    write(&plan, &mut out, |_, sink| -> io::Result<()> {
        let mut left = 6_000_000_002u64;
        while left > 0 {
            let len = left.min(piece.len() as u64);
            sink.write_all(&piece[..usize::try_from(len).expect("small")])?;
            left -= len;
        }
        Ok(())
    })
    .expect("written");
    out.finish().expect("finished");
    assert_eq!(path.metadata().expect("there").len(), plan.file_len());

    let lazy = MapOptions { integrity: Integrity::Lazy, ..STRICT };
    let (mapped, _) = MappedContainer::open(&path, &lazy).expect("strict");
    let extents: Vec<_> = mapped.container().tensors().map(|info| info.extent()).collect();
    assert!(extents.iter().all(|extent| extent.len() == 6_000_000_002));
    assert!(extents[2].start() > 12_000_000_000);

    let mut front = vec![0; usize::try_from(extents[0].start()).expect("small")];
    io::Read::read_exact(&mut File::open(&path).expect("there"), &mut front).expect("read");
    let front = Far::new(&front, plan.file_len());
    let mut buffer = vec![0; 1 << 16];
    let strict = options(Policy::Strict, Integrity::Lazy);
    let mut stream =
        StreamContainer::open(front, &mut buffer, Storage::default(), &strict, &mut |_| ()).expect("strict");
    let last = stream.find("t2").expect("read").expect("there");
    assert_eq!(last.extent(), extents[2]);
    // The whole of it, past 2^32 bytes.
    stream.verify(&last).expect("the checksum of 6,000,000,002 zeros");
    let mut end = [1; 3];
    stream.read(&last, last.extent().len() - 3, &mut end).expect("in range");
    assert_eq!(end, [0; 3]);
    let error = stream.read(&last, last.extent().len() - 2, &mut end).expect_err("past the end");
    assert_eq!((error.code, error.expected), (Code::LengthMismatch, 6_000_000_002));
}

/// Nothing but blobs may lie past 4 GiB, however long the file is.
#[test]
fn sections_end_below_4_gib() {
    let mut bytes = in_memory(&spread_model(), &ConvertOptions::default());
    bytes.truncate(4096);
    put_u16(&mut bytes, at::VERSION, 5);
    put_u32(&mut bytes, at::CHECKSUMS, u32::MAX - 39);
    let open = |bytes: &[u8]| {
        let front = Far::new(bytes, 8 * GIB);
        let strict = options(Policy::Strict, Integrity::Lazy);
        let error = StreamContainer::open(front, &mut [0; 4096], Storage::default(), &strict, &mut |_| ())
            .expect_err("out of place");
        (error.code, error.expected, error.found)
    };
    // Ten values of four bytes end at 2^32: then the next check finds fault with the place itself.
    assert_eq!(open(&bytes).0, Code::SectionAlignment);
    put_u32(&mut bytes, at::CHECKSUMS, u32::MAX - 38);
    assert_eq!(open(&bytes), (Code::SectionBounds, 1 << 32, (1 << 32) + 1));
}

/// Bytes that version 4 reserves are no offsets in it, whatever they hold; a small file of version 5 has them.
#[test]
fn version_4_takes_no_high_words() {
    let mut file = Assembly::small().build();
    let record = usize_at(&file, at::ROLE_TABLE);
    for field in [56, 60] {
        let place = entry(&file, 3, field);
        put_u32(&mut file, place, 7);
    }
    put_u32(&mut file, record + 16, 7);
    refix(&mut file);
    let open = |file: &[u8]| {
        let mut warnings = Vec::new();
        let compatible = options(Policy::Compatible, Integrity::Full);
        let opened = Container::open_with(file, &compatible, Storage::default(), &mut |w| warnings.push(w.code));
        (opened.map(|container| container.info(3).map(|info| info.extent())), warnings)
    };
    let plain = Assembly::small().build();
    let own = Container::open(&plain).expect("valid").info(3).expect("there").extent();
    assert_eq!(open(&file), (Ok(Some(own)), vec![Code::ReservedEntry, Code::ScheduleReserved]));
    agree::check(&file, &[256]);

    put_u16(&mut file, at::VERSION, 5);
    refix(&mut file);
    let (error, warnings) = open(&file);
    let error = error.expect_err("far away");
    assert_eq!((error.code, error.place, warnings), (Code::BlobSize, Place::Tensor(3), vec![Code::NeedlessVersion]));
    let place = entry(&file, 3, 60);
    put_u32(&mut file, place, 0);
    refix(&mut file);
    assert_eq!(open(&file).0.expect_err("far away").code, Code::BlobBounds);
    agree::check(&file, &[256]);
    assert_eq!(size_of::<RawTensorEntry>(), 64);
}
