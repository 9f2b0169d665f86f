import { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const server = new McpServer({ name: "notes", version: "1.0.0" });
const notes = new Map([["milk", "Buy two litres."]]);

server.registerTool("read_note", {
  description: "Returns the text of a note.",
  inputSchema: z.object({ title: z.string().describe("For example milk") }),
  annotations: { readOnlyHint: true },
}, async ({ title }) => {
  console.log(`reading ${title}`);
  return { content: [{ type: "text", text: notes.get(title) ?? `There is no note ${title}.` }] };
});

await server.connect(new StdioServerTransport());
