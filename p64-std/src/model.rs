//! A model ready to run: a `.p64` or a GGUF, mapped, bound, with its tokenizer.

mod explain;

use crate::error::{Error, Result};
use crate::files;
use crate::gguf::Gguf;
use crate::map::{MapOptions, MappedGguf, MappedSet, SetWeights};
use crate::sniff::Kind;
use crate::tokenizer::Tokenizer;
use p64_core::forward::{Config, Layer, Model, Weight, WeightSource};
use p64_core::layout::flags::Flags;
use p64_core::metadata::Metadata;
use p64_core::validate::Integrity;
use p64_core::{Container, DType, Role};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// The format a model was read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// A P64 container.
    P64,
    /// A GGUF.
    Gguf,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::P64 => "P64",
            Self::Gguf => "GGUF",
        })
    }
}

enum Source {
    P64(MappedSet),
    Gguf(MappedGguf),
}

impl Source {
    fn path(&self) -> &Path {
        match self {
            Self::P64(set) => set.path(),
            Self::Gguf(mapped) => mapped.path(),
        }
    }

    /// The key-value area, wherever the format keeps it.
    fn metadata(&self) -> Result<Metadata<'_>> {
        match self {
            Self::Gguf(mapped) => Ok(mapped.gguf().metadata()),
            Self::P64(set) => {
                let area = set.metadata()?;
                area.ok_or_else(|| {
                    let reason = "the container has no tensor p64.metadata, so the constants a forward pass needs are \
                                  unknown; convert the model again from its GGUF";
                    Error::refused(set.path(), reason)
                })
            }
        }
    }
}

type BoundModel<'w> = Model<'w, Vec<Layer<'w>>>;

self_cell::self_cell!(
    struct Cell {
        owner: Source,
        #[covariant]
        dependent: BoundModel,
    }
);

/// A model whose weights are borrowed from a mapped file, with its tokenizer.
pub struct LoadedModel {
    cell: Cell,
    tokenizer: Tokenizer,
    warnings: Vec<p64_core::Error>,
    /// Elements and bytes by element type, of what the file calls the model's tensors.
    types: BTreeMap<&'static str, (u64, u64)>,
    weight_bytes: u64,
}

impl LoadedModel {
    /// Maps the file (of a split set all files), validates it, binds the architecture's tensors and builds the tokenizer. A GGUF has no checksums,
    /// so `options` are for P64 files alone.
    ///
    /// # Errors
    /// What [`MappedSet::open`] or [`MappedGguf::open`] refuse; [`Error::Refused`] with what this build lacks for
    /// the model; the tokenizer's errors.
    pub fn open(path: &Path, options: &MapOptions) -> Result<Self> {
        let (source, warnings) = match files::kind(path)? {
            Kind::Gguf => {
                let mapped = MappedGguf::open(path)?;
                explain::refuse_part(path, &mapped.gguf().metadata())?;
                (Source::Gguf(mapped), Vec::new())
            }
            Kind::P64 => {
                // Blobs are verified below, beside the making of the tokenizer.
                let lazy = MapOptions { integrity: Integrity::Lazy, ..*options };
                let (set, warnings) = MappedSet::open(path, &lazy)?;
                if set.tokenizer().is_none() && !set.flags().contains(Flags::RAW_TRANSCODE) {
                    let reason = "the container says it is a complete model but has no tokenizer section; convert the \
                                  model again from its source";
                    return Err(Error::refused(path, reason));
                }
                (Source::P64(set), warnings.into_iter().map(|(_, warning)| warning).collect())
            }
            kind => return Err(files::other_kind(path, kind, Kind::P64)),
        };
        let types = count_types(&source);
        let tokenizer = verified_beside(&source, options, || {
            Tokenizer::from_metadata(&source.metadata()?)
                .map_err(|error| Error::refused(path, format!("tokenizer: {error}")))
        })?;
        // The family comes first: what its tokenizer lacks is of no use to know when the model cannot run anyway.
        let cell = Cell::try_new(source, bind)?;
        let tokenizer = tokenizer?;
        let weight_bytes = cell.borrow_dependent().bytes_per_token();
        Ok(Self { cell, tokenizer, warnings, types, weight_bytes })
    }

    /// The bound model.
    #[must_use]
    pub fn model(&self) -> &Model<'_, Vec<Layer<'_>>> {
        self.cell.borrow_dependent()
    }

    /// Dimensions and constants.
    #[must_use]
    pub fn config(&self) -> &Config {
        self.model().config()
    }

    /// The tokenizer.
    #[must_use]
    pub const fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The metadata the model came with.
    ///
    /// # Errors
    /// None that [`LoadedModel::open`] has not already given.
    pub fn metadata(&self) -> Result<Metadata<'_>> {
        self.cell.borrow_owner().metadata()
    }

    /// The container, where the model lies in one.
    #[must_use]
    pub fn container(&self) -> Option<&Container<'_>> {
        match self.cell.borrow_owner() {
            Source::P64(set) => set.single(),
            Source::Gguf(_) => None,
        }
    }

    /// The format of the file.
    #[must_use]
    pub fn format(&self) -> Format {
        match self.cell.borrow_owner() {
            Source::P64(_) => Format::P64,
            Source::Gguf(_) => Format::Gguf,
        }
    }

    /// Where the file was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.cell.borrow_owner().path()
    }

    /// Length of the file in bytes; of a split set, of all its files.
    #[must_use]
    pub fn file_size(&self) -> u64 {
        match self.cell.borrow_owner() {
            Source::P64(set) => set.file_len(),
            Source::Gguf(mapped) => mapped.gguf().file_len(),
        }
    }

    /// Bytes of weights that one generated token reads: every bound matrix once, of the token embedding one row unless
    /// it is also the output.
    #[must_use]
    pub const fn weight_bytes_per_token(&self) -> u64 {
        self.weight_bytes
    }

    /// Deviations from the standard that the compatible policy let pass.
    #[must_use]
    pub fn warnings(&self) -> &[p64_core::Error] {
        &self.warnings
    }

    /// Weights of the model, as the file counts them.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        self.types.values().map(|(elements, _)| elements).sum()
    }

    /// The element type that holds most of the model's bytes.
    #[must_use]
    pub fn main_type(&self) -> &'static str {
        self.types.iter().max_by_key(|(_, (_, bytes))| *bytes).map_or("-", |(name, _)| name)
    }

    /// One line: `llama, 30 layers, 134.5 M parameters, mostly Q4_1`.
    #[must_use]
    pub fn description(&self) -> String {
        let config = self.config();
        #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
        let parameters = self.parameters() as f64;
        let (value, unit) = if parameters < 1e9 { (parameters / 1e6, "M") } else { (parameters / 1e9, "B") };
        let (name, layers) = (config.architecture().name(), config.n_layer());
        format!("{name}, {layers} layers, {value:.1} {unit} parameters, mostly {}", self.main_type())
    }
}

impl fmt::Debug for LoadedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedModel").field("path", &self.path()).field("model", &self.description()).finish()
    }
}

/// Verifies the blobs and does `work` meanwhile, on a thread of its own where more than one is allowed. Under
/// [`Integrity::Lazy`] what does not match is left for whoever takes it: the model takes all that it needs, so that reading
/// everything at once by all threads costs nothing and binding then finds it done.
fn verified_beside<T: Send>(source: &Source, options: &MapOptions, work: impl FnOnce() -> T + Send) -> Result<T> {
    let verify = || {
        let Source::P64(set) = source else { return Ok(()) };
        let mut verified = set.parts().iter().map(|part| part.verify(options.threads));
        match options.integrity {
            Integrity::Full => verified.try_for_each(|verified| verified),
            Integrity::Lazy => {
                verified.for_each(drop);
                Ok(())
            }
        }
    };
    if options.threads == 1 || matches!(source, Source::Gguf(_)) {
        return verify().map(|()| work());
    }
    std::thread::scope(|scope| {
        let work = scope.spawn(work);
        let verified = verify();
        let done = work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        verified.map(|()| done)
    })
}

fn count_types(source: &Source) -> BTreeMap<&'static str, (u64, u64)> {
    let mut types = BTreeMap::new();
    let mut add = |dtype: DType, elements: u64, bytes: u64| {
        let sum: &mut (u64, u64) = types.entry(dtype.name()).or_default();
        sum.0 = sum.0.saturating_add(elements);
        sum.1 = sum.1.saturating_add(bytes);
    };
    match source {
        Source::Gguf(mapped) => {
            for tensor in mapped.gguf().tensors() {
                add(tensor.dtype, tensor.shape.elements().unwrap_or(0), tensor.size);
            }
        }
        Source::P64(set) => {
            for info in set.tensors().map(|tensor| tensor.info).filter(|info| !info.name().starts_with("p64.")) {
                add(info.dtype(), info.shape().elements().unwrap_or(0), info.extent().len());
            }
        }
    }
    types
}

fn bind(source: &Source) -> Result<BoundModel<'_>> {
    let path = source.path();
    let metadata = source.metadata()?;
    explain::refuse_empty(source, &metadata)?;
    let explain = |error| explain::sentence(source, &metadata, error);
    let config = Config::read(&metadata).map_err(explain)?;
    match source {
        Source::P64(set) => {
            config.check_hparams(&set.hparams()).map_err(|error| Error::core(path, error))?;
            bind_model(&SetWeights(set), config)
        }
        Source::Gguf(mapped) => bind_model(&GgufWeights(mapped), config),
    }
    .map_err(explain)
}

fn bind_model<'w>(source: &impl WeightSource<'w>, config: Config) -> p64_core::Result<BoundModel<'w>> {
    let layers = (0..config.n_layer()).map(|index| Layer::bind(source, &config, index));
    let layers = layers.collect::<p64_core::Result<Vec<_>>>()?;
    Model::new(source, config, layers)
}

/// A mapped GGUF as the source of a model's tensors.
struct GgufWeights<'w>(&'w MappedGguf);

impl<'w> GgufWeights<'w> {
    fn gguf(&self) -> &'w Gguf<'w> {
        self.0.gguf()
    }
}

impl<'w> WeightSource<'w> for GgufWeights<'w> {
    fn by_name(&self, name: &str) -> p64_core::Result<Option<Weight<'w>>> {
        let gguf = self.gguf();
        let Some((index, tensor)) = gguf.position(name).zip(gguf.find(name)) else { return Ok(None) };
        Ok(Some(Weight { index, dtype: tensor.dtype, shape: tensor.shape, bytes: self.0.bytes(tensor) }))
    }

    fn by_role(&self, role: Role, layer: Option<u32>) -> p64_core::Result<Option<Weight<'w>>> {
        match layer {
            Some(layer) => self.by_name(&format!("blk.{layer}.{}", role.gguf_name())),
            None => self.by_name(role.gguf_name()),
        }
    }

    fn each(&self, visit: &mut dyn FnMut(u32, &str, Role) -> p64_core::Result<()>) -> p64_core::Result<()> {
        (0..).zip(self.gguf().tensors()).try_for_each(|(index, tensor)| {
            let role = Role::from_gguf_name(tensor.name).map_or(Role::UNKNOWN, |(role, _)| role);
            visit(index, tensor.name, role)
        })
    }
}
