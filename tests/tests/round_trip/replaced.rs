//! Models whose payloads are replaced on the way in: what stands in the container, how it runs, and what an export gives.

use p64_core::DType;
use p64_core::forward::kv::KvType;
use p64_core::kernel::{Activations, dequantize};
use p64_core::layout::flags::Flags;
use p64_core::quant::q4_k_soa;
use p64_core::validate::Policy;
use p64_std::convert::{ConvertReport, Layout, ProduceOptions, convert_file};
use p64_std::export::{ExportReport, export_gguf};
use p64_std::gguf::GgufSet;
use p64_std::map::{MapOptions, MappedContainer};
use p64_std::model::LoadedModel;
use p64_std::quantize::{Profile, Rule, Rules, encode_rows};
use p64_std::session::{Session, SessionOptions};
use p64_std::source::{OpenSource, SourceTensor};
use p64_tests::conformance::Recipe;
use p64_tests::gguf::GgufBuilder;
use std::path::{Path, PathBuf};

const MODEL: &str = "llama-q4_k-mixed";

struct Made {
    folder: tempfile::TempDir,
    recipe: Recipe,
    gguf: PathBuf,
    p64: PathBuf,
    report: ConvertReport,
}

fn make(options: &ProduceOptions) -> Made {
    let folder = tempfile::tempdir().expect("a folder");
    let recipe = Recipe::load(MODEL);
    let (gguf, p64) = (folder.path().join("in.gguf"), folder.path().join("out.p64"));
    std::fs::write(&gguf, recipe.file()).expect("written");
    let report = convert_file(&gguf, &p64, options, &mut |_| ()).expect("converted");
    Made { folder, recipe, gguf, p64, report }
}

impl Made {
    fn export(&self) -> (PathBuf, ExportReport) {
        let path = self.folder.path().join("back.gguf");
        let report = export_gguf(&self.p64, &path, &mut |_| ()).expect("exported");
        (path, report)
    }

    fn logits(&self, path: &Path) -> Vec<f32> {
        let model = LoadedModel::open(path, &MapOptions::default()).expect("it runs");
        let options = SessionOptions {
            context: Some(self.recipe.context),
            threads: 1,
            activations: Activations::F32,
            kv: KvType::F32.into(),
            ..SessionOptions::default()
        };
        let mut session = Session::new(&model, &options).expect("a session");
        session.logits_of_all(&self.recipe.prompt).expect("logits")
    }

    /// Root of the mean squared difference of the two files' logits where the recipe has llama.cpp's: its own figure there
    /// ([`Recipe::own_rms`], what rounding the activations does) is the bar for what rounding some weights may do.
    fn rms(&self, a: &Path, b: &Path) -> f64 {
        let (a, b) = (self.logits(a), self.logits(b));
        let (mut squares, mut count) = (0.0, 0.0);
        for at in &self.recipe.at {
            let range = (at - 1) * self.recipe.vocabulary..at * self.recipe.vocabulary;
            for (a, b) in a[range.clone()].iter().zip(&b[range]) {
                squares += (f64::from(*a) - f64::from(*b)).powi(2);
                count += 1.0;
            }
        }
        f64::sqrt(squares / count)
    }

    /// Largest difference of the two files' logits, relative to the largest of the first.
    fn difference(&self, a: &Path, b: &Path) -> f32 {
        let (a, b) = (self.logits(a), self.logits(b));
        let scale = a.iter().fold(0.0f32, |most, logit| most.max(logit.abs()));
        assert_eq!(a.len(), b.len());
        a.iter().zip(&b).fold(0.0f32, |most, (a, b)| most.max((a - b).abs())) / scale
    }
}

fn strict(path: &Path) -> MappedContainer {
    let options = MapOptions { policy: Policy::Strict, ..MapOptions::default() };
    MappedContainer::open(path, &options).expect("strict").0
}

fn bytes(tensor: &SourceTensor<'_>) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(tensor.payload.len()).expect("small")];
    tensor.payload.read_at(0, &mut bytes).expect("readable");
    bytes
}

fn values(tensor: &SourceTensor<'_>) -> Vec<f32> {
    let elements = tensor.payload.shape().elements().expect("small");
    let mut values = vec![0.0; usize::try_from(elements).expect("small")];
    dequantize(tensor.payload.dtype(), &bytes(tensor), &mut values).expect("decodable");
    values
}

/// Calls `check` with each tensor of the source and what it became.
fn pairs(made: &Made, mut check: impl FnMut(&SourceTensor<'_>, &SourceTensor<'_>)) {
    let (source, result) = (OpenSource::open(&made.gguf).expect("opens"), OpenSource::open(&made.p64).expect("opens"));
    let (before, after) = (source.tensors(), result.tensors());
    assert_eq!(before.len(), after.len());
    for tensor in &before {
        let found = after.iter().find(|other| other.name == tensor.name).expect("its name");
        assert_eq!((found.payload.shape(), found.source_offset), (tensor.payload.shape(), tensor.source_offset));
        check(tensor, found);
    }
}

/// The report's figures are those of the payloads.
fn check_errors(made: &Made) {
    pairs(made, |before, after| {
        let change = made.report.changes.iter().find(|change| change.name == before.name);
        let Some(change) = change else {
            assert!(bytes(before) == bytes(after), "{} was not to change", before.name);
            return;
        };
        assert_eq!((change.from, change.to), (before.payload.dtype(), after.payload.dtype()));
        let (old, new) = (values(before), values(after));
        let squares: f64 = old.iter().zip(&new).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let rmse = (squares / old.len() as f64).sqrt();
        let most = old.iter().zip(&new).fold(0.0f32, |most, (a, b)| most.max((a - b).abs()));
        assert!((change.error.rmse() - rmse).abs() <= 1e-9 * rmse, "{}", before.name);
        assert_eq!(change.error.max(), most, "{}", before.name);
    });
}

fn with(weights: Layout) -> ProduceOptions {
    let mut options = ProduceOptions::default();
    options.weights = weights;
    options
}

fn profile(profile: Profile) -> ProduceOptions {
    let mut options = ProduceOptions::default();
    options.rules = Rules { profile: Some(profile), rules: Vec::new() };
    options
}

/// Encoded and put side by side in one conversion, or in two: the same payloads, and the same GGUF on the way out.
#[test]
fn encoded_rows_are_put_side_by_side() {
    let mut tuned = profile(Profile::Q80);
    tuned.weights = Layout::Tuned;
    let (once, plain) = (make(&tuned), make(&profile(Profile::Q80)));
    let twice = plain.folder.path().join("tuned.p64");
    convert_file(&plain.p64, &twice, &with(Layout::Tuned), &mut |_| ()).expect("converted");
    let (one, two) = (strict(&once.p64), strict(&twice));
    let payloads = |mapped: &MappedContainer| -> Vec<(String, DType, Vec<u8>)> {
        let own = mapped.container().tensors().filter(|info| !info.name().starts_with("p64."));
        let bytes = |info| mapped.container().tensor(&info).expect("whole").bytes().to_vec();
        own.map(|info| (info.name().to_owned(), info.dtype(), bytes(info))).collect()
    };
    let (one, two) = (payloads(&one), payloads(&two));
    assert!(one.iter().filter(|(_, dtype, _)| *dtype == DType::Q8_0_R16).count() > 10);
    assert!(one == two);
    let (export, _) = once.export();
    let (expected, _) = plain.export();
    assert!(std::fs::read(export).expect("there") == std::fs::read(expected).expect("there"));
}

#[test]
fn soa_expands_each_q4_k_and_nothing_else() {
    let made = make(&with(Layout::Soa));
    assert_eq!(made.report.profile, "gguf-quantized");
    assert_eq!(made.report.changes.len(), 11);
    let flags = strict(&made.p64).container().flags();
    assert!(flags.contains(Flags::Q4K_SOA) && !flags.contains(Flags::TERNARY));
    pairs(&made, |before, after| {
        if before.payload.dtype() == DType::Q4_K {
            assert_eq!(after.payload.dtype(), DType::Q4KSoa);
            let source = bytes(before);
            let expected: Vec<_> = source.as_chunks().0.iter().map(q4_k_soa::from_q4_k).collect();
            assert!(bytes(after) == expected.as_flattened(), "{}", before.name);
        }
    });
    check_errors(&made);
    let rms = made.rms(&made.gguf, &made.p64);
    assert!(rms > 0.0 && rms < made.recipe.own_rms, "{rms:e} against {:e}", made.recipe.own_rms);

    let (back, report) = made.export();
    assert_eq!(report.identical, None);
    assert_eq!(report.replaced, ["11 x Q4_K_SOA as Q4_1, which holds the same values"]);
    let exported = OpenSource::open(&back).expect("a GGUF");
    let container = OpenSource::open(&made.p64).expect("opens");
    for (out, own) in exported.tensors().iter().zip(container.model().expect("a model").tensors) {
        assert_eq!((&out.name, values(out)), (&own.name, values(&own)), "the same values");
    }
    assert!(made.difference(&made.p64, &back) < 1e-6);
}

#[test]
fn f16_takes_the_matrices() {
    let made = make(&with(Layout::F16));
    check_errors(&made);
    pairs(&made, |before, after| {
        let matrix = before.payload.shape().rank() > 1;
        let expected = if matrix { DType::F16 } else { before.payload.dtype() };
        assert_eq!(after.payload.dtype(), expected, "{}", before.name);
    });
    let rms = made.rms(&made.gguf, &made.p64);
    assert!(rms > 0.0 && rms < made.recipe.own_rms, "{rms:e} against {:e}", made.recipe.own_rms);
    let (back, report) = made.export();
    assert!(report.replaced.is_empty());
    assert!(made.difference(&made.p64, &back) == 0.0);
    // The recipe has no file type, so none is made up.
    let set = GgufSet::open(&back).expect("a GGUF");
    assert!(set.metadata().get("general.file_type").is_none());
}

#[test]
fn ternary_has_one_scale_for_each_projection() {
    let made = make(&profile(Profile::FfnTernary));
    let flags = strict(&made.p64).container().flags();
    assert!(flags.contains(Flags::TERNARY) && !flags.contains(Flags::Q4K_SOA));
    check_errors(&made);
    let mut changed = 0;
    pairs(&made, |before, after| {
        let feedforward = ["ffn_gate.", "ffn_up.", "ffn_down."].iter().any(|part| before.name.contains(part));
        assert_eq!(after.payload.dtype() == DType::Ternary, feedforward, "{}", before.name);
        if feedforward {
            let values = values(before);
            let mut expected = vec![0; bytes(after).len()];
            encode_rows(DType::Ternary, &values, values.len(), None, &mut expected).expect("encoded");
            assert!(bytes(after) == expected, "{}", before.name);
            changed += 1;
        }
    });
    assert_eq!(changed, made.report.changes.len());
    let (back, report) = made.export();
    assert_eq!(report.replaced.len(), 1, "{:?}", report.replaced);
    assert!(report.replaced[0].ends_with(" x TERNARY as TQ2_0, its scale rounded to F16"), "{:?}", report.replaced);
    let rms = made.rms(&made.p64, &back);
    assert!(rms < made.recipe.own_rms, "{rms:e} against {:e}", made.recipe.own_rms);
}

#[test]
fn quantised_and_exported_as_it_is() {
    let mut options = profile(Profile::Q4KM);
    options.rules.rules = vec!["token_embd=q8_0".parse::<Rule>().expect("a rule")];
    let made = make(&options);
    check_errors(&made);
    pairs(&made, |before, after| {
        if before.name == "token_embd.weight" {
            assert_eq!(after.payload.dtype(), DType::Q8_0);
        }
    });
    let (back, report) = made.export();
    assert_eq!((report.identical, report.replaced.len()), (None, 0));
    assert!(made.difference(&made.p64, &back) == 0.0);

    // The container is a source too, and stays what it is.
    let again = made.folder.path().join("again.p64");
    let report = convert_file(&made.p64, &again, &ProduceOptions::default(), &mut |_| ()).expect("converted");
    assert_eq!((report.profile.as_str(), report.changes.len()), ("gguf-quantized", 0));
    assert!(std::fs::read(&made.p64).expect("there") == std::fs::read(&again).expect("there"));
}

#[test]
fn rules_win_over_layouts_and_soa_takes_what_they_make() {
    let mut options = with(Layout::Soa);
    options.rules.rules =
        ["ffn_*=q4_k", "attn_q=q6_k", "attn_k=keep"].iter().map(|rule| rule.parse().expect("a rule")).collect();
    let made = make(&options);
    check_errors(&made);
    pairs(&made, |before, after| {
        let to = after.payload.dtype();
        match before.name.as_str() {
            name if name.contains("ffn_norm") => assert_eq!(to, DType::F32),
            name if name.contains(".ffn_") => assert_eq!(to, DType::Q4KSoa, "{name}"),
            name if name.contains("attn_q.") => assert_eq!(to, DType::Q6_K, "{name}"),
            name if name.contains("attn_k.") => assert_eq!(to, DType::Q4_K, "{name}"),
            name if name.contains("attn_output.") => assert_eq!(to, DType::Q4KSoa, "{name}"),
            _ => {}
        }
    });
}

#[test]
fn the_bytes_do_not_depend_on_the_threads() {
    let of = |threads| {
        let mut options = profile(Profile::FfnTernary);
        options.rules.rules = vec!["attn_*=q5_k".parse().expect("a rule")];
        options.threads = threads;
        std::fs::read(make(&options).p64).expect("there")
    };
    let one = of(1);
    assert!(one == of(2) && one == of(5));
}

#[test]
fn what_is_no_number_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    // The builder fills payloads with counted bytes; an F32 of all ones is NaN.
    let source = GgufBuilder::new(3).model_keys(1).tensor("blk.0.ffn_up.weight", DType::F32, &[32, 40]);
    let mut bytes = source.build();
    let len = bytes.len();
    bytes[len - 32 * 40 * 4..].fill(0);
    bytes[len - 4..].fill(0xff);
    let (gguf, p64) = (folder.path().join("in.gguf"), folder.path().join("out.p64"));
    std::fs::write(&gguf, bytes).expect("written");
    for options in [profile(Profile::FfnTernary), profile(Profile::Q80), with(Layout::F16)] {
        let error = convert_file(&gguf, &p64, &options, &mut |_| ()).expect_err("no number");
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().contains("tensor \"blk.0.ffn_up.weight\": element 1279 is NaN"), "{error}");
        assert!(!p64.exists());
    }
    convert_file(&gguf, &p64, &ProduceOptions::default(), &mut |_| ()).expect("as it is");
}

#[test]
fn a_container_is_not_its_own_output() {
    let made = make(&ProduceOptions::default());
    for output in [&made.p64, &made.gguf] {
        let error = convert_file(output, output, &ProduceOptions::default(), &mut |_| ()).expect_err("the same");
        assert!(matches!(error, p64_std::Error::SameFile { .. }), "{error}");
    }
}
