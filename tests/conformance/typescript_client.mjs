// A client of the official TypeScript SDK for every scenario that is not about authorization.
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const require = createRequire(join(here, "..", "peers", "npm", "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const sdk = await load("@modelcontextprotocol/client");

const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const version = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const command = process.env.MCP_CONFORMANCE_SERVER_COMMAND;

const stateless = version >= "2026";
const asked = ["elicitation-sep1034-client-defaults", "sep-2322-client-request-state"];
const probed = scenario.startsWith("client-capabilities");
const capabilities = {};
if (asked.includes(scenario) || probed) capabilities.elicitation = { form: { applyDefaults: true } };
if (probed) Object.assign(capabilities, { sampling: {}, roots: {} });

const pinned = stateless ? { pin: version } : "legacy";
const mode = process.env.BOTH_ERAS ? "auto" : pinned;
const client = new sdk.Client(
  { name: "typescript-sdk", version: "1" },
  { capabilities, versionNegotiation: { mode } },
);
if (capabilities.elicitation) {
  client.setRequestHandler("elicitation/create", async ({ params }) => {
    const content = {};
    for (const [key, about] of Object.entries(params.requestedSchema?.properties ?? {})) {
      if ("default" in about) content[key] = about.default;
    }
    if (Object.keys(content).length === 0) content.confirmed = true;
    return { action: "accept", content };
  });
}
if (probed) {
  client.setRequestHandler("sampling/createMessage", async () => ({
    role: "assistant",
    model: "test",
    content: { type: "text", text: "yes" },
  }));
  client.setRequestHandler("roots/list", async () => ({ roots: [] }));
}

let transport;
if (command) {
  const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");
  const [program, ...args] = JSON.parse(command);
  transport = new StdioClientTransport({ command: program, args });
} else {
  transport = new sdk.StreamableHTTPClientTransport(new URL(process.argv.at(-1)));
}

await client.connect(transport);
const tools = [];
let cursor;
do {
  const page = await client.listTools(cursor === undefined ? {} : { cursor });
  tools.push(...page.tools);
  cursor = page.nextCursor;
} while (cursor !== undefined);
const names = tools.map((tool) => tool.name);

const filled = (tool) =>
  Object.fromEntries((tool.inputSchema.required ?? []).map((name) => [name, "x"]));

if (scenario === "tools_call") {
  await client.callTool({ name: "add_numbers", arguments: { a: 5, b: 3 } });
} else if (scenario === "http-standard-headers") {
  for (const name of names) await client.callTool({ name, arguments: {} });
  for (const one of (await client.listResources()).resources)
    await client.readResource({ uri: one.uri });
  for (const one of (await client.listPrompts()).prompts) await client.getPrompt({ name: one.name });
} else if (scenario === "http-invalid-tool-headers") {
  for (const tool of tools) await client.callTool({ name: tool.name, arguments: filled(tool) });
} else if (scenario === "json-schema-2020-12-preservation") {
  const focal = tools.find((tool) => tool.name === "json_schema_2020_12_tool");
  await client.callTool({ name: "json_schema_echo", arguments: { schema: focal.inputSchema } });
} else if (context.toolCalls) {
  for (const call of context.toolCalls) {
    if (!names.includes(call.name)) continue;
    const options = call.timeoutMs ? { timeout: call.timeoutMs } : {};
    try {
      await client.callTool({ name: call.name, arguments: call.arguments }, options);
    } catch {
      // whatever became of it, the next call is made
    }
  }
} else if (asked.includes(scenario) || scenario === "sse-retry") {
  for (const name of names) await client.callTool({ name, arguments: {} });
}
await client.close();
