//! Parses `WWW-Authenticate` headers: schemes, each with its parameters (RFC 9110, 11.6.1).

use serde_json::{Map, Value, json};

/// The parameters of each scheme, with names and schemes in lower case; unreadable parts are left out.
pub(super) fn read_challenges(text: &str) -> Map<String, Value> {
    let mut schemes = Map::new();
    let mut scheme = None;
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find(|c: char| !is_of_token(c)).unwrap_or(rest.len());
        if end == 0 {
            // A token68, or not valid by the grammar: continue after the next separator.
            let Some(next) = rest.find([' ', ',']) else { return schemes };
            rest = &rest[next..];
            continue;
        }
        let word = rest[..end].to_ascii_lowercase();
        rest = &rest[end..];
        let Some(after) = rest.trim_start_matches([' ', '\t']).strip_prefix('=') else {
            schemes.entry(word.clone()).or_insert_with(|| json!({}));
            scheme = Some(word);
            continue;
        };
        let (value, left) = value(after.trim_start_matches([' ', '\t']));
        rest = left;
        if let Some(Value::Object(parameters)) = scheme.as_ref().and_then(|scheme| schemes.get_mut(scheme)) {
            parameters.entry(word).or_insert(Value::String(value));
        }
    }
}

/// A value, quoted or not, and the rest of the text after it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut escaped = false;
    for (at, c) in quoted.char_indices() {
        match c {
            _ if escaped => {
                value.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return (value, &quoted[at + 1..]),
            _ => value.push(c),
        }
    }
    (value, "")
}

fn is_of_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheme_is_parsed_with_its_parameters() {
        for (text, read) in [
            ("Bearer", json!({ "bearer": {} })),
            ("", json!({})),
            (
                r#"Bearer realm="a, b", Scope="x \"y\"",resource_metadata=http://h/p"#,
                json!({ "bearer": { "realm": "a, b", "scope": "x \"y\"", "resource_metadata": "http://h/p" } }),
            ),
            (
                r#"Basic realm="r", Bearer error = "invalid_token""#,
                json!({ "basic": { "realm": "r" }, "bearer": { "error": "invalid_token" } }),
            ),
            (r#"Bearer scope="open"#, json!({ "bearer": { "scope": "open" } })),
        ] {
            assert_eq!(Value::Object(read_challenges(text)), read, "{text}");
        }
    }
}
