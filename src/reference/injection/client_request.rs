//! Faults in requests to the client.

use serde_json::{Value, json};

use super::edit::Edit;
use super::edit::Edit::{Remove, Set, With};
use crate::reference::client_request::ClientRequest;
use crate::reference::fault::Fault::{
    self, ElicitFormLink, ElicitFormNested, ElicitFormPassword, ElicitFormPattern, ElicitMessageMissing,
    ElicitUrlEmail, ElicitUrlMissing, ElicitUrlRelative, InterimWithNullContent, MrtrEmpty, MrtrInvalidMethod,
    MrtrStateNumber, SamplingContext, SamplingRoleSystem, SamplingWithoutMaxTokens,
};
use crate::reference::fault::FaultSet;
use crate::reference::message::Object;
use crate::reference::revision::Revision;

/// Applies faults to the params of a request to the client.
pub(in crate::reference) fn inject_into_params(
    params: &mut Object,
    client_request: ClientRequest,
    revision: Revision,
    faults: &FaultSet,
) {
    for Injection(fault, of, edit) in PARAMS_FAULTS {
        if *of == client_request && faults.is_active(*fault, revision) {
            edit.apply(params);
        }
    }
}

/// Applies faults to an `input_required` result.
pub(in crate::reference) fn inject_into_result(result: &mut Object, revision: Revision, faults: &FaultSet) {
    for (fault, edit) in RESULT_FAULTS {
        if faults.is_active(*fault, revision) {
            edit.apply(result);
        }
    }
}

/// A fault, the request that it affects, and the change.
struct Injection(Fault, ClientRequest, Edit);

const PARAMS_FAULTS: &[Injection] = &[
    Injection(ElicitFormNested, ClientRequest::ElicitationForm, Set("requestedSchema/properties/word", nested)),
    Injection(ElicitFormLink, ClientRequest::ElicitationForm, Set("requestedSchema/properties/word/description", link)),
    Injection(
        ElicitFormPassword,
        ClientRequest::ElicitationForm,
        Set("requestedSchema/properties/password", || json!({"type": "string"})),
    ),
    Injection(
        ElicitFormPattern,
        ClientRequest::ElicitationForm,
        Set("requestedSchema/properties/nick/pattern", || json!("(?i)^[a-z]+$")),
    ),
    Injection(ElicitMessageMissing, ClientRequest::ElicitationForm, Remove("message")),
    Injection(ElicitUrlMissing, ClientRequest::ElicitationUrl, Remove("url")),
    Injection(ElicitUrlRelative, ClientRequest::ElicitationUrl, Set("url", || json!("/word"))),
    Injection(
        ElicitUrlEmail,
        ClientRequest::ElicitationUrl,
        Set("url", || json!("https://mock.example/word?user=ada@mock.example")),
    ),
    Injection(SamplingContext, ClientRequest::Sampling, Set("includeContext", || json!("thisServer"))),
    Injection(SamplingRoleSystem, ClientRequest::Sampling, Set("messages/0/role", || json!("system"))),
    Injection(SamplingWithoutMaxTokens, ClientRequest::Sampling, Remove("maxTokens")),
];

const RESULT_FAULTS: &[(Fault, Edit)] = &[
    (MrtrEmpty, Remove("inputRequests")),
    (MrtrEmpty, Remove("requestState")),
    (MrtrInvalidMethod, With(add_foreign)),
    (MrtrStateNumber, Set("requestState", || json!(5))),
    (InterimWithNullContent, Set("content", || json!(null))),
    (InterimWithNullContent, Set("structuredContent", || json!(null))),
    (InterimWithNullContent, Set("isError", || json!(null))),
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
