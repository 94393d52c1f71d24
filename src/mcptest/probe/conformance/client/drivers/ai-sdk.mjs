// A conformance client: the AI SDK (@ai-sdk/mcp).
//
// Install: npm install @ai-sdk/mcp
// Run:     mcptest conformance client --command "node client.mjs"

import { createMCPClient, ElicitationRequestSchema } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport } from "@ai-sdk/mcp/mcp-stdio";

const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const [command, ...args] = JSON.parse(process.env.MCP_CONFORMANCE_SERVER_COMMAND ?? "[]");

const transport = command
  ? new Experimental_StdioMCPTransport({ command, args })
  : { type: "http", url: process.argv.at(-1) };

// Whatever becomes of it, the next one is made.
const attempt = (request) => request.catch((error) => console.error(String(error)));

const client = await createMCPClient({ transport, capabilities: { elicitation: {} } });
// Accept, with the defaults of the form.
client.onElicitationRequest(ElicitationRequestSchema, ({ params }) => {
  const fields = Object.entries(params.requestedSchema?.properties ?? {});
  const content = Object.fromEntries(fields.map(([name, field]) => [name, field.default ?? true]));
  return { action: "accept", content };
});

async function listEveryTool() {
  const tools = [];
  let cursor;
  do {
    const page = await client.listTools(cursor === undefined ? {} : { params: { cursor } });
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return tools;
}

const schemas = new Map((await listEveryTool()).map((tool) => [tool.name, tool.inputSchema]));
for (const call of context.toolCalls ?? []) {
  if (!schemas.has(call.name)) continue;
  const given = { ...call.arguments };
  for (const [argument, tool] of Object.entries(call.schemaArguments ?? {})) {
    given[argument] = schemas.get(tool);
  }
  const options = call.timeoutMs ? { timeout: call.timeoutMs } : {};
  await attempt(client.callTool({ name: call.name, arguments: given, options }));
}
for (const { uri } of context.resourceReads ?? []) await attempt(client.readResource({ uri }));
for (const get of context.promptGets ?? []) await attempt(client.getPrompt(get));
await client.close();
