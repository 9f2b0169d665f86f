//! The resources and prompts that a server lists.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The value of an argument that is named like a URI, if the server lists no resource.
const MADE_UP_URI: &str = "https://example.com/";

/// A prompt that the server lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub(crate) name: String,
    /// Its required arguments, each with a short string, or a URI if it is named like one.
    pub(crate) arguments: Map<String, Value>,
    /// Its optional arguments, with values of the same kinds.
    pub(crate) optional: Map<String, Value>,
    /// Whether getting it with them succeeded.
    served: bool,
}

impl Prompt {
    /// Whether getting it with its required arguments succeeded.
    pub(crate) fn is_served(&self) -> bool {
        self.served
    }
}

/// The resources and prompts of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Primitives {
    /// The URIs of the listed resources.
    pub(crate) resources: Vec<String>,
    /// The listed URI templates.
    pub(crate) templates: Vec<String>,
    prompts: Vec<Prompt>,
    /// The keys of each list that was read to its end, by list method.
    pub(crate) complete_lists: BTreeMap<&'static str, Vec<String>>,
}

impl Primitives {
    /// The resources alone.
    pub(crate) fn without_prompts(&self) -> Self {
        Self { resources: self.resources.clone(), ..Self::default() }
    }

    /// The listed prompts.
    pub(crate) fn prompts(&self) -> &[Prompt] {
        &self.prompts
    }

    /// A prompt with required arguments that was served.
    pub(crate) fn prompt_with_arguments(&self) -> Option<&Prompt> {
        self.prompts.iter().find(|prompt| prompt.served && !prompt.arguments.is_empty())
    }

    /// Records arguments with which getting a prompt succeeded.
    pub(crate) fn record_working_arguments(&mut self, name: &str, arguments: &Map<String, Value>) {
        let arguments = arguments.clone();
        match self.prompts.iter_mut().find(|known| known.name == name) {
            Some(known) if known.served => {}
            Some(known) => (known.arguments, known.served) = (arguments, true),
            None => {
                self.prompts.push(Prompt { name: name.to_owned(), arguments, optional: Map::new(), served: true });
            }
        }
    }

    /// Records whether getting a prompt with its required arguments succeeded.
    pub(crate) fn record_get(&mut self, prompt: usize, served: bool) {
        self.prompts[prompt].served = served;
    }

    /// Records that a list was read to its end.
    pub(crate) fn mark_complete(&mut self, method: &'static str) {
        let keys = match method {
            "resources/list" => self.resources.clone(),
            "prompts/list" => self.prompts.iter().map(|prompt| prompt.name.clone()).collect(),
            _ => return,
        };
        self.complete_lists.insert(method, keys);
    }

    /// Replaces the made-up URIs in arguments of prompts by that of a listed resource.
    pub(crate) fn use_listed_resource(&mut self) {
        let Some(uri) = self.resources.first() else { return };
        for Prompt { arguments, optional, .. } in &mut self.prompts {
            let values = arguments.values_mut().chain(optional.values_mut());
            values.filter(|value| **value == MADE_UP_URI).for_each(|value| *value = json!(uri));
        }
    }

    /// Adds the items in a result of a list method.
    pub(crate) fn add(&mut self, method: &str, result: &Value) {
        let items = |member: &str| result.get(member).and_then(Value::as_array).into_iter().flatten();
        match method {
            "resources/list" => {
                let uris = items("resources").filter_map(|resource| resource.get("uri")?.as_str());
                self.resources.extend(uris.map(str::to_owned));
            }
            "resources/templates/list" => {
                let templates = items("resourceTemplates").filter_map(|template| template.get("uriTemplate")?.as_str());
                self.templates.extend(templates.map(str::to_owned));
            }
            "prompts/list" => self.prompts.extend(items("prompts").filter_map(prompt)),
            _ => {}
        }
    }
}

fn prompt(definition: &Value) -> Option<Prompt> {
    let name = definition.get("name")?.as_str()?.to_owned();
    let given = definition.get("arguments").and_then(Value::as_array).into_iter().flatten();
    let (required, optional): (Vec<&Value>, Vec<&Value>) =
        given.partition(|argument| argument.get("required") == Some(&Value::Bool(true)));
    let values = |arguments: Vec<&Value>| {
        let names = arguments.into_iter().filter_map(|argument| argument.get("name")?.as_str());
        names.map(|name| (name.to_owned(), json!(if is_uri(name) { MADE_UP_URI } else { "test" }))).collect()
    };
    Some(Prompt { name, arguments: values(required), optional: values(optional), served: false })
}

/// Whether the name of an argument says that its value is a URI.
fn is_uri(name: &str) -> bool {
    let name = name.to_lowercase();
    name.contains("uri") || name.contains("url")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_arguments_get_a_short_string() {
        let read = prompt(&json!({
            "name": "review",
            "arguments": [{"name": "code", "required": true}, {"name": "style"}, {"required": true}],
        }));
        let read = read.expect("it has a name");
        assert_eq!(json!(read.arguments), json!({"code": "test"}));
        assert_eq!(prompt(&json!({"arguments": []})), None);
    }

    #[test]
    fn an_argument_that_is_named_like_a_uri_gets_the_uri_of_a_resource() {
        let mut primitives = Primitives::default();
        let arguments = json!([{"name": "resourceUri", "required": true}, {"name": "style", "required": true}]);
        primitives.add("prompts/list", &json!({"prompts": [{"name": "a", "arguments": arguments}]}));
        primitives.use_listed_resource();
        assert_eq!(json!(primitives.prompts[0].arguments), json!({"resourceUri": MADE_UP_URI, "style": "test"}));
        primitives.add("resources/list", &json!({"resources": [{"uri": "note://1"}]}));
        primitives.use_listed_resource();
        assert_eq!(json!(primitives.prompts[0].arguments), json!({"resourceUri": "note://1", "style": "test"}));
    }

    #[test]
    fn a_prompt_with_arguments_counts_once_it_was_served() {
        let mut primitives = Primitives::default();
        primitives.add(
            "prompts/list",
            &json!({"prompts": [{"name": "a"}, {"name": "b", "arguments": [{"name": "c", "required": true}]}]}),
        );
        assert_eq!(primitives.prompt_with_arguments(), None);
        primitives.prompts[0].served = true;
        assert_eq!(primitives.prompt_with_arguments(), None);
        primitives.prompts[1].served = true;
        assert_eq!(primitives.prompt_with_arguments().map(|prompt| prompt.name.as_str()), Some("b"));
    }
}
