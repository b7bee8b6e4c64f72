//! A session on the toy model: what it gives, when it ends, and what it remembers.

use p64_std::map::MapOptions;
use p64_std::model::LoadedModel;
use p64_std::sample::{Sampler, SamplerParams, argmax};
use p64_std::session::{GenerateOptions, Session, SessionOptions, StopReason};
use p64_tests::toy;
use std::ops::ControlFlow;

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
