//! A server for tests, which answers each call as a function of the test says: the parts of a campaign run without a
//! process.
//!
//! The server is a task at the other end of a pipe in memory. On a paused clock the time moves on only when both sides
//! wait, so that no test depends on how fast the machine is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::caller::Caller;
use super::environment::{BoxFuture, Environment, OpenedProcess};
use crate::campaign::budget::ToolTime;
use crate::campaign::calls::call_plan::CallPlan;
use crate::campaign::calls::fuzz_call::FuzzCall;
use crate::campaign::calls::long_calls::LongCalls;
use crate::campaign::calls::tools::{FuzzTools, SelectedTool};
use crate::campaign::failures::failure::Failures;
use crate::campaign::failures::shared_failures::SharedFailures;
use crate::campaign::minimizer::failure_test::{FailureTest, Suspicion};
use crate::campaign::monitors::canaries::Canaries;
use crate::campaign::monitors::monitor::{Found, Moment, Monitor, Watched};
use crate::campaign::settings::CampaignSettings;
use crate::check::fuzz::{Arguments, Call, FuzzExchange, Validity};
use crate::client::headers::Mirrored;
use crate::client::{HostState, Responder, UnrecordedConnection};
use crate::fuzz::{Dialect, ToolSchema};
use crate::plan::{CallBudget, FuzzPlan};
use crate::spec::{Revision, Transport};
use crate::verdict::CallKind;

/// How much either side may write before the other reads, in bytes: more than any test writes.
const PIPE_BYTES: usize = 1 << 20;

/// What the server does with a call.
pub(in crate::campaign) enum Answer {
    Result(Value),
    /// The same, so much later.
    Late(Duration, Value),
    /// It exits.
    Exit,
    /// It never answers this call.
    Silence,
}

impl Answer {
    /// A successful result.
    pub(in crate::campaign) fn text(text: impl Into<String>) -> Self {
        Self::Result(json!({ "content": [{ "type": "text", "text": text.into() }] }))
    }

    /// A successful result after a time.
    pub(in crate::campaign) fn late(seconds: u64) -> Self {
        Self::Late(Duration::from_secs(seconds), json!({ "content": [{ "type": "text", "text": "late" }] }))
    }

    /// A result that reports a failure of the tool.
    pub(in crate::campaign) fn tool_error(text: &str) -> Self {
        Self::Result(json!({ "content": [{ "type": "text", "text": text }], "isError": true }))
    }
}

/// A call as the server got it.
pub(in crate::campaign) struct ReceivedCall<'c> {
    /// How many processes were started before this one.
    pub(in crate::campaign) process: usize,
    pub(in crate::campaign) tool: &'c str,
    pub(in crate::campaign) arguments: &'c Value,
    /// The earlier calls to the same process, with their tools.
    pub(in crate::campaign) earlier: &'c [(String, Value)],
    /// The arguments of another call in flight; the last one has the first one as its neighbour.
    pub(in crate::campaign) neighbour: Option<&'c Value>,
    /// How many requests are in flight.
    pub(in crate::campaign) at_once: usize,
}

impl ReceivedCall<'_> {
    /// The integer in a member of the arguments.
    pub(in crate::campaign) fn integer(&self, member: &str) -> i64 {
        self.arguments.get(member).and_then(Value::as_i64).unwrap_or_default()
    }
}

type Script = Arc<dyn Fn(&ReceivedCall<'_>) -> Answer + Send + Sync>;

/// A server with tools, and a plan to fuzz it.
pub(in crate::campaign) struct ScriptedServer {
    environment: Arc<dyn Environment>,
    tools: FuzzTools,
    plan: FuzzPlan,
}

impl ScriptedServer {
    /// A server with tools, each with its name and the `properties` of its `inputSchema`, all of which it requires. A list
    /// of tools is a call of `tools/list` for the script.
    pub(in crate::campaign) fn new(
        tools: &[(&str, Value)],
        script: impl Fn(&ReceivedCall<'_>) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::of(tools.iter().map(|(name, properties)| selected_tool(name, properties)).collect(), script)
    }

    /// The same with tools that are annotated `readOnlyHint`.
    pub(in crate::campaign) fn read_only(
        tools: &[(&str, Value)],
        script: impl Fn(&ReceivedCall<'_>) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let read_only =
            |(name, properties): &(&str, Value)| SelectedTool { is_read_only: true, ..selected_tool(name, properties) };
        Self::of(tools.iter().map(read_only).collect(), script)
    }

    /// A server with one tool, which serves these arguments and whose first call took so long.
    pub(in crate::campaign) fn slow(
        (name, properties): (&str, Value),
        working: Value,
        first_call: Duration,
        script: impl Fn(&ReceivedCall<'_>) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let tool = selected_tool(name, &properties);
        let tool = SelectedTool { working_arguments: Some(working), first_call: Some(first_call), ..tool };
        Self::of(vec![tool], script)
    }

    fn of(selected: Vec<SelectedTool>, script: impl Fn(&ReceivedCall<'_>) -> Answer + Send + Sync + 'static) -> Self {
        Self {
            environment: Arc::new(ScriptedEnvironment::new(script, Duration::ZERO)),
            tools: FuzzTools::new(selected, Revision::V2025_11_25, &[], None),
            plan: plan(200),
        }
    }

    pub(in crate::campaign) fn environment(&self) -> &dyn Environment {
        self.environment.as_ref()
    }

    pub(in crate::campaign) fn settings(&self) -> CampaignSettings<'_> {
        settings(&self.plan)
    }

    /// What a monitor finds that looks at a tool at a moment.
    pub(in crate::campaign) async fn check(
        &self,
        monitor: &mut dyn Monitor,
        moment: Moment,
        (caller, canaries): (&mut Caller<'_>, &mut Canaries),
        tool: usize,
    ) -> Vec<Found> {
        let mut call_plan = self.call_plan(tool);
        let long_calls = LongCalls::new(call_plan.schema().schema(), None);
        let mut watched = Watched {
            caller,
            call_plan: &mut call_plan,
            long_calls: &long_calls,
            canaries,
            failures: &Failures::new(&SharedFailures::default()),
            settings: &self.settings(),
            time: ToolTime::Left,
        };
        monitor.check(moment, &mut watched).await.expect("the server is called")
    }

    pub(in crate::campaign) fn caller(&self) -> Caller<'_> {
        Caller::new(&self.environment, &self.settings(), &self.tools)
    }

    /// The planned calls of a tool.
    pub(in crate::campaign) fn call_plan(&self, tool: usize) -> CallPlan {
        let schema = self.tools.get(tool).schema.as_ref().expect("its schema can be read");
        CallPlan::new(tool, schema, self.tools.name(tool), (0, &[]), None, self.plan.calls)
    }
}

/// A valid call of a tool.
pub(in crate::campaign) fn valid_call(tool: usize, arguments: Value) -> FuzzCall {
    let arguments = Arguments::Json(arguments);
    let call = Call { kind: CallKind::Valid, validity: Validity::Valid, arguments, choices: None };
    FuzzCall::new(tool, Arc::new(call))
}

/// Makes calls one by one; returns their exchanges.
pub(in crate::campaign) async fn call_all(caller: &mut Caller<'_>, fuzz_calls: &[FuzzCall]) -> Vec<FuzzExchange> {
    let mut exchanges = Vec::new();
    for fuzz_call in fuzz_calls {
        exchanges.push(caller.call(fuzz_call).await.expect("the server is called"));
    }
    exchanges
}

/// Makes calls one by one, the last of which violates a rule, which is suspected to be a failure.
pub(in crate::campaign) async fn suspect_last_of(caller: &mut Caller<'_>, fuzz_calls: &[FuzzCall]) -> Suspicion {
    let exchange = call_all(caller, fuzz_calls).await.pop().expect("there is a call");
    let (last, preceding) = fuzz_calls.split_last().expect("there is a call");
    let violation = caller.judge(last.tool, &exchange).swap_remove(0);
    let failing = Some((last.clone(), exchange));
    Suspicion { test: FailureTest::Response, violation, failing, preceding: preceding.to_vec() }
}

/// A plan to call each tool so many times.
pub(in crate::campaign) fn plan(calls: u64) -> FuzzPlan {
    FuzzPlan {
        calls: CallBudget::PerTool(calls),
        time: None,
        max_rate: None,
        in_flight: None,
        jobs: None,
        tools: Vec::new(),
        skip_tools: Vec::new(),
        seeds: Vec::new(),
        regressions: None,
        prune: false,
        sequences: false,
        replay: None,
        every_revision: false,
        shard: None,
    }
}

/// The settings of a campaign over standard streams that saves no file.
pub(in crate::campaign) fn settings(plan: &FuzzPlan) -> CampaignSettings<'_> {
    CampaignSettings {
        plan,
        revision: Revision::V2025_11_25,
        transport: Transport::Stdio,
        seed: 0,
        timeout: Duration::from_secs(10),
        jobs: 1,
        is_single_process: false,
        startup: Duration::ZERO,
        stateless_meta: None,
        has_resources: false,
        has_prompts: false,
        failure_folder: None,
        result_rules: None,
        known_strings: Vec::new(),
    }
}

/// A tool with its name and the `properties` of its `inputSchema`, all of which it requires.
pub(in crate::campaign) fn selected_tool(name: &str, properties: &Value) -> SelectedTool {
    let required: Vec<&String> = properties.as_object().map(|members| members.keys().collect()).unwrap_or_default();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    SelectedTool {
        name: name.to_owned(),
        definition: json!({ "name": name, "inputSchema": schema }),
        schema: Some(Arc::new(ToolSchema::compile(&schema, Dialect::Draft202012).expect("it can be read"))),
        working_arguments: None,
        first_call: None,
        is_read_only: false,
        is_idempotent: false,
    }
}

/// The run around a campaign against a scripted server: nothing but the server.
pub(in crate::campaign) struct ScriptedEnvironment {
    script: Script,
    /// How long each response takes.
    latency: Duration,
    started: Arc<AtomicUsize>,
}

impl ScriptedEnvironment {
    pub(in crate::campaign) fn new(
        script: impl Fn(&ReceivedCall<'_>) -> Answer + Send + Sync + 'static,
        latency: Duration,
    ) -> Self {
        Self { script: Arc::new(script), latency, started: Arc::default() }
    }
}

impl Environment for ScriptedEnvironment {
    fn is_stopping(&self) -> bool {
        false
    }

    fn is_judging_cases(&self) -> bool {
        false
    }

    fn wait_for_cases(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn add_judging_time(&self, _duration: Duration) {}

    fn open_process(
        &self,
        _revision: Revision,
        _mirrored: Arc<Mirrored>,
    ) -> BoxFuture<'static, Result<OpenedProcess, String>> {
        let (script, started, latency) = (Arc::clone(&self.script), Arc::clone(&self.started), self.latency);
        Box::pin(async move {
            let (client, server) = tokio::io::duplex(PIPE_BYTES);
            let process = started.fetch_add(1, Ordering::Relaxed);
            let pipe =
                UnrecordedConnection::in_process(client, tokio::spawn(serve(server, process, script, latency)), None);
            Ok(OpenedProcess { pipe, startup: Duration::ZERO, requests: Vec::new(), process_id: None })
        })
    }

    fn host_state(&self) -> BoxFuture<'_, HostState> {
        Box::pin(std::future::ready(HostState::Listening))
    }

    fn responder(&self, _revision: Revision) -> Responder {
        Responder::new(json!({}), Arc::new(|_, _| None))
    }
}

/// Serves one connection. What is read at once are the requests in flight.
async fn serve(mut pipe: DuplexStream, process: usize, script: Script, latency: Duration) {
    let mut buffer = vec![0; PIPE_BYTES];
    let (mut unread, mut earlier) = (Vec::new(), Vec::new());
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        unread.extend_from_slice(&buffer[..count]);
        let Some(end) = unread.iter().rposition(|byte| *byte == b'\n') else { continue };
        let lines: Vec<u8> = unread.drain(..=end).collect();
        let requests: Vec<Value> =
            lines.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let at_once = requests.len();
        for (at, request) in requests.iter().enumerate() {
            let arguments_of = |request: &'_ Value| request["params"]["arguments"].clone();
            let method = request["method"].as_str().unwrap_or_default();
            let result = if matches!(method, "tools/call" | "tools/list") {
                let tool = request["params"]["name"].as_str().unwrap_or(method);
                let arguments = arguments_of(request);
                let neighbour = (requests.len() > 1).then(|| arguments_of(&requests[(at + 1) % requests.len()]));
                let neighbour = neighbour.as_ref();
                let answer = script(&ReceivedCall {
                    process,
                    tool,
                    arguments: &arguments,
                    earlier: &earlier,
                    neighbour,
                    at_once,
                });
                if method == "tools/call" {
                    earlier.push((tool.to_owned(), arguments));
                }
                match answer {
                    Answer::Result(result) => result,
                    Answer::Late(duration, result) => {
                        tokio::time::sleep(duration).await;
                        result
                    }
                    Answer::Exit => return,
                    Answer::Silence => continue,
                }
            } else {
                json!({})
            };
            tokio::time::sleep(latency).await;
            let response = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
            if pipe.write_all(format!("{response}\n").as_bytes()).await.is_err() {
                return;
            }
        }
    }
}
