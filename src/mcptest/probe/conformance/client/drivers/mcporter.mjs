// A conformance client: MCPorter.
//
// Install: npm install mcporter
// Run:     mcptest conformance client --command "node client.mjs"

import { createRuntime } from "mcporter";

const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const [command, ...args] = JSON.parse(process.env.MCP_CONFORMANCE_SERVER_COMMAND ?? "[]");

const server = command
  ? { kind: "stdio", command, args, cwd: process.cwd() }
  : { kind: "http", url: new URL(process.argv.at(-1)) };

// Whatever becomes of it, the next one is made.
const attempt = (request) => request.catch((error) => console.error(String(error)));

const runtime = await createRuntime({ servers: [{ name: "scripted", command: server }] });
const tools = await runtime.listTools("scripted", { includeSchema: true });
const schemas = new Map(tools.map((tool) => [tool.name, tool.inputSchema]));
for (const call of context.toolCalls ?? []) {
  if (!schemas.has(call.name)) continue;
  const given = { ...call.arguments };
  for (const [argument, tool] of Object.entries(call.schemaArguments ?? {})) {
    given[argument] = schemas.get(tool);
  }
  const options = call.timeoutMs ? { timeoutMs: call.timeoutMs } : {};
  await attempt(runtime.callTool("scripted", call.name, { args: given, ...options }));
}
for (const { uri } of context.resourceReads ?? []) {
  await attempt(runtime.readResource("scripted", uri));
}
await runtime.close();
