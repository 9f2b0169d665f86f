//! Faults that show in what the server asks the client for.

use serde_json::{Value, json};

use super::edit::Edit;
use super::edit::Edit::{Remove, Set, With};
use crate::reference::ask::Question;
use crate::reference::fault::Fault::{
    self, ElicitFormLink, ElicitFormNested, ElicitFormPassword, ElicitMessageMissing, ElicitUrlMissing, ElicitUrlEmail,
    ElicitUrlRelative, MrtrEmpty, MrtrInvalidMethod, MrtrStateNumber, SamplingContext, SamplingRoleSystem,
    SamplingWithoutMaxTokens,
};
use crate::reference::fault::FaultSet;
use crate::reference::message::Object;
use crate::reference::revision::Revision;

/// Makes the params of a question what the faults want them to be.
pub(in crate::reference) fn deviate_params(
    params: &mut Object,
    question: Question,
    revision: Revision,
    faults: &FaultSet,
) {
    for Row(fault, of, edit) in PARAMS_FAULTS {
        if *of == question && faults.shows(*fault, revision) {
            edit.apply(params);
        }
    }
}

/// Makes a result that asks what the faults want it to be.
pub(in crate::reference) fn deviate_result(result: &mut Object, revision: Revision, faults: &FaultSet) {
    for (fault, edit) in RESULT_FAULTS {
        if faults.shows(*fault, revision) {
            edit.apply(result);
        }
    }
}

/// A fault, the question in which it shows, and what it does there.
struct Row(Fault, Question, Edit);

const PARAMS_FAULTS: &[Row] = &[
    Row(ElicitFormNested, Question::Form, Set("requestedSchema/properties/word", nested)),
    Row(ElicitFormLink, Question::Form, Set("requestedSchema/properties/word/description", link)),
    Row(ElicitFormPassword, Question::Form, Set("requestedSchema/properties/password", || json!({"type": "string"}))),
    Row(ElicitMessageMissing, Question::Form, Remove("message")),
    Row(ElicitUrlMissing, Question::Page, Remove("url")),
    Row(ElicitUrlRelative, Question::Page, Set("url", || json!("/word"))),
    Row(ElicitUrlEmail, Question::Page, Set("url", || json!("https://mock.example/word?user=ada@mock.example"))),
    Row(SamplingContext, Question::Model, Set("includeContext", || json!("thisServer"))),
    Row(SamplingRoleSystem, Question::Model, Set("messages/0/role", || json!("system"))),
    Row(SamplingWithoutMaxTokens, Question::Model, Remove("maxTokens")),
];

const RESULT_FAULTS: &[(Fault, Edit)] = &[
    (MrtrEmpty, Remove("inputRequests")),
    (MrtrEmpty, Remove("requestState")),
    (MrtrInvalidMethod, With(add_foreign)),
    (MrtrStateNumber, Set("requestState", || json!(5))),
];

fn nested() -> Value {
    json!({"type": "object", "properties": {"inner": {"type": "string"}}})
}

fn link() -> Value {
    json!("See https://mock.example/words for some.")
}

fn add_foreign(result: &mut Object) {
    if let Some(Value::Object(requests)) = result.get_mut("inputRequests") {
        requests.insert("other".to_owned(), json!({"method": "tools/list"}));
    }
}
