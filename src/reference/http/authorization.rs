//! The server with authorization: an OAuth protected resource, as a client sees it.
//!
//! Tokens are opaque strings. The configured token is valid; with the suffix `-narrow` its scope does not include
//! calls. With the suffix `-second` it belongs to another user, with `-guest` to one who sees neither tools nor resources,
//! and with `-foreign` it is for another server. Every other token is invalid, like an expired one.
//!
//! Sources: `basic/authorization` of 2025-03-26 to 2025-11-25, `basic/authorization/*` of 2026-07-28, RFC 9728.

use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, Request, StatusCode};
use serde_json::{Value, json};

use super::injection::has;
use super::response::{HttpResponse, empty, full, text_error};
use crate::reference::fault::FaultSet;
use crate::reference::fault::HttpFault;
use crate::reference::user::User;

/// The supported scopes.
const SCOPES: &str = "mcp:list mcp:call";

/// The access that a request's token grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Full access.
    Full,
    /// Everything except calls.
    Narrow,
    /// No access: there is no token.
    Missing,
    /// No access: the Authorization header has no token.
    Malformed,
    /// No access: the token is unknown, expired or for another server.
    Invalid,
}

/// The protection of an MCP endpoint by a token.
#[derive(Debug)]
pub(super) struct ProtectedResource {
    token: String,
}

impl ProtectedResource {
    pub(super) fn new(token: String) -> Self {
        Self { token }
    }

    /// The response to a request for metadata or without sufficient authorization; nothing if the request may pass.
    pub(super) fn respond(
        &self,
        request: &Request<Incoming>,
        in_session: bool,
        faults: &FaultSet,
    ) -> Option<HttpResponse> {
        let base = base_of(request.headers());
        if let Some(response) = public(request.method(), request.uri().path(), &base, faults) {
            return Some(response);
        }
        let access = match self.access(request.headers(), faults) {
            Access::Missing if in_session && has(faults, HttpFault::AuthSessionWithoutToken) => Access::Full,
            access => access,
        };
        match access {
            Access::Full | Access::Narrow => None,
            Access::Malformed | Access::Invalid if has(faults, HttpFault::AuthOwnScheme) => {
                Some(text_error(StatusCode::FORBIDDEN, "the token is wrong"))
            }
            Access::Missing if has(faults, HttpFault::AuthForbidden) => {
                let mut response = unauthorized(faults);
                *response.status_mut() = StatusCode::FORBIDDEN;
                Some(response)
            }
            Access::Missing if has(faults, HttpFault::AuthToolsLeaked) => {
                let tools = json!({ "jsonrpc": "2.0", "id": null, "result": { "tools": [
                    { "name": "echo", "inputSchema": { "type": "object" } },
                ] } });
                let response = full(StatusCode::UNAUTHORIZED, "application/json", tools.to_string());
                Some(with_challenge(response, &base, None, faults))
            }
            Access::Missing => Some(with_challenge(unauthorized(faults), &base, None, faults)),
            Access::Malformed if has(faults, HttpFault::AuthMalformed500) => {
                Some(text_error(StatusCode::INTERNAL_SERVER_ERROR, "the header is unreadable"))
            }
            Access::Malformed => {
                let response = text_error(StatusCode::BAD_REQUEST, "the Authorization header has no token");
                Some(with_challenge(response, &base, Some("invalid_request"), faults))
            }
            Access::Invalid => Some(with_challenge(unauthorized(faults), &base, Some("invalid_token"), faults)),
        }
    }

    /// Rejects a call if the scope of the token is insufficient.
    pub(super) fn reject_call(&self, headers: &HeaderMap, message: &Value, faults: &FaultSet) -> Option<HttpResponse> {
        let calls = message.get("method").is_some_and(|method| method == "tools/call");
        if !calls || self.access(headers, faults) != Access::Narrow {
            return None;
        }
        let response = empty(StatusCode::FORBIDDEN);
        if has(faults, HttpFault::AuthScopeNoChallenge) {
            return Some(response);
        }
        Some(with_challenge(response, &base_of(headers), Some("insufficient_scope"), faults))
    }

    /// The user of a request that may pass.
    pub(super) fn user(&self, headers: &HeaderMap) -> User {
        let header = headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok());
        let token = header.and_then(|header| header.split_once(' ')).map_or("", |(_, token)| token.trim());
        match token.strip_prefix(self.token.as_str()) {
            Some("-second") => User::Second,
            Some("-guest") => User::Guest,
            _ => User::Owner,
        }
    }

    fn access(&self, headers: &HeaderMap, faults: &FaultSet) -> Access {
        let Some(header) = headers.get(AUTHORIZATION) else { return Access::Missing };
        let header = header.to_str().unwrap_or_default().trim();
        let Some((scheme, token)) = header.split_once(' ') else { return Access::Malformed };
        if !scheme.eq_ignore_ascii_case("bearer") || token.trim().is_empty() {
            return Access::Malformed;
        }
        let token = token.trim();
        let unsigned = token.split('.').count() == 3 && token.ends_with('.');
        if token == self.token
            || has(faults, HttpFault::AuthAnyToken)
            || unsigned && has(faults, HttpFault::AuthUnsignedToken)
        {
            return Access::Full;
        }
        match token.strip_prefix(self.token.as_str()) {
            Some("-narrow") => Access::Narrow,
            Some("-second" | "-guest") => Access::Full,
            Some("-foreign") if has(faults, HttpFault::AuthForeignAudience) => Access::Full,
            _ => Access::Invalid,
        }
    }
}

/// The response with status 401, whose body is for humans or for other clients.
fn unauthorized(faults: &FaultSet) -> HttpResponse {
    let rpc_error =
        |id: Value| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32_001, "message": "no token" } });
    let (kind, body) = if has(faults, HttpFault::AuthErrorBody) {
        ("application/json", rpc_error(Value::Null).to_string())
    } else if has(faults, HttpFault::AuthErrorWithId) {
        ("application/json", rpc_error(json!(1)).to_string())
    } else if has(faults, HttpFault::AuthOAuthBody) {
        ("application/json", json!({ "error": "invalid_token", "error_description": "no token" }).to_string())
    } else if has(faults, HttpFault::AuthPageBody) {
        ("text/html", "<!DOCTYPE html><title>Sign in</title>".to_owned())
    } else {
        return empty(StatusCode::UNAUTHORIZED);
    };
    full(StatusCode::UNAUTHORIZED, kind, body)
}

/// The base URL of the server as the client wrote it.
fn base_of(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    format!("http://{host}")
}

/// Adds a challenge to a response.
fn with_challenge(mut response: HttpResponse, base: &str, error: Option<&str>, faults: &FaultSet) -> HttpResponse {
    if has(faults, HttpFault::AuthNoChallenge) {
        return response;
    }
    if has(faults, HttpFault::AuthOwnScheme) || has(faults, HttpFault::AuthBareChallenge) {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return response;
    }
    let mut parameters = Vec::new();
    if !omits_metadata_url(faults) {
        let place = if has(faults, HttpFault::AuthMetadataNotFound) {
            format!("{base}/.well-known/oauth-protected-resource/moved")
        } else if has(faults, HttpFault::AuthMetadataOtherHost) {
            "http://metadata.example.com/.well-known/oauth-protected-resource".to_owned()
        } else {
            format!("{base}/.well-known/oauth-protected-resource/mcp")
        };
        parameters.push(format!("resource_metadata=\"{place}\""));
    }
    parameters.extend(error.map(|error| format!("error=\"{error}\"")));
    if !has(faults, HttpFault::AuthNoScope) {
        let more = if has(faults, HttpFault::AuthOfflineAccess) { " offline_access" } else { "" };
        parameters.push(format!("scope=\"{SCOPES}{more}\""));
    }
    let challenge = format!("Bearer {}", parameters.join(", "));
    response.headers_mut().extend(HeaderValue::from_str(&challenge).ok().map(|value| (WWW_AUTHENTICATE, value)));
    response
}

/// Whether challenges omit the URL of the resource metadata.
fn omits_metadata_url(faults: &FaultSet) -> bool {
    [HttpFault::AuthNoMetadata, HttpFault::AuthNoEndpoints, HttpFault::AuthDefaults]
        .into_iter()
        .any(|fault| has(faults, fault))
        || has_metadata_at_path_only(faults)
}

/// Whether the only resource metadata is at the path-specific well-known URI.
fn has_metadata_at_path_only(faults: &FaultSet) -> bool {
    has(faults, HttpFault::AuthPathOnly) || has(faults, HttpFault::AuthBareChallenge)
}

/// The response to a request that needs no token: the metadata of the resource and of its authorization server,
/// and the OAuth endpoints, which never grant a token.
fn public(method: &Method, path: &str, base: &str, faults: &FaultSet) -> Option<HttpResponse> {
    let no_challenge = has(faults, HttpFault::AuthNoChallenge) || has(faults, HttpFault::AuthOwnScheme);
    let none = || Some(text_error(StatusCode::NOT_FOUND, "not found"));
    match (method, path) {
        (&Method::GET, "/.well-known/oauth-protected-resource" | "/.well-known/oauth-protected-resource/mcp") => {
            let at_path = path.ends_with("/mcp");
            if no_challenge || omits_metadata_url(faults) && !(at_path && has_metadata_at_path_only(faults)) {
                return none();
            }
            let mut document = json!({
                "resource": format!("{base}/mcp"),
                "authorization_servers": [base],
                "scopes_supported": SCOPES.split(' ').collect::<Vec<_>>(),
                "bearer_methods_supported": ["header"],
            });
            if has(faults, HttpFault::AuthResourceOther) {
                document["resource"] = json!(format!("{base}/another"));
            }
            if has(faults, HttpFault::AuthNoServers) {
                document["authorization_servers"] = json!([]);
            }
            if let Value::Object(members) = &mut document {
                members.retain(|name, _| name != "resource" || !has(faults, HttpFault::AuthNoResource));
            }
            Some(full(StatusCode::OK, "application/json", document.to_string()))
        }
        (&Method::GET, "/.well-known/oauth-authorization-server") => {
            if no_challenge || has(faults, HttpFault::AuthNoEndpoints) || has(faults, HttpFault::AuthDefaults) {
                return none();
            }
            let elsewhere = has(faults, HttpFault::AuthServerPlainHttp);
            let token = if elsewhere { "http://auth.example.com/token".to_owned() } else { format!("{base}/token") };
            let mut document = json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": token,
                "registration_endpoint": format!("{base}/register"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            });
            if let Value::Object(members) = &mut document {
                members.retain(|name, _| match name.as_str() {
                    "issuer" => !has(faults, HttpFault::AuthServerNoIssuer),
                    "registration_endpoint" => !has(faults, HttpFault::AuthServerNoRegistration),
                    _ => true,
                });
            }
            Some(full(StatusCode::OK, "application/json", document.to_string()))
        }
        (_, "/authorize" | "/token" | "/register") => {
            if no_challenge || has(faults, HttpFault::AuthNoEndpoints) {
                return none();
            }
            Some(text_error(StatusCode::BAD_REQUEST, "the request has no parameters"))
        }
        _ => None,
    }
}
