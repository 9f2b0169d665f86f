//! The rules of the structure: each one takes the sources and the declared architecture, and returns its violations.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use super::architecture::Architecture;
use super::source_tree::{SourceTree, Target, top_level_module};

const MAX_FILE_LINES: usize = 600;
const MAX_FUNCTION_LINES: usize = 80;
const MAX_FILES_PER_IMPL: usize = 3;

pub(super) type Rule = fn(&SourceTree, &Architecture) -> Vec<String>;

/// Every top-level module is declared and exists, and its declared imports point down.
pub(super) fn check_modules(tree: &SourceTree, architecture: &Architecture) -> Vec<String> {
    let found: BTreeSet<&str> = tree.files.iter().map(|file| top_level_module(&file.path)).collect();
    let declared: Vec<&str> = architecture.modules.iter().map(|(name, _)| *name).collect();
    let mut violations = Vec::new();
    for name in found.iter().filter(|name| !declared.contains(name)) {
        violations.push(format!("the module {name} is unknown: declare what it may import"));
    }
    for (position, (name, imports)) in architecture.modules.iter().enumerate() {
        if !found.contains(name) {
            violations.push(format!("the declared module {name} has no source"));
        }
        for import in *imports {
            if !declared[position + 1..].contains(import) {
                violations.push(format!("{name} is declared to import {import}, which is not below it"));
            }
        }
    }
    violations
}

/// A module imports only the modules that are declared for it, or that are a known exception.
pub(super) fn check_imports(tree: &SourceTree, architecture: &Architecture) -> Vec<String> {
    let mut undeclared: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for file in &tree.files {
        let from = top_level_module(&file.path);
        let allowed = architecture.modules.iter().find(|(name, _)| *name == from).map_or(&[][..], |(_, to)| *to);
        for reference in &file.references {
            let Target::Inside { modules, .. } = tree.resolve(reference) else { continue };
            // A name that the crate root re-exports is imported from the module behind it.
            let to = modules.iter().map(|module| top_level_module(tree.file_of(module))).find(|name| !is_root(name));
            let Some(to) = to.filter(|to| *to != from && !allowed.contains(to)) else { continue };
            let place = format!("{}:{}: {}", file.path, reference.line, reference.path.join("::"));
            undeclared.entry((from, to)).or_default().push(place);
        }
    }
    let mut violations = Vec::new();
    for ((from, to), places) in &undeclared {
        if !architecture.import_exceptions.iter().any(|(a, b, _)| (a, b) == (from, to)) {
            violations.push(format!("{from} may not import {to}:\n    {}", places.join("\n    ")));
        }
    }
    for (from, to, _) in architecture.import_exceptions {
        if !undeclared.contains_key(&(*from, *to)) {
            violations.push(format!("the exception that {from} imports {to} is no longer needed: remove it"));
        }
    }
    violations
}

/// A restricted package or type is named only by the modules that it is declared for.
pub(super) fn check_packages(tree: &SourceTree, architecture: &Architecture) -> Vec<String> {
    let mut violations = BTreeSet::new();
    let mut used = BTreeSet::new();
    for file in &tree.files {
        let module = top_level_module(&file.path);
        for reference in &file.references {
            let Target::Outside(path) = tree.resolve(reference) else { continue };
            // A single name may be a variable; whoever imports a package names something in it too.
            if path.len() == 1 {
                continue;
            }
            for (package, allowed) in architecture.restricted_packages {
                if !starts_with(&path, package) {
                    continue;
                }
                if allowed.contains(&module) {
                    used.insert((*package, module));
                } else {
                    violations.insert(format!("{}:{}: {module} may not use {package}", file.path, reference.line));
                }
            }
        }
    }
    for (package, allowed) in architecture.restricted_packages {
        for module in allowed.iter().filter(|module| !used.contains(&(*package, *module))) {
            violations.insert(format!("{module} is declared to use {package}, but does not: remove it"));
        }
    }
    violations.into_iter().collect()
}

/// A module whose limits are in the table of limits has neither a constant duration nor a duration of a literal.
pub(super) fn check_durations(tree: &SourceTree, architecture: &Architecture) -> Vec<String> {
    let is_table = |path: &str| Path::new(path).file_name().is_some_and(|name| name == "limits.rs");
    let is_meant =
        |path: &str| architecture.modules_without_durations.contains(&top_level_module(path)) && !is_table(path);
    let files = tree.files.iter().filter(|file| is_meant(&file.path));
    files
        .flat_map(|file| file.fixed_durations.iter().map(move |line| (file, line)))
        .map(|(file, line)| format!("{}:{line}: a duration outside of the table of limits", file.path))
        .collect()
}

/// The files of a module import each other in no circle, except those that are listed.
pub(super) fn check_circles(tree: &SourceTree, architecture: &Architecture) -> Vec<String> {
    let graph = file_graph(tree);
    let mut violations = Vec::new();
    let mut in_circles = BTreeSet::new();
    let listed: BTreeSet<&str> = architecture.circles.iter().flat_map(|(_, files, _)| files.iter().copied()).collect();
    for file in graph.keys() {
        let Some(circle) = shortest_circle(&graph, file) else { continue };
        in_circles.insert(*file);
        if !listed.contains(file) {
            violations.push(format!("a circle of imports: {}", circle.join(" -> ")));
        }
    }
    for (module, files, _) in architecture.circles {
        for file in *files {
            if !in_circles.contains(file) {
                violations.push(format!("{file} is in no circle any more: remove it from the list of {module}"));
            }
            if top_level_module(file) != *module {
                violations.push(format!("{file} is listed in {module}, which does not contain it"));
            }
        }
    }
    violations
}

/// No file is too long without its test modules, except those that are listed.
pub(super) fn check_file_lengths(tree: &SourceTree, architecture: &Architecture) -> Vec<String> {
    let long = tree.files.iter().filter(|file| file.lines > MAX_FILE_LINES);
    let long = long.map(|file| (file.path.clone(), format!("{} lines, more than {MAX_FILE_LINES}", file.lines)));
    compare_with_list(&long.collect(), architecture.long_files)
}

/// No function is too long, except those that are listed.
pub(super) fn check_function_lengths(tree: &SourceTree, architecture: &Architecture) -> Vec<String> {
    let functions = tree.files.iter().flat_map(|file| file.functions.iter().map(move |function| (file, function)));
    let long = functions.filter(|(_, function)| function.lines > MAX_FUNCTION_LINES).map(|(file, function)| {
        let name = format!("{} {}", file.path, function.name);
        (name, format!("{} lines, more than {MAX_FUNCTION_LINES}", function.lines))
    });
    compare_with_list(&long.collect(), architecture.long_functions)
}

/// The `impl` blocks of a type are in few files, except those of the types that are listed.
pub(super) fn check_impl_blocks(tree: &SourceTree, architecture: &Architecture) -> Vec<String> {
    let mut files_by_type: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for file in &tree.files {
        for block in &file.impls {
            let Target::Inside { modules, item: Some(name) } = tree.resolve(block) else { continue };
            let Some(module) = modules.last() else { continue };
            let type_name = format!("{}::{name}", module.join("::"));
            files_by_type.entry(type_name).or_default().insert(&file.path);
        }
    }
    let scattered = files_by_type.into_iter().filter(|(_, files)| files.len() > MAX_FILES_PER_IMPL);
    let scattered = scattered.map(|(name, files)| {
        let list = files.iter().copied().collect::<Vec<_>>().join(", ");
        (name, format!("`impl` blocks in {} files, more than {MAX_FILES_PER_IMPL}: {list}", files.len()))
    });
    compare_with_list(&scattered.collect(), architecture.scattered_impls)
}

/// What exceeds a limit and is not listed, and what is listed and does not exceed it.
fn compare_with_list(found: &BTreeMap<String, String>, listed: &[&str]) -> Vec<String> {
    let new = found.iter().filter(|(name, _)| !listed.contains(&name.as_str()));
    let new = new.map(|(name, problem)| format!("{name}: {problem}"));
    let stale = listed.iter().filter(|name| !found.contains_key(**name));
    new.chain(stale.map(|name| format!("{name} is listed as an exception, but is none any more: remove it"))).collect()
}

fn is_root(module: &str) -> bool {
    matches!(module, "lib" | "main")
}

fn starts_with(path: &[String], package: &str) -> bool {
    let mut parts = path.iter();
    package.split("::").all(|part| parts.next().is_some_and(|found| found == part))
}

/// Which file imports which other files of its top-level module. An item counts for the file that defines it: neither
/// the re-export in a `mod.rs` nor the declaration `mod name;` is an import.
fn file_graph(tree: &SourceTree) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in &tree.files {
        let imports = graph.entry(&file.path).or_default();
        for reference in file.references.iter().filter(|reference| !reference.is_reexport) {
            let Target::Inside { modules, .. } = tree.resolve(reference) else { continue };
            let target = modules.last().map_or("", |module| tree.file_of(module));
            if target != file.path && top_level_module(target) == top_level_module(&file.path) {
                imports.insert(target);
            }
        }
    }
    graph
}

/// The shortest way from a file back to itself, if there is one.
fn shortest_circle<'tree>(
    graph: &BTreeMap<&'tree str, BTreeSet<&'tree str>>,
    start: &'tree str,
) -> Option<Vec<&'tree str>> {
    let mut previous: BTreeMap<&str, &str> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(file) = queue.pop_front() {
        for import in graph.get(file).into_iter().flatten().copied() {
            if import == start {
                let mut circle = vec![start, file];
                while let Some(before) = circle.last().and_then(|last| previous.get(last)) {
                    circle.push(before);
                }
                circle.reverse();
                return Some(circle);
            }
            if !previous.contains_key(import) {
                previous.insert(import, file);
                queue.push_back(import);
            }
        }
    }
    None
}
