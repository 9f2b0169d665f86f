//! Faults, and a conforming variant, that treat large messages in another way than small ones.

use serde_json::Value;

use super::crash::deepest_array;
use crate::reference::fault::Fault;

/// What becomes of a large message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::reference) enum Treatment {
    /// The server exits.
    Exits,
    /// It is not answered.
    Ignored,
    /// It is answered with an error.
    Refused,
}

/// How a fault treats a line because of a size; none if it is served like any other.
pub(in crate::reference) fn treatment(line: &[u8], is_enabled: impl Fn(Fault) -> bool) -> Option<Treatment> {
    let length = line.len();
    let of_lines = [
        (Fault::LongLineExits, length >= 65_536, Treatment::Exits),
        (Fault::LongLineIgnored, length > 8_192, Treatment::Ignored),
        (Fault::LongLineRefused, length > 100_000, Treatment::Refused),
    ];
    let found = of_lines.into_iter().find(|(fault, is_large, _)| *is_large && is_enabled(*fault));
    if let Some((_, _, treatment)) = found {
        return Some(treatment);
    }
    let by_depth = [
        (Fault::NestedRequestExits, 126, Treatment::Exits),
        (Fault::NestedRequestIgnored, 512, Treatment::Ignored),
        (Fault::NestedRequestRefused, 100, Treatment::Refused),
    ];
    if let Some((_, most, treatment)) = by_depth.into_iter().find(|(fault, ..)| is_enabled(*fault)) {
        let is_request = line.windows(5).any(|part| part == b"\"id\":");
        return (is_request && deepest_array(line) > most).then_some(treatment);
    }
    let by_part = [Fault::LongMethodExits, Fault::LongKeyIgnored, Fault::ManyMembersExit];
    let fault = by_part.into_iter().find(|fault| is_enabled(*fault))?;
    let message: Value = serde_json::from_slice(line).ok()?;
    match fault {
        Fault::LongMethodExits => {
            let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
            (method.len() > 255).then_some(Treatment::Exits)
        }
        Fault::LongKeyIgnored => has_object(&message, &|key, _| key > 1_024).then_some(Treatment::Ignored),
        _ => has_object(&message, &|_, members| members > 1_000).then_some(Treatment::Exits),
    }
}

/// Whether the length of the longest key of any object, and its number of members, are such.
fn has_object(value: &Value, is_such: &dyn Fn(usize, usize) -> bool) -> bool {
    match value {
        Value::Object(members) => {
            is_such(members.keys().map(String::len).max().unwrap_or_default(), members.len())
                || members.values().any(|value| has_object(value, is_such))
        }
        Value::Array(items) => items.iter().any(|value| has_object(value, is_such)),
        _ => false,
    }
}
