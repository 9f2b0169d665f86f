//! What the server reports about itself: `serverInfo`, capabilities, supported versions, instructions.

use serde_json::{Value, json};

use super::content;
use super::fault::{Fault, FaultSet, HttpFault};
use super::injection::edit::Edit;
use super::message::{Object, object};
use super::prompt;
use super::resource;
use super::revision::Revision;
use super::task::EXTENSION;

/// The prefix of the `_meta` keys that the protocol reserves.
pub(super) const PREFIX: &str = "io.modelcontextprotocol/";

const INSTRUCTIONS: &str = "You can call any tool except erase. Each one demonstrates one feature of a server.";

/// Adds the members that every result of 2026-07-28 has.
pub(super) fn mark_modern(result: &mut Object, faults: &FaultSet) {
    result.entry("resultType").or_insert_with(|| json!("complete"));
    if let Some(info) = server_info(Revision::V2026_07_28, faults)
        && let Value::Object(meta) = result.entry("_meta").or_insert_with(|| json!({}))
    {
        meta.insert(format!("{PREFIX}serverInfo"), info);
    }
}

/// `serverInfo`, after fault injection; nothing if a fault omits it.
fn server_info(revision: Revision, faults: &FaultSet) -> Option<Value> {
    let is_active = |fault| faults.is_active(fault, revision);
    if is_active(Fault::InitializeWithoutServerInfo) || is_active(Fault::ServerInfoMissing) {
        return None;
    }
    if is_active(Fault::ServerInfoString) {
        return Some(json!("mcp-conformance-mock"));
    }
    let mut info = json!({"name": "mcp-conformance-mock", "version": env!("CARGO_PKG_VERSION")});
    if revision >= Revision::V2025_06_18 {
        info["title"] = json!("Built-in server");
    }
    if revision >= Revision::V2025_11_25 {
        info["description"] = json!("Implements every feature, and any fault on demand.");
        info["icons"] = json!([content::icon()]);
    }
    if revision >= Revision::V2025_11_25 && is_active(Fault::EveryMember) {
        info["websiteUrl"] = json!("https://mcp.example.com/");
    }
    if is_active(Fault::ServerInfoTitleNumber) {
        info["title"] = json!(5);
    }
    if is_active(Fault::ServerInfoIconString) {
        info["icons"] = json!("x.png");
    }
    Some(info)
}

/// The capabilities, after fault injection.
pub(super) fn capabilities(revision: Revision, faults: &FaultSet) -> Object {
    let mut capabilities =
        object(json!({"tools": {"listChanged": true}, "resources": {"listChanged": true}, "logging": {}}));
    if resource::supports_subscribe(revision) {
        capabilities.insert("resources".to_owned(), json!({"subscribe": true, "listChanged": true}));
    }
    if revision >= Revision::V2024_11_05 {
        capabilities.insert("prompts".to_owned(), json!({"listChanged": true}));
    }
    if prompt::supports_completion(revision) {
        capabilities.insert("completions".to_owned(), json!({}));
    }
    if revision.is_modern() {
        // The extension has no effect.
        capabilities.insert("resources".to_owned(), json!({"subscribe": true, "listChanged": true}));
        capabilities.insert("extensions".to_owned(), json!({"com.example.mock/nothing": {}, EXTENSION: {}}));
    }
    if revision == Revision::V2025_11_25 {
        capabilities.insert("tasks".to_owned(), tasks());
    }
    for (fault, edit) in CAPABILITY_FAULTS {
        if faults.is_active(*fault, revision) {
            edit.apply(&mut capabilities);
        }
    }
    capabilities
}

/// The capability `tasks` of 2025-11-25.
fn tasks() -> Value {
    json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}})
}

fn without_tasks(capabilities: &mut Object) {
    capabilities.shift_remove("tasks");
    if let Some(Value::Object(extensions)) = capabilities.get_mut("extensions") {
        extensions.shift_remove(EXTENSION);
    }
}

const CAPABILITY_FAULTS: &[(Fault, Edit)] = &[
    (Fault::EveryMember, Edit::Set("experimental", || json!({"com.example.mock/nothing": {"level": 1}}))),
    (Fault::CapabilityLoggingTrue, Edit::Set("logging", || json!(true))),
    (Fault::ToolsCapabilityTrue, Edit::Set("tools", || json!(true))),
    (Fault::ListChangedString, Edit::Set("tools/listChanged", || json!("yes"))),
    (Fault::ListChangedUndeclared, Edit::Remove("tools/listChanged")),
    (Fault::LogUndeclared, Edit::Remove("logging")),
    (Fault::EmbeddedUndeclared, Edit::Remove("resources")),
    (Fault::ToolsUndeclared, Edit::Remove("tools")),
    (Fault::ToolsOffServed, Edit::Remove("tools")),
    (Fault::WithoutTools, Edit::Remove("tools")),
    (Fault::WithoutTools, Edit::Remove("resources")),
    (Fault::WithoutTools, Edit::Remove("prompts")),
    (Fault::WithoutTools, Edit::Remove("completions")),
    (Fault::WithoutTools, Edit::Remove("logging")),
    (Fault::WithoutTools, Edit::With(without_tasks)),
    (Fault::OnlyResources, Edit::Remove("tools")),
    (Fault::OnlyResources, Edit::Remove("prompts")),
    (Fault::OnlyResources, Edit::Remove("completions")),
    (Fault::OnlyResources, Edit::With(without_tasks)),
    (Fault::WithoutTasks, Edit::With(without_tasks)),
    (Fault::Http(HttpFault::AlwaysStreams), Edit::With(without_tasks)),
    (Fault::TasksUndeclared, Edit::Remove("tasks")),
    (Fault::TaskMemberRejected, Edit::Remove("tasks")),
    (Fault::TasksListUndeclared, Edit::Remove("tasks/list")),
    (Fault::LegacyTasksAdvertised, Edit::Set("tasks", tasks)),
    (Fault::ResourcesUndeclared, Edit::Remove("resources")),
    (Fault::PromptsUndeclared, Edit::Remove("prompts")),
    (Fault::CompletionsUndeclared, Edit::Remove("completions")),
    (Fault::SubscribeUndeclared, Edit::Remove("resources/subscribe")),
    (Fault::CapabilityCompletionsTrue, Edit::Set("completions", || json!(true))),
    (Fault::CapabilityTasksTrue, Edit::Set("tasks", || json!(true))),
    (Fault::ExtensionString, Edit::Set("extensions", || json!({"com.example.mock/nothing": "on"}))),
    (Fault::ExtensionWithoutPrefix, Edit::Set("extensions", || json!({"nothing": {}}))),
];

const INITIALIZE_FAULTS: &[(Fault, Edit)] = &[
    (Fault::InitializeVersionMissing, Edit::Remove("protocolVersion")),
    (Fault::InitializeVersionLatest, Edit::Set("protocolVersion", || json!("latest"))),
    (Fault::InitializeCapabilitiesArray, Edit::Set("capabilities", || json!([]))),
    (Fault::InitializeEmpty, Edit::With(Object::clear)),
];

const DISCOVER_FAULTS: &[(Fault, Edit)] = &[
    (Fault::DiscoverWithoutCapabilities, Edit::Remove("capabilities")),
    (Fault::DiscoverVersionsMissing, Edit::Remove("supportedVersions")),
    (Fault::DiscoverVersionsString, Edit::Set("supportedVersions", || json!(Revision::V2026_07_28.name()))),
    (Fault::DiscoverVersionsLatest, Edit::Set("supportedVersions", || json!(["latest"]))),
];

/// The result of `initialize`.
pub(super) fn initialize(version: &str, revision: Revision, faults: &FaultSet) -> Object {
    let mut result = object(json!({
        "protocolVersion": version,
        "capabilities": capabilities(revision, faults),
    }));
    if let Some(info) = server_info(revision, faults) {
        result.insert("serverInfo".to_owned(), info);
    }
    if revision >= Revision::V2024_11_05 {
        result.insert("instructions".to_owned(), json!(INSTRUCTIONS));
    }
    if faults.is_active(Fault::InitializeInstructionsArray, revision) {
        result.insert("instructions".to_owned(), json!([INSTRUCTIONS]));
    }
    for (fault, edit) in INITIALIZE_FAULTS {
        if faults.is_active(*fault, revision) {
            edit.apply(&mut result);
        }
    }
    if faults.is_active(Fault::InitializeVersionNumber, revision) {
        let digits: String = version.chars().filter(char::is_ascii_digit).collect();
        result.insert("protocolVersion".to_owned(), json!(digits.parse::<u64>().unwrap_or_default()));
    }
    result
}

/// The result of `server/discover`. It only lists versions without a handshake: a request may not name the
/// others in its metadata.
pub(super) fn discover(revision: Revision, faults: &FaultSet) -> Object {
    let mut result = object(json!({
        "supportedVersions": [Revision::V2026_07_28.name()],
        "capabilities": capabilities(revision, faults),
        "instructions": INSTRUCTIONS,
        "ttlMs": 3_600_000,
        "cacheScope": "public",
    }));
    if faults.is_active(Fault::Awkward, revision) || faults.is_active(Fault::UnusableVersionListed, revision) {
        result.insert("supportedVersions".to_owned(), json!([Revision::V2026_07_28.name(), "2025-11-25"]));
    }
    if faults.is_active(Fault::DiscoverOmitsVersion, revision) {
        result.insert("supportedVersions".to_owned(), json!(["2025-11-25", "2026-07-28-rc"]));
    }
    for (fault, edit) in DISCOVER_FAULTS {
        if faults.is_active(*fault, revision) {
            edit.apply(&mut result);
        }
    }
    result
}
