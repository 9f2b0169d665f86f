//! The public names of the library, and whether an example uses each.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Attribute, Item, UseTree, Visibility};

/// The public names that no example in the documentation uses, each with its module.
pub(super) fn names_without_example(sources: &[(String, String)]) -> Result<Vec<String>, String> {
    let files: BTreeMap<&str, &str> = sources.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let mut names = BTreeSet::new();
    collect_names(&files, "lib.rs", "", &mut names)?;
    for (path, text) in &files {
        for item in parse(path, text)?.items {
            if let Item::Macro(item) = item
                && item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"))
                && !is_hidden(&item.attrs)
            {
                names.extend(item.ident.map(|name| (String::new(), name.to_string())));
            }
        }
    }
    if names.is_empty() {
        return Err("the library has no public name".to_owned());
    }
    let used: BTreeSet<&str> = files.values().flat_map(|text| words_in_examples(text)).collect();
    let unused = names.iter().filter(|(_, name)| !used.contains(name.as_str()));
    Ok(unused.map(|(module, name)| format!("{module}{name} is in no example")).collect())
}

fn parse(path: &str, text: &str) -> Result<syn::File, String> {
    syn::parse_file(text).map_err(|error| format!("{path}: {error}"))
}

/// Adds the public names of a file and of the public modules below it.
fn collect_names(
    files: &BTreeMap<&str, &str>,
    file: &str,
    module: &str,
    names: &mut BTreeSet<(String, String)>,
) -> Result<(), String> {
    let text = files.get(file).ok_or_else(|| format!("{file} is missing"))?;
    for item in parse(file, text)?.items {
        let (attributes, visibility, name) = match &item {
            Item::Mod(item) => (&item.attrs, &item.vis, Some(&item.ident)),
            Item::Use(item) => (&item.attrs, &item.vis, None),
            Item::Struct(item) => (&item.attrs, &item.vis, Some(&item.ident)),
            Item::Enum(item) => (&item.attrs, &item.vis, Some(&item.ident)),
            Item::Trait(item) => (&item.attrs, &item.vis, Some(&item.ident)),
            Item::Type(item) => (&item.attrs, &item.vis, Some(&item.ident)),
            Item::Const(item) => (&item.attrs, &item.vis, Some(&item.ident)),
            Item::Static(item) => (&item.attrs, &item.vis, Some(&item.ident)),
            Item::Fn(item) => (&item.attrs, &item.vis, Some(&item.sig.ident)),
            _ => continue,
        };
        if !matches!(visibility, Visibility::Public(_)) || is_hidden(attributes) {
            continue;
        }
        match (&item, name) {
            (Item::Use(item), _) => {
                let mut reexported = Vec::new();
                reexported_names(&item.tree, &mut reexported);
                names.extend(reexported.into_iter().map(|name| (module.to_owned(), name)));
            }
            (Item::Mod(_), Some(name)) => {
                let folder = module.replace("::", "/");
                let candidates = [format!("{folder}{name}.rs"), format!("{folder}{name}/mod.rs")];
                let found = candidates.iter().find(|path| files.contains_key(path.as_str()));
                let path = found.ok_or_else(|| format!("the module {module}{name} has no file"))?;
                collect_names(files, path, &format!("{module}{name}::"), names)?;
            }
            (_, Some(name)) => {
                names.insert((module.to_owned(), name.to_string()));
            }
            (_, None) => {}
        }
    }
    Ok(())
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc") && attribute.parse_args::<syn::Ident>().is_ok_and(|word| word == "hidden")
    })
}

fn reexported_names(tree: &UseTree, names: &mut Vec<String>) {
    match tree {
        UseTree::Path(path) => reexported_names(&path.tree, names),
        UseTree::Name(name) => names.push(name.ident.to_string()),
        UseTree::Rename(rename) => names.push(rename.rename.to_string()),
        UseTree::Group(group) => group.items.iter().for_each(|tree| reexported_names(tree, names)),
        UseTree::Glob(_) => {}
    }
}

/// The words of the examples that are compiled, without the lines that readers do not see.
fn words_in_examples(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    // The opening fence, while inside a block of code: whether it is compiled.
    let mut block = None;
    for line in text.lines() {
        let line = line.trim_start();
        let Some(line) = line.strip_prefix("//!").or_else(|| line.strip_prefix("///")) else {
            block = None;
            continue;
        };
        let line = line.strip_prefix(' ').unwrap_or(line);
        match (line.strip_prefix("```"), block) {
            (Some(language), None) => block = Some(matches!(language, "" | "no_run" | "compile_fail")),
            (Some(_), Some(_)) => block = None,
            (None, Some(true)) if line != "#" && !line.starts_with("# ") => {
                words.extend(line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()));
            }
            (None, _) => {}
        }
    }
    words
}
