// A conformance client: the OpenAI Agents SDK for TypeScript.
//
// Install: npm install @openai/agents
// Run:     mcptest conformance client --command "node client.mjs"

import { MCPServerStdio, MCPServerStreamableHttp } from "@openai/agents";

const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const [command, ...args] = JSON.parse(process.env.MCP_CONFORMANCE_SERVER_COMMAND ?? "[]");

const server = command
  ? new MCPServerStdio({ command, args })
  : new MCPServerStreamableHttp({ url: process.argv.at(-1) });

// Whatever becomes of it, the next one is made.
const attempt = (request) => request.catch((error) => console.error(String(error)));

await server.connect();
const schemas = new Map((await server.listTools()).map((tool) => [tool.name, tool.inputSchema]));
for (const call of context.toolCalls ?? []) {
  if (!schemas.has(call.name)) continue;
  const given = { ...call.arguments };
  for (const [argument, tool] of Object.entries(call.schemaArguments ?? {})) {
    given[argument] = schemas.get(tool);
  }
  const options = call.timeoutMs ? { signal: AbortSignal.timeout(call.timeoutMs) } : {};
  await attempt(server.callTool(call.name, given, null, options));
}
for (const { uri } of context.resourceReads ?? []) await attempt(server.readResource(uri));
await server.close();
