//! The checks of a connection as a whole: which function carries out which check.

use super::index::ConnectionIndex;
use super::violation::CheckResult;
use super::{
    cancellation, capability, client_request, handshake, http_stream, list, progress, rate, response, shutdown,
    subscription_delivery, subscription_opening, task, unique, unsolicited,
};
use crate::case::{Audience, ConnectionCheck, ConnectionRule, ListChangesAnnounced};
use crate::spec::Revision;

/// Whether a check is about what happens before a revision is agreed on, whichever that is.
pub(super) fn is_independent_of_revision(check: ConnectionCheck) -> bool {
    matches!(
        check,
        ConnectionCheck::ExitsOnSigterm
            | ConnectionCheck::LeavesNoProcess
            | ConnectionCheck::StderrIsUtf8
            | ConnectionCheck::NoRequestsBeforeInitialized
            | ConnectionCheck::UnknownVersionNotAccepted
            | ConnectionCheck::PingAnsweredBeforeInitialized
            | ConnectionCheck::VersionFallbackNewest
            | ConnectionCheck::VersionAgreedAgain
            | ConnectionCheck::InitializeAnswered
    )
}

/// Checks a connection by a rule with parameters.
pub(super) fn check_rule(rule: &ConnectionRule, index: &ConnectionIndex<'_>) -> CheckResult {
    match rule {
        ConnectionRule::Unique(rule) => unique::unique(index, rule),
        ConnectionRule::SameAcrossPages(rule) => list::same_across_pages(index, rule),
        ConnectionRule::AtMostPerSecond(rule) => rate::at_most_per_second(index, rule),
        ConnectionRule::RequiresCapability(rule) => capability::requires_capability(index, rule),
        ConnectionRule::OnlyAfterRequest(rule) => unsolicited::only_after_request(index, rule),
        ConnectionRule::ListChangesAnnounced(rule) => list_changes_announced(index, rule),
        ConnectionRule::IdOfRequest(member) => response::id_of_request(index, *member),
    }
}

fn list_changes_announced(index: &ConnectionIndex<'_>, rule: &ListChangesAnnounced) -> CheckResult {
    let mut checked = CheckResult::default();
    for list in rule.lists.iter().map(|kind| list::List::of(*kind)) {
        checked.add(match rule.to {
            Audience::AllClients => list::change_announced(index, list),
            Audience::Subscribers => subscription_delivery::list_change_announced(index, list),
        });
    }
    checked
}

/// Checks a connection by a check without parameters.
pub(super) fn check_named(check: ConnectionCheck, index: &ConnectionIndex<'_>, revision: Revision) -> CheckResult {
    match check {
        ConnectionCheck::AnsweredOnce => response::answered_once(index),
        ConnectionCheck::NoResponseToNotification => response::no_response_to_notification(index),
        ConnectionCheck::CancellationNotAnswered => cancellation::cancellation_not_answered(index),
        ConnectionCheck::CancelledRequestStops => cancellation::cancelled_request_stops(index),
        ConnectionCheck::NoResponseAfterCancellation => cancellation::no_response_after_cancellation(index),
        ConnectionCheck::ServerRequestIdsValid => response::server_request_ids_valid(index),
        ConnectionCheck::CursorsAdvance => list::cursors_advance(index),
        ConnectionCheck::PagesDoNotOverlap => list::pages_do_not_overlap(index),
        ConnectionCheck::ProgressIncreases => progress::increases(index),
        ConnectionCheck::ProgressEndsWithResponse => progress::ends_with_response(index),
        ConnectionCheck::LogsOnlyIfRequested => unsolicited::logs_only_if_requested(index, revision),
        ConnectionCheck::ResourceUpdatesOnlyIfSubscribed => unsolicited::resource_updates_only_if_subscribed(index),
        ConnectionCheck::CompletedElicitationsKnown => client_request::completed_elicitations_known(index),
        ConnectionCheck::InputRequestKeysUnique => client_request::input_request_keys_unique(index),
        ConnectionCheck::PromptsServed => response::prompts_served(index),
        ConnectionCheck::KeepsAnswering => response::keeps_answering(index),
        ConnectionCheck::ServerSurvivesCalls => shutdown::server_survives_calls(index),
        ConnectionCheck::ExitsOnSigterm => shutdown::exits_on_sigterm(index),
        ConnectionCheck::LeavesNoProcess => shutdown::leaves_no_process(index),
        ConnectionCheck::StderrIsUtf8 => shutdown::stderr_is_utf8(index),
        ConnectionCheck::InitializeAnswered => handshake::initialize_answered(index, revision),
        ConnectionCheck::VersionAgreedAgain => handshake::version_agreed_again(index, revision),
        ConnectionCheck::VersionFallbackNewest => handshake::version_fallback_newest(index, revision),
        ConnectionCheck::ListedVersionServed => handshake::listed_version_served(index, revision),
        ConnectionCheck::UnknownVersionNotAccepted => handshake::unknown_version_not_accepted(index),
        ConnectionCheck::NoRequestsBeforeInitialized => handshake::no_requests_before_initialized(index),
        ConnectionCheck::PingAnsweredBeforeInitialized => handshake::ping_answered_before_initialized(index),
        ConnectionCheck::SubscriptionAccepted => subscription_delivery::accepted(index),
        ConnectionCheck::SubscriptionAcknowledgedFirst => subscription_opening::acknowledged_first(index),
        ConnectionCheck::SubscriptionGrantsOnlyRequested => subscription_opening::grants_only_requested(index),
        ConnectionCheck::SubscriptionIdInNotifications => subscription_delivery::id_in_notifications(index),
        ConnectionCheck::SubscriptionDeliversOnlyRequested => subscription_delivery::delivers_only_requested(index),
        ConnectionCheck::SubscriptionEndsWhenCancelled => subscription_delivery::ends_when_cancelled(index),
        ConnectionCheck::ResourceUpdatesAnnounced => subscription_delivery::resource_updates_announced(index),
        ConnectionCheck::TaskIdsUnguessable => task::ids_unguessable(index),
        ConnectionCheck::TaskStatusFinal => task::status_final(index),
        ConnectionCheck::TaskTimestampsConsistent => task::timestamps_consistent(index),
        ConnectionCheck::TaskResultAfterEnd => task::result_after_end(index),
        ConnectionCheck::TaskResultNamesTask => task::result_names_task(index),
        ConnectionCheck::TasksListed => task::listed(index),
        ConnectionCheck::TaskFailureReported => task::failure_reported(index),
        ConnectionCheck::TaskInputNamesTask => task::input_names_task(index),
        ConnectionCheck::TaskProgressEndsWithTask => task::progress_ends_with_task(index),
        ConnectionCheck::TaskOnlyFromToolCall => task::only_from_tool_call(index),
        ConnectionCheck::TaskInputKeysNotReused => task::input_keys_not_reused(index),
        ConnectionCheck::ServerCancelsOnlyOwnRequests => cancellation::only_own_requests(index),
        ConnectionCheck::TimedOutRequestsCancelled => cancellation::timed_out_requests_cancelled(index),
        ConnectionCheck::ServerCancelsNoTaskRequest => cancellation::no_task_request(index),
        ConnectionCheck::ServerCancelsOnlySubscriptions => cancellation::only_subscriptions(index),
        ConnectionCheck::MessagesOnOneStream => http_stream::messages_on_one_stream(index),
        ConnectionCheck::StreamsCarryResponses => http_stream::streams_carry_responses(index),
    }
}
