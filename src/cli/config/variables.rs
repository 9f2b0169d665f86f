//! Environment variables in the values of configuration files: `${NAME}` and `${NAME:-default}`.
//!
//! The files of some clients also use `${env:NAME}`, `${workspaceFolder}`, `${userHome}` and a few names like these.

use std::path::{MAIN_SEPARATOR_STR, Path};

/// What the variables of a file mean.
pub(super) struct Variables<'a> {
    /// The folder of the project, for `${workspaceFolder}`; `None` where the file has no such names.
    pub(super) workspace: Option<&'a Path>,
    /// The value of an environment variable.
    pub(super) environment: &'a dyn Fn(&str) -> Option<String>,
}

impl Variables<'_> {
    /// A text with its variables replaced.
    ///
    /// # Errors
    /// When a variable is not set, or its name is unknown. The message does not contain the text, which may be a
    /// secret.
    pub(super) fn expand(&self, text: &str) -> Result<String, String> {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, behind)) = after.split_once('}') else {
                return Err("a `${` has no `}` after it".to_owned());
            };
            expanded.push_str(before);
            expanded.push_str(&self.value(name)?);
            rest = behind;
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    fn value(&self, name: &str) -> Result<String, String> {
        if let Some(workspace) = self.workspace
            && let Some(value) = self.client_value(name, workspace)
        {
            return value;
        }
        let (name, default) = match name.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (name, None),
        };
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!(
                "`${{{name}}}` is not an environment variable: write `${{NAME}}` or `${{NAME:-default}}`"
            ));
        }
        let set = (self.environment)(name).filter(|value| default.is_none() || !value.is_empty());
        set.or(default.map(str::to_owned))
            .ok_or_else(|| format!("the environment variable {name} is not set, or not Unicode"))
    }

    /// The value of a name that only clients define.
    fn client_value(&self, name: &str, workspace: &Path) -> Option<Result<String, String>> {
        let variable = |name: &str| {
            let value = (self.environment)(name);
            value.ok_or_else(|| format!("the environment variable {name} is not set, or not Unicode"))
        };
        if let Some(name) = name.strip_prefix("env:") {
            return Some(variable(name));
        }
        if let Some(id) = name.strip_prefix("input:") {
            return Some(Err(format!(
                "`${{input:{id}}}` asks the user of the client; write `${{env:NAME}}`, and set the environment variable"
            )));
        }
        let text = |path: &Path| Ok(path.to_string_lossy().into_owned());
        match name {
            "workspaceFolder" => Some(text(workspace)),
            "workspaceFolderBasename" => Some(text(workspace.file_name().map_or(workspace, Path::new))),
            "userHome" => Some(variable("HOME")),
            "pathSeparator" | "/" => Some(Ok(MAIN_SEPARATOR_STR.to_owned())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str, workspace: Option<&str>) -> Result<String, String> {
        let environment = |name: &str| match name {
            "KEY" => Some("hush".to_owned()),
            "EMPTY" => Some(String::new()),
            "HOME" => Some("/home/me".to_owned()),
            _ => None,
        };
        Variables { workspace: workspace.map(Path::new), environment: &environment }.expand(text)
    }

    #[test]
    fn variables_are_replaced() {
        for (text, expanded) in [
            ("plain $KEY {KEY}", "plain $KEY {KEY}"),
            ("Bearer ${KEY}!", "Bearer hush!"),
            ("${KEY:-x}${EMPTY:-y}${UNSET:-z}${EMPTY}", "hushyz"),
        ] {
            assert_eq!(expand(text, None), Ok(expanded.to_owned()));
        }
        let clients = "${env:KEY} ${workspaceFolder} ${workspaceFolderBasename} ${userHome}${/}a ${KEY}";
        assert_eq!(expand(clients, Some("/srv/project")), Ok("hush /srv/project project /home/me/a hush".to_owned()));
    }

    #[test]
    fn an_error_names_the_variable_and_not_the_text() {
        for (text, expected) in [
            ("secret ${UNSET}", "UNSET is not set"),
            ("secret ${open", "no `}`"),
            ("secret ${env:KEY}", "`${env:KEY}` is not an environment variable"),
            ("secret ${}", "not an environment variable"),
        ] {
            let error = expand(text, None).expect_err(text);
            assert!(error.contains(expected) && !error.contains("secret"), "{error}");
        }
        assert!(expand("${input:token}", Some("/w")).expect_err("it asks").contains("${env:NAME}"));
        assert!(expand("${env:UNSET}", Some("/w")).expect_err("it is not set").contains("UNSET"));
    }
}
