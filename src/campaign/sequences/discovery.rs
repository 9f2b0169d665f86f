//! Finds out which tools belong together: creates objects, and gives their identifiers to the tools whose arguments are
//! named like them. A tool belongs to a kind of objects if it serves the identifier of one and refuses a made-up one.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::arguments::{Amount, ArgumentMaker, is_new, made_up};
use super::execution::{CallAllowance, StepExchange, call};
use super::kinds::{Identifier, ObjectKind, ObjectTool, ParentLink};
use crate::campaign::process::caller::Caller;
use crate::sequence::{
    FoundValue, Parameter, ParameterType, Role, SequenceTool, StepAnswer, affinity, like, values, words,
};

/// The maximum number of kinds of objects.
const MAX_KINDS: usize = 12;
/// The maximum number of places of an identifier to try with one argument.
const MAX_PLACES: usize = 3;

/// An object that discovery created.
#[derive(Debug, Clone)]
pub(super) struct CreatedObject {
    pub(super) kind: usize,
    pub(super) value: Value,
}

/// What discovery has found so far.
pub(super) struct Discovery<'c, 'a> {
    pub(super) caller: &'c mut Caller<'a>,
    pub(super) views: &'c [SequenceTool],
    pub(super) maker: &'c mut ArgumentMaker,
    pub(super) allowance: &'c mut CallAllowance,
    pub(super) kinds: Vec<ObjectKind>,
    pub(super) links: Vec<ParentLink>,
    /// How many arguments each tool takes.
    pub(super) amounts: BTreeMap<usize, Amount>,
    pub(super) created: Vec<CreatedObject>,
    pub(super) made: Vec<StepExchange>,
}

/// The tools that may create objects, the best first. None if no other tool takes what one returns.
pub(super) fn creators(views: &[SequenceTool]) -> Vec<usize> {
    let takes_identifier = |tool: usize, other: &SequenceTool| {
        let fits = |parameter: &Parameter| {
            // The names of tools and arguments say it before any result is known; what a tool takes, it does not return.
            let is_own = views[tool].parameter(&parameter.name).is_some();
            (!is_own && affinity("id", &views[tool].nouns, parameter, other) > 0)
                || names_object(&views[tool], other, &parameter.name)
        };
        other.name != views[tool].name && other.parameters.iter().any(fits)
    };
    let is_creator = |tool: &usize| {
        views[*tool].role == Some(Role::Create) && views.iter().any(|other| takes_identifier(*tool, other))
    };
    (0..views.len()).filter(is_creator).collect()
}

/// Whether both tools have this argument, and it is one by which the client names objects.
fn names_object(creator: &SequenceTool, other: &SequenceTool, argument: &str) -> bool {
    let is_name =
        words(argument).last().is_some_and(|word| ["path", "name", "key", "uri", "slug"].contains(&word.as_str()));
    let is_required = |tool: &SequenceTool| {
        tool.parameter(argument)
            .is_some_and(|parameter| parameter.is_required && matches!(parameter.kind, ParameterType::Text { .. }))
    };
    is_name && is_required(creator) && is_required(other)
}

impl Discovery<'_, '_> {
    /// Creates one object of each kind, and tries all tools on it.
    pub(super) async fn run(&mut self) -> Result<(), String> {
        let mut waiting = creators(self.views);
        // An object may need another one, which is created first.
        for _ in 0..3 {
            for tool in std::mem::take(&mut waiting) {
                if self.allowance.is_spent() || self.kinds.len() >= MAX_KINDS {
                    return Ok(());
                }
                if !self.try_creator(tool).await? {
                    waiting.push(tool);
                }
            }
        }
        Ok(())
    }

    /// The arguments that name objects of known kinds; `own` is given for one argument.
    pub(super) fn fixed(&mut self, tool: usize, own: Option<(&str, &Value)>) -> Map<String, Value> {
        let mut fixed = Map::new();
        if let Some((name, value)) = own {
            fixed.insert(name.to_owned(), value.clone());
        }
        let view = &self.views[tool];
        for parameter in view.parameters.iter().filter(|parameter| parameter.is_required) {
            if fixed.contains_key(&parameter.name) {
                continue;
            }
            let best = self.created.iter().rev().filter_map(|object| {
                let kind = &self.kinds[object.kind];
                let fits = match &kind.identifier {
                    Identifier::Result(_) => affinity("id", &self.views[kind.creator].nouns, parameter, view),
                    // Any path would fit to any tool.
                    Identifier::Argument(_) => 0,
                };
                (fits > 0).then_some((fits, object))
            });
            let Some((_, object)) = best.max_by_key(|(fits, _)| *fits) else { continue };
            let link = ParentLink { tool, argument: parameter.name.clone(), kind: object.kind };
            fixed.insert(parameter.name.clone(), like(&example(parameter), object.value.clone()));
            if !self.links.contains(&link) {
                self.links.push(link);
            }
        }
        fixed
    }

    async fn call(&mut self, tool: usize, arguments: Value) -> Result<StepExchange, String> {
        let made = call(self.caller, self.allowance, tool, arguments).await?;
        self.made.push(made.clone());
        Ok(made)
    }

    /// Calls a tool with as many arguments as it accepts; returns the first call that succeeds.
    async fn call_fully(&mut self, tool: usize, fixed: &Map<String, Value>) -> Result<Option<StepExchange>, String> {
        let known = self.amounts.get(&tool).copied();
        for amount in [Amount::All, Amount::Required, Amount::Plain] {
            if known.is_some_and(|known| known != amount) {
                continue;
            }
            let arguments = self.maker.arguments(self.caller.tools(), tool, &self.views[tool], amount, fixed);
            let Some(arguments) = arguments else { continue };
            let made = self.call(tool, arguments).await?;
            if matches!(made.record.answer, StepAnswer::Served(_)) {
                self.amounts.insert(tool, amount);
                return Ok(Some(made));
            }
        }
        Ok(None)
    }

    /// Creates an object with a tool; returns whether that succeeded.
    async fn try_creator(&mut self, tool: usize) -> Result<bool, String> {
        let fixed = self.fixed(tool, None);
        let Some(made) = self.call_fully(tool, &fixed).await? else { return Ok(false) };
        let found =
            made.record.results().first().map(|result| values(result, &made.record.arguments)).unwrap_or_default();
        let kind = self.kinds.len();
        let mut tools: Vec<(usize, String, Role, Vec<FoundValue>)> = Vec::new();
        for (other, view) in self.views.iter().enumerate().filter(|(other, _)| *other != tool) {
            let Some(role) = view.role.filter(|role| *role != Role::Create) else { continue };
            let best =
                view.parameters.iter().map(|parameter| (self.fitting(tool, parameter, view, &found, &made), parameter));
            let best = best.filter(|(fitting, _)| !fitting.is_empty()).max_by_key(|(fitting, _)| fitting[0].0);
            if let Some((fitting, parameter)) = best {
                let places = fitting.into_iter().map(|(_, found)| found).take(MAX_PLACES).collect();
                tools.push((other, parameter.name.clone(), role, places));
            }
        }
        // The identifier is what a tool that reads takes; only then is it tried where it may change something.
        tools.sort_by_key(|(_, _, role, _)| (*role != Role::Read, *role));
        let mut identifier: Option<(Identifier, Value)> = None;
        let mut confirmed = Vec::new();
        for (other, argument, role, places) in tools {
            let places = match &identifier {
                Some((known, _)) => places.into_iter().filter(|found| *known == identifier_of(found)).collect(),
                None if role == Role::Read || role == Role::List => places,
                None => continue,
            };
            for found in places {
                let is_confirmed = self.confirm(other, &argument, role, &found.value).await?;
                if is_confirmed && identifier.is_none() {
                    identifier = Some((identifier_of(&found), found.value.clone()));
                }
                if is_confirmed || role == Role::Delete {
                    confirmed.push(ObjectTool { tool: other, argument: argument.clone(), role, is_confirmed });
                    break;
                }
            }
        }
        let Some((identifier, value)) = identifier else { return Ok(true) };
        self.kinds.push(ObjectKind { creator: tool, identifier, tools: confirmed, lists: Vec::new() });
        self.created.push(CreatedObject { kind, value: value.clone() });
        self.find_lists(kind, &value).await?;
        Ok(true)
    }

    /// The values of a created object that an argument may take, with how well they fit, best first.
    fn fitting(
        &self,
        creator: usize,
        parameter: &Parameter,
        view: &SequenceTool,
        found: &[FoundValue],
        made: &StepExchange,
    ) -> Vec<(u8, FoundValue)> {
        if parameter.kind == ParameterType::Other {
            return Vec::new();
        }
        let nouns = &self.views[creator].nouns;
        let mut fitting: Vec<(u8, FoundValue)> = found
            .iter()
            .map(|found| (affinity(&found.name, nouns, parameter, view), found.clone()))
            .filter(|(fits, _)| *fits > 0)
            .collect();
        if names_object(&self.views[creator], view, &parameter.name)
            && let Some(value) = made.record.arguments.get(&parameter.name).filter(|value| is_new(value))
        {
            // A name that is known in full needs no place in a result.
            let place = crate::sequence::Place::Member(String::new());
            fitting.push((1, FoundValue { name: parameter.name.clone(), place, value: value.clone() }));
        }
        fitting.sort_by_key(|(fits, _)| std::cmp::Reverse(*fits));
        fitting
    }

    /// Whether a tool serves the identifier of an object and refuses a made-up one. A tool that deletes is only called with
    /// the made-up one.
    async fn confirm(&mut self, tool: usize, argument: &str, role: Role, value: &Value) -> Result<bool, String> {
        let Some(parameter) = self.views[tool].parameter(argument) else { return Ok(false) };
        let value = like(&example(parameter), value.clone());
        let Some(other) = made_up(&value) else { return Ok(false) };
        if role != Role::Delete {
            let fixed = self.fixed(tool, Some((argument, &value)));
            if self.call_fully(tool, &fixed).await?.is_none() {
                return Ok(false);
            }
        }
        let amount = self.amounts.get(&tool).copied().unwrap_or(Amount::Required);
        let fixed = self.fixed(tool, Some((argument, &other)));
        let arguments = self.maker.arguments(self.caller.tools(), tool, &self.views[tool], amount, &fixed);
        let Some(arguments) = arguments else { return Ok(false) };
        Ok(self.call(tool, arguments).await?.record.answer == StepAnswer::Refused)
    }

    /// Finds the tools whose results show an object that was created.
    async fn find_lists(&mut self, kind: usize, value: &Value) -> Result<(), String> {
        let creator = self.kinds[kind].creator;
        let mut has_another = false;
        for tool in 0..self.views.len() {
            let view = &self.views[tool];
            let shares_noun = view.nouns.iter().any(|noun| self.views[creator].nouns.contains(noun));
            let is_known = self.kinds[kind].tools.iter().any(|known| known.tool == tool);
            if !matches!(view.role, Some(Role::List | Role::Read)) || !shares_noun || is_known {
                continue;
            }
            let fixed = self.fixed(tool, None);
            // A text to search for would hide objects, so only what is required is sent.
            self.amounts.entry(tool).or_insert(Amount::Required);
            let Some(made) = self.call_fully(tool, &fixed).await? else { continue };
            let mut shows = made.record.occurrences(value) > 0;
            if !shows {
                // A list that misses only the newest object is a list all the same.
                if !has_another {
                    has_another = true;
                    let fixed = self.fixed(creator, None);
                    self.call_fully(creator, &fixed).await?;
                }
                let again = self.call_fully(tool, &fixed).await?;
                shows = again.is_some_and(|made| made.record.occurrences(value) > 0);
            }
            if shows {
                self.kinds[kind].lists.push(tool);
            }
        }
        Ok(())
    }
}

/// Where an identifier was found; the empty pointer stands for the argument of the same name.
fn identifier_of(found: &FoundValue) -> Identifier {
    match &found.place {
        crate::sequence::Place::Member(pointer) if pointer.is_empty() => Identifier::Argument(found.name.clone()),
        place => Identifier::Result(place.clone()),
    }
}

/// A value of the type of an argument.
pub(super) fn example(parameter: &Parameter) -> Value {
    match parameter.kind {
        ParameterType::Text { .. } => Value::String(String::new()),
        ParameterType::Integer | ParameterType::Number => Value::from(0),
        ParameterType::Other => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The names of the tools that may create objects, of tools with these required arguments.
    fn creators_of(tools: &[(&str, &[&str])]) -> Vec<String> {
        let view = |(name, required): &(&str, &[&str])| {
            let properties: Map<String, Value> =
                required.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
            let schema = json!({"type": "object", "properties": properties, "required": required});
            SequenceTool::new(&json!({"name": name, "inputSchema": schema})).expect("it has a name")
        };
        let views: Vec<SequenceTool> = tools.iter().map(view).collect();
        creators(&views).into_iter().map(|tool| views[tool].name.clone()).collect()
    }

    #[test]
    fn tools_that_work_on_their_own_are_not_called_in_sequences() {
        let pure: [(&str, &[&str]); 4] =
            [("echo", &["message"]), ("add", &["a", "b"]), ("get_current_time", &["timezone"]), ("fetch", &["url"])];
        assert_eq!(creators_of(&pure), Vec::<String>::new());
    }

    #[test]
    fn files_are_created_by_the_tool_that_writes_a_path() {
        let files: [(&str, &[&str]); 7] = [
            ("read_text_file", &["path"]),
            ("write_file", &["path", "content"]),
            ("edit_file", &["path", "edits"]),
            ("list_directory", &["path"]),
            ("move_file", &["source", "destination"]),
            ("search_files", &["path", "pattern"]),
            ("list_allowed_directories", &[]),
        ];
        assert_eq!(creators_of(&files), ["write_file"]);
    }

    #[test]
    fn tables_commits_and_entities_are_created_if_another_tool_names_them() {
        let tables: [(&str, &[&str]); 5] = [
            ("read_query", &["query"]),
            ("write_query", &["query"]),
            ("create_table", &["query"]),
            ("list_tables", &[]),
            ("describe_table", &["table_name"]),
        ];
        assert_eq!(creators_of(&tables), ["create_table"]);
        let graph: [(&str, &[&str]); 5] = [
            ("create_entities", &["entities"]),
            ("add_observations", &["observations"]),
            ("delete_entities", &["entityNames"]),
            ("read_graph", &[]),
            ("open_nodes", &["names"]),
        ];
        assert_eq!(creators_of(&graph), ["create_entities"]);
        let repository: [(&str, &[&str]); 4] = [
            ("git_status", &["repo_path"]),
            ("git_log", &["repo_path"]),
            ("git_create_branch", &["repo_path", "branch_name"]),
            ("git_checkout", &["repo_path", "branch_name"]),
        ];
        assert_eq!(creators_of(&repository), ["git_create_branch"]);
    }
}
