//! The kinds of objects of a server, and which tools work on them.

use serde_json::Value;

use crate::sequence::{Place, Role, StepRecord};

/// Where the identifier of an object is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Identifier {
    /// In the result of the call that creates it.
    Result(Place),
    /// In an argument of that call: the client names the object.
    Argument(String),
}

impl Identifier {
    /// Where it is, for people.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Result(place) => place.shown(),
            Self::Argument(name) => format!("its argument {name}"),
        }
    }

    /// The identifier of the object that a call created.
    pub(super) fn value(&self, record: &StepRecord) -> Option<Value> {
        match self {
            Self::Result(place) => place.find(record.results().first()?, &record.arguments),
            Self::Argument(name) => record.arguments.get(name).cloned(),
        }
    }
}

/// A tool that takes the identifier of an object.
#[derive(Debug, Clone)]
pub(super) struct ObjectTool {
    pub(super) tool: usize,
    pub(super) argument: String,
    pub(super) role: Role,
    /// Whether it serves the identifier of an object and refuses a made-up one.
    pub(super) is_confirmed: bool,
}

/// A kind of objects that a tool creates.
#[derive(Debug, Clone)]
pub(super) struct ObjectKind {
    pub(super) creator: usize,
    pub(super) identifier: Identifier,
    pub(super) tools: Vec<ObjectTool>,
    /// The tools that list objects of this kind.
    pub(super) lists: Vec<usize>,
}

impl ObjectKind {
    /// The confirmed tools with a role.
    pub(super) fn with_role(&self, role: Role) -> impl Iterator<Item = &ObjectTool> {
        self.tools.iter().filter(move |tool| tool.role == role && tool.is_confirmed)
    }

    /// The tool that deletes an object, confirmed or not.
    pub(super) fn deleter(&self) -> Option<&ObjectTool> {
        let is_deleter = |tool: &&ObjectTool| tool.role == Role::Delete;
        self.tools
            .iter()
            .find(|tool| is_deleter(tool) && tool.is_confirmed)
            .or_else(|| self.tools.iter().find(is_deleter))
    }
}

/// An argument of a tool that takes the identifier of an object of a kind.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ParentLink {
    pub(super) tool: usize,
    pub(super) argument: String,
    pub(super) kind: usize,
}
