//! A conversation: each line is a message, each answer becomes part of what the next one is given.
//!
//! What the session has seen of the conversation is not computed again: of each turn's text, only what differs from it
//! passes through the model.

use super::interrupt::Interrupt;
use super::lines::Lines;
use super::report;
use super::{Args, finish, generate};
use crate::failure::{Failure, Result};
use crate::output::{Ui, number};
use p64_std::chat::{ChatTemplate, Message};
use p64_std::model::LoadedModel;
use p64_std::sample::Sampler;
use p64_std::session::{Generation, Session, StopReason};
use serde_json::{Value, json};

const HELP: &str = "\
/system TEXT   give the conversation this system message; without TEXT, none
/reset         forget the conversation, keep the system message
/stats         what the last answer took, and how full the context is
/exit          end, as Ctrl-D does
Ctrl-C stops an answer. A line that begins with a space is a message, also before a slash.";

/// Talks until there are no more lines.
pub fn hold(args: &Args, session: Session<&LoadedModel>, sampler: Sampler, ui: &Ui) -> Result<u8> {
    let template = ChatTemplate::of(session.model().tokenizer()).map_err(|error| args.chat_failure(&error))?;
    let interrupt =
        Interrupt::install().map_err(|error| Failure::Usage(format!("cannot watch for Ctrl-C (SIGINT): {error}")))?;
    let mut lines = Lines::open()?;
    let system = args.system.as_deref().map(|text| Message::new("system", text));
    let mut talk = Conversation { args, ui, template, session, sampler, system, turns: Vec::new(), last: None };
    talk.session.set_interrupt(interrupt.raised());
    if lines.interactive() {
        ui.note("/help lists the commands; Ctrl-C stops an answer, Ctrl-D ends");
    }
    while let Some(line) = lines.next()? {
        if line.trim().is_empty() {
            continue;
        }
        if line.starts_with('/') {
            if talk.command(&line)? {
                continue;
            }
            break;
        }
        match interrupt.catch(|| talk.turn(&line)) {
            // A person can go on after an error, a script is to learn of it.
            Err(failure) if lines.interactive() && !matches!(failure, Failure::Output(_)) => {
                failure.report(ui);
            }
            done => done?,
        }
    }
    Ok(0)
}

struct Conversation<'a> {
    args: &'a Args,
    ui: &'a Ui,
    template: ChatTemplate,
    session: Session<&'a LoadedModel>,
    sampler: Sampler,
    system: Option<Message>,
    /// The user's messages and the answers, in turn.
    turns: Vec<Message>,
    last: Option<Turn>,
}

/// What the last turn took.
struct Turn {
    /// Tokens of the conversation that the session had already seen.
    reused: usize,
    generation: Generation,
}

impl Conversation<'_> {
    /// Carries out a command; false where it ends the conversation.
    fn command(&mut self, line: &str) -> Result<bool> {
        let (name, text) = line.split_once(char::is_whitespace).map_or((line, ""), |(name, text)| (name, text.trim()));
        match name {
            "/exit" | "/quit" => return Ok(false),
            "/help" => self.ui.note(HELP),
            "/stats" => self.stats(),
            "/reset" => {
                self.turns.clear();
                self.last = None;
                self.session.reset();
                self.sampler.reset();
                self.ui.note("the conversation begins anew");
            }
            "/system" => {
                self.system = (!text.is_empty()).then(|| Message::new("system", text));
                self.ui.note(if text.is_empty() { "no system message" } else { "the system message is set" });
            }
            _ => self.ui.note(format_args!("there is no command {name}; /help lists them")),
        }
        Ok(true)
    }

    /// One message and its answer.
    fn turn(&mut self, text: &str) -> Result<()> {
        self.turns.push(Message::new("user", text));
        let answered = self.answer();
        match &answered {
            Ok(generation) if generation.reason != StopReason::Cancelled || !generation.text.is_empty() => {
                self.turns.push(Message::new("assistant", &generation.text));
            }
            // Stopped before a word was said, or never begun: as if nothing had been asked.
            _ => drop(self.turns.pop()),
        }
        let generation = answered?;
        if self.ui.json() {
            let reused = self.last.as_ref().map_or(0, |turn| turn.reused);
            self.ui.object_line(&object(text, reused, &generation))?;
        } else {
            finish(self.args, &generation, self.ui)?;
            match generation.reason {
                StopReason::EndOfGeneration | StopReason::StopText => {}
                reason => self.ui.note(format_args!("({})", report::ended(reason))),
            }
        }
        Ok(())
    }

    fn answer(&mut self) -> Result<Generation> {
        let ids = self.fit()?;
        let keep = if self.args.context_shift { self.preamble()? } else { 0 };
        let options = self.args.generate_options(self.session.model(), usize::MAX, keep);
        let reused = self.session.reuse(&ids);
        let rest = ids.get(reused..).unwrap_or_default();
        let generation = generate(self.args, &mut self.session, rest, &options, &mut self.sampler, self.ui)?;
        self.last = Some(Turn { reused, generation: generation.clone() });
        Ok(generation)
    }

    /// The conversation's tokens. Where they do not fit the context and it may be shifted, the oldest turns are forgotten
    /// until half of it is free.
    fn fit(&mut self) -> Result<Vec<u32>> {
        let context = self.session.context();
        let mut ids = self.encode(&self.turns)?;
        if ids.len() < context {
            return Ok(ids);
        }
        let need = ids.len();
        let mut forgotten = 0;
        while self.args.context_shift && ids.len() > context / 2 && forgotten + 2 < self.turns.len() {
            forgotten += 2;
            ids = self.encode(self.turns.get(forgotten..).unwrap_or_default())?;
        }
        if ids.len() < context {
            self.turns.drain(..forgotten);
            let turns = number::plural(forgotten as u64 / 2, "turn");
            self.ui.note(format_args!("(the context was full: {turns} forgotten)"));
            return Ok(ids);
        }
        let remedy = if self.args.context_shift {
            ""
        } else {
            "/reset begins anew, --context-shift forgets the oldest turns, or "
        };
        let reason = format!(
            "the conversation has {need} tokens, the context has room for {context}; {remedy}ask for a larger context (-c)"
        );
        Err(Failure::Usage(reason))
    }

    fn encode(&self, turns: &[Message]) -> Result<Vec<u32>> {
        let messages: Vec<Message> = self.system.iter().chain(turns).cloned().collect();
        let encoded = self.template.encode(&messages, self.session.model().tokenizer());
        encoded.map_err(|error| self.args.chat_failure(&error))
    }

    /// How many tokens stand before the first message, whatever it says: BOS, the system message, the user's mark.
    fn preamble(&self) -> Result<usize> {
        let [one, other] = ["1", "x"].map(|text| self.encode(&[Message::new("user", text)]));
        Ok(one?.iter().zip(&other?).take_while(|(one, other)| one == other).count())
    }

    fn stats(&self) {
        let Some(Turn { reused, generation }) = &self.last else { return self.ui.note("nothing was said yet") };
        report::statistics(generation, self.ui);
        let (used, context) = (self.session.history().len(), self.session.context());
        self.ui.note(format_args!("{:<10} {reused:>5} tokens of the conversation were not computed again", "reused"));
        self.ui.note(format_args!("{:<10} {used:>5} tokens of {context}", "context"));
    }
}

fn object(user: &str, reused: usize, generation: &Generation) -> Value {
    json!({
        "user": user,
        "text": generation.text,
        "ids": generation.ids,
        "reason": generation.reason.name(),
        "reused_tokens": reused,
        "stats": report::object(&generation.stats),
    })
}
