//! The random numbers of sampling: xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators",
//! 2021), its state filled from the seed by SplitMix64 as they advise. The same seed gives the same numbers everywhere.

/// xoshiro256++.
#[derive(Clone, Debug)]
pub(super) struct Rng {
    state: [u64; 4],
}

/// SplitMix64 (Steele, Lea and Flood 2014): the next output, and the state after it.
const fn split_mix(state: u64) -> (u64, u64) {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31), state)
}

impl Rng {
    pub(super) const fn new(seed: u64) -> Self {
        let (a, seed) = split_mix(seed);
        let (b, seed) = split_mix(seed);
        let (c, seed) = split_mix(seed);
        let (d, _) = split_mix(seed);
        Self { state: [a, b, c, d] }
    }

    /// The next 64 bits.
    pub(super) const fn next(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c2, d2) = (c ^ a, d ^ b);
        self.state = [a ^ d2, b ^ c2, c2 ^ (b << 17), d2.rotate_left(45)];
        result
    }

    /// A number in 0..1 with 53 random bits.
    pub(super) fn unit(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits are exact in f64")]
        let bits = (self.next() >> 11) as f64;
        bits * (1.0 / 9_007_199_254_740_992.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of the authors' C code for the state 1, 2, 3, 4.
    #[test]
    fn xoshiro_equals_the_reference() {
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let expected =
            [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386, 9_228_616_714_210_784_205];
        assert_eq!([(); 5].map(|()| rng.next()), expected);
    }

    /// The first outputs of the authors' C code for the seed 1234567.
    #[test]
    fn split_mix_equals_the_reference() {
        let (a, state) = split_mix(1_234_567);
        let (b, state) = split_mix(state);
        let (c, _) = split_mix(state);
        assert_eq!([a, b, c], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn units_fill_the_interval_evenly() {
        let mut rng = Rng::new(7);
        let mut tenths = [0_u32; 10];
        for _ in 0..100_000 {
            let unit = rng.unit();
            assert!((0.0..1.0).contains(&unit));
            tenths[(unit * 10.0) as usize] += 1;
        }
        // Standard deviation 95; six of them.
        assert!(tenths.iter().all(|n| n.abs_diff(10_000) < 570), "{tenths:?}");
    }
}
