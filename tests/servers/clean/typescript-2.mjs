// A clean server of one tool on the TypeScript SDK 2, so that every finding on it is one about the SDK. It speaks over
// standard input and output, or over HTTP at the port that its argument names. If `prompt` follows, it has a prompt instead.
import { createMcpExpressApp } from "@modelcontextprotocol/express";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { McpServer, createMcpHandler } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const [port, kind] = process.argv.slice(2);

function create() {
  const server = new McpServer({ name: "clean", version: "1.0.0" });
  if (kind === "prompt") {
    server.registerPrompt(
      "repeat",
      { description: "Asks for the text.", argsSchema: z.object({ text: z.string().describe("The text") }), },
      ({ text }) => ({ messages: [{ role: "user", content: { type: "text", text } }] }),
    );
    return server;
  }
  server.registerTool(
    "echo",
    {
      description: "Sends the text back.",
      inputSchema: z.object({ text: z.string().describe("The text") }),
      annotations: { readOnlyHint: true },
    },
    async ({ text }) => ({ content: [{ type: "text", text }] }),
  );
  return server;
}

if (port === undefined) {
  serveStdio(create);
} else {
  const handle = toNodeHandler(createMcpHandler(create));
  createMcpExpressApp().all("/mcp", (request, response) => handle(request, response, request.body))
    .listen(Number(port), "127.0.0.1");
}
