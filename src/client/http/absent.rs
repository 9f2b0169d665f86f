//! The types of HTTP connections without the feature `http`: no endpoint can be made, so none of them has a value.

use std::future::Pending;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::direct_request::{DirectRequest, DirectRequestError, FurtherTokens};
use super::endpoint_error::HttpEndpointError;
use super::header::Mirrored;
use super::unrecorded_options::{EndReason, UnrecordedHttpOptions};
use crate::client::connection::WaitOutcome;
use crate::client::record::Record;
use crate::client::responder::Responder;
use crate::transcript::StepId;
use crate::wire::Frame;

/// A type without values.
#[derive(Debug)]
enum Never {}

/// An endpoint, which cannot be made.
#[derive(Debug)]
pub struct HttpEndpoint(Never);

impl HttpEndpoint {
    /// Names the feature that is missing.
    ///
    /// # Errors
    /// Always.
    pub fn new(address: &str, _headers: &[(String, String)], _insecure: bool) -> Result<Arc<Self>, HttpEndpointError> {
        Err(HttpEndpointError::NotCompiled(address.to_owned()))
    }

    /// Names the feature that is missing.
    ///
    /// # Errors
    /// Always.
    pub fn with_further_tokens(
        address: &str,
        headers: &[(String, String)],
        _tokens: &FurtherTokens,
        insecure: bool,
    ) -> Result<Arc<Self>, HttpEndpointError> {
        Self::new(address, headers, insecure)
    }

    pub(crate) fn set_max_rate(&self, _rate: f64) {
        match self.0 {}
    }

    pub(crate) fn address(&self) -> &str {
        match self.0 {}
    }

    pub(crate) fn is_loopback(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn accepts_connections(&self, _limit: Duration) -> Pending<bool> {
        match self.0 {}
    }

    pub(crate) fn uses_sse_transport(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn masked(&self, _text: &str) -> String {
        match self.0 {}
    }
}

/// A recorded connection.
pub(in crate::client) struct HttpConnection(Arc<HttpEndpoint>);

impl HttpConnection {
    pub(in crate::client) fn new(
        endpoint: Arc<HttpEndpoint>,
        _record: Arc<Record>,
        _responder: Responder,
        _stateless: bool,
    ) -> Self {
        Self(endpoint)
    }

    pub(in crate::client) fn responds_inline(&self) -> bool {
        match self.0.0 {}
    }

    pub(in crate::client) fn has_further_authorization(&self, _placeholder: &str) -> bool {
        match self.0.0 {}
    }

    pub(in crate::client) fn session(&self) -> Option<String> {
        match self.0.0 {}
    }

    pub(in crate::client) fn set_mirrored(&self, _mirrored: Mirrored) {
        match self.0.0 {}
    }

    pub(in crate::client) fn send(&self, _frame: Frame, _step_id: Option<StepId>, _limit: Duration) -> Pending<()> {
        match self.0.0 {}
    }

    pub(in crate::client) fn send_directly(
        &self,
        _request: &DirectRequest,
    ) -> Result<DirectResponse, DirectRequestError> {
        match self.0.0 {}
    }

    pub(in crate::client) fn end(&self) -> Pending<()> {
        match self.0.0 {}
    }

    pub(in crate::client) fn abandon(&self) {
        match self.0.0 {}
    }
}

/// A request that a case makes directly.
#[derive(Debug)]
pub(crate) struct DirectResponse(Arc<HttpEndpoint>);

impl DirectResponse {
    pub(crate) fn wait_for_end(&mut self) -> Pending<()> {
        match self.0.0 {}
    }

    pub(crate) fn wait_for_head(&mut self, _head: Duration, _event: Duration) -> Pending<()> {
        match self.0.0 {}
    }

    pub(crate) fn value(&self) -> Value {
        match self.0.0 {}
    }

    pub(crate) fn close(self) {
        match self.0.0 {}
    }
}

/// A connection that records nothing.
#[derive(Debug)]
pub(in crate::client) struct UnrecordedHttp(Arc<HttpEndpoint>);

impl UnrecordedHttp {
    pub(in crate::client) fn new(options: UnrecordedHttpOptions) -> Self {
        Self(options.endpoint)
    }

    pub(in crate::client) fn queue(&mut self, _line: Arc<[u8]>) {
        match self.0.0 {}
    }

    pub(in crate::client) fn end_reason(&self) -> Option<&EndReason> {
        match self.0.0 {}
    }

    pub(in crate::client) fn next(&mut self, _limit: Duration) -> Pending<WaitOutcome<Frame>> {
        match self.0.0 {}
    }

    pub(in crate::client) fn end(self) -> Pending<()> {
        match self.0.0 {}
    }
}
