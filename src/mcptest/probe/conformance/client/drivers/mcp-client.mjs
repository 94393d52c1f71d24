// A conformance client: mcp-client.
//
// Install: npm install mcp-client
// Run:     mcptest conformance client --command "node client.mjs"

import { MCPClient } from "mcp-client";

const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const [command, ...args] = JSON.parse(process.env.MCP_CONFORMANCE_SERVER_COMMAND ?? "[]");

const server = command
  ? { type: "stdio", command, args }
  : { type: "httpStream", url: process.argv.at(-1) };

// Whatever becomes of it, the next one is made.
const attempt = (request) => request.catch((error) => console.error(String(error)));

const client = new MCPClient({ name: "conformance-client", version: "1.0.0" });
await client.connect(server);
const schemas = new Map((await client.getAllTools()).map((tool) => [tool.name, tool.inputSchema]));
for (const call of context.toolCalls ?? []) {
  if (!schemas.has(call.name)) continue;
  const given = { ...call.arguments };
  for (const [argument, tool] of Object.entries(call.schemaArguments ?? {})) {
    given[argument] = schemas.get(tool);
  }
  const requestOptions = call.timeoutMs ? { timeout: call.timeoutMs } : {};
  await attempt(client.callTool({ name: call.name, arguments: given }, { requestOptions }));
}
for (const { uri } of context.resourceReads ?? []) await attempt(client.getResource({ uri }));
for (const get of context.promptGets ?? []) await attempt(client.getPrompt(get));
await client.close();
