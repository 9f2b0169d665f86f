//! The application of the evaluation of sequences: projects with tasks, and files, on one connection. Projects are returned
//! as structured content, tasks as the JSON of a text, and files in prose.

use std::time::{Duration, Instant};

use mcp_conformance::reference::{Interception, Interceptor, Revision};
use serde_json::{Map, Value, json};

use super::state_faults::{StateFault, StateMistake};

type Object = Map<String, Value>;

/// How long an eventually consistent server takes until its reads show a change.
const DELAY: Duration = Duration::from_millis(150);
/// The maximum number of objects of a kind: the fuzzer creates more than anybody needs.
const MAX_OBJECTS: usize = 2_000;

/// How a kind of objects is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Structured,
    JsonText,
    Prose,
}

/// A kind of objects, with the names of its tools.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) noun: &'static str,
    pub(crate) create: &'static str,
    pub(crate) read: &'static str,
    pub(crate) list: &'static str,
    pub(crate) rename: &'static str,
    pub(crate) delete: &'static str,
    /// The argument and the member that hold the identifier.
    argument: &'static str,
    member: &'static str,
    form: Form,
    has_project: bool,
}

pub(crate) const KINDS: [Kind; 3] = [
    Kind {
        noun: "project",
        create: "create_project",
        read: "get_project",
        list: "list_projects",
        rename: "rename_project",
        delete: "delete_project",
        argument: "projectId",
        member: "id",
        form: Form::Structured,
        has_project: false,
    },
    Kind {
        noun: "task",
        create: "addTask",
        read: "getTask",
        list: "listTasks",
        rename: "renameTask",
        delete: "removeTask",
        argument: "id",
        member: "taskId",
        form: Form::JsonText,
        has_project: true,
    },
    Kind {
        noun: "file",
        create: "upload-file",
        read: "read-file",
        list: "list-files",
        rename: "rename-file",
        delete: "delete-file",
        argument: "file_id",
        member: "",
        form: Form::Prose,
        has_project: false,
    },
];

#[derive(Debug, Clone, PartialEq)]
struct Stored {
    id: Value,
    title: String,
    size: i64,
    project: Value,
    reads: usize,
    is_deleted: bool,
}

/// The objects of a kind, now and as they were.
#[derive(Debug, Default)]
struct Store {
    now: Vec<Stored>,
    /// Earlier contents, each with the time when it was replaced.
    earlier: Vec<(Instant, Vec<Stored>)>,
}

/// The application on one connection.
#[derive(Debug)]
pub(crate) struct Application {
    fault: Option<StateFault>,
    is_eventual: bool,
    stores: [Store; 3],
    created: u64,
    result: Option<Value>,
}

impl Application {
    pub(crate) fn new(fault: Option<StateFault>, is_eventual: bool) -> Self {
        Self { fault, is_eventual, stores: Default::default(), created: 0, result: None }
    }

    fn has(&self, kind: usize, mistake: StateMistake) -> bool {
        self.fault.is_some_and(|fault| fault.noun == KINDS[kind].noun && fault.mistake == mistake)
    }

    /// The objects that reads show.
    fn visible(&self, kind: usize) -> Vec<Stored> {
        let store = &self.stores[kind];
        let replaced_lately = |(replaced, _): &&(Instant, Vec<Stored>)| self.is_eventual && replaced.elapsed() < DELAY;
        store.earlier.iter().find(replaced_lately).map_or_else(|| store.now.clone(), |(_, before)| before.clone())
    }

    fn replace(&mut self, kind: usize, now: Vec<Stored>) {
        let store = &mut self.stores[kind];
        let before = std::mem::replace(&mut store.now, now);
        if self.is_eventual {
            store.earlier.retain(|(replaced, _)| replaced.elapsed() < DELAY);
            store.earlier.push((Instant::now(), before));
        }
    }

    fn next_id(&mut self, kind: usize) -> Value {
        self.created += 1;
        let mixed = self.created.wrapping_mul(0x9e37_79b9) % 0xf_ffff;
        match KINDS[kind].form {
            Form::Structured => format!("prj-{mixed:05x}").into(),
            Form::JsonText => (self.created + 100).into(),
            Form::Prose => format!("f-{mixed:05}").into(),
        }
    }

    fn create(&mut self, kind: usize, arguments: &Object) -> Result<Value, String> {
        let mut title = text(arguments, "title")?;
        if self.has(kind, StateMistake::TitleCut) {
            title = title.chars().take(8).collect();
        }
        let project = arguments.get("projectId").cloned().unwrap_or_default();
        if KINDS[kind].has_project && !self.stores[0].now.iter().any(|known| known.id == project && !known.is_deleted) {
            return Err("There is no such project.".to_owned());
        }
        let size = arguments.get("size").and_then(Value::as_i64).unwrap_or(1);
        let id = self.next_id(kind);
        let stored = Stored { id: id.clone(), title, size, project, reads: 0, is_deleted: false };
        let mut now = self.stores[kind].now.clone();
        if now.len() >= MAX_OBJECTS {
            now.remove(0);
        }
        now.push(stored);
        self.replace(kind, now);
        let spec = &KINDS[kind];
        Ok(match spec.form {
            Form::Structured => json!({"structuredContent": {"project": {(spec.member): id}}}),
            Form::JsonText => text_result(&json!({(spec.member): id}).to_string()),
            Form::Prose => text_result(&format!("Stored the file as {}.", shown(&id))),
        })
    }

    fn read(&mut self, kind: usize, arguments: &Object) -> Result<Value, Interception> {
        let spec = &KINDS[kind];
        let refused = || Interception::ToolError(format!("There is no such {}.", spec.noun));
        let id = arguments.get(spec.argument).cloned().unwrap_or_default();
        let current = self.stores[kind].now.iter().position(|stored| stored.id == id).ok_or_else(refused)?;
        // A new object is read at once, even where changes take time.
        let visible = self.visible(kind).into_iter().find(|stored| stored.id == id);
        let stored = visible.unwrap_or_else(|| self.stores[kind].now[current].clone());
        self.stores[kind].now[current].reads += 1;
        if stored.is_deleted {
            if self.has(kind, StateMistake::InternalErrorAfterDelete) {
                return Err(Interception::ProtocolError { code: -32603, message: "Internal error".to_owned() });
            }
            if !self.has(kind, StateMistake::DeleteKeeps) {
                return Err(refused());
            }
        }
        if stored.reads > 0 && self.has(kind, StateMistake::ReadOnce) {
            return Err(refused());
        }
        let size = stored.size + i64::from(self.has(kind, StateMistake::SizeOff));
        Ok(match spec.form {
            Form::Structured => {
                let read = json!({(spec.member): id, "title": stored.title, "size": size, "readAt": stored.reads});
                json!({ "structuredContent": read })
            }
            Form::JsonText => {
                let read = json!({(spec.member): id, "title": stored.title, "size": size, "projectId": stored.project});
                text_result(&read.to_string())
            }
            Form::Prose => text_result(&format!("{} is called {} and has {size} bytes.", shown(&id), stored.title)),
        })
    }

    fn list(&mut self, kind: usize, arguments: &Object) -> Value {
        if self.has(kind, StateMistake::ListForgets) {
            for stored in &mut self.stores[kind].now {
                "untitled".clone_into(&mut stored.title);
            }
        }
        let spec = &KINDS[kind];
        let mut listed = self.visible(kind);
        let keeps_deleted = self.has(kind, StateMistake::DeleteStaysListed);
        listed.retain(|stored| !stored.is_deleted || keeps_deleted);
        if let Some(project) = arguments.get("projectId") {
            listed.retain(|stored| stored.project == *project);
        }
        if self.has(kind, StateMistake::ListMissesLast) {
            listed.pop();
        }
        match spec.form {
            Form::Structured => {
                let items: Vec<Value> = listed.iter().map(|stored| json!({(spec.member): stored.id})).collect();
                json!({"structuredContent": {"projects": items}})
            }
            Form::JsonText => {
                let item = |stored: &Stored| json!({(spec.member): stored.id, "title": stored.title});
                text_result(&Value::from(listed.iter().map(item).collect::<Vec<_>>()).to_string())
            }
            Form::Prose => {
                let lines: Vec<String> = listed.iter().map(|stored| shown(&stored.id)).collect();
                text_result(&format!("{} files: {}", lines.len(), lines.join(", ")))
            }
        }
    }

    fn rename(&mut self, kind: usize, arguments: &Object) -> Result<Value, Interception> {
        let spec = &KINDS[kind];
        let refused = || Interception::ToolError(format!("There is no such {}.", spec.noun));
        let id = arguments.get(spec.argument).cloned().unwrap_or_default();
        let title = text(arguments, "title").map_err(Interception::ToolError)?;
        let mut now = self.stores[kind].now.clone();
        let at = now.iter().position(|stored| stored.id == id).ok_or_else(refused)?;
        if now[at].is_deleted {
            if self.has(kind, StateMistake::CrashAfterDelete) {
                return Err(Interception::Crashed);
            }
            if !self.has(kind, StateMistake::RenameAfterDelete) {
                return Err(refused());
            }
        }
        if self.has(kind, StateMistake::RenameAffectsAll) {
            for stored in &mut now {
                stored.title.clone_from(&title);
            }
        }
        if self.has(kind, StateMistake::RenameAppends) && now[at].title == title {
            now[at].title = format!("{title} {title}");
        } else if !self.has(kind, StateMistake::RenameLost) {
            now[at].title = title;
        }
        self.replace(kind, now);
        Ok(text_result("Renamed."))
    }

    fn delete(&mut self, kind: usize, arguments: &Object) -> Result<Value, Interception> {
        let spec = &KINDS[kind];
        let id = arguments.get(spec.argument).cloned().unwrap_or_default();
        let mut now = self.stores[kind].now.clone();
        let at = now.iter().position(|stored| stored.id == id && !stored.is_deleted);
        let at = at.ok_or_else(|| Interception::ToolError(format!("There is no such {}.", spec.noun)))?;
        now[at].is_deleted = true;
        if self.has(kind, StateMistake::DeleteRemovesNext)
            && let Some(next) = now.get_mut(at + 1)
        {
            next.is_deleted = true;
        }
        self.replace(kind, now);
        Ok(text_result("Deleted."))
    }

    fn call(&mut self, tool: &str, arguments: &Object) -> Option<Result<Value, Interception>> {
        let kind = KINDS.iter().position(|kind| names(kind).contains(&tool))?;
        let spec = &KINDS[kind];
        Some(match tool {
            _ if tool == spec.create => self.create(kind, arguments).map_err(Interception::ToolError),
            _ if tool == spec.read => self.read(kind, arguments),
            _ if tool == spec.list => Ok(self.list(kind, arguments)),
            _ if tool == spec.rename => self.rename(kind, arguments),
            _ => self.delete(kind, arguments),
        })
    }
}

impl Interceptor for Application {
    fn intercept_call(&mut self, params: &Object, _revision: Revision) -> Interception {
        let Some(tool) = params.get("name").and_then(Value::as_str) else { return Interception::Continue };
        let none = Object::new();
        let arguments = params.get("arguments").and_then(Value::as_object).unwrap_or(&none);
        match self.call(tool, arguments) {
            None => Interception::Continue,
            Some(Err(interception)) => interception,
            Some(Ok(result)) => {
                // A tool of the server itself is called instead, and its result replaced.
                self.result = Some(result);
                let call = json!({"name": "echo", "arguments": {"text": "."}});
                Interception::Replaced(call.as_object().cloned().unwrap_or_default())
            }
        }
    }

    fn change_result(&mut self, result: &mut Object) {
        let Some(Value::Object(mut own)) = self.result.take() else { return };
        if let Some(structured) = own.get("structuredContent") {
            let text = structured.to_string();
            own.insert("content".to_owned(), json!([{"type": "text", "text": text}]));
        }
        result.extend(own);
    }

    fn add_tools(&self, tools: &mut Vec<Object>, _revision: Revision) {
        for kind in &KINDS {
            tools.extend(definitions(kind).into_iter().filter_map(|definition| definition.as_object().cloned()));
        }
    }
}

/// The names of the tools of a kind.
pub(crate) fn names(kind: &Kind) -> [&'static str; 5] {
    [kind.create, kind.read, kind.list, kind.rename, kind.delete]
}

fn definitions(kind: &Kind) -> [Value; 5] {
    let identifier = match kind.form {
        Form::JsonText => json!({"type": "integer"}),
        Form::Structured | Form::Prose => json!({"type": "string"}),
    };
    let title = json!({"type": "string", "minLength": 1});
    let size = json!({"type": "integer", "minimum": 0, "maximum": 100});
    let tool = |name: &str, properties: Value, required: &[&str], annotations: Value| {
        json!({
            "name": name,
            "description": format!("A tool for a {}.", kind.noun),
            "inputSchema": {"type": "object", "properties": properties, "required": required},
            "annotations": annotations,
        })
    };
    let reads = json!({"readOnlyHint": true});
    let changes = json!({"destructiveHint": false, "idempotentHint": true});
    let (mut created, mut listed) = (json!({"title": title, "size": size}), json!({}));
    let (mut needed, mut filter) = (vec!["title"], Vec::new());
    if kind.has_project {
        created["projectId"] = json!({"type": "string"});
        listed["projectId"] = json!({"type": "string"});
        needed.push("projectId");
        filter.push("projectId");
    }
    let own = json!({(kind.argument): identifier});
    [
        tool(kind.create, created, &needed, json!({"destructiveHint": false})),
        tool(kind.read, own.clone(), &[kind.argument], reads.clone()),
        tool(kind.list, listed, &filter, reads),
        tool(kind.rename, json!({(kind.argument): identifier, "title": title}), &[kind.argument, "title"], changes),
        tool(kind.delete, own, &[kind.argument], json!({"destructiveHint": true})),
    ]
}

fn text(arguments: &Object, name: &str) -> Result<String, String> {
    let text = arguments.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| format!("{name} is missing."))
}

fn text_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn shown(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}
