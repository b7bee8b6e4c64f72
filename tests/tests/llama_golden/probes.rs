//! The intermediates of a forward pass beside llama.cpp's, in the order in which they arise.

use crate::golden::Probe;
use p64_core::forward::Node;

/// One of ours: what the goldens keep of an intermediate.
pub struct Seen {
    pub name: String,
    op: &'static str,
    sum: f64,
    l2: f64,
    last_row: Vec<f32>,
    len: usize,
}

impl Seen {
    pub fn of(node: Node<'_>) -> Self {
        let name = node.layer.map_or_else(|| node.name.to_owned(), |layer| format!("{}-{layer}", node.name));
        let sum = node.values.iter().map(|value| f64::from(*value)).sum();
        let l2 = node.values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
        let last = &node.values[node.values.len() - node.row_len..];
        Self { name, op: node.op, sum, l2, last_row: last[..last.len().min(16)].to_vec(), len: node.values.len() }
    }

    /// The golden of the same name and operation.
    pub fn golden<'g>(&self, goldens: &'g [Probe]) -> Option<&'g Probe> {
        goldens.iter().find(|golden| golden.name == self.name && golden.op == self.op)
    }

    /// The largest deviation, as a share of the intermediate's own size: of the kept values, the largest of them; of the
    /// norm, the norm; of the sum, what it would be were all values of one sign. In the last layer we drop the positions
    /// that nobody asks for earlier than llama.cpp does; there only the last row is compared.
    pub fn deviation(&self, golden: &Probe) -> f64 {
        assert_eq!(self.last_row.len(), golden.last_row_head16.len(), "{}", self.name);
        let size = f64::from(golden.last_row_head16.iter().fold(0.0f32, |max, value| value.abs().max(max)));
        let values = self.last_row.iter().zip(&golden.last_row_head16);
        let values = values.map(|(ours, theirs)| (f64::from(*ours) - f64::from(*theirs)).abs() / size);
        let worst = values.fold(0.0, f64::max);
        if self.len != golden.ne.iter().product::<usize>() {
            return worst;
        }
        let sum = (self.sum - golden.sum).abs() / (golden.l2 * (self.len as f64).sqrt());
        worst.max(sum).max((self.l2 - golden.l2).abs() / golden.l2)
    }
}
