//! Parses a case file into a case.
//!
//! What a file gets wrong is found by `semantics` and the schema of case files, with its place; here it is only
//! rejected.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::active::{Action, Active, Delivery, LineTransfer, MAX_WAIT_MS, Meta, OpenRequest, Poll, RawLine, Step};
use super::checks::Check;
use super::expected::{Expected, ExpectedResponse, Otherwise};
use super::file::{CaseFile, EncodedBytes, RawFile, RuleFile, StepFile, WatchFile, WatchKindName};
use super::http_step::MAX_TIMES;
use super::model::{Body, Case, Source};
use super::passive::{ConnectionAssertion, Methods, Passive, Rule, ValueRule, Watch, WatchKind, WatchedValues};
use crate::spec::{Catalogue, RevisionSet};

/// The case in a file, if nothing in the file contradicts itself.
pub(super) fn case(id: String, source: Source, file: CaseFile) -> Option<Case> {
    let requirements: Vec<_> =
        file.requirements.iter().map(|id| Catalogue::embedded().get(id)).collect::<Option<_>>()?;
    let stated = requirements.iter().fold(RevisionSet::default(), |set, r| set.union(r.revisions()));
    let revisions = file.revisions.unwrap_or(RevisionSet::ALL).intersection(stated);
    let body = match (file.watch, file.fuzz) {
        (Some(watch), None) if file.steps.is_empty() => {
            Body::Passive(Passive { provoked_by: file.provoked_by, watch: self::watch(watch, file.rules)? })
        }
        (None, _) if !file.rules.is_empty() || !file.provoked_by.is_empty() => return None,
        (None, Some(oracle)) if file.steps.is_empty() => Body::Fuzz(oracle),
        (None, None) if !file.steps.is_empty() => Body::Active(Active {
            steps: file.steps.into_iter().map(step).collect::<Option<_>>()?,
            for_each: file.for_each,
            process: file.process,
            start: file.start,
            once: file.once,
            client_capabilities: file.client_capabilities,
            client_responses: file.client_responses,
            across_steps: file.across_steps,
        }),
        _ => return None,
    };
    (!revisions.is_empty()).then_some(Case {
        id,
        source,
        title: file.title,
        requirements,
        revisions,
        tags: file.tags,
        why: file.why,
        fix: file.fix,
        fault: file.fault,
        needs: file.needs,
        body,
    })
}

fn watch(watch: WatchFile, rules: Vec<RuleFile>) -> Option<Watch> {
    let WatchFile { kind, methods, path, matching } = watch;
    let of = Methods::new(methods);
    let kind = match kind {
        WatchKindName::Line if of.is_any() => WatchKind::Line,
        WatchKindName::Message if of.is_any() => WatchKind::Message,
        WatchKindName::Response => WatchKind::Response(of),
        WatchKindName::Result => WatchKind::Result(of),
        WatchKindName::Error => WatchKind::Error(of),
        WatchKindName::Request => WatchKind::Request(of),
        WatchKindName::ClientRequest => WatchKind::ClientRequest(of),
        WatchKindName::Notification => WatchKind::Notification(of),
        WatchKindName::Exchange => WatchKind::Exchange(of),
        WatchKindName::Connection if of.is_any() && path.is_none() && matching.is_none() => {
            let check = |file: &RuleFile| match (&file.schema, &file.check) {
                (None, Some(Check::Connection(check))) => Some(ConnectionAssertion::Check(*check)),
                (None, Some(Check::Rule(rule))) => Some(ConnectionAssertion::Rule(rule.clone())),
                _ => None,
            };
            return Some(Watch::Connections(self::rules(rules, check)?));
        }
        WatchKindName::Line | WatchKindName::Message | WatchKindName::Connection => return None,
    };
    let check = |file: &RuleFile| match (&file.schema, &file.check) {
        (Some(schema), None) => Some(ValueRule::Schema(schema.clone())),
        (None, Some(Check::Value(check))) => Some(ValueRule::Check(*check)),
        _ => None,
    };
    Some(Watch::Values(WatchedValues { kind, path, matching, rules: self::rules(rules, check)? }))
}

fn rules<T>(files: Vec<RuleFile>, check: impl Fn(&RuleFile) -> Option<T>) -> Option<Vec<Rule<T>>> {
    let rule = |file: RuleFile| {
        let check = check(&file)?;
        let RuleFile { revisions, requirement, verdict, message, .. } = file;
        Some(Rule { check, revisions, requirement, verdict, message })
    };
    let rules: Vec<_> = files.into_iter().map(rule).collect::<Option<_>>()?;
    (!rules.is_empty()).then_some(rules)
}

/// The step in a file: exactly one action, and nothing that does not apply to it.
fn step(file: StepFile) -> Option<Step> {
    let StepFile {
        name,
        methods,
        send,
        notify,
        while_open,
        moment,
        batch,
        raw,
        transfer,
        paginate,
        retry,
        http,
        close,
        shutdown,
        wait_ms,
        poll,
        provide_input,
        meta,
        pipelined,
        control,
        revisions,
        save,
        expect,
        otherwise,
    } = file;
    if !methods.is_empty() {
        // It was not written out.
        return None;
    }
    let expected = expected(expect, otherwise, control)?;
    let meta = self::meta(meta)?;
    let delivery = delivery(poll, pipelined, provide_input)?;
    let as_required = meta == Meta::AsRequired;
    let is_awaited = matches!(delivery, Delivery::Awaited);
    let is_plain = is_awaited && save.is_empty();
    let is_silent = is_plain && as_required && matches!(expected, Expected::Anything);
    let (fits, action) = match (send, notify, batch, raw, paginate, retry, http, close, shutdown, wait_ms) {
        (Some(message), None, None, None, None, None, None, None, None, None) => {
            (true, Action::Request { message, meta, delivery, save, expected })
        }
        (None, Some(message), None, None, None, None, None, None, None, None) => {
            let while_open = while_open.map(|step| OpenRequest { step, moment });
            (is_plain && as_required && !control, Action::Notification { message, while_open, expected })
        }
        (None, None, Some(messages), None, None, None, None, None, None, None) => {
            (is_plain, Action::Batch { messages, meta, expected })
        }
        (None, None, None, Some(raw), None, None, None, None, None, None) => {
            (is_plain && as_required, Action::Raw { line: line(raw)?, transfer, expected })
        }
        (None, None, None, None, Some(method), None, None, None, None, None) => {
            (is_plain && as_required, Action::Paginate { method, expected })
        }
        (None, None, None, None, None, Some(retry), None, None, None, None) => {
            let is_sent_once = matches!(delivery, Delivery::Awaited | Delivery::Pipelined);
            (is_sent_once, Action::Retry { retry, meta, pipelined, save, expected })
        }
        (None, None, None, None, None, None, Some(call), None, None, None) => {
            let is_read_later = matches!(delivery, Delivery::Pipelined) && !call.keep_open && save.is_empty();
            let is_possible =
                (1..=MAX_TIMES).contains(&call.times) && (call.times == 1 || is_awaited && !call.keep_open);
            (is_possible && (is_awaited || is_read_later), Action::Http { call, meta, pipelined, save, expected })
        }
        (None, None, None, None, None, None, None, Some(step), None, None) => (is_silent, Action::Close { step }),
        (None, None, None, None, None, None, None, None, Some(how), None) => {
            (is_plain && as_required && !control, Action::Shutdown { how, expected })
        }
        (None, None, None, None, None, None, None, None, None, Some(milliseconds)) => {
            (is_silent && milliseconds <= MAX_WAIT_MS, Action::Wait(Duration::from_millis(milliseconds)))
        }
        _ => return None,
    };
    let is_whole = transfer == LineTransfer::Whole || matches!(action, Action::Raw { .. });
    (fits && is_whole).then_some(Step { name, revisions, action })
}

fn expected(responses: Vec<ExpectedResponse>, otherwise: Option<Otherwise>, control: bool) -> Option<Expected> {
    match (responses.is_empty(), otherwise, control) {
        (true, None, false) => Some(Expected::Anything),
        (true, None, true) => Some(Expected::Served),
        (true, Some(_), _) => None,
        (false, otherwise, control) => Some(Expected::Listed { responses, otherwise, control }),
    }
}

fn meta(written: Option<Value>) -> Option<Meta> {
    match written {
        None => Some(Meta::AsRequired),
        Some(Value::Bool(false)) => Some(Meta::Omitted),
        Some(meta @ Value::Object(_)) => Some(Meta::Replaced(meta)),
        Some(_) => None,
    }
}

fn delivery(poll: Option<Poll>, pipelined: bool, provide_input: bool) -> Option<Delivery> {
    match (poll, pipelined, provide_input) {
        (None, false, false) => Some(Delivery::Awaited),
        (None, true, false) => Some(Delivery::Pipelined),
        (Some(poll), false, false) => Some(Delivery::Polled(poll)),
        (None, false, true) => Some(Delivery::WithInput),
        (Some(_), true, _) | (Some(_), _, true) | (_, true, true) => None,
    }
}

fn line(raw: RawFile) -> Option<RawLine> {
    match raw {
        RawFile::Text(text) => Some(RawLine::Text(text)),
        RawFile::Bytes(EncodedBytes::Hex(text)) => decode_hex(&text).map(RawLine::Bytes),
        RawFile::Bytes(EncodedBytes::Base64(text)) => STANDARD.decode(text).ok().map(RawLine::Bytes),
    }
}

/// The bytes that pairs of hexadecimal digits encode, with spaces between them or not.
pub(super) fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.split(' ').map(|run| {
        let digits = run.as_bytes();
        let pairs = digits.chunks(2).map(|pair| match pair {
            [high, low] => {
                let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                Some(digit(*high)? * 16 + digit(*low)?)
            }
            _ => None,
        });
        pairs.collect::<Option<Vec<u8>>>()
    });
    Some(pairs.collect::<Option<Vec<_>>>()?.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits_come_in_pairs() {
        assert_eq!(decode_hex("7b ff00"), Some(vec![0x7b, 0xff, 0x00]));
        assert_eq!(decode_hex(""), Some(Vec::new()));
        assert_eq!(decode_hex("7b f"), None);
        assert_eq!(decode_hex("zz"), None);
    }
}
