//! JSON Pointers (RFC 6901): their tokens, and what one into a schema says about instances.

use std::borrow::Cow;

/// A member's name as a token: `~` becomes `~0`, and `/` becomes `~1`.
fn escape(name: &str) -> Cow<'_, str> {
    if name.contains(['~', '/']) { name.replace('~', "~0").replace('/', "~1").into() } else { name.into() }
}

/// A token as a member's name.
#[must_use]
pub fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// The pointer to a member of what a pointer leads to.
#[must_use]
pub fn join(pointer: &str, name: &str) -> String {
    let mut joined = String::with_capacity(pointer.len() + 1 + name.len());
    joined.push_str(pointer);
    push(&mut joined, name);
    joined
}

/// Extends a pointer to a member of what it leads to.
pub(crate) fn push(pointer: &mut String, name: &str) {
    pointer.push('/');
    pointer.push_str(&escape(name));
}

/// A step of a pointer into a schema, as a step from an instance to a value inside of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstanceStep<'p> {
    /// To the member with the name of this token.
    Member(&'p str),
    /// To any item.
    Item,
    /// Through another keyword, which may lead to several values, to the same one, or to none.
    Other,
}

/// The steps from an instance to the value that a subschema applies to, by the pointer to the subschema.
pub(crate) fn instance_steps(schema_pointer: &str) -> impl Iterator<Item = InstanceStep<'_>> {
    let mut tokens = schema_pointer.split('/').skip(1);
    std::iter::from_fn(move || {
        Some(match tokens.next()? {
            "properties" => tokens.next().map_or(InstanceStep::Other, InstanceStep::Member),
            "items" => InstanceStep::Item,
            _ => InstanceStep::Other,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_read_back() {
        for (name, token) in [("a/b", "a~1b"), ("~1", "~01"), ("~/", "~0~1"), ("", ""), ("é", "é")] {
            assert_eq!(escape(name), token);
            assert_eq!(unescape(token), name);
            let mut pointer = "/a".to_owned();
            push(&mut pointer, name);
            assert_eq!(pointer, join("/a", name));
            assert_eq!(pointer, format!("/a/{token}"));
        }
    }

    #[test]
    fn a_subschema_says_which_values_it_applies_to() {
        use InstanceStep::{Item, Member, Other};
        let steps = |pointer| instance_steps(pointer).collect::<Vec<_>>();
        assert_eq!(steps(""), []);
        assert_eq!(steps("/properties/a~1b/items/properties/properties"), [Member("a~1b"), Item, Member("properties")]);
        assert_eq!(steps("/anyOf/0/properties/items"), [Other, Other, Member("items")]);
        assert_eq!(steps("/properties"), [Other]);
    }
}
