//! What a tool is: its name, texts and types, its body, and the entry that makes tools of all kinds alike.

use crate::context::Context;
use crate::errors::{ErrorCode, ToolError};
use crate::schema;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize as _, Serialize};
use serde_json::{Map, Value};
use std::future::Future;
use std::pin::Pin;

/// One tool, in a file of its own.
pub trait Tool: 'static {
    /// Its name, `^[a-z0-9_]{1,48}$`.
    const NAME: &'static str;
    /// For the model: what it does in one searchable sentence, when to use it, what to call next.
    const DESCRIPTION: &'static str;
    /// What it does to the world.
    const EFFECT: Effect;
    /// Whether it answers at any length, because a part of the answer would be of no use.
    const WHOLE: bool = false;
    /// Set where names say what arguments and results are. The list that clients get then describes of the arguments those
    /// that must be given and these; search_tools describes all.
    const BRIEF: Option<&'static [&'static str]> = None;
    /// Its arguments; the field docs are the schema text.
    type Params: DeserializeOwned + JsonSchema + Send;
    /// Its result; the field docs are the schema text.
    type Output: Output + Send;

    /// The body.
    fn run(context: &Context, params: Self::Params) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}

/// What a tool does to the world: the annotations that clients decide by whether to ask a person first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Changes nothing at all.
    pub read_only: bool,
    /// May destroy something that cannot be had back.
    pub destructive: bool,
    /// A second call with the same arguments changes nothing more.
    pub idempotent: bool,
    /// Reaches beyond the debugged program and the workspace.
    pub open_world: bool,
}

impl Effect {
    /// Looks only.
    pub const READS: Self = Self { read_only: true, destructive: false, idempotent: true, open_world: false };
    /// Makes the program go on, or takes hold of it; each call does so anew.
    pub const RUNS: Self = Self { read_only: false, destructive: false, idempotent: false, open_world: false };
    /// Brings about a state that can be taken back.
    pub const SETS: Self = Self { read_only: false, destructive: false, idempotent: true, open_world: false };
    /// Overwrites or ends something.
    pub const OVERWRITES: Self = Self { read_only: false, destructive: true, idempotent: true, open_world: false };
    /// Whatever another program does.
    pub const ANYTHING: Self = Self { read_only: false, destructive: true, idempotent: false, open_world: true };
}

/// What a tool answers with: data, or a picture.
pub trait Output {
    /// Schema of the data; `None` when the answer is no data.
    fn schema() -> Option<Map<String, Value>>;

    /// The answer.
    ///
    /// # Errors
    /// When the data cannot be written as JSON.
    fn answer(self) -> Result<Answer, ToolError>;
}

/// The answer of a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Data, complete.
    Data(Value),
    /// A picture and what is known about it.
    Picture(Picture),
    /// Content of any kind, for the conformance suite.
    #[cfg(feature = "conformance")]
    Content(Vec<rmcp::model::ContentBlock>),
}

/// A picture and what is known about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// The file.
    pub png: Vec<u8>,
    /// Size, title, state of the program.
    pub facts: Value,
}

impl<T: Serialize + JsonSchema> Output for T {
    fn schema() -> Option<Map<String, Value>> {
        Some(schema::of_output::<T>())
    }

    fn answer(self) -> Result<Answer, ToolError> {
        serde_json::to_value(self)
            .map(Answer::Data)
            .map_err(|error| ToolError::new(ErrorCode::ServerFault, format!("the answer cannot be written: {error}")))
    }
}

impl Output for Picture {
    fn schema() -> Option<Map<String, Value>> {
        None
    }

    fn answer(self) -> Result<Answer, ToolError> {
        Ok(Answer::Picture(self))
    }
}

/// A body on its way to its answer.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<Answer, ToolError>> + Send + 'a>>;

/// A tool as the lists hold it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Its description.
    pub description: &'static str,
    /// What it does to the world.
    pub effect: Effect,
    /// Whether its answer may be longer than answers are.
    pub whole: bool,
    /// Set where the list that clients get describes little: the arguments that it does describe.
    pub brief: Option<&'static [&'static str]>,
    /// Schema of its arguments.
    pub input_schema: fn() -> Map<String, Value>,
    /// Schema of its result.
    pub output_schema: fn() -> Option<Map<String, Value>>,
    run: for<'a> fn(&'a Context, Map<String, Value>) -> Running<'a>,
}

impl Entry {
    /// The entry of a tool.
    pub const fn of<T: Tool>() -> Self {
        Self {
            name: T::NAME,
            description: T::DESCRIPTION,
            effect: T::EFFECT,
            whole: T::WHOLE,
            brief: T::BRIEF,
            input_schema: schema::of_input::<T::Params>,
            output_schema: T::Output::schema,
            run: run::<T>,
        }
    }

    /// Runs the tool.
    ///
    /// # Errors
    /// `invalid_arguments`, `output_too_large`, and the tool's own.
    pub async fn call(&self, context: &Context, arguments: Map<String, Value>) -> Result<Answer, ToolError> {
        let answer = (self.run)(context, arguments).await?;
        // What has already happened is reported at any length; what was only looked at can be asked for in parts.
        if let Answer::Data(data) = &answer
            && self.effect.read_only
            && !self.whole
            && let Some(limit) = context.output_limit()
        {
            let length = data.to_string().chars().count();
            if length > limit {
                return Err(ToolError::new(
                    ErrorCode::OutputTooLarge,
                    format!("the answer of {} is {length} characters long; {limit} are allowed", self.name),
                )
                .hint("ask for less, or raise `max_output_chars` in the server's configuration")
                .detail("limit", limit)
                .detail("length", length));
            }
        }
        Ok(answer)
    }

    /// First sentence of the description.
    pub fn summary(&self) -> &'static str {
        self.description.split_once(". ").map_or(self.description, |(first, _)| first)
    }
}

fn run<T: Tool>(context: &Context, arguments: Map<String, Value>) -> Running<'_> {
    Box::pin(async move {
        let params = T::Params::deserialize(&arguments).map_err(|error| wrong::<T>(&arguments, &error.to_string()))?;
        T::run(context, params).await?.answer()
    })
}

/// The refusal of arguments that are not of the tool's types: names the one that is at fault, and the forms it may have.
fn wrong<T: Tool>(arguments: &Map<String, Value>, error: &str) -> ToolError {
    let schema = schema::of_input::<T::Params>();
    // Given alone, the one at fault fails in the same way: a field that lacks is noticed behind all that are there.
    let at_fault = arguments.iter().find(|(name, value)| {
        let alone: Map<String, Value> = [((*name).clone(), (*value).clone())].into_iter().collect();
        T::Params::deserialize(&alone).is_err_and(|alone| alone.to_string() == error)
    });
    let property = at_fault.and_then(|(name, _)| Some((name, schema.get("properties")?.get(name)?)));
    let error: String = schema::without_type_names(error).chars().take(600).collect();
    let message = match property {
        Some((name, property)) => {
            let forms = schema::forms(property).map(|forms| format!("; it is {forms}")).unwrap_or_default();
            format!("{}: `{name}`: {error}{forms}", T::NAME)
        }
        None => format!("{}: {error}", T::NAME),
    };
    ToolError::new(ErrorCode::InvalidArguments, message).hint(schema::usage(&schema))
}
