//! The words of names: what a tool does to what, and which argument names an object.

/// What a tool does to objects, as its name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// It makes an object.
    Create,
    /// It returns one object.
    Read,
    /// It returns several objects.
    List,
    /// It changes an object.
    Change,
    /// It deletes an object.
    Delete,
}

const CREATE: [&str; 17] = [
    "create", "add", "new", "make", "insert", "register", "open", "start", "begin", "put", "write", "save", "store",
    "upload", "post", "submit", "allocate",
];
const READ: [&str; 11] =
    ["get", "read", "show", "fetch", "view", "describe", "retrieve", "load", "find", "lookup", "inspect"];
const LIST: [&str; 6] = ["list", "search", "query", "browse", "enumerate", "all"];
const CHANGE: [&str; 16] = [
    "update", "edit", "set", "change", "modify", "rename", "patch", "move", "replace", "append", "assign", "complete",
    "close", "archive", "touch", "tag",
];
const DELETE: [&str; 9] = ["delete", "remove", "destroy", "drop", "erase", "purge", "discard", "unlink", "rm"];

/// The last words of arguments that name an object.
const REFERENCE: [&str; 10] = ["id", "handle", "path", "uri", "key", "slug", "uuid", "guid", "name", "number"];

/// The lower-case words of a name in camel case, snake case or kebab case.
pub(crate) fn words(name: &str) -> Vec<String> {
    let chars: Vec<char> = name.chars().take(200).collect();
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    for (at, c) in chars.iter().copied().enumerate() {
        let before = at.checked_sub(1).map(|before| chars[before]);
        let after = chars.get(at + 1);
        let begins = c.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase() || before.is_numeric() || after.is_some_and(|after| after.is_lowercase())
            });
        if (begins || !c.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// The singular of a word, as far as its spelling shows it.
pub(crate) fn singular(word: &str) -> String {
    match word {
        "ids" => "id".to_owned(),
        _ if word.len() > 4 && word.ends_with("ies") => format!("{}y", &word[..word.len() - 3]),
        _ if ["sses", "xes", "ches", "shes"].iter().any(|ending| word.ends_with(ending)) => {
            word[..word.len() - 2].to_owned()
        }
        _ if word.len() > 3 && word.ends_with('s') && !["ss", "us", "is"].iter().any(|end| word.ends_with(end)) => {
            word[..word.len() - 1].to_owned()
        }
        _ => word.to_owned(),
    }
}

fn role_of_word(word: &str) -> Option<Role> {
    let tables: [(&[&str], Role); 5] = [
        (&CREATE, Role::Create),
        (&READ, Role::Read),
        (&LIST, Role::List),
        (&CHANGE, Role::Change),
        (&DELETE, Role::Delete),
    ];
    tables.into_iter().find(|(table, _)| table.contains(&word)).map(|(_, role)| role)
}

/// What a tool of this name does, and the singular words that name the objects that it does it to.
pub(crate) fn role_and_nouns(name: &str) -> (Option<Role>, Vec<String>) {
    let words = words(name);
    let roles: Vec<Option<Role>> = words.iter().map(|word| role_of_word(word)).collect();
    let first = roles.iter().flatten().next().copied();
    // `get_all_tasks` lists, although it begins like a read.
    let lists = first == Some(Role::Read) && roles.contains(&Some(Role::List));
    let role = if lists { Some(Role::List) } else { first };
    // The first verb is no noun; a later one may be: `get_post`.
    let verb = roles.iter().position(Option::is_some);
    let nouns = words
        .iter()
        .enumerate()
        .filter(|(at, word)| {
            Some(*at) != verb && !["all", "by", "of", "the", "a", "in", "to", "for", "my"].contains(&word.as_str())
        })
        .map(|(_, word)| singular(word));
    (role, nouns.collect())
}

/// If an argument or a member of this name refers to an object: the words that say to what, none for a bare `id`.
pub(crate) fn referred(name: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = words(name).iter().map(|word| singular(word)).collect();
    let last = words.last()?;
    if REFERENCE.contains(&last.as_str()) {
        words.pop();
        return Some(words);
    }
    None
}

/// Whether a name is that of a time, a version or a counter, which may change on its own.
pub(crate) fn is_volatile(name: &str) -> bool {
    const VOLATILE: [&str; 29] = [
        "updated",
        "modified",
        "changed",
        "accessed",
        "viewed",
        "time",
        "timestamp",
        "date",
        "at",
        "ts",
        "now",
        "version",
        "revision",
        "etag",
        "seen",
        "view",
        "access",
        "hit",
        "read",
        "usage",
        "age",
        "elapsed",
        "duration",
        "latency",
        "uptime",
        "expires",
        "request",
        "trace",
        "cursor",
    ];
    words(name).iter().any(|word| VOLATILE.contains(&singular(word).as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_every_notation_have_the_same_words() {
        for name in ["create_file_page", "createFilePage", "create-file-page", "CreateFilePage", "create.file/page"] {
            assert_eq!(words(name), ["create", "file", "page"], "{name}");
        }
        assert_eq!(words("getHTTPServer2Id"), ["get", "http", "server2", "id"]);
        assert_eq!(words("__"), Vec::<String>::new());
    }

    #[test]
    fn the_name_of_a_tool_says_what_it_does_to_what() {
        let rows: [(&str, Option<Role>, &[&str]); 14] = [
            ("create_entities", Some(Role::Create), &["entity"]),
            ("open_nodes", Some(Role::Create), &["node"]),
            ("search_nodes", Some(Role::List), &["node"]),
            ("read_text_file", Some(Role::Read), &["text", "file"]),
            ("list_directory", Some(Role::List), &["directory"]),
            ("edit_file", Some(Role::Change), &["file"]),
            ("delete_observations", Some(Role::Delete), &["observation"]),
            ("git_create_branch", Some(Role::Create), &["git", "branch"]),
            ("read_query", Some(Role::List), &["query"]),
            ("getAllTasks", Some(Role::List), &["task"]),
            ("draft-open", Some(Role::Create), &["draft"]),
            ("listBoxes", Some(Role::List), &["box"]),
            ("get_post", Some(Role::Read), &["post"]),
            ("weather", None, &["weather"]),
        ];
        for (name, role, nouns) in rows {
            let (found, found_nouns) = role_and_nouns(name);
            assert_eq!(found, role, "{name}");
            if name != "read_query" {
                assert_eq!(found_nouns, nouns, "{name}");
            }
        }
    }

    #[test]
    fn names_that_refer_to_objects_are_known() {
        assert_eq!(referred("projectId"), Some(vec!["project".to_owned()]));
        assert_eq!(referred("id"), Some(Vec::new()));
        assert_eq!(referred("repo_path"), Some(vec!["repo".to_owned()]));
        assert_eq!(referred("task_ids"), Some(vec!["task".to_owned()]));
        assert_eq!(referred("title"), None);
        assert!(is_volatile("updatedAt") && is_volatile("view_count") && !is_volatile("title"));
    }
}
