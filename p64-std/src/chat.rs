//! Chat templates: a conversation as the text that a model was trained to continue.
//!
//! Templates are Jinja, written for Python's implementation, and come with the model: they are code from outside, so they
//! run with a limit on their steps and reach nothing but the conversation.
#![forbid(unsafe_code)]

mod clock;

use crate::tokenizer::Tokenizer;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, ErrorKind, UndefinedBehavior, Value, context};

/// Steps of the template engine that one rendering may take; real templates need a few thousand.
const FUEL: u64 = 5_000_000;
const NAME: &str = "chat_template";

/// One turn of a conversation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Whose turn: `system`, `user` or `assistant`.
    pub role: String,
    /// What was said.
    pub content: String,
}

impl Message {
    /// A turn of `role`.
    #[must_use]
    pub fn new(role: &str, content: &str) -> Self {
        Self { role: role.to_owned(), content: content.to_owned() }
    }
}

/// Why a conversation could not be rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The model has no template.
    #[error("the model has no chat template, so it was not trained for conversations")]
    NoTemplate,
    /// The template refuses the conversation, in its own words.
    #[error("the model's chat template refuses the conversation: {0}")]
    Refused(String),
    /// The template itself is at fault, or needs what the engine lacks.
    #[error("the model's chat template cannot be used: {0}")]
    Template(String),
}

/// A model's chat template, compiled.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    bos: String,
    eos: String,
}

impl ChatTemplate {
    /// Compiles `source`; `bos` and `eos` are the texts of the special tokens that templates write.
    ///
    /// # Errors
    /// [`ChatError::Template`] for what is no template.
    pub fn new(source: &str, bos: &str, eos: &str) -> Result<Self, ChatError> {
        let mut environment = Environment::new();
        // As `transformers` renders them.
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| explain(&error))?);
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.set_fuel(Some(FUEL));
        environment.add_function("raise_exception", |message: String| -> Result<String, minijinja::Error> {
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, message).with_source(Raised))
        });
        environment.add_function("strftime_now", |format: &str| clock::strftime(format, std::time::SystemTime::now()));
        environment.add_template_owned(NAME, source.to_owned()).map_err(|error| explain(&error))?;
        Ok(Self { environment, bos: bos.to_owned(), eos: eos.to_owned() })
    }

    /// The template of a tokenizer's model.
    ///
    /// # Errors
    /// [`ChatError::NoTemplate`], and as [`ChatTemplate::new`].
    pub fn of(tokenizer: &Tokenizer) -> Result<Self, ChatError> {
        let source = tokenizer.chat_template().ok_or(ChatError::NoTemplate)?;
        let text = |id: Option<u32>| {
            let text = id.and_then(|id| tokenizer.token_text(id)).unwrap_or_default();
            String::from_utf8_lossy(text).into_owned()
        };
        Self::new(source, &text(tokenizer.bos()), &text(tokenizer.eos()))
    }

    /// The conversation as text, up to where the assistant begins to speak.
    ///
    /// # Errors
    /// [`ChatError::Refused`] in the template's words, [`ChatError::Template`].
    pub fn render(&self, messages: &[Message]) -> Result<String, ChatError> {
        let template = self.environment.get_template(NAME).map_err(|error| explain(&error))?;
        let messages = messages
            .iter()
            .map(|message| context! { role => message.role.as_str(), content => message.content.as_str() });
        let context = context! {
            messages => messages.collect::<Vec<Value>>(),
            add_generation_prompt => true,
            bos_token => self.bos.as_str(),
            eos_token => self.eos.as_str(),
        };
        template.render(context).map_err(|error| explain(&error))
    }

    /// The conversation as token ids. Special tokens that the template writes are read as such; BOS is added where the
    /// model wants it and the template has not written it.
    ///
    /// # Errors
    /// As [`ChatTemplate::render`].
    pub fn encode(&self, messages: &[Message], tokenizer: &Tokenizer) -> Result<Vec<u32>, ChatError> {
        let text = self.render(messages)?;
        let has_bos = !self.bos.is_empty() && text.starts_with(&self.bos);
        Ok(tokenizer.encode(text.as_bytes(), !has_bos, true))
    }
}

/// Marks errors that the template raised on purpose.
#[derive(Debug, thiserror::Error)]
#[error("raised by the template")]
struct Raised;

fn explain(error: &minijinja::Error) -> ChatError {
    let raised = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source())
        .any(|error| error.is::<Raised>());
    if raised {
        return ChatError::Refused(error.detail().unwrap_or_default().to_owned());
    }
    // The engine's own text has several lines, the first of which says what and where.
    ChatError::Template(error.to_string().lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests;
