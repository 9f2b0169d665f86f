//! Which keywords of a schema look at something that arguments have.

use serde_json::Value;

/// Keywords by where in an instance they look, as far as that can be told from properties and items.
#[derive(Debug)]
pub(super) struct Reached {
    root: Place,
    /// For each keyword, the last arguments in which it was reached: an array may lead to it more than once.
    last: Vec<u64>,
    /// How many arguments were looked at.
    looked: u64,
}

/// A place in instances.
#[derive(Debug, Default)]
struct Place {
    /// The keywords that look at it.
    keywords: Vec<usize>,
    /// What lies below, by the name of the property; sorted.
    properties: Vec<(String, Place)>,
    items: Option<Box<Place>>,
}

impl Reached {
    /// The keywords at these places of a schema, by position.
    pub(super) fn new<'p>(pointers: impl Iterator<Item = &'p str>) -> Self {
        let mut root = Place::default();
        let mut count = 0;
        for (keyword, pointer) in pointers.enumerate() {
            root.below(pointer).keywords.push(keyword);
            count = keyword + 1;
        }
        Self { root, last: vec![0; count], looked: 0 }
    }

    /// Names each keyword once that looks at something that these arguments have.
    pub(super) fn by(&mut self, arguments: &Value, mut reached: impl FnMut(usize)) {
        self.looked += 1;
        let (last, looked) = (&mut self.last, self.looked);
        self.root.visit(arguments, &mut |keyword| {
            if std::mem::replace(&mut last[keyword], looked) != looked {
                reached(keyword);
            }
        });
    }
}

impl Place {
    /// The place that a place in a schema speaks of.
    fn below(&mut self, pointer: &str) -> &mut Self {
        let mut place = self;
        let mut words = pointer.split('/').skip(1);
        loop {
            match words.next() {
                Some("properties") => {
                    let name = words.next().unwrap_or_default().replace("~1", "/").replace("~0", "~");
                    let at = place.properties.binary_search_by(|(known, _)| known.as_str().cmp(&name));
                    let at = at.unwrap_or_else(|at| {
                        place.properties.insert(at, (name, Self::default()));
                        at
                    });
                    place = &mut place.properties[at].1;
                }
                Some("items") => place = place.items.get_or_insert_default(),
                _ => return place,
            }
        }
    }

    fn visit(&self, instance: &Value, reached: &mut impl FnMut(usize)) {
        for keyword in &self.keywords {
            reached(*keyword);
        }
        match instance {
            Value::Object(members) if !self.properties.is_empty() => {
                for (name, member) in members {
                    let at = self.properties.binary_search_by(|(known, _)| known.as_str().cmp(name));
                    if let Some((_, place)) = at.ok().and_then(|at| self.properties.get(at)) {
                        place.visit(member, reached);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(place) = &self.items {
                    for item in items {
                        place.visit(item, reached);
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
    fn a_keyword_is_reached_once_where_the_arguments_have_what_it_looks_at() {
        let pointers = ["", "/properties/a", "/properties/a/items", "/properties/a/items/properties/b~1c", "/allOf/0"];
        let mut places = Reached::new(pointers.into_iter());
        let mut reached = |arguments: Value| {
            let mut found = Vec::new();
            places.by(&arguments, |keyword| found.push(keyword));
            found.sort_unstable();
            found
        };
        assert_eq!(reached(json!({})), [0, 4]);
        assert_eq!(reached(json!({"a": 1})), [0, 1, 4]);
        assert_eq!(reached(json!({"a": [1, {"b/c": 1}, {"b/c": 2}]})), [0, 1, 2, 3, 4]);
        assert_eq!(reached(json!([{"a": []}])), [0, 4]);
    }
}
