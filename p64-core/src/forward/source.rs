//! A container as the source of a model's tensors, and its hyperparameter record as a witness.
#![forbid(unsafe_code)]

use super::dims::Config;
use super::weights::{Layer, Model, Weight, WeightSource};
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
    /// also the output.
    #[must_use]
    pub fn bytes_per_token(&self) -> u64 {
        let per_layer = |layer: &Layer<'w>| {
            let needed = [
                layer.attn_norm,
                layer.attn_q,
                layer.attn_k,
                layer.attn_v,
                layer.attn_output,
                layer.ffn_norm,
                layer.ffn_gate,
                layer.ffn_up,
                layer.ffn_down,
            ];
            let optional = [layer.attn_q_norm, layer.attn_k_norm, layer.post_attention_norm, layer.post_ffw_norm]
                .into_iter()
                .flatten();
            needed.into_iter().chain(optional).map(|matrix| num::wide(matrix.bytes().len())).sum::<u64>()
        };
        let globals = [self.output, self.output_norm].map(|matrix| num::wide(matrix.bytes().len()));
        globals.into_iter().sum::<u64>() + self.layers.as_ref().iter().map(per_layer).sum::<u64>()
    }
}

impl Config {
    /// Compares with a container's hyperparameter record, in which zero stands for "not said".
    ///
    /// # Errors
    /// [`Code::MetadataContradiction`] at the field (its offset within the record), with what the metadata say and what the record says (floats as
    /// [`f32::to_bits`]).
    pub fn check_hparams(&self, hparams: &RawHParams) -> Result<()> {
        let numbers = [
            (0u64, self.n_layer, hparams.n_layer.get()),
            (4, self.n_embd, hparams.n_embd.get()),
            (8, self.n_head, hparams.n_head.get()),
            (12, self.n_head_kv, hparams.n_kv_head.get()),
        ];
        let numbers = numbers.map(|(at, said, stored)| (at, num::wide(said), u64::from(stored)));
        let base = (20, u64::from(self.global.rope_base.to_bits()), u64::from(hparams.rope_freq_base.get().to_bits()));
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
