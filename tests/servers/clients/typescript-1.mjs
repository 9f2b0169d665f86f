// Lists the tools of a server and calls one of them: node typescript-1.mjs TOOL COMMAND [ARGUMENT...]
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const [tool, command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'typescript-1', version: '1.0.0' });
await client.connect(new StdioClientTransport({ command, args }));
const { tools } = await client.listTools();
if (!tools.some(({ name }) => name === tool)) throw new Error(`there is no tool ${tool}`);
// The client itself may reject what is wrong; the recording has it nevertheless.
await client.callTool({ name: tool, arguments: {} }).catch((error) => console.error(String(error)));
await client.close();
