//! Rotary position embedding.
#![forbid(unsafe_code)]

/// Which two elements of a head turn together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Pairing {
    /// Elements 2i and 2i + 1 (GGML's NORM).
    Adjacent,
    /// Elements i and i + rope_dim / 2 (GGML's NEOX).
    Split,
}

/// Which pairs YaRN leaves alone and which it slows down (GGML's correction dimensions).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Yarn {
    /// Pairs up to this one turn at the frequency they were trained with.
    pub low: f32,
    /// Pairs from this one on turn at `freq_scale` of it, those between at something between.
    pub high: f32,
}

/// How a model turns its heads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rope<'a> {
    /// Elements of a head.
    pub head_dim: usize,
    /// Elements of a head that turn, from its first on; even, at most `head_dim`. The others stay as they are.
    pub rope_dim: usize,
    /// Which elements turn together.
    pub pairing: Pairing,
    /// Base of the frequencies.
    pub freq_base: f32,
    /// Factor of every angle: 1 unless positions are interpolated.
    pub freq_scale: f32,
    /// One divisor for each pair's angle (`rope_freqs.weight`).
    pub freq_factors: Option<&'a [f32]>,
    /// The pairs that `freq_scale` is for; every pair where there is none.
    pub yarn: Option<Yarn>,
    /// Factor of the elements that turn.
    pub magnitude: f32,
}

impl Yarn {
    /// The angle of a pair whose trained angle is `theta`.
    fn angle(self, pair: usize, theta: f32, freq_scale: f32) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "a head has far fewer than 2^24 elements")]
        let ramp = (pair as f32 - self.low) / (self.high - self.low).max(0.001);
        let kept = 1.0 - ramp.clamp(0.0, 1.0);
        freq_scale * theta * (1.0 - kept) + theta * kept
    }
}

impl Rope<'_> {
    /// Turns pair `i` of every head of `x` (heads x `head_dim`) by
    /// `position * freq_scale * freq_base^(-2i / rope_dim) / freq_factors[i]`.
    ///
    /// The powers are built by repeated multiplication in `f32`, as GGML does, so that both round alike.
    pub fn apply(&self, x: &mut [f32], position: usize) {
        let Self { head_dim, rope_dim, magnitude, .. } = *self;
        debug_assert!(rope_dim <= head_dim && rope_dim.is_multiple_of(2));
        if head_dim == 0 || rope_dim > head_dim {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "contexts are far below 2^24 positions")]
        let (mut angle, step) = (position as f32, libm::powf(self.freq_base, -2.0 / rope_dim as f32));
        for pair in 0..rope_dim / 2 {
            let factor = self.freq_factors.and_then(|factors| factors.get(pair)).copied().unwrap_or(1.0);
            let theta = match self.yarn {
                None => self.freq_scale * (angle / factor),
                Some(yarn) => yarn.angle(pair, angle / factor, self.freq_scale),
            };
            let (sin, cos) = (libm::sinf(theta) * magnitude, libm::cosf(theta) * magnitude);
            let (first, distance) = match self.pairing {
                Pairing::Adjacent => (2 * pair, 1),
                Pairing::Split => (pair, rope_dim / 2),
            };
            for head in x.chunks_exact_mut(head_dim) {
                if let Ok([a, b]) = head.get_disjoint_mut([first, first + distance]) {
                    (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
                }
            }
            angle *= step;
        }
    }
}
