//! A change to a JSON object, for the tables of faults.

use serde_json::Value;

use crate::reference::message::Object;

/// A change to the member at a path of names and indexes. It has no effect if the path does not exist, which
/// only another fault can cause.
pub(in crate::reference) enum Edit {
    /// Sets the member, whether it exists or not.
    Set(&'static str, fn() -> Value),
    /// Removes the member.
    Remove(&'static str),
    /// Appends an element to the array.
    Push(&'static str, fn() -> Value),
    /// Any other change.
    With(fn(&mut Object)),
}

impl Edit {
    pub(in crate::reference) fn apply(&self, target: &mut Object) {
        match self {
            Self::Set(path, value) => {
                if let Some((parent, name)) = place(target, path) {
                    parent.insert(name.to_owned(), value());
                }
            }
            Self::Remove(path) => {
                if let Some((parent, name)) = place(target, path) {
                    parent.shift_remove(name);
                }
            }
            Self::Push(path, value) => {
                if let Some((parent, name)) = place(target, path)
                    && let Some(Value::Array(items)) = parent.get_mut(name)
                {
                    items.push(value());
                }
            }
            Self::With(edit) => edit(target),
        }
    }
}

/// The parent object of a path, and the name of the member in it.
fn place<'t>(target: &'t mut Object, path: &'static str) -> Option<(&'t mut Object, &'static str)> {
    let Some((parents, name)) = path.rsplit_once('/') else {
        return Some((target, path));
    };
    let (first, rest) = parents.split_once('/').unwrap_or((parents, ""));
    let mut parent = target.get_mut(first)?;
    if !rest.is_empty() {
        parent = parent.pointer_mut(&format!("/{rest}"))?;
    }
    Some((parent.as_object_mut()?, name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::reference::message::object;

    #[test]
    fn paths_consist_of_names_and_indexes_and_may_not_exist() {
        let mut target = object(json!({"a": [{"b": {"c": 1}}], "d": 2}));
        Edit::Set("a/0/b/c", || json!(3)).apply(&mut target);
        Edit::Set("e", || json!(4)).apply(&mut target);
        Edit::Remove("d").apply(&mut target);
        Edit::Push("a", || json!(5)).apply(&mut target);
        Edit::Set("a/7/b", || json!(6)).apply(&mut target);
        Edit::Remove("e/f").apply(&mut target);
        assert_eq!(Value::Object(target), json!({"a": [{"b": {"c": 3}}, 5], "e": 4}));
    }
}
