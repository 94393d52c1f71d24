// A client of the official TypeScript SDK that uses `mcptest mcp`, over stdio, in one era.
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const require = createRequire(join(here, "..", "peers", "npm", "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const sdk = await load("@modelcontextprotocol/client");
const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");

const [version, program, ...args] = process.argv.slice(2);
const mode = version >= "2026" ? { pin: version } : "legacy";
const client = new sdk.Client({ name: "node", version: "1" }, { versionNegotiation: { mode } });
await client.connect(new StdioClientTransport({ command: program, args }));
const { tools } = await client.listTools();
const judged = await client.callTool({ name: "judge_capture", arguments: { path: "session.jsonl" } });
const page = await client.readResource({ uri: "mcptest://rules/INV-003" });
await client.close();
console.log(
  JSON.stringify({
    tools: tools.map((tool) => tool.name),
    verdict: judged.structuredContent?.verdict,
    page: page.contents[0].text,
  }),
);
