//! A container as the source of a model's tensors, and its hyperparameter record as a witness.
#![forbid(unsafe_code)]

use super::dims::Config;
use super::weights::{FeedForward, Layer, Linear, Model, Norm, Weight, WeightSource};
use crate::container::{Container, TensorInfo};
use crate::error::{Code, Error, Place, Result, Section};
use crate::layout::hparams::RawHParams;
use crate::layout::role::Role;
use crate::num;

/// Names that belong to the container, not to the model.
const OWN_PREFIX: &str = "p64.";

fn weight<'w>(container: &Container<'w>, info: Option<TensorInfo<'w>>) -> Result<Option<Weight<'w>>> {
    let Some(info) = info else { return Ok(None) };
    let bytes = container.tensor(&info)?.bytes();
    Ok(Some(Weight { index: info.index(), dtype: info.dtype(), shape: info.shape(), bytes }))
}

/// Each tensor's checksum is verified, where it has not been, when the model takes it.
impl<'w> WeightSource<'w> for Container<'w> {
    fn by_name(&self, name: &str) -> Result<Option<Weight<'w>>> {
        weight(self, self.find(name))
    }

    fn by_role(&self, role: Role, layer: Option<u32>) -> Result<Option<Weight<'w>>> {
        weight(self, self.find_role(role, layer.unwrap_or(self.n_layer())))
    }

    fn each(&self, visit: &mut dyn FnMut(u32, &str, Role) -> Result<()>) -> Result<()> {
        let mut model = self.tensors().filter(|info| !info.name().starts_with(OWN_PREFIX));
        model.try_for_each(|info| visit(info.index(), info.name(), info.role()))
    }
}

impl<'w, L: AsRef<[Layer<'w>]>> Model<'w, L> {
    /// Bytes of weights that one generated token reads: every matrix once, of the token embedding one row unless it is
    /// also the output, and of experts those that a token uses.
    #[must_use]
    pub fn bytes_per_token(&self) -> u64 {
        let global = self.output.size().saturating_add(self.output_norm.size());
        let position = self.position_embd.map_or(0, |embd| embd.bytes().len().checked_div(embd.rows()).unwrap_or(0));
        let layers = self.layers.as_ref().iter().map(|layer| num::wide(layer.size(&self.config)));
        layers.fold(num::wide(global.saturating_add(position)), u64::saturating_add)
    }
}

impl Linear<'_> {
    fn size(&self) -> usize {
        self.weight.bytes().len().saturating_add(self.bias.map_or(0, |bias| bias.size()))
    }
}

impl Norm<'_> {
    fn size(&self) -> usize {
        self.weight.size().saturating_add(self.bias.map_or(0, |bias| bias.size()))
    }
}

impl Layer<'_> {
    fn size(&self, config: &Config) -> usize {
        let norms = [self.attn_norm, self.ffn_norm].into_iter().flatten().map(|norm| norm.size());
        let vectors = [
            self.attn_q_norm,
            self.attn_k_norm,
            self.attn_sub_norm,
            self.post_attention_norm,
            self.ffn_sub_norm,
            self.post_ffw_norm,
        ];
        let vectors = vectors.into_iter().flatten().map(|vector| vector.size());
        let attention = [self.attn_q, self.attn_k, self.attn_v, self.attn_output].map(|linear| linear.size());
        let feed_forward = match &self.feed_forward {
            FeedForward::Gated { gate, up, down } => [gate.size(), up.size(), down.size()],
            FeedForward::Plain { up, down } => [up.size(), down.size(), 0],
            FeedForward::Experts(tensors) => [config.experts.map_or(0, |experts| tensors.size(&experts)), 0, 0],
        };
        let all = norms.chain(vectors).chain(attention).chain(feed_forward);
        all.fold(0, usize::saturating_add)
    }
}

impl Config {
    /// Compares with a container's hyperparameter record and its extension, in which zero stands for "not said".
    ///
    /// # Errors
    /// [`Code::MetadataContradiction`] at the field (its offset within the record), with what the metadata say and what
    /// the record says (floats as [`f32::to_bits`]).
    pub fn check_hparams(&self, hparams: &RawHParams) -> Result<()> {
        let numbers = [
            (0u64, self.n_layer, hparams.n_layer.get()),
            (4, self.n_embd, hparams.n_embd.get()),
            (8, self.n_head, hparams.n_head.get()),
            (12, self.n_head_kv, hparams.n_kv_head.get()),
            (28, self.head_dim, hparams.head_dim.get()),
            (36, self.sliding_window, hparams.sliding_window.get()),
        ];
        let numbers = numbers.map(|(at, said, stored)| (at, num::wide(said), u64::from(stored)));
        let base = (20, u64::from(self.rope_base.to_bits()), u64::from(hparams.rope_freq_base.get().to_bits()));
        let mut fields = numbers.into_iter().chain([base]);
        match fields.find(|(_, said, stored)| *stored != 0 && said != stored) {
            Some((at, said, stored)) => {
                let place = Place::Section(Section::HParams);
                // The record's own offset is the header's to say; this is the field's within it.
                Err(Error::new(Code::MetadataContradiction, place).at(at).values(said, stored))
            }
            None => Ok(()),
        }
    }
}
