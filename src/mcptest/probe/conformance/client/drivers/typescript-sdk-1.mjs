// A conformance client: the official TypeScript SDK, 1.10 to 1.x.
//
// Install: npm install @modelcontextprotocol/sdk@1
// Run:     mcptest conformance client --command "node client.mjs"

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const [command, ...args] = JSON.parse(process.env.MCP_CONFORMANCE_SERVER_COMMAND ?? "[]");

const transport = command
  ? new StdioClientTransport({ command, args })
  : new StreamableHTTPClientTransport(new URL(process.argv.at(-1)));

const capabilities = { sampling: {}, roots: {} };
const elicits = types.ElicitRequestSchema !== undefined; // since 1.13
if (elicits) capabilities.elicitation = {};

const client = new Client({ name: "conformance-client", version: "1.0.0" }, { capabilities });
if (elicits) {
  // Accept, with the defaults of the form.
  client.setRequestHandler(types.ElicitRequestSchema, async ({ params }) => {
    const fields = Object.entries(params.requestedSchema?.properties ?? {});
    const content = Object.fromEntries(fields.map(([name, field]) => [name, field.default ?? true]));
    return { action: "accept", content };
  });
}
client.setRequestHandler(types.CreateMessageRequestSchema, async () => ({
  role: "assistant",
  model: "none",
  content: { type: "text", text: "an answer of a model" },
}));
client.setRequestHandler(types.ListRootsRequestSchema, async () => ({ roots: [] }));

// Whatever becomes of it, the next one is made.
const attempt = (request) => request.catch((error) => console.error(String(error)));

async function listEveryTool() {
  const tools = [];
  let cursor;
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor });
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return tools;
}

await client.connect(transport);
const schemas = new Map((await listEveryTool()).map((tool) => [tool.name, tool.inputSchema]));
for (const call of context.toolCalls ?? []) {
  if (!schemas.has(call.name)) continue;
  const given = { ...call.arguments };
  for (const [argument, tool] of Object.entries(call.schemaArguments ?? {})) {
    given[argument] = schemas.get(tool);
  }
  const options = call.timeoutMs ? { timeout: call.timeoutMs } : {};
  await attempt(client.callTool({ name: call.name, arguments: given }, undefined, options));
}
for (const { uri } of context.resourceReads ?? []) await attempt(client.readResource({ uri }));
for (const get of context.promptGets ?? []) await attempt(client.getPrompt(get));
await client.close();
