//! Profiles: what a whole model is quantised to.

use p64_core::DType;
use std::str::FromStr;

macro_rules! profiles {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $dtype:ident;)*) => {
        /// A profile. The mixes choose the types of llama.cpp's file types of the same names, tensor by tensor.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[non_exhaustive]
        pub enum Profile {
            $($(#[$doc])* $variant,)*
        }

        impl Profile {
            /// Every profile.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name that people write.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The type of most of the tensors that it changes.
            #[must_use]
            pub const fn dtype(self) -> DType {
                match self {
                    $(Self::$variant => DType::$dtype,)*
                }
            }
        }
    };
}

profiles! {
    /// Gate, up and down projections in Q4_0, all else as it is (spec §13.2).
    FfnQ40 = "ffn-q4_0", Q4_0;
    /// Gate, up and down projections in P64's ternary, all else as it is (spec §13.2).
    FfnTernary = "ffn-ternary", Ternary;
    /// Every matrix in Q8_0.
    Q80 = "q8_0", Q8_0;
    /// Q6_K.
    Q6K = "q6_k", Q6_K;
    /// Q5_K, the tensors that matter most in Q6_K.
    Q5KM = "q5_k_m", Q5_K;
    /// Q5_K.
    Q5KS = "q5_k_s", Q5_K;
    /// Q4_K, the tensors that matter most in Q6_K.
    Q4KM = "q4_k_m", Q4_K;
    /// Q4_K, some first layers in Q5_K.
    Q4KS = "q4_k_s", Q4_K;
    /// Q3_K, attention values, outputs and down projections in Q5_K.
    Q3KL = "q3_k_l", Q3_K;
    /// Q3_K, attention values, outputs and down projections in Q4_K or Q5_K.
    Q3KM = "q3_k_m", Q3_K;
    /// Q3_K.
    Q3KS = "q3_k_s", Q3_K;
    /// Q2_K, attention values, outputs and down projections in Q3_K or Q4_K.
    Q2K = "q2_k", Q2_K;
    /// Q5_1.
    Q51 = "q5_1", Q5_1;
    /// Q5_0.
    Q50 = "q5_0", Q5_0;
    /// Q4_1.
    Q41 = "q4_1", Q4_1;
    /// Q4_0.
    Q40 = "q4_0", Q4_0;
    /// IQ4_NL.
    Iq4Nl = "iq4_nl", IQ4_NL;
    /// IQ4_XS.
    Iq4Xs = "iq4_xs", IQ4_XS;
    /// TQ1_0, for models that were trained ternary.
    Tq10 = "tq1_0", TQ1_0;
    /// TQ2_0, for models that were trained ternary.
    Tq20 = "tq2_0", TQ2_0;
    /// Every matrix in F16.
    F16 = "f16", F16;
    /// Every matrix in BF16.
    Bf16 = "bf16", BF16;
    /// Every matrix in F32.
    F32 = "f32", F32;
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // `ffn_q4_0` is what the hyphen gets mistaken for.
        let plain = |name: &str| name.to_lowercase().replace('-', "_");
        Self::ALL.iter().copied().find(|profile| plain(profile.name()) == plain(text)).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|profile| profile.name()).collect();
            format!("`{text}` is no profile; the profiles are {}", names.join(", "))
        })
    }
}

impl std::fmt::Display for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for profile in Profile::ALL {
            assert_eq!(profile.to_string().parse(), Ok(*profile));
        }
        assert_eq!("FFN_Q4_0".parse(), Ok(Profile::FfnQ40));
        assert!("q9".parse::<Profile>().expect_err("no profile").contains("q4_k_m"));
    }
}
