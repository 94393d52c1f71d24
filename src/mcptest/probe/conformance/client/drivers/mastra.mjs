// A conformance client: Mastra (@mastra/mcp).
//
// Install: npm install @mastra/mcp @mastra/core
// Run:     mcptest conformance client --command "node client.mjs"

import { MCPClient } from "@mastra/mcp";

const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const [command, ...args] = JSON.parse(process.env.MCP_CONFORMANCE_SERVER_COMMAND ?? "[]");

const server = command ? { command, args } : { url: new URL(process.argv.at(-1)) };

// Whatever becomes of it, the next one is made.
const attempt = (request) => request.catch((error) => console.error(String(error)));

const client = new MCPClient({ servers: { scripted: server } });
const tools = (await client.listToolsets()).scripted ?? {};
for (const call of context.toolCalls ?? []) {
  if (!(call.name in tools)) continue;
  const given = { ...call.arguments };
  for (const [argument, tool] of Object.entries(call.schemaArguments ?? {})) {
    given[argument] = tools[tool].inputSchema["~standard"].jsonSchema.input({});
  }
  const options = call.timeoutMs ? { abortSignal: AbortSignal.timeout(call.timeoutMs) } : {};
  await attempt(tools[call.name].execute(given, options));
}
for (const { uri } of context.resourceReads ?? []) {
  await attempt(client.resources.read("scripted", uri));
}
for (const get of context.promptGets ?? []) {
  await attempt(client.prompts.get({ serverName: "scripted", name: get.name, args: get.arguments }));
}
await client.disconnect();
