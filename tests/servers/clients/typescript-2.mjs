// Lists the tools of a server and calls one of them: node typescript-2.mjs TOOL COMMAND [ARGUMENT...]
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [tool, command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'typescript-2', version: '1.0.0' });
await client.connect(new StdioClientTransport({ command, args }));
const { tools } = await client.listTools();
if (!tools.some(({ name }) => name === tool)) throw new Error(`there is no tool ${tool}`);
// The client itself may reject what is wrong; the recording has it nevertheless.
await client.callTool({ name: tool, arguments: {} }).catch((error) => console.error(String(error)));
await client.close();
