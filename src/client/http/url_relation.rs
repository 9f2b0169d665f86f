//! How the URLs in OAuth protected resource metadata relate to the server's own URL.
//!
//! A client that fetches any URL a stranger names may be led anywhere, and one that trusts the metadata of another
//! resource requests tokens for it. This module only classifies; cases decide what the classes mean.

use std::net::IpAddr;

use reqwest::Url;
use serde_json::{Map, Value, json};

/// The classes of the URLs in an exchange. `metadata`: the document that a bearer challenge names (`here`,
/// `elsewhere` or `unreadable`), with its `path` if it is here. `resource`: the `resource` of a document (`same`;
/// `within` if the server's path is below it; `other` on the same origin; `elsewhere` or `unreadable`).
pub(super) fn url_relation(own: &Url, exchange: &Value) -> Option<Value> {
    let mut relation = Map::new();
    if let Some(named) = exchange.pointer("/challenges/bearer/resource_metadata").and_then(Value::as_str) {
        let url = read(named);
        let here = url.as_ref().filter(|url| is_here(own, url));
        if let Some(url) = here {
            let query = url.query().map_or_else(String::new, |query| format!("?{query}"));
            relation.insert("path".to_owned(), json!(format!("{}{query}", url.path())));
        }
        let class = match (&url, here) {
            (None, _) => "unreadable",
            (Some(_), Some(_)) => "here",
            (Some(_), None) => "elsewhere",
        };
        relation.insert("metadata".to_owned(), json!(class));
    }
    if let Some(resource) = exchange.pointer("/body/message/resource") {
        let class = resource.as_str().and_then(read).map_or("unreadable", |url| resource_class(own, &url));
        relation.insert("resource".to_owned(), json!(class));
    }
    (!relation.is_empty()).then_some(Value::Object(relation))
}

/// An HTTP URL without a fragment: the URL of a resource must not have one.
fn read(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.fragment().is_none()).then_some(url)
}

fn resource_class(own: &Url, resource: &Url) -> &'static str {
    if !is_here(own, resource) {
        return "elsewhere";
    }
    // A trailing slash makes no difference unless the server says so.
    let [own_path, resource_path] = [own, resource].map(|url| url.path().trim_end_matches('/'));
    if own_path == resource_path && (resource.query().is_none() || resource.query() == own.query()) {
        return "same";
    }
    let within = own_path.strip_prefix(resource_path).is_some_and(|rest| rest.starts_with('/'));
    if within && resource.query().is_none() { "within" } else { "other" }
}

/// Whether a URL has the origin of the server; all names of this machine count as one.
fn is_here(own: &Url, other: &Url) -> bool {
    let port = own.port_or_known_default() == other.port_or_known_default();
    own.origin() == other.origin() || own.scheme() == other.scheme() && port && is_local(own) && is_local(other)
}

fn is_local(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    host == "localhost" || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class_of(of: &str, named: &str) -> String {
        let own = Url::parse("http://127.0.0.1:3000/server/mcp").expect("an address");
        let exchange = match of {
            "metadata" => json!({ "challenges": { "bearer": { "resource_metadata": named } } }),
            _ => json!({ "body": { "message": { "resource": named } } }),
        };
        let relation = url_relation(&own, &exchange).expect("it is classified");
        relation[of].as_str().expect("a class").to_owned()
    }

    #[test]
    fn a_resource_is_the_endpoint_or_a_parent_of_it() {
        for (resource, expected) in [
            ("http://127.0.0.1:3000/server/mcp", "same"),
            ("HTTP://LOCALHOST:3000/server/mcp/", "same"),
            ("http://127.0.0.1:3000", "within"),
            ("http://127.0.0.1:3000/server", "within"),
            ("http://127.0.0.1:3000/serv", "other"),
            ("http://127.0.0.1:3000/other", "other"),
            ("http://127.0.0.1:3001/server/mcp", "elsewhere"),
            ("https://mcp.example.com/server/mcp", "elsewhere"),
            ("http://127.0.0.1:3000/server/mcp#x", "unreadable"),
            ("mcp.example.com", "unreadable"),
        ] {
            assert_eq!(class_of("resource", resource), expected, "{resource}");
        }
    }

    #[test]
    fn metadata_is_here_or_elsewhere() {
        for (named, expected) in [
            ("http://127.0.0.1:3000/.well-known/oauth-protected-resource", "here"),
            ("http://localhost:3000/x", "here"),
            ("http://metadata.example.com/x", "elsewhere"),
            ("https://127.0.0.1:3000/x", "elsewhere"),
            ("/.well-known/oauth-protected-resource", "unreadable"),
        ] {
            assert_eq!(class_of("metadata", named), expected, "{named}");
        }
    }
}
