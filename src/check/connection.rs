//! The checks of a connection as a whole: which check is which.
//!
//! Owns the table alone; what each check looks at lies with its subject.

use super::seen::Seen;
use super::watch::Index;
use super::{
    answer, asked, cancel, declared, ending, list, listening, opening, pace, progress, stream, subscription, task,
};
use crate::case::ConnectionCheck;
use crate::spec::Revision;

/// Whether a check looks at what happens before a revision is agreed on, whichever that is.
pub(super) fn is_of_opening(check: ConnectionCheck) -> bool {
    matches!(
        check,
        ConnectionCheck::EndsOnSigterm
            | ConnectionCheck::QuietBeforeInitialized
            | ConnectionCheck::UnknownVersionNotEchoed
            | ConnectionCheck::PingBeforeInitialized
            | ConnectionCheck::FallbackNewest
            | ConnectionCheck::VersionAgreed
    )
}

/// Holds a check against a connection.
pub(super) fn check(check: ConnectionCheck, index: &Index<'_>, revision: Revision) -> Seen {
    match check {
        ConnectionCheck::EventIdsUnique => stream::event_ids_unique(index),
        ConnectionCheck::SentOnOneStream => stream::sent_on_one(index),
        ConnectionCheck::AnsweredOnce => answer::answered_once(index),
        ConnectionCheck::ResultIdEcho => answer::id_echo(index, "result"),
        ConnectionCheck::ErrorIdEcho => answer::id_echo(index, "error"),
        ConnectionCheck::NotificationsUnanswered => answer::notifications_unanswered(index),
        ConnectionCheck::ToolNamesUnique => list::tool_names_unique(index),
        ConnectionCheck::CursorsAdvance => list::cursors_advance(index),
        ConnectionCheck::PagesDisjoint => list::pages_disjoint(index),
        ConnectionCheck::CacheScopeSame => list::cache_scope_same(index, &["tools/list"]),
        ConnectionCheck::ProgressTokens => progress::tokens(index),
        ConnectionCheck::ProgressIncreases => progress::increases(index),
        ConnectionCheck::ProgressStops => progress::stops(index),
        ConnectionCheck::RequestsDeclared => declared::requests_declared(index),
        ConnectionCheck::ListChangedDeclared => declared::list_changed_declared(index),
        ConnectionCheck::ListChangedSent => list::changed_sent(index, &list::TOOLS),
        ConnectionCheck::LoggingDeclared => declared::logging_declared(index),
        ConnectionCheck::LogOptIn => declared::log_opt_in(index, revision),
        ConnectionCheck::EmbeddedNeedsResources => declared::embedded_needs_resources(index),
        ConnectionCheck::CallsSurvived => ending::calls_survived(index),
        ConnectionCheck::EndsOnSigterm => ending::ends_on_sigterm(index),
        ConnectionCheck::QuietBeforeInitialized => opening::quiet_before_initialized(index),
        ConnectionCheck::UnknownVersionNotEchoed => opening::unknown_version_not_echoed(index),
        ConnectionCheck::ToolsDeclared => declared::tools_declared(index),
        ConnectionCheck::ResourceUrisUnique => list::unique(index, &list::RESOURCES),
        ConnectionCheck::PromptNamesUnique => list::unique(index, &list::PROMPTS),
        ConnectionCheck::OtherCacheScopeSame => {
            list::cache_scope_same(index, &["resources/list", "resources/templates/list", "prompts/list"])
        }
        ConnectionCheck::UpdatesSubscribed => declared::updates_subscribed(index),
        ConnectionCheck::ListenAcknowledgedFirst => subscription::acknowledged_first(index),
        ConnectionCheck::ListenGrantsAsked => subscription::grants_asked(index),
        ConnectionCheck::ChangesListened => subscription::changes_listened(index, revision),
        ConnectionCheck::ElicitationsKnown => asked::elicitations_known(index),
        ConnectionCheck::InputKeysUnique => asked::input_keys_unique(index),
        ConnectionCheck::ListenServed => listening::served(index),
        ConnectionCheck::ListenTagged => listening::tagged(index),
        ConnectionCheck::ListenOnlyAsked => listening::only_asked(index),
        ConnectionCheck::ListenCancelled => listening::cancelled(index),
        ConnectionCheck::ToolChangesTold => listening::lists_told(index, &listening::TOOLS),
        ConnectionCheck::OtherChangesTold => listening::other_lists_told(index),
        ConnectionCheck::UpdatesTold => listening::updates_told(index),
        ConnectionCheck::PingBeforeInitialized => opening::ping_before_initialized(index),
        ConnectionCheck::FallbackNewest => opening::fallback_newest(index, revision),
        ConnectionCheck::TaskIdsUnique => task::ids_unique(index),
        ConnectionCheck::TaskIdsUnguessable => task::ids_unguessable(index),
        ConnectionCheck::TaskTransitions => task::transitions(index),
        ConnectionCheck::TaskTimes => task::times(index),
        ConnectionCheck::TaskResultWaits => task::result_waits(index),
        ConnectionCheck::TaskResultsRelated => task::results_related(index),
        ConnectionCheck::TasksListed => task::listed(index),
        ConnectionCheck::TaskFailuresTold => task::failures_told(index),
        ConnectionCheck::TaskInputRelated => task::input_related(index),
        ConnectionCheck::TaskProgressStops => task::progress_stops(index),
        ConnectionCheck::TaskOnlyOnCalls => task::only_on_calls(index),
        ConnectionCheck::TaskInputKeys => task::input_keys(index),
        ConnectionCheck::ServerCancelsOwn => cancel::own(index),
        ConnectionCheck::ServerCancelsNoTask => cancel::no_task(index),
        ConnectionCheck::ServerCancelsListen => cancel::only_listen(index),
        ConnectionCheck::CancelledSilent => cancel::silent(index),
        ConnectionCheck::ResourcesChangedSent => list::changed_sent(index, &list::RESOURCES),
        ConnectionCheck::PromptsChangedSent => list::changed_sent(index, &list::PROMPTS),
        ConnectionCheck::PromptsGot => answer::prompts_got(index),
        ConnectionCheck::VersionAgreed => opening::version_agreed(index, revision),
        ConnectionCheck::LogsPaced => pace::logs(index),
        ConnectionCheck::ProgressPaced => pace::progress(index),
        ConnectionCheck::PingsPaced => pace::pings(index),
        ConnectionCheck::ServerRequestIds => answer::server_request_ids(index),
    }
}
