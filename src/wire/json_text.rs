//! JSON values in little memory, for records.

use std::borrow::Cow;

use serde_json::Value;

use super::frame::is_within_limits;

/// A JSON value that is kept as its text, which takes a fraction of the memory, and is read when it is needed.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonText(Kept);

#[derive(Debug, Clone, PartialEq)]
enum Kept {
    Text(Box<str>),
    /// A value that nests too deeply to be read again.
    Value(Box<Value>),
}

impl JsonText {
    /// The value.
    #[must_use]
    pub fn value(&self) -> Value {
        match &self.0 {
            // It was written from a value, within the limits of what can be read.
            Kept::Text(text) => serde_json::from_str(text).unwrap_or_default(),
            Kept::Value(value) => (**value).clone(),
        }
    }

    /// The text of the value.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match &self.0 {
            Kept::Text(text) => Cow::Borrowed(text),
            Kept::Value(value) => Cow::Owned(value.to_string()),
        }
    }
}

impl From<Value> for JsonText {
    fn from(value: Value) -> Self {
        let text = value.to_string();
        let is_readable = is_within_limits(text.as_bytes());
        Self(if is_readable { Kept::Text(text.into()) } else { Kept::Value(Box::new(value)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_is_read_as_it_was() {
        let deep = (0..300).fold(json!(1), |inner, _| json!([inner]));
        for (value, is_text) in [
            (json!({"z": [null, true, -1, 18_446_744_073_709_551_615_u64, 1.5e300], "a": "é\n\u{0}"}), true),
            (json!("text"), true),
            (json!(null), true),
            (deep, false),
        ] {
            let kept = JsonText::from(value.clone());
            assert_eq!(kept.text(), value.to_string());
            assert_eq!((kept.value(), matches!(kept.0, Kept::Text(_))), (value, is_text));
        }
    }
}
