//! Faults that make the server exit on a line that a robust server survives.

use serde_json::Value;

use crate::reference::fault::Fault;

/// The depth from which [`Fault::DeepInputExits`] exits.
const MAX_DEPTH: usize = 1_000;

/// The number of digits from which [`Fault::LongNumberExits`] exits.
const MAX_NUMBER_DIGITS: usize = 4_300;

/// Whether a fault makes the server exit when it reads this line. `opened` says whether there was a handshake.
pub(in crate::reference) fn exits(line: &[u8], opened: bool, is_enabled: impl Fn(Fault) -> bool) -> bool {
    let has_surrogate = || contains(line, br"\ud800");
    if is_enabled(Fault::SurrogateEscapeExits) && has_surrogate()
        || is_enabled(Fault::DeepInputExits) && deepest_array(line) > MAX_DEPTH
        || is_enabled(Fault::LongNumberExits) && longest_number(line) > MAX_NUMBER_DIGITS
    {
        return true;
    }
    let of_message = [
        Fault::SecondInitializeExits,
        Fault::OldestInitializeExits,
        Fault::RequestBeforeInitializeExits,
        Fault::CancellationWithoutParamsExits,
    ];
    if !of_message.into_iter().any(&is_enabled) {
        return false;
    }
    let Ok(message) = serde_json::from_slice::<Value>(line) else { return false };
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
    // A stateless request has params.
    let version = message.pointer("/params/protocolVersion").and_then(Value::as_str);
    let needs_handshake = method == "tools/list" && message.get("params").is_none();
    is_enabled(Fault::SecondInitializeExits) && opened && method == "initialize"
        || is_enabled(Fault::OldestInitializeExits) && method == "initialize" && version == Some("2024-11-05")
        || is_enabled(Fault::RequestBeforeInitializeExits) && !opened && needs_handshake
        || is_enabled(Fault::CancellationWithoutParamsExits)
            && method == "notifications/cancelled"
            && message.get("params").is_none()
}

fn contains(line: &[u8], text: &[u8]) -> bool {
    line.windows(text.len()).any(|window| window == text)
}

/// The length of the longest sequence of digits. Those in strings count too, which no test relies on.
fn longest_number(line: &[u8]) -> usize {
    line.split(|byte| !byte.is_ascii_digit()).map(<[u8]>::len).max().unwrap_or_default()
}

/// The greatest number of arrays that are open at once. Brackets in strings count too, which no test relies on.
pub(super) fn deepest_array(line: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in line {
        match byte {
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}
