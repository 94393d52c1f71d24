// A conformance client: LangChain.js (@langchain/mcp-adapters).
//
// Install: npm install @langchain/mcp-adapters @langchain/core
// Run:     mcptest conformance client --command "node client.mjs"

import { MultiServerMCPClient } from "@langchain/mcp-adapters";

const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const [command, ...args] = JSON.parse(process.env.MCP_CONFORMANCE_SERVER_COMMAND ?? "[]");

const server = command
  ? { transport: "stdio", command, args }
  : { transport: "http", url: process.argv.at(-1) };

// Whatever becomes of it, the next one is made.
const attempt = (request) => request.catch((error) => console.error(String(error)));

const client = new MultiServerMCPClient({ mcpServers: { scripted: server } });
const tools = new Map((await client.getTools()).map((tool) => [tool.name, tool]));
for (const call of context.toolCalls ?? []) {
  if (!tools.has(call.name)) continue;
  const given = { ...call.arguments };
  for (const [argument, tool] of Object.entries(call.schemaArguments ?? {})) {
    given[argument] = tools.get(tool).schema;
  }
  const options = call.timeoutMs ? { timeout: call.timeoutMs } : {};
  await attempt(tools.get(call.name).invoke(given, options));
}
await client.close();
