//! Determines which keywords of a schema apply to given arguments.

use serde_json::Value;

use crate::json_pointer::{InstanceStep, instance_steps, unescape};

/// The keywords of a schema by the instance location that they apply to, as far as `properties` and `items` tell.
#[derive(Debug)]
pub(super) struct ApplicableKeywords {
    root: InstanceLocation,
    /// For each keyword, the number of the last arguments that it applied to: an array can lead to a keyword
    /// repeatedly.
    last_seen: Vec<u64>,
    /// The number of arguments examined so far.
    evaluated: u64,
}

/// A location in an instance.
#[derive(Debug, Default)]
struct InstanceLocation {
    /// The keywords that apply to it.
    keywords: Vec<usize>,
    /// The child locations by property name, sorted.
    properties: Vec<(String, InstanceLocation)>,
    items: Option<Box<InstanceLocation>>,
}

impl ApplicableKeywords {
    /// Indexes keywords by their schema pointers; a keyword is identified by its position.
    pub(in crate::campaign) fn new<'p>(pointers: impl Iterator<Item = &'p str>) -> Self {
        let mut root = InstanceLocation::default();
        let mut count = 0;
        for (keyword, pointer) in pointers.enumerate() {
            root.descend(pointer).keywords.push(keyword);
            count = keyword + 1;
        }
        Self { root, last_seen: vec![0; count], evaluated: 0 }
    }

    /// Calls `visit_keyword` once for each keyword that applies to these arguments.
    pub(super) fn for_each_in(&mut self, arguments: &Value, mut visit_keyword: impl FnMut(usize)) {
        self.evaluated += 1;
        let (last_seen, evaluated) = (&mut self.last_seen, self.evaluated);
        self.root.visit(arguments, &mut |keyword| {
            if std::mem::replace(&mut last_seen[keyword], evaluated) != evaluated {
                visit_keyword(keyword);
            }
        });
    }
}

impl InstanceLocation {
    /// The instance location that a schema pointer describes, created if needed.
    fn descend(&mut self, pointer: &str) -> &mut Self {
        let mut location = self;
        for step in instance_steps(pointer) {
            match step {
                InstanceStep::Member(token) => {
                    let name = unescape(token);
                    let at = location.properties.binary_search_by(|(known, _)| known.as_str().cmp(&name));
                    let at = at.unwrap_or_else(|at| {
                        location.properties.insert(at, (name, Self::default()));
                        at
                    });
                    location = &mut location.properties[at].1;
                }
                InstanceStep::Item => location = location.items.get_or_insert_default(),
                InstanceStep::Other => break,
            }
        }
        location
    }

    fn visit(&self, instance: &Value, visit_keyword: &mut impl FnMut(usize)) {
        for keyword in &self.keywords {
            visit_keyword(*keyword);
        }
        match instance {
            Value::Object(members) if !self.properties.is_empty() => {
                for (name, member) in members {
                    let at = self.properties.binary_search_by(|(known, _)| known.as_str().cmp(name));
                    if let Some((_, location)) = at.ok().and_then(|at| self.properties.get(at)) {
                        location.visit(member, visit_keyword);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(location) = &self.items {
                    for item in items {
                        location.visit(item, visit_keyword);
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_applicable_keyword_is_visited_once() {
        let pointers = ["", "/properties/a", "/properties/a/items", "/properties/a/items/properties/b~1c", "/allOf/0"];
        let mut keywords = ApplicableKeywords::new(pointers.into_iter());
        let mut visit_keyword = |arguments: Value| {
            let mut found = Vec::new();
            keywords.for_each_in(&arguments, |keyword| found.push(keyword));
            found.sort_unstable();
            found
        };
        assert_eq!(visit_keyword(json!({})), [0, 4]);
        assert_eq!(visit_keyword(json!({"a": 1})), [0, 1, 4]);
        assert_eq!(visit_keyword(json!({"a": [1, {"b/c": 1}, {"b/c": 2}]})), [0, 1, 2, 3, 4]);
        assert_eq!(visit_keyword(json!([{"a": []}])), [0, 4]);
    }
}
