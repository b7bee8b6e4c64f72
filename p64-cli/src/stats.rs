//! What `p64 stats` knows of a model: one report, printed as text, as JSON or as a page.

mod text;

pub use text::{headline, not_finite, render};

use crate::failure::Result;
use crate::output::number;
use p64_core::DType;
use p64_core::metadata::Metadata;
use p64_std::source::{OpenSource, SourceTensor};
use p64_std::stats::{FileLayout, Place, TensorStats, What};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// A model, counted.
#[derive(Debug)]
pub struct Report {
    pub path: String,
    /// The format with its version, for people.
    pub format: String,
    pub name: Option<String>,
    pub architecture: Option<String>,
    pub files: Vec<FileLayout>,
    /// All tensors of the model: what lies in the files is told of tensors that were not counted, too.
    pub outlines: Vec<Outline>,
    pub tensor_count: usize,
    pub tensors: Vec<Tensor>,
    pub took: Duration,
}

/// What a model's table says of a tensor.
#[derive(Debug)]
pub struct Outline {
    pub name: String,
    pub place: Place,
    pub dtype: DType,
    pub elements: u64,
    pub bytes: u64,
}

/// A tensor, counted.
#[derive(Debug)]
pub struct Tensor {
    /// Place in the model's table.
    pub index: usize,
    pub name: String,
    pub place: Place,
    pub dtype: DType,
    pub shape: Vec<u32>,
    pub elements: u64,
    pub bytes: u64,
    /// `None` for a type that this build does not decode.
    pub stats: Option<TensorStats>,
}

impl Tensor {
    pub fn not_finite(&self) -> u64 {
        self.stats.as_ref().map_or(0, |stats| stats.moments.not_finite())
    }

    /// The largest magnitude in standard deviations; 0 where all values are equal.
    pub fn peak_sigmas(&self) -> f64 {
        let moments = self.stats.as_ref().map(|stats| &stats.moments);
        let ratio = moments.map_or(0.0, |moments| (moments.peak() - moments.mean.abs()) / moments.std());
        if ratio.is_finite() { ratio.max(0.0) } else { 0.0 }
    }
}

impl Report {
    pub fn new(
        path: &Path,
        source: &OpenSource,
        tensors: &[SourceTensor<'_>],
        places: &[usize],
        counted: Vec<Option<TensorStats>>,
        took: Duration,
    ) -> Result<Self> {
        let metadata = source.metadata()?.unwrap_or(Metadata::EMPTY);
        let text = |key: &str| metadata.get(key).and_then(|value| value.as_str()).map(str::to_owned);
        let tensor_of = |((tensor, index), stats): ((&SourceTensor<'_>, &usize), Option<TensorStats>)| {
            let shape = tensor.payload.shape();
            Tensor {
                index: *index,
                name: tensor.name.clone(),
                place: Place::of(&tensor.name),
                dtype: tensor.payload.dtype(),
                shape: shape.dims().to_vec(),
                elements: shape.elements().unwrap_or(0),
                bytes: tensor.payload.len(),
                stats,
            }
        };
        let outlines: Vec<Outline> = source.tensors().iter().map(outline).collect();
        Ok(Self {
            path: path.display().to_string(),
            format: format_of(source),
            name: text("general.name"),
            architecture: text("general.architecture"),
            files: p64_std::stats::file_layouts(source),
            tensor_count: outlines.len(),
            outlines,
            tensors: tensors.iter().zip(places).zip(counted).map(tensor_of).collect(),
            took,
        })
    }

    pub fn not_finite(&self) -> u64 {
        self.tensors.iter().map(Tensor::not_finite).fold(0, u64::saturating_add)
    }

    pub fn outliers(&self) -> u64 {
        let stats = self.tensors.iter().filter_map(|tensor| tensor.stats.as_ref());
        stats.map(TensorStats::outliers).fold(0, u64::saturating_add)
    }

    /// Bytes of the files that are nothing but padding.
    pub fn padding(&self) -> u64 {
        let regions = self.files.iter().flat_map(|file| &file.regions).filter(|region| region.what == What::Padding);
        regions.map(|region| region.len).fold(0, u64::saturating_add)
    }

    pub fn elements(&self) -> u64 {
        self.tensors.iter().map(|tensor| tensor.elements).fold(0, u64::saturating_add)
    }

    pub fn bytes(&self) -> u64 {
        self.tensors.iter().map(|tensor| tensor.bytes).fold(0, u64::saturating_add)
    }
}

fn outline(tensor: &SourceTensor<'_>) -> Outline {
    Outline {
        name: tensor.name.clone(),
        place: Place::of(&tensor.name),
        dtype: tensor.payload.dtype(),
        elements: tensor.payload.shape().elements().unwrap_or(0),
        bytes: tensor.payload.len(),
    }
}

fn format_of(source: &OpenSource) -> String {
    match source {
        OpenSource::Gguf(set) => {
            let version = set.parts().first().map_or(0, |part| part.gguf().version());
            format!("GGUF version {version}")
        }
        OpenSource::P64(set) => match set.parts().first() {
            Some(part) => format!("P64 version {}", part.container().header().version.get()),
            None => "P64".to_owned(),
        },
        OpenSource::Safetensors(_) => "safetensors".to_owned(),
    }
}

/// The object of `--json`.
pub fn object(report: &Report) -> Value {
    let tensor = |tensor: &Tensor| {
        let mut object = json!({
            "name": tensor.name,
            "type": tensor.dtype.to_string(),
            "shape": tensor.shape,
            "elements": tensor.elements,
            "bytes": tensor.bytes,
            "layer": tensor.place.layer,
            "part": tensor.place.part.slug(),
        });
        if let (Some(stats), Value::Object(fields)) = (&tensor.stats, &mut object) {
            let (moments, histogram) = (&stats.moments, &stats.histogram);
            let finite = moments.finite() > 0;
            let of_finite = |value: f64| if finite { json!(value) } else { Value::Null };
            let counted = json!({
                "min": of_finite(moments.min),
                "max": of_finite(moments.max),
                "mean": of_finite(moments.mean),
                "std": of_finite(moments.std()),
                "zeros": moments.zeros,
                "outliers": stats.outliers(),
                "nan": moments.nan,
                "plus_infinity": moments.plus_infinity,
                "minus_infinity": moments.minus_infinity,
                "histogram": {
                    "low": histogram.low,
                    "high": histogram.high,
                    "below": histogram.below,
                    "above": histogram.above,
                    "counts": histogram.counts.to_vec(),
                },
            });
            fields.extend(counted.as_object().cloned().unwrap_or_default());
        }
        object
    };
    json!({
        "path": report.path,
        "format": report.format,
        "values": report.elements(),
        "bytes": report.bytes(),
        "not_finite": report.not_finite(),
        "seconds": report.took.as_secs_f64(),
        "values_per_second": number::per_second(report.elements(), report.took),
        "bytes_per_second": number::per_second(report.bytes(), report.took),
        "tensors": report.tensors.iter().map(tensor).collect::<Vec<_>>(),
    })
}
