//! A session on the toy model: what it gives, when it ends, and what it remembers.

use p64_core::forward::KvType;
use p64_std::map::MapOptions;
use p64_std::model::LoadedModel;
use p64_std::sample::{Sampler, SamplerParams, argmax};
use p64_std::session::{GenerateOptions, Session, SessionOptions, StopReason};
use p64_tests::toy;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const PROMPT: [u32; 5] = [0, 1, 2, 3, 7];

/// Runs `test` with the toy model, opened from a file.
fn with_model(test: impl FnOnce(&LoadedModel)) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("toy.p64");
    std::fs::write(&path, toy::model(&toy::metadata()).build()).expect("written");
    test(&LoadedModel::open(&path, &MapOptions::default()).expect("opens"));
}

fn session(model: &LoadedModel, context: usize) -> Session<&LoadedModel> {
    let options = SessionOptions { context: Some(context), threads: 1, batch: 2, ..SessionOptions::default() };
    Session::new(model, &options).expect("fits")
}

fn endless(max_tokens: usize) -> GenerateOptions {
    GenerateOptions { max_tokens, ignore_eos: true, ..GenerateOptions::default() }
}

fn greedy() -> Sampler {
    Sampler::new(SamplerParams::greedy()).expect("in range")
}

#[test]
fn generation_is_prefill_and_steps() {
    with_model(|model| {
        let mut by_hand = session(model, 32);
        let mut next = argmax(by_hand.prefill(&PROMPT).expect("fits")).expect("logits");
        let mut ids = Vec::new();
        for _ in 0..10 {
            ids.push(next);
            next = argmax(by_hand.step(next).expect("fits")).expect("logits");
        }
        let mut session = session(model, 32);
        let mut shown = String::new();
        let done = session
            .generate(&PROMPT, &endless(10), &mut greedy(), &mut |text| {
                shown.push_str(text);
                ControlFlow::Continue(())
            })
            .expect("runs");
        assert_eq!((done.ids.as_slice(), done.reason), (ids.as_slice(), StopReason::Length));
        assert_eq!(done.text, shown);
        // The last token was not passed through the model.
        assert_eq!(session.history(), [&PROMPT[..], &ids[..9]].concat());
    });
}

#[test]
fn it_ends_where_the_context_does() {
    with_model(|model| {
        let mut session = session(model, 8);
        let run = |session: &mut Session<&LoadedModel>, prompt: &[u32]| {
            session.generate(prompt, &endless(100), &mut greedy(), &mut |_| ControlFlow::Continue(()))
        };
        let done = run(&mut session, &PROMPT).expect("runs");
        // Eight positions and the token after the last.
        assert_eq!((done.ids.len(), done.reason), (8 - PROMPT.len() + 1, StopReason::ContextFull));
        assert!(run(&mut session, &[1]).is_err());
        assert_eq!(session.history().len(), 8);
        session.reset();
        assert!(run(&mut session, &[1; 9]).is_err());
        assert!(run(&mut session, &[]).is_err());
        assert!(session.history().is_empty());
        assert_eq!(run(&mut session, &PROMPT).expect("runs").ids, done.ids);
    });
}

#[test]
fn an_end_of_generation_token_ends_it() {
    with_model(|model| {
        let mut logits = session(model, 64);
        // Find a prompt after which the toy says </s>.
        let prompt = (0..8u32).flat_map(|a| (0..8u32).map(move |b| [a, b])).find(|prompt| {
            logits.reset();
            argmax(logits.prefill(prompt).expect("fits")) == Some(6)
        });
        let prompt = prompt.expect("one of 64 prompts ends");
        let run = |ignore_eos| {
            let options = GenerateOptions { max_tokens: 3, ignore_eos, ..GenerateOptions::default() };
            let mut session = session(model, 64);
            session.generate(&prompt, &options, &mut greedy(), &mut |_| ControlFlow::Continue(())).expect("runs")
        };
        let done = run(false);
        assert_eq!((done.ids, done.text.as_str(), done.reason), (vec![6], "", StopReason::EndOfGeneration));
        let done = run(true);
        assert_eq!((done.ids.len(), done.ids[0], done.reason), (3, 6, StopReason::Length));
    });
}

/// The penalty counts what the prompt holds, not only what was generated.
#[test]
fn the_repeat_penalty_sees_the_prompt() {
    with_model(|model| {
        let mut logits = session(model, 32).prefill(&PROMPT).expect("fits").to_vec();
        for id in PROMPT {
            let logit = &mut logits[id as usize];
            if *logit <= 0.0 { *logit *= 50.0 } else { *logit /= 50.0 }
        }
        let params = SamplerParams { repeat_penalty: 50.0, ..SamplerParams::greedy() };
        let mut sampler = Sampler::new(params).expect("in range");
        let mut session = session(model, 32);
        let done = session.generate(&PROMPT, &endless(1), &mut sampler, &mut |_| ControlFlow::Continue(()));
        assert_eq!(done.expect("runs").ids, [argmax(&logits).expect("logits")]);
    });
}

/// Whoever breaks off is shown nothing more, not even what was held back for a stop text; the result has it.
#[test]
fn a_caller_who_breaks_off_is_left_alone() {
    with_model(|model| {
        // After each letter a stop text might begin, so one letter is always held back.
        let stop = "abcds<>/".chars().map(|letter| format!("{letter}!")).collect();
        let options = GenerateOptions { stop, ..endless(20) };
        let mut shown = Vec::new();
        let done = session(model, 64).generate(&PROMPT, &options, &mut greedy(), &mut |text| {
            shown.push(text.to_owned());
            ControlFlow::Break(())
        });
        let done = done.expect("runs");
        assert_eq!((shown.len(), done.reason), (1, StopReason::Cancelled));
        assert_eq!(done.text.len(), shown[0].len() + 1);
        assert!(done.text.starts_with(&shown[0]));
    });
}

/// Spec §10: a complete model without its tokenizer section is no model to run, whatever the metadata hold.
#[test]
fn a_complete_model_needs_its_tokenizer_section() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("toy.p64");
    let mut assembly = toy::model(&toy::metadata());
    assembly.tokenizer.clear();
    std::fs::write(&path, assembly.build()).expect("written");
    let error = LoadedModel::open(&path, &MapOptions::default()).expect_err("no tokenizer");
    assert!(error.to_string().contains("tokenizer section"), "{error}");
    assert_eq!(error.exit_code(), 1);
}

/// The bits of the logits after `tokens` in a session that has seen nothing else.
fn alone(model: &LoadedModel, tokens: &[u32]) -> Vec<u32> {
    bits(session(model, 32).prefill(tokens).expect("fits"))
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|logit| logit.to_bits()).collect()
}

#[test]
fn what_was_seen_is_not_computed_again_and_changes_nothing() {
    with_model(|model| {
        let seen = [0, 1, 2, 3, 7, 4, 5];
        let wanted: [(&[u32], usize); 7] = [
            (&[0, 1, 2, 3, 7, 4, 5, 2, 2], 7), // goes on
            (&[0, 1, 2, 3, 7, 4, 5], 6),       // the same: the last token's logits are computed anew
            (&[0, 1, 2, 3], 3),                // a part of it
            (&[0, 1, 2, 5, 7, 4, 5, 1], 3),    // differs in the middle
            (&[1, 1, 2], 0),                   // differs from the first on
            (&[0], 0),
            (&[], 0),
        ];
        for (tokens, kept) in wanted {
            let mut session = session(model, 32);
            session.prefill(&seen).expect("fits");
            assert_eq!(session.reuse(tokens), kept, "{tokens:?}");
            assert_eq!(session.history(), &tokens[..kept]);
            if tokens.is_empty() {
                assert!(session.prefill_reusing(tokens).is_err());
                continue;
            }
            assert_eq!(bits(session.prefill_reusing(tokens).expect("fits")), alone(model, tokens), "{tokens:?}");
            assert_eq!(session.history(), tokens);
        }
    });
}

#[test]
fn a_shift_leaves_what_a_new_session_would_hold() {
    with_model(|model| {
        let tokens = [0, 1, 2, 3, 7, 4, 5, 2];
        // Of the eight, `keep` stay, then the older half of the rest goes.
        let cases: [(usize, usize, &[u32]); 4] =
            [(0, 4, &[7, 4, 5, 2]), (1, 3, &[0, 7, 4, 5, 2]), (2, 3, &[0, 1, 4, 5, 2]), (6, 1, &[0, 1, 2, 3, 7, 4, 2])];
        for (keep, dropped, left) in cases {
            let mut session = session(model, 8);
            session.prefill(&tokens).expect("fits");
            assert_eq!(session.shift(keep).expect("computes"), dropped, "keep {keep}");
            assert_eq!(session.history(), left, "keep {keep}");
            assert_eq!(session.logits().map(bits), Some(alone(model, left)), "keep {keep}");
        }
        for keep in [7, 8, 9, usize::MAX] {
            let mut session = session(model, 8);
            session.prefill(&tokens).expect("fits");
            assert_eq!(session.shift(keep).expect("computes"), 0);
            assert_eq!(session.history(), tokens);
        }
    });
}

/// By hand: whenever eight tokens are there, a session that holds the ones that a shift leaves gives the next.
#[test]
fn a_generation_goes_on_past_the_context() {
    with_model(|model| {
        let (keep, count) = (2, 40);
        let mut held = PROMPT.to_vec();
        let (mut ids, mut shifts) = (Vec::new(), 0);
        loop {
            let mut session = session(model, 8);
            ids.push(argmax(session.prefill(&held).expect("fits")).expect("logits"));
            if ids.len() == count {
                break;
            }
            if held.len() == 8 {
                held.drain(keep..keep + (8 - keep) / 2);
                shifts += 1;
            }
            held.extend(ids.last());
        }
        let options = GenerateOptions { shift: Some(keep), ..endless(count) };
        let mut long = session(model, 8);
        let done = long.generate(&PROMPT, &options, &mut greedy(), &mut |_| ControlFlow::Continue(())).expect("runs");
        assert_eq!((done.ids, done.reason, done.stats.shifts), (ids, StopReason::Length, shifts));
        assert!(shifts > 10);
        // Where everything is to be kept the context ends it, as without a shift.
        let options = GenerateOptions { shift: Some(8), ..endless(count) };
        let mut full = session(model, 8);
        let done = full.generate(&PROMPT, &options, &mut greedy(), &mut |_| ControlFlow::Continue(())).expect("runs");
        assert_eq!((done.ids.len(), done.reason, done.stats.shifts), (4, StopReason::ContextFull, 0));
    });
}

/// A rounded cache holds each position's keys and values by themselves, so forgetting and shifting stay exact.
#[test]
fn reuse_and_shift_are_exact_in_every_type_of_cache() {
    let path = p64_tests::data::data("tiny/tiny-stories-q8_0.gguf");
    let model = LoadedModel::open(&path, &MapOptions::default()).expect("opens");
    let text = "Once upon a time, there was a small dog named Max. One sunny morning, Max found a ball.";
    let tokens = model.tokenizer().encode(text.as_bytes(), true, false);
    let mut results = Vec::new();
    for kind in KvType::ALL {
        let options = SessionOptions { context: Some(64), threads: 1, kv: (*kind).into(), ..SessionOptions::default() };
        let fresh = |tokens: &[u32]| bits(Session::new(&model, &options).expect("fits").prefill(tokens).expect("fits"));
        let mut session = Session::new(&model, &options).expect("fits");
        session.prefill(&tokens).expect("fits");
        let other = [&tokens[..tokens.len() / 2], &tokens[3..9]].concat();
        assert_eq!(bits(session.prefill_reusing(&other).expect("fits")), fresh(&other), "{}", kind.name());
        assert!(session.shift(5).expect("computes") > 0);
        let left = session.history().to_vec();
        assert_eq!(session.logits().map(bits), Some(fresh(&left)), "{}", kind.name());
        results.push(fresh(&tokens));
    }
    results.dedup();
    assert_eq!(results.len(), KvType::ALL.len(), "the types round differently");
}

/// Four sessions at once over one mapped model, each with a text of its own, write what they write alone.
#[test]
fn sequences_over_one_model_do_not_disturb_each_other() {
    let path = p64_tests::data::data("tiny/tiny-stories-q8_0.gguf");
    let model = Arc::new(LoadedModel::open(&path, &MapOptions::default()).expect("opens"));
    let write = |model: Arc<LoadedModel>, prompt: &str, seed: u64, threads: usize| {
        let ids = model.tokenizer().encode(prompt.as_bytes(), true, false);
        let options = SessionOptions { context: Some(128), threads, ..SessionOptions::default() };
        let mut session = Session::new(model, &options).expect("fits");
        let mut sampler = Sampler::new(SamplerParams { seed, ..SamplerParams::default() }).expect("in range");
        let done = session.generate(&ids, &endless(80), &mut sampler, &mut |_| ControlFlow::Continue(()));
        done.expect("runs").text
    };
    let prompts = ["Once upon a time", "A small dog named", "One sunny morning", "There once was"];
    let expected: Vec<String> =
        (0..).zip(prompts).map(|(seed, prompt)| write(Arc::clone(&model), prompt, seed, 1)).collect();
    let threads: Vec<_> = (0..)
        .zip(prompts)
        .map(|(seed, prompt)| {
            let model = Arc::clone(&model);
            std::thread::spawn(move || write(model, prompt, seed, 1 + seed as usize % 2))
        })
        .collect();
    let found: Vec<String> = threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    assert_eq!(found, expected);
    assert!(expected.iter().all(|text| text.len() > 100), "{expected:?}");
}

#[test]
fn an_interrupt_ends_the_prompt_and_the_text() {
    with_model(|model| {
        let flag = Arc::new(AtomicBool::new(true));
        let mut session = session(model, 64);
        session.set_interrupt(Arc::clone(&flag));
        let done = session.generate(&PROMPT, &endless(20), &mut greedy(), &mut |_| ControlFlow::Continue(()));
        let done = done.expect("runs");
        assert_eq!((done.ids.len(), done.reason, done.stats.prompt_tokens), (0, StopReason::Cancelled, 0));
        assert!(session.history().is_empty());

        flag.store(false, Ordering::Relaxed);
        let mut pieces = 0;
        let done = session.generate(&PROMPT, &endless(20), &mut greedy(), &mut |_| {
            pieces += 1;
            flag.store(pieces == 3, Ordering::Relaxed);
            ControlFlow::Continue(())
        });
        let done = done.expect("runs");
        assert_eq!((pieces, done.reason), (3, StopReason::Cancelled));
        // As at every other end, the last token has not been passed.
        assert_eq!(session.history(), [&PROMPT[..], &done.ids[..done.ids.len() - 1]].concat());
    });
}

#[test]
fn a_forbidden_token_is_not_generated() {
    with_model(|model| {
        let run = |bias: Vec<(u32, f32)>| {
            let mut sampler = greedy().with_logit_bias(bias).expect("numbers");
            let mut session = session(model, 64);
            session.generate(&PROMPT, &endless(12), &mut sampler, &mut |_| ControlFlow::Continue(())).expect("runs").ids
        };
        let free = run(Vec::new());
        let without = run(vec![(free[0], f32::NEG_INFINITY)]);
        assert!(!without.contains(&free[0]), "{without:?}");
        assert_eq!(run(vec![(5, f32::INFINITY)]), [5; 12]);
    });
}
