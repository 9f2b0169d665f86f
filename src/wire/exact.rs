//! Values in no more memory than they take: what a parser makes has room for members that may follow, which is a quarter of
//! the memory of a usual message.

use serde_json::{Map, Value};

/// The same value without room for more.
pub(super) fn without_room(value: Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut exact = Vec::with_capacity(items.len());
            exact.extend(items.into_iter().map(without_room));
            Value::Array(exact)
        }
        Value::Object(members) => {
            let mut exact = Map::with_capacity(members.len());
            exact.extend(members.into_iter().map(|(name, member)| (name, without_room(member))));
            Value::Object(exact)
        }
        plain => plain,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_value_stays_the_same() {
        let value = json!({"z": [1, [], {}, {"b": null, "a": "é"}], "a": 1.5, "m": {"n": [true]}});
        let exact = without_room(value.clone());
        assert_eq!(exact.to_string(), value.to_string());
    }

    #[test]
    fn an_array_has_no_room_left() {
        let mut items = Vec::with_capacity(16);
        items.push(json!(1));
        let Value::Array(exact) = without_room(Value::Array(items)) else { panic!("an array") };
        assert_eq!(exact.capacity(), 1);
    }
}
