use super::*;

fn sampler(params: SamplerParams) -> Sampler {
    Sampler::new(params).unwrap()
}

/// Everything off: a plain draw from the softmax.
fn plain(seed: u64) -> SamplerParams {
    SamplerParams { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed, ..SamplerParams::default() }
}

fn counts<const N: usize>(params: SamplerParams, logits: [f32; N], draws: usize) -> [usize; N] {
    let mut sampler = sampler(params);
    let mut counts = [0; N];
    for _ in 0..draws {
        counts[sampler.sample(&logits).unwrap() as usize] += 1;
    }
    counts
}

#[test]
fn greedy_takes_the_highest_and_the_lowest_id_of_equals() {
    let mut greedy = sampler(SamplerParams::greedy());
    for (logits, expected) in [
        (&[1.0, 3.0, 3.0, 2.0][..], Some(1)),
        (&[f32::NAN, -1.0, f32::NAN], Some(1)),
        (&[f32::NEG_INFINITY; 3], Some(0)),
        (&[f32::NAN; 3], Some(0)),
        (&[f32::NAN, f32::INFINITY, f32::INFINITY], Some(1)),
        (&[-0.0, 0.0], Some(0)),
        (&[7.0], Some(0)),
        (&[], None),
    ] {
        assert_eq!(greedy.sample(logits), expected, "{logits:?}");
    }
}

/// Probabilities 0.1, 0.2, 0.3, 0.4; 40,000 draws, six standard deviations (at most 98 each).
#[test]
fn draws_follow_the_softmax() {
    let logits = [1.0_f32, 2.0, 3.0, 4.0].map(f32::ln);
    for (n, expected) in counts(plain(1), logits, 40_000).into_iter().zip([4000_usize, 8000, 12_000, 16_000]) {
        assert!(n.abs_diff(expected) < 590, "{n} instead of {expected}");
    }
}

/// At temperature 0.5 the probabilities are the squares 1, 4, 9, 16 of 30.
#[test]
fn temperature_sharpens() {
    let logits = [1.0_f32, 2.0, 3.0, 4.0].map(f32::ln);
    let params = SamplerParams { temperature: 0.5, ..plain(2) };
    for (n, expected) in counts(params, logits, 30_000).into_iter().zip([1000_usize, 4000, 9000, 16_000]) {
        assert!(n.abs_diff(expected) < 530, "{n} instead of {expected}");
    }
}

#[test]
fn top_k_keeps_k() {
    let logits = [0.0, 5.0, 1.0, 5.0, 4.0];
    assert_eq!(counts(SamplerParams { top_k: 1, ..plain(3) }, logits, 100), [0, 100, 0, 0, 0]);
    let two = counts(SamplerParams { top_k: 2, ..plain(3) }, logits, 1000);
    assert!(two[1] > 400 && two[3] > 400 && two[1] + two[3] == 1000, "{two:?}");
    let many = counts(SamplerParams { top_k: 99, ..plain(3) }, logits, 1000);
    assert!(many[4] > 0, "{many:?}");
}

/// Probabilities 0.5, 0.25, 0.125, 0.125.
#[test]
fn top_p_keeps_the_nucleus() {
    let logits = [8.0_f32, 4.0, 2.0, 2.0].map(f32::ln);
    let kept = |top_p| counts(SamplerParams { top_p, ..plain(4) }, logits, 2000).map(|n| n > 0);
    assert_eq!(kept(0.0), [true, false, false, false]);
    assert_eq!(kept(0.4), [true, false, false, false]);
    assert_eq!(kept(0.6), [true, true, false, false]);
    assert_eq!(kept(0.8), [true, true, true, false]);
    assert_eq!(kept(1.0), [true; 4]);
}

/// A flat distribution needs more than the first front that is sorted.
#[test]
fn top_p_reaches_past_the_first_front() {
    let mut candidates: Vec<Candidate> = (0..5000).rev().map(|id| Candidate { logit: 1.0, id }).collect();
    filter::top_p(&mut candidates, 0.5);
    assert_eq!(candidates.len(), 2500);
    assert!((0..).zip(&candidates).all(|(id, candidate)| candidate.id == id));
}

#[test]
fn min_p_drops_the_improbable() {
    let logits = [8.0_f32, 4.0, 2.0, 1.0].map(f32::ln);
    let kept = |min_p| counts(SamplerParams { min_p, ..plain(5) }, logits, 2000).map(|n| n > 0);
    assert_eq!(kept(0.3), [true, true, false, false]);
    assert_eq!(kept(0.2), [true, true, true, false]);
    assert_eq!(kept(1.0), [true, false, false, false]);
}

#[test]
fn repeat_penalty_reaches_as_far_back_as_it_says() {
    let params = SamplerParams { repeat_penalty: 2.0, repeat_last_n: 2, ..SamplerParams::greedy() };
    let mut sampler = sampler(params);
    let positive = [4.0, 3.0, 2.5];
    assert_eq!(sampler.sample(&positive), Some(0));
    sampler.accept(0);
    sampler.accept(0);
    // 4 / 2 = 2, once although seen twice.
    assert_eq!(sampler.sample(&positive), Some(1));
    sampler.accept(1);
    assert_eq!(sampler.sample(&positive), Some(2));
    // -1 x 2 = -2 for 0 and 1.
    assert_eq!(sampler.sample(&[-1.0, -1.0, -1.5]), Some(2));
    sampler.accept(2);
    // Token 0 is forgotten.
    assert_eq!(sampler.sample(&positive), Some(0));
    sampler.accept(9);
    assert_eq!(sampler.sample(&positive), Some(0));
    sampler.reset();
    assert_eq!(sampler.sample(&positive), Some(0));
}

#[test]
fn a_bias_is_added_first() {
    let biased = |params, bias: &[(u32, f32)]| sampler(params).with_logit_bias(bias.to_vec()).unwrap();
    let greedy = SamplerParams::greedy();
    let logits = [1.0, 3.0, 2.0, -1.0];
    assert_eq!(biased(greedy, &[]).sample(&logits), Some(1));
    assert_eq!(biased(greedy, &[(3, 4.5)]).sample(&logits), Some(3));
    assert_eq!(biased(greedy, &[(3, 2.0), (3, 2.5)]).sample(&logits), Some(3), "both are added");
    assert_eq!(biased(greedy, &[(1, f32::NEG_INFINITY)]).sample(&logits), Some(2));
    assert_eq!(biased(greedy, &[(0, f32::INFINITY), (9, 100.0), (u32::MAX, 1.0)]).sample(&logits), Some(0));
    assert_eq!(biased(greedy, &[(0, f32::INFINITY), (0, f32::NEG_INFINITY)]).sample(&logits), Some(1));

    // Before the penalty: (3 + 3) / 2 = 3 still wins over 2; after it, 3 / 2 + 3 = 4.5 would win over 3.5 too, so 0 is 3.5.
    let mut penalized = biased(SamplerParams { repeat_penalty: 2.0, ..greedy }, &[(1, 3.0)]);
    penalized.accept(1);
    assert_eq!(penalized.sample(&[3.5, 3.0, 2.0, -1.0]), Some(0));
    // Before top-k: the one that is kept is the one that the bias made the highest.
    let mut top = biased(SamplerParams { top_k: 1, ..plain(8) }, &[(3, 9.0)]);
    assert!((0..50).all(|_| top.sample(&logits) == Some(3)));

    // What is forbidden is never drawn, and the others keep their odds: 1 to 3.
    let mut draw = biased(plain(9), &[(1, f32::NEG_INFINITY)]);
    let logits = [1.0_f32, 6.0, 3.0].map(f32::ln);
    let mut counts = [0_usize; 3];
    (0..40_000).for_each(|_| counts[draw.sample(&logits).unwrap() as usize] += 1);
    assert_eq!(counts[1], 0);
    assert!(counts[0].abs_diff(10_000) < 520, "{counts:?}");

    let error = sampler(greedy).with_logit_bias(vec![(0, f32::NAN)]).unwrap_err();
    assert_eq!(error.to_string(), "a logit bias is NaN, it must be a number");
}

#[test]
fn the_seed_decides() {
    let logits: Vec<f32> = (0..1000_u16).map(|i| f32::from(i % 17)).collect();
    let run = |seed| {
        let mut sampler = sampler(SamplerParams { temperature: 1.5, ..plain(seed) });
        (0..20).map(|_| sampler.sample(&logits).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(run(11), run(11));
    assert_ne!(run(11), run(12));
}

#[test]
fn odd_logits_never_panic() {
    let odd = [
        vec![f32::NAN; 4],
        vec![f32::NEG_INFINITY; 4],
        vec![f32::INFINITY; 4],
        vec![f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 0.0],
        vec![f32::MAX, f32::MIN, f32::MIN_POSITIVE, -0.0],
        vec![0.0],
    ];
    let settings = [
        SamplerParams::default(),
        plain(1),
        SamplerParams { top_p: 0.0, min_p: 1.0, top_k: 1, ..plain(1) },
        SamplerParams { repeat_penalty: f32::MAX, ..plain(1) },
        SamplerParams { temperature: f32::MIN_POSITIVE, ..plain(1) },
    ];
    for params in settings {
        let mut sampler = sampler(params);
        sampler.accept(0);
        sampler.accept(u32::MAX);
        for logits in &odd {
            let id = sampler.sample(logits).unwrap();
            assert!((id as usize) < logits.len(), "{params:?} {logits:?}");
        }
        assert_eq!(sampler.sample(&[]), None);
    }
}

#[test]
fn infinite_logits_win() {
    let logits = [f32::INFINITY, 3.0, f32::INFINITY, f32::NAN];
    let n = counts(plain(6), logits, 1000);
    assert!(n[0] > 400 && n[2] > 400 && n[1] + n[3] == 0, "{n:?}");
}

#[test]
fn parameters_are_checked() {
    let error = |params: SamplerParams| Sampler::new(params).unwrap_err().to_string();
    let base = SamplerParams::default();
    let cases = [
        (SamplerParams { temperature: -0.5, ..base }, "temperature is -0.5, it must be 0 or more"),
        (SamplerParams { temperature: f32::NAN, ..base }, "temperature is NaN, it must be 0 or more"),
        (SamplerParams { top_p: 1.5, ..base }, "top_p is 1.5, it must be from 0 to 1"),
        (SamplerParams { min_p: -1.0, ..base }, "min_p is -1, it must be from 0 to 1"),
        (SamplerParams { repeat_penalty: 0.0, ..base }, "repeat_penalty is 0, it must be above 0"),
    ];
    for (params, text) in cases {
        assert_eq!(error(params), text);
    }
}

/// The walk that keeps few against sorting all, with equal logits, both zeros and infinities.
#[test]
fn the_highest_few_are_those_of_a_sort() {
    let mut rng = Rng::new(5);
    for len in [1, 2, 39, 40, 41, 127, 128, 129, 1000, 5000] {
        for levels in [2.0, 30.0, 1e9] {
            let mut logit = || match (rng.unit() * levels).floor() - (levels / 2.0).floor() {
                0.0 if rng.unit() < 0.5 => -0.0,
                level if level < 1.0 - levels / 2.0 => f32::NEG_INFINITY,
                #[expect(clippy::cast_possible_truncation, reason = "any number does")]
                level => level as f32,
            };
            let all: Vec<Candidate> = (0..len).map(|id| Candidate { logit: logit(), id }).collect();
            let mut sorted = all.clone();
            sorted.sort_by(|a, b| b.logit.total_cmp(&a.logit).then(a.id.cmp(&b.id)));
            for k in [0, 1, 2, 40, 128, 129, 6000] {
                let mut few = all.clone();
                filter::top_k(&mut few, k);
                let bits = |of: &[Candidate]| of.iter().map(|c| (c.logit.to_bits(), c.id)).collect::<Vec<_>>();
                assert_eq!(bits(&few), bits(&sorted[..k.clamp(1, sorted.len())]), "{k} of {len}");
            }
        }
    }
}
