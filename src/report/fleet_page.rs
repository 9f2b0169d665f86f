//! The summary of many servers as one HTML page without scripts or external resources.
//!
//! It links to the reports with paths relative to the page; everything that a server can influence is escaped.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::fleet::{Fleet, RevisionResult, Server};
use super::markup::escape;
use super::visible::excerpt;
use crate::percent;
use crate::spec::Revision;
use crate::verdict::Totals;

impl Fleet {
    /// Writes the page as one HTML file without scripts or external resources.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn write_html(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(HTML_HEAD.as_bytes())?;
        writeln!(out, "<h1>MCP conformance of multiple servers</h1>\n<p class=\"lead\">{}</p>", self.line())?;
        self.write_servers(out)?;
        self.write_requirements(out)?;
        writeln!(out, "</main></body></html>")
    }

    fn write_servers(&self, out: &mut dyn Write) -> io::Result<()> {
        let revisions: BTreeSet<Revision> =
            self.servers.iter().flat_map(|server| &server.by_revision).map(|one| one.revision).collect();
        writeln!(out, "<h2 id=\"servers\">Servers</h2>")?;
        writeln!(out, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-labelledby=\"servers\"><table>")?;
        write!(out, "<thead><tr><th scope=\"col\">server</th><th scope=\"col\">outcome</th>")?;
        write!(out, "<th scope=\"col\" class=\"n\">violated</th>")?;
        for revision in &revisions {
            write!(out, "<th scope=\"col\">{revision}</th>")?;
        }
        for title in ["pass", "fail", "warn", "skip", "error", "accepted"] {
            write!(out, "<th scope=\"col\" class=\"n\">{title}</th>")?;
        }
        writeln!(out, "</tr></thead><tbody>")?;
        for server in &self.servers {
            let Totals { pass, fail, warn, skip, error } = server.totals;
            write!(out, "<tr><th scope=\"row\"><a href=\"{}\">{}</a></th>", href(&server.link), html(&server.name))?;
            write!(out, "<td><span class=\"badge {0}\">{0}</span></td>", server.conclusion)?;
            write!(out, "<td class=\"n\">{}</td>", server.violated)?;
            for revision in &revisions {
                write!(out, "<td>{}</td>", revision_badge(server, *revision))?;
            }
            for count in [pass, fail, warn, skip, error, server.accepted] {
                write!(out, "<td class=\"n\">{count}</td>")?;
            }
            writeln!(out, "</tr>")?;
        }
        writeln!(out, "</tbody></table></div>")
    }

    fn write_requirements(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "<h2 id=\"requirements\">Requirements</h2>")?;
        writeln!(out, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-labelledby=\"requirements\"><table>")?;
        writeln!(
            out,
            "<thead><tr><th scope=\"col\">requirement</th><th scope=\"col\">level</th>\
             <th scope=\"col\" class=\"n\">fail</th><th scope=\"col\" class=\"n\">warn</th>\
             <th scope=\"col\">servers</th></tr></thead><tbody>"
        )?;
        for (id, violated) in self.ranked() {
            let (fail, warn) = violated.weight();
            // A link of a report leads anywhere; only those of the specification's pages are followed.
            let is_page = violated.link.starts_with("https://");
            match violated.rule {
                Some(rule) => write!(out, "<tr><th scope=\"row\">{}<p><code>", html(rule))?,
                None => write!(out, "<tr><th scope=\"row\"><p><code>")?,
            }
            if is_page {
                write!(out, "<a href=\"{}\">{}</a></code></p></th>", html(&violated.link), html(id))?;
            } else {
                write!(out, "{}</code></p></th>", html(id))?;
            }
            let indices: Vec<usize> = violated.failing.iter().chain(&violated.warned).copied().collect();
            write!(out, "<td>{}</td><td class=\"n\">{fail}</td><td class=\"n\">{warn}</td>", violated.level_text())?;
            writeln!(out, "<td>{}</td></tr>", self.names(&indices, html))?;
        }
        writeln!(out, "</tbody></table></div>")
    }
}

/// The badge of a server in one revision: its most severe verdict with the number of such cases.
fn revision_badge(server: &Server, revision: Revision) -> String {
    let Some(RevisionResult { totals, .. }) = server.by_revision.iter().find(|one| one.revision == revision) else {
        return "<span class=\"badge none\">not judged</span>".to_owned();
    };
    let Totals { pass, fail, warn, skip, error } = *totals;
    let (verdict, count) = match (fail, error, warn) {
        (0, 0, 0) => ("pass", pass),
        (0, 0, warn) => ("warn", warn),
        (0, error, _) => ("error", error),
        (fail, ..) => ("fail", fail),
    };
    format!(
        "<span class=\"badge {verdict}\" title=\"{pass} pass, {fail} fail, {warn} warn, {skip} skip, {error} error\">{count} {verdict}</span>"
    )
}

/// Escapes a text for use as element content or as the value of an attribute.
fn html(text: &str) -> String {
    escape(&excerpt(text, 300, 0), &['"', '\''])
}

/// A path as the target of a link, which has neither a scheme nor a host.
fn href(path: &str) -> String {
    let start = if path.starts_with('/') { "/" } else { "./" };
    // Two slashes would begin the name of a host.
    format!("{start}{}", percent::encode_path(path.trim_start_matches('/')))
}

/// The start of the page. Its policy forbids scripts and external resources.
const HTML_HEAD: &str = r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>MCP conformance of multiple servers</title>
<style>
:root {
  color-scheme: light dark;
  --page: light-dark(#f5f6f8, #0f1318); --card: light-dark(#fff, #171c23); --line: light-dark(#dfe3e8, #2b323c);
  --text: light-dark(#1b2230, #e3e7ed); --faint: light-dark(#566070, #9aa5b3); --accent: light-dark(#2f47b5, #a4b5ff);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
}
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--text) }
main { max-width: 90rem; margin: auto; padding: 1.2rem }
h1 { font-size: 1.6rem; margin: .4rem 0 }
h2 { font-size: 1.2rem; margin: 2rem 0 .6rem }
a { color: var(--accent); text-underline-offset: .18em }
.lead { font-size: 1.05rem; margin: 0 }
.wide { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 10px }
.wide:focus-visible { outline: 2px solid var(--accent) }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid var(--line); padding: .45rem .7rem; text-align: left; vertical-align: top }
tbody tr:last-child > * { border-bottom: 0 }
thead th { color: var(--faint); font-size: .85rem; font-weight: 500; white-space: nowrap }
tbody th { font-weight: 500; overflow-wrap: anywhere; min-width: 12rem }
tbody th p { font-weight: 400; margin: 0; font-size: .85rem }
.n { text-align: right; font-variant-numeric: tabular-nums }
.badge { border-radius: 5px; padding: .05rem .5rem; font-size: .85rem; font-weight: 600; white-space: nowrap }
.failed, .fail { color: light-dark(#ae2318, #ff9c92); background: light-dark(#fdeceb, #371b1a) }
.passed, .pass { color: light-dark(#17683e, #7ed6a2); background: light-dark(#e6f5ed, #13291d) }
.warn { color: light-dark(#855000, #f0bd69); background: light-dark(#fff4de, #2f2511) }
.error, .not-judged, .nothing-judged { color: light-dark(#6a3d9f, #cdb0fd); background: light-dark(#f3ecfc, #271f3a) }
.none { color: var(--faint); font-weight: 400 }
@media print { .wide { overflow: visible; border: 0 } body { background: none } }
</style></head><body><main>
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_a_path_and_never_a_scheme() {
        for (path, target) in [
            ("a.html", "./a.html"),
            ("/srv/my files/a.html", "/srv/my%20files/a.html"),
            ("//host/a.html", "/host/a.html"),
            ("javascript:alert(1)", "./javascript%3Aalert%281%29"),
            ("\"><script>", "./%22%3E%3Cscript%3E"),
        ] {
            assert_eq!(href(path), target);
        }
    }
}
