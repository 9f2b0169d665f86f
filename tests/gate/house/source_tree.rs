//! The sources of the crate as a tree of modules: what each one defines, and which paths it names.
//!
//! Modules for tests (`#[cfg(test)] mod`) are left out, with the files below them. The paths of a source are relative
//! to the folder `src`, with `/` between their parts. Names that a macro brings into scope are not
//! resolved.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// The name under which the program imports the library.
const LIBRARY: &str = "mcp_conformance";
/// How many re-exports a path may go through; a longer chain is a loop.
const MAX_REEXPORTS: usize = 16;

pub(super) type ModulePath = Vec<String>;

pub(super) struct SourceTree {
    pub(super) files: Vec<SourceFile>,
    modules: BTreeMap<ModulePath, Module>,
}

pub(super) struct SourceFile {
    pub(super) path: String,
    /// The lines outside test modules.
    pub(super) lines: usize,
    pub(super) references: Vec<Reference>,
    pub(super) functions: Vec<Function>,
    pub(super) impls: Vec<Reference>,
    /// The lines with a constant duration, or with one that is made of literals.
    pub(super) fixed_durations: Vec<usize>,
}

/// A path that the code names, as it is written.
pub(super) struct Reference {
    module: ModulePath,
    pub(super) path: Vec<String>,
    pub(super) line: usize,
    /// Whether it is a `pub use`, which passes a name on and does not use it.
    pub(super) is_reexport: bool,
}

pub(super) struct Function {
    pub(super) name: String,
    pub(super) lines: usize,
}

/// What a path leads to.
pub(super) enum Target {
    /// A module or an item of this crate.
    Inside {
        /// The module that the path names, then the modules behind its re-exports; the last one defines the item.
        modules: Vec<ModulePath>,
        item: Option<String>,
    },
    /// A path into another package, with its aliases replaced; also a name that is in no scope, such as a variable.
    Outside(Vec<String>),
}

#[derive(Default)]
struct Module {
    file: String,
    items: BTreeSet<String>,
    imports: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
}

/// Reads every Rust file below a folder: its path relative to the folder, and its text.
pub(super) fn read_sources(root: &Path) -> Result<Vec<(String, String)>, String> {
    let mut sources = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                let relative = path.strip_prefix(root).map_err(|error| error.to_string())?;
                let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
                sources.push((parts.join("/"), text));
            }
        }
    }
    sources.sort();
    if sources.is_empty() { Err(format!("{} contains no source", root.display())) } else { Ok(sources) }
}

/// The top-level module of a file: `check` for `check/list.rs`, `verdict` for `verdict.rs`, `lib` for `lib.rs`.
pub(super) fn top_level_module(file: &str) -> &str {
    file.split('/').next().unwrap_or(file).trim_end_matches(".rs")
}

impl SourceTree {
    pub(super) fn parse(sources: &[(String, String)]) -> Result<Self, String> {
        let mut parsed = Vec::new();
        for (path, text) in sources {
            let syntax =
                syn::parse_file(text).map_err(|error| format!("{path}:{}: {error}", error.span().start().line))?;
            parsed.push((path, text, syntax));
        }
        let test_modules: Vec<ModulePath> = parsed
            .iter()
            .flat_map(|(path, _, syntax)| {
                let parent = module_path(path);
                test_module_names(&syntax.items).map(move |name| child(&parent, &name))
            })
            .collect();
        let mut tree = Self { files: Vec::new(), modules: BTreeMap::new() };
        for (path, text, syntax) in &parsed {
            let module = module_path(path);
            if test_modules.iter().any(|test_module| module.starts_with(test_module)) {
                continue;
            }
            let mut collector = Collector::new(path, module, &mut tree.modules);
            collector.visit_file(syntax);
            let mut file = collector.file;
            file.lines = text.lines().count() - collector.test_lines;
            tree.files.push(file);
        }
        Ok(tree)
    }

    /// The file that contains a module.
    pub(super) fn file_of(&self, module: &[String]) -> &str {
        self.modules.get(module).map_or("", |module| module.file.as_str())
    }

    pub(super) fn resolve(&self, reference: &Reference) -> Target {
        self.resolve_path(&reference.module, &reference.path, MAX_REEXPORTS)
    }

    fn resolve_path(&self, from: &[String], path: &[String], depth: usize) -> Target {
        let outside = || Target::Outside(path.to_vec());
        let Some((head, rest)) = path.split_first() else { return outside() };
        if depth == 0 {
            return outside();
        }
        match head.as_str() {
            "crate" | LIBRARY => self.descend(Vec::new(), rest, depth),
            "self" => self.descend(from.to_vec(), rest, depth),
            "super" => {
                let levels = path.iter().take_while(|part| *part == "super").count();
                let base = from[..from.len().saturating_sub(levels)].to_vec();
                self.descend(base, &path[levels..], depth)
            }
            _ if self.modules.contains_key(&child(from, head)) => self.descend(from.to_vec(), path, depth),
            _ => match self.find_name(from, head, rest, depth) {
                Some(target) => target,
                None => outside(),
            },
        }
    }

    /// Follows the rest of a path from a module of this crate.
    fn descend(&self, mut module: ModulePath, mut path: &[String], depth: usize) -> Target {
        while let Some((head, rest)) = path.split_first() {
            let inner = child(&module, head);
            if self.modules.contains_key(&inner) {
                module = inner;
                path = rest;
                continue;
            }
            return match self.find_name(&module, head, rest, depth) {
                Some(Target::Inside { mut modules, item }) => {
                    if modules.first() != Some(&module) {
                        modules.insert(0, module);
                    }
                    Target::Inside { modules, item }
                }
                Some(outside) => outside,
                None => Target::Inside { modules: vec![module], item: Some(head.clone()) },
            };
        }
        Target::Inside { modules: vec![module], item: None }
    }

    /// Finds a name that a module defines or imports.
    fn find_name(&self, from: &[String], name: &str, rest: &[String], depth: usize) -> Option<Target> {
        let module = self.modules.get(from)?;
        if module.items.contains(name) {
            return Some(Target::Inside { modules: vec![from.to_vec()], item: Some(name.to_owned()) });
        }
        if let Some(import) = module.imports.get(name) {
            let path: Vec<String> = import.iter().chain(rest).cloned().collect();
            // `use serde_json;` imports a package under its own name.
            let is_package = import.first().is_some_and(|head| head == name);
            if is_package && !self.modules.contains_key(&child(from, name)) {
                return Some(Target::Outside(path));
            }
            return Some(self.resolve_path(from, &path, depth - 1));
        }
        module.globs.iter().find_map(|glob| {
            let Target::Inside { modules, item: None } = self.resolve_path(from, glob, depth - 1) else { return None };
            let source = modules.last()?;
            if depth < 2 || source == from {
                return None;
            }
            self.find_name(source, name, rest, depth - 1)
        })
    }
}

fn module_path(file: &str) -> ModulePath {
    let mut parts: ModulePath = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    let is_root = parts.len() == 1 && matches!(parts[0].as_str(), "lib" | "main");
    if is_root || parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts
}

fn child(module: &[String], name: &str) -> ModulePath {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// The modules for tests that are files of their own.
fn test_module_names(items: &[syn::Item]) -> impl Iterator<Item = String> {
    items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if module.content.is_none() && is_for_tests(&module.attrs) => {
            Some(module.ident.to_string())
        }
        _ => None,
    })
}

/// Whether the attributes contain `#[cfg(test)]` or `#[cfg(all(test, ...))]`.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        list.path.is_ident("cfg") && requires_test(list.tokens.clone())
    })
}

fn requires_test(condition: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = condition.into_iter().collect();
    match tokens.as_slice() {
        [TokenTree::Ident(name)] => name == "test",
        [TokenTree::Ident(name), TokenTree::Group(group)] if name == "all" => {
            let parts: Vec<TokenTree> = group.stream().into_iter().collect();
            let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ',');
            parts.split(is_comma).any(|part| requires_test(part.iter().cloned().collect()))
        }
        _ => false,
    }
}

/// Collects the facts about one file.
struct Collector<'tree> {
    file: SourceFile,
    module: ModulePath,
    modules: &'tree mut BTreeMap<ModulePath, Module>,
    impl_type: Option<String>,
    test_lines: usize,
}

impl<'tree> Collector<'tree> {
    fn new(path: &str, module: ModulePath, modules: &'tree mut BTreeMap<ModulePath, Module>) -> Self {
        let file = SourceFile {
            path: path.to_owned(),
            lines: 0,
            references: Vec::new(),
            functions: Vec::new(),
            impls: Vec::new(),
            fixed_durations: Vec::new(),
        };
        let mut collector = Self { file, module, modules, impl_type: None, test_lines: 0 };
        collector.enter_module();
        collector
    }

    fn enter_module(&mut self) {
        let file = self.file.path.clone();
        self.modules.entry(self.module.clone()).or_insert_with(|| Module { file, ..Module::default() });
    }

    fn current(&mut self) -> &mut Module {
        self.modules.entry(self.module.clone()).or_default()
    }

    fn define(&mut self, name: &syn::Ident) {
        self.current().items.insert(plain(name));
    }

    fn reference(&self, path: Vec<String>, line: usize, is_reexport: bool) -> Reference {
        Reference { module: self.module.clone(), path, line, is_reexport }
    }

    fn add_reference(&mut self, path: Vec<String>, line: usize) {
        let reference = self.reference(path, line, false);
        self.file.references.push(reference);
    }

    fn add_import(&mut self, import: Import, is_reexport: bool) {
        match import.name {
            Some(name) => drop(self.current().imports.insert(name, import.path.clone())),
            None => self.current().globs.push(import.path.clone()),
        }
        let reference = self.reference(import.path, import.line, is_reexport);
        self.file.references.push(reference);
    }

    fn add_constant(&mut self, name: &syn::Ident, of: &syn::Type) {
        if is_duration(of) {
            self.file.fixed_durations.push(name.span().start().line);
        }
    }

    fn add_function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.fn_token.span.start().line;
        let last = block.brace_token.span.close().end().line;
        let name = match &self.impl_type {
            Some(impl_type) => format!("{impl_type}::{}", signature.ident),
            None => signature.ident.to_string(),
        };
        self.file.functions.push(Function { name, lines: last + 1 - first });
    }

    /// Finds the paths in the input of a macro, which is no syntax tree; also in grouped imports.
    fn scan_tokens(&mut self, tokens: TokenStream, prefix: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut position = 0;
        while position < tokens.len() {
            match &tokens[position] {
                TokenTree::Ident(head) if !is_member(&tokens[..position]) => {
                    let mut path = prefix.to_vec();
                    path.push(plain(head));
                    position += 1;
                    while is_path_separator(&tokens[position..]) {
                        match tokens.get(position + 2) {
                            Some(TokenTree::Ident(part)) => {
                                path.push(plain(part));
                                position += 3;
                            }
                            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                                self.scan_tokens(group.stream(), &path);
                                position += 3;
                            }
                            _ => break,
                        }
                    }
                    let line = head.span().start().line;
                    if let Some(TokenTree::Group(group)) = tokens.get(position)
                        && makes_duration(&path)
                        && are_literals(group.stream())
                    {
                        self.file.fixed_durations.push(line);
                    }
                    self.add_reference(path, line);
                }
                TokenTree::Group(group) => {
                    self.scan_tokens(group.stream(), &[]);
                    position += 1;
                }
                _ => position += 1,
            }
        }
    }

    /// Finds the paths in the strings of an attribute: `#[serde(with = "crate::wire::id")]`.
    fn scan_strings(&mut self, tokens: TokenStream) {
        for token in tokens {
            let TokenTree::Literal(literal) = token else { continue };
            let line = literal.span().start().line;
            let text = literal.to_string();
            if let Ok(path) = syn::parse_str::<syn::Path>(text.trim_matches('"')) {
                self.add_reference(path_parts(&path), line);
            }
        }
    }
}

/// Whether a path is that of a function that makes a duration: `Duration::from_secs`.
fn makes_duration(path: &[String]) -> bool {
    let [.., of, name] = path else { return false };
    of == "Duration" && (name == "new" || name.starts_with("from_"))
}

/// Whether an expression consists of literals, as `60 * 60` does.
fn is_literal(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Lit(_) => true,
        syn::Expr::Paren(inner) => is_literal(&inner.expr),
        syn::Expr::Binary(binary) => is_literal(&binary.left) && is_literal(&binary.right),
        _ => false,
    }
}

/// The same in the input of a macro.
fn are_literals(tokens: TokenStream) -> bool {
    tokens.into_iter().all(|token| match token {
        TokenTree::Literal(_) | TokenTree::Punct(_) => true,
        TokenTree::Group(group) => are_literals(group.stream()),
        TokenTree::Ident(_) => false,
    })
}

/// Whether a type is `Duration`, or an array of them.
fn is_duration(checked: &syn::Type) -> bool {
    match checked {
        syn::Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "Duration"),
        syn::Type::Array(array) => is_duration(&array.elem),
        syn::Type::Reference(reference) => is_duration(&reference.elem),
        syn::Type::Slice(slice) => is_duration(&slice.elem),
        _ => false,
    }
}

/// Whether a token follows the dot of a field or a method, or the separator within a path.
fn is_member(before: &[TokenTree]) -> bool {
    let token = |back: usize| before.len().checked_sub(back).map(|position| &before[position]);
    let mark = |back: usize| match token(back) {
        Some(TokenTree::Punct(mark)) => Some(mark.as_char()),
        _ => None,
    };
    match mark(1) {
        // The end of a range is a path of its own.
        Some('.') => mark(2) != Some('.'),
        // So is a path that starts with `::`.
        Some(':') => mark(2) == Some(':') && (mark(3) == Some('>') || matches!(token(3), Some(TokenTree::Ident(_)))),
        _ => false,
    }
}

fn is_path_separator(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [TokenTree::Punct(first), TokenTree::Punct(second), ..]
        if first.as_char() == ':' && second.as_char() == ':')
}

/// An identifier without the `r#` of a raw one.
fn plain(name: &syn::Ident) -> String {
    name.to_string().trim_start_matches("r#").to_owned()
}

fn path_parts(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| plain(&segment.ident)).collect()
}

struct Import {
    path: Vec<String>,
    /// The name in scope; none for a glob.
    name: Option<String>,
    line: usize,
}

/// The imports of a `use`, with its groups taken apart.
fn flatten(tree: &syn::UseTree, prefix: &[String], imports: &mut Vec<Import>) {
    let joined = |name: &syn::Ident| if name == "self" { prefix.to_vec() } else { child(prefix, &plain(name)) };
    match tree {
        syn::UseTree::Path(path) => flatten(&path.tree, &child(prefix, &plain(&path.ident)), imports),
        syn::UseTree::Group(group) => group.items.iter().for_each(|item| flatten(item, prefix, imports)),
        syn::UseTree::Name(name) => {
            let path = joined(&name.ident);
            imports.push(Import { name: path.last().cloned(), path, line: name.ident.span().start().line });
        }
        syn::UseTree::Rename(rename) => {
            let line = rename.ident.span().start().line;
            imports.push(Import { path: joined(&rename.ident), name: Some(rename.rename.to_string()), line });
        }
        syn::UseTree::Glob(glob) => {
            let line = glob.star_token.spans[0].start().line;
            imports.push(Import { path: prefix.to_vec(), name: None, line });
        }
    }
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let Some((braces, _)) = &item.content else { return };
        if is_for_tests(&item.attrs) {
            let first = item.attrs.first().map_or(item.mod_token.span, |attribute| attribute.pound_token.spans[0]);
            self.test_lines += braces.span.close().end().line + 1 - first.start().line;
            return;
        }
        self.module.push(plain(&item.ident));
        self.enter_module();
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let mut imports = Vec::new();
        flatten(&item.tree, &[], &mut imports);
        let is_reexport = !matches!(item.vis, syn::Visibility::Inherited);
        for import in imports {
            self.add_import(import, is_reexport);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let Some(first) = path.segments.first() {
            self.add_reference(path_parts(path), first.ident.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let syn::Expr::Path(function) = &*call.func {
            let is_literal = call.args.iter().all(is_literal);
            if makes_duration(&path_parts(&function.path)) && is_literal {
                self.file.fixed_durations.push(call.paren_token.span.open().start().line);
            }
        }
        visit::visit_expr_call(self, call);
    }

    // `pub(super)` names no item.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        visit::visit_macro(self, call);
        self.scan_tokens(call.tokens.clone(), &[]);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if attribute.path().is_ident("doc") {
            return;
        }
        visit::visit_attribute(self, attribute);
        if let syn::Meta::List(list) = &attribute.meta {
            self.scan_strings(list.tokens.clone());
            if attribute.path().is_ident("derive") {
                self.scan_tokens(list.tokens.clone(), &[]);
            }
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.define(&item.sig.ident);
        self.add_function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add_function(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add_function(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let outer = self.impl_type.take();
        if let syn::Type::Path(path) = &*item.self_ty {
            let parts = path_parts(&path.path);
            self.impl_type = parts.last().cloned();
            let reference = self.reference(parts, item.impl_token.span.start().line, false);
            self.file.impls.push(reference);
        }
        visit::visit_item_impl(self, item);
        self.impl_type = outer;
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.define(&item.ident);
        let outer = self.impl_type.replace(plain(&item.ident));
        visit::visit_item_trait(self, item);
        self.impl_type = outer;
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.define(&item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.define(&item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.define(&item.ident);
        visit::visit_item_type(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.define(&item.ident);
        self.add_constant(&item.ident, &item.ty);
        visit::visit_item_const(self, item);
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.add_constant(&item.ident, &item.ty);
        visit::visit_impl_item_const(self, item);
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.define(&item.ident);
        self.add_constant(&item.ident, &item.ty);
        visit::visit_item_static(self, item);
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        if let Some(name) = &item.ident {
            self.define(name);
        }
        visit::visit_item_macro(self, item);
    }
}
