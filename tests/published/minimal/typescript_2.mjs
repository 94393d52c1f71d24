// The least server that the TypeScript SDK 2.x makes: one tool, one resource, one prompt, and nothing of
// its own. Whatever rule it breaks, its SDK breaks. `node typescript_2.mjs FOLDER-OF-THE-SDK`
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const root = process.argv[2];
const { z } = createRequire(`${root}/package.json`)("zod");
const { exports } = JSON.parse(readFileSync(`${root}/package.json`));
const from = (name) => {
  const entry = exports[name].import ?? exports[name];
  return import(pathToFileURL(`${root}/${entry.default ?? entry}`).href);
};
const { McpServer } = await from(".");
const { serveStdio } = await from("./stdio");

serveStdio(() => {
  const server = new McpServer({ name: "minimal", version: "1.0.0" });
  const text = (value) => ({ type: "text", text: value });
  server.registerTool("echo", { inputSchema: z.object({ text: z.string() }) }, (given) => ({
    content: [text(given.text)],
  }));
  server.registerResource("hello", "memo://hello", {}, (uri) => ({
    contents: [{ uri: uri.href, text: "hello" }],
  }));
  server.registerPrompt("greet", { argsSchema: z.object({ name: z.string() }) }, (given) => ({
    messages: [{ role: "user", content: text(`Say hello to ${given.name}.`) }],
  }));
  return server;
});
