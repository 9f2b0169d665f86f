// A stateless server of one tool on a version of the TypeScript SDK 1 that lets all clients share a transport, so that a
// response can go to another client (CVE-2026-25536). Its arguments are a port, and `shared` for that mistake or `own`
// for a server and a transport for each request, which is right.
import http from "node:http";

import { Server } from "sdk-shared-responses/server/index.js";
import { StreamableHTTPServerTransport } from "sdk-shared-responses/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema, McpError } from "sdk-shared-responses/types.js";

const [port, kind] = process.argv.slice(2);

const TOOL = {
  name: "wait",
  description: "Waits, and sends the text back.",
  inputSchema: {
    type: "object",
    properties: { text: { type: "string" }, milliseconds: { type: "integer", minimum: 0, maximum: 500 } },
    required: ["text"],
  },
};

async function connect() {
  const server = new Server({ name: "shared-responses", version: "1.0.0" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [TOOL] }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params: { name, arguments: { text, milliseconds = 50 } = {} } }) => {
    if (name !== TOOL.name || typeof text !== "string") throw new McpError(-32602, "no such tool, or no text");
    await new Promise((resolve) => setTimeout(resolve, milliseconds));
    return { content: [{ type: "text", text }] };
  });
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  await server.connect(transport);
  return transport;
}

const shared = kind === "shared" ? await connect() : undefined;

http.createServer(async (request, response) => {
  const transport = shared ?? (await connect());
  await transport.handleRequest(request, response);
}).listen(Number(port), "127.0.0.1");
