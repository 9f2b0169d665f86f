//! Hostile text in every place that a server controls, in every report format.
//!
//! Properties: no terminal escape and no invisible character is printed; HTML, XML and Markdown have no element,
//! attribute, link or image that a harmless report does not have; JSON and SARIF are valid and contain all findings;
//! each line of TAP and of the annotations is well-formed.

#![no_main]

use std::collections::BTreeSet;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use mcp_conformance::report::visible::is_control_or_invisible;
use mcp_conformance::report::{Badge, Github, Html, Json, Junit, Markdown, Renderer, Report, Sarif, Tap, Text};
use mcp_conformance_fuzz::poison::poisoned;
use pulldown_cmark::{Event, Options, Parser, Tag};
use roxmltree::Document;
use serde_json::Value;

type Parts = BTreeSet<String>;

/// The tags of a page, each with the names of its attributes.
fn of_html(page: &str) -> Parts {
    let mut found = Parts::new();
    for tag in page.split('<').skip(1) {
        // A quoted value may contain anything except the quote, which is escaped.
        let (mut quoted, mut end) = (false, tag.len());
        for (at, c) in tag.char_indices() {
            match c {
                '"' => quoted = !quoted,
                '>' if !quoted => {
                    end = at;
                    break;
                }
                _ => {}
            }
        }
        let outside: String = tag[..end].split('"').step_by(2).collect();
        found.extend(outside.split_whitespace().map(|word| word.trim_end_matches('=').to_owned()));
    }
    found
}

fn of_xml(text: &str) -> Parts {
    let document = Document::parse(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let elements = document.descendants().filter(|node| node.is_element());
    elements
        .flat_map(|node| {
            let own = node.tag_name().name().to_owned();
            let attributes = node.attributes().map(|attribute| format!("@{}", attribute.name())).collect::<Vec<_>>();
            attributes.into_iter().chain([own])
        })
        .collect()
}

fn of_markdown(text: &str) -> Parts {
    let mut found = Parts::new();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_GFM | Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Html(html) | Event::InlineHtml(html) => found.extend(of_html(&html)),
            Event::Start(Tag::Link { dest_url, .. }) => {
                found.insert(format!("link to {dest_url}"));
            }
            Event::Start(Tag::Image { dest_url, .. }) => {
                found.insert(format!("image {dest_url}"));
            }
            _ => {}
        }
    }
    found
}

/// The parts of reports with harmless texts, including long texts and texts of several lines.
fn allowed(render: impl Fn(&Report) -> Parts) -> Parts {
    let harmless = ["", " word", "\nline\nline", &" long".repeat(500)];
    harmless.iter().flat_map(|text| render(&poisoned(text))).collect()
}

fn has_only(what: &str, found: &Parts, allowed: &Parts) {
    let new: Vec<_> = found.difference(allowed).collect();
    assert!(new.is_empty(), "{what} has {new:?}");
}

fuzz_target!(|attack: &str| {
    static ALLOWED: OnceLock<[Parts; 4]> = OnceLock::new();
    let [html, junit, badge, markdown] = ALLOWED.get_or_init(|| {
        [
            allowed(|report| of_html(&report.render(&Html))),
            allowed(|report| of_xml(&report.render(&Junit))),
            allowed(|report| of_xml(&report.render(&Badge))),
            allowed(|report| of_markdown(&report.render(&Markdown))),
        ]
    });
    let report = poisoned(attack);
    let formats: [(&str, &dyn Renderer); 7] = [
        ("text", &Text::default()),
        ("HTML", &Html),
        ("JUnit", &Junit),
        ("TAP", &Tap),
        ("Markdown", &Markdown),
        ("annotations", &Github),
        ("the badge", &Badge),
    ];
    for (name, format) in formats {
        let text = report.render(format);
        let treacherous = text.chars().find(|c| *c != '\n' && is_control_or_invisible(*c));
        assert!(treacherous.is_none(), "{treacherous:?} is in {name}");
        match name {
            "HTML" => has_only(name, &of_html(&text), html),
            "JUnit" => has_only(name, &of_xml(&text), junit),
            "the badge" => has_only(name, &of_xml(&text), badge),
            "Markdown" => has_only(name, &of_markdown(&text), markdown),
            "TAP" => {
                let points = text.lines().filter(|line| line.starts_with("ok ") || line.starts_with("not ok "));
                assert!(points.count() >= report.results().count(), "a test point is missing");
            }
            "annotations" => {
                let starts = ["::error title=", "::warning title=", "::notice title="];
                for line in text.lines() {
                    assert!(starts.iter().any(|start| line.starts_with(start)), "{line}");
                }
            }
            _ => {}
        }
    }
    assert_eq!(Report::parse(&report.render(&Json)).ok().as_ref(), Some(&report));
    let sarif: Value = serde_json::from_str(&report.render(&Sarif::default())).expect("SARIF is JSON");
    // Equal findings of several tools, cases or revisions are one result.
    let results = sarif["runs"][0]["results"].as_array().map_or(0, Vec::len);
    let findings: usize = report.results().map(|result| result.findings.len()).sum();
    assert!(results <= findings && (results == 0) == (findings == 0), "{results} results of {findings} findings");
});
