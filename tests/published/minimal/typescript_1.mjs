// The least server that the TypeScript SDK 1.x makes: one tool, one resource, one prompt, and nothing of
// its own. Whatever rule it breaks, its SDK breaks. `node typescript_1.mjs FOLDER-OF-THE-SDK`
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const root = process.argv[2];
const { z } = createRequire(`${root}/package.json`)("zod");
const folder = existsSync(`${root}/dist/esm`) ? "dist/esm" : "dist";
const from = (name) => import(pathToFileURL(`${root}/${folder}/server/${name}.js`).href);
const { McpServer } = await from("mcp");
const { StdioServerTransport } = await from("stdio");

const server = new McpServer({ name: "minimal", version: "1.0.0" });
server.tool("echo", { text: z.string() }, ({ text }) => ({ content: [{ type: "text", text }] }));
server.resource("hello", "memo://hello", (uri) => ({ contents: [{ uri: uri.href, text: "hello" }] }));
server.prompt("greet", { name: z.string() }, ({ name }) => ({
  messages: [{ role: "user", content: { type: "text", text: `Say hello to ${name}.` } }],
}));
await server.connect(new StdioServerTransport());
