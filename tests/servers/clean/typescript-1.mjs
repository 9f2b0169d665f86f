// A clean server of one tool on the TypeScript SDK 1, so that every finding on it is one about the SDK. It speaks over
// standard input and output, or over HTTP at the port that its argument names. If `prompt` follows, it has a prompt instead.
import { randomUUID } from "node:crypto";

import { createMcpExpressApp } from "@modelcontextprotocol/sdk/server/express.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { isInitializeRequest } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";

const [port, kind] = process.argv.slice(2);

function create() {
  const server = new McpServer({ name: "clean", version: "1.0.0" });
  if (kind === "prompt") {
    server.registerPrompt(
      "repeat",
      { description: "Asks for the text.", argsSchema: { text: z.string().describe("The text") }, },
      ({ text }) => ({ messages: [{ role: "user", content: { type: "text", text } }] }),
    );
    return server;
  }
  server.registerTool(
    "echo",
    {
      description: "Sends the text back.",
      inputSchema: { text: z.string().describe("The text") },
      annotations: { readOnlyHint: true },
    },
    async ({ text }) => ({ content: [{ type: "text", text }] }),
  );
  return server;
}

if (port === undefined) {
  await create().connect(new StdioServerTransport());
} else {
  const transports = new Map();
  const open = async () => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void transports.set(id, transport),
      onsessionclosed: (id) => void transports.delete(id),
      enableDnsRebindingProtection: true,
      allowedHosts: [`127.0.0.1:${port}`],
      allowedOrigins: [`http://127.0.0.1:${port}`],
    });
    await create().connect(transport);
    return transport;
  };
  createMcpExpressApp().all("/mcp", async (request, response) => {
    const session = request.headers["mcp-session-id"];
    const known = transports.get(session);
    if (session !== undefined && known === undefined) {
      response.status(404).json({ jsonrpc: "2.0", id: null, error: { code: -32001, message: "Session not found" } });
      return;
    }
    // The transport itself answers a request that belongs to no session.
    const transport = known ?? (await open());
    await transport.handleRequest(request, response, request.body);
    if (known === undefined && !isInitializeRequest(request.body)) await transport.close();
  }).listen(Number(port), "127.0.0.1");
}
