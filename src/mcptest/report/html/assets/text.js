// Text of peers becomes text nodes and nothing else. What can't be seen, or would turn its
// surroundings around, is shown as an escape.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e007f}]/gu;
const UNSEEN_IN_LINE = new RegExp(UNSEEN.source.replace("\\u000b", "\\u0009"), "gu");
// Letters that are written from right to left take the signs and digits beside them along.
const RTL = "[\\u0590-\\u061b\\u061d-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufefc\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}]";
const SPECIAL = new RegExp(`${UNSEEN.source}|${RTL}+(?: ${RTL}+)*`, "gu");
const SPECIAL_IN_LINE = new RegExp(`${UNSEEN_IN_LINE.source}|${RTL}+(?: ${RTL}+)*`, "gu");
const IS_RTL = new RegExp(`^${RTL}`, "u");
const STEP = 20000;

function asEscape(text) {
  let out = "";
  for (let i = 0; i < text.length; i++) {
    out += "\\u" + text.charCodeAt(i).toString(16).padStart(4, "0");
  }
  return out;
}

function shownApart(text) {
  if (IS_RTL.test(text)) {
    const apart = document.createElement("bdi");
    apart.textContent = text;
    return apart;
  }
  const escape = document.createElement("span");
  escape.className = "esc";
  escape.textContent = text === "\n" ? "\\n" : text === "\t" ? "\\t" : asEscape(text);
  return escape;
}

function addText(node, text, inLine) {
  const pattern = inLine ? SPECIAL_IN_LINE : SPECIAL;
  pattern.lastIndex = 0;
  let from = 0;
  for (let found; (found = pattern.exec(text)); from = pattern.lastIndex) {
    if (found.index > from) node.append(text.slice(from, found.index));
    node.append(shownApart(found[0]));
  }
  if (from < text.length) node.append(text.slice(from));
  return node;
}

// plain(): for attributes and options, which hold no elements.
const plain = (text) => String(text).replace(UNSEEN_IN_LINE, asEscape);

const cut = (text, most) => (text.length > most ? text.slice(0, most) + "…" : text);

// A command is broken between its words: a browser would break `--html` behind its hyphens.
const unbrokenWords = (command) => command.split(/(\s+)/).map((word) => (/^-[^\s]{1,30}$/.test(word) || /^\d[\d-]{1,11}$/.test(word) ? h("span", { class: "unbroken" }, word) : word));

function h(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === false || value === undefined || value === null) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : plain(value));
  }
  for (const child of children.flat(2)) {
    if (child === null || child === undefined || child === false) continue;
    if (child instanceof Node) node.append(child);
    else addText(node, String(child), true);
  }
  return node;
}

function clock(ms) {
  if (ms === undefined || ms === null) return "";
  if (ms < 999.5) return (ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)) + "ms";
  if (ms < 59950) return (ms / 1000).toFixed(1) + "s";
  const seconds = Math.round(ms / 1000);
  return Math.floor(seconds / 60) + "m" + String(seconds % 60).padStart(2, "0") + "s";
}

const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
// `18 November 2026, 14:24 UTC`; what is not a date stays as it is.
function dateInWords(text) {
  const at = new Date(text);
  if (!/^\d{4}-\d\d-\d\dT/.test(text) || Number.isNaN(at.getTime())) return cut(text, 60);
  const two = (number) => String(number).padStart(2, "0");
  return `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]} ${at.getUTCFullYear()}, ${two(at.getUTCHours())}:${two(at.getUTCMinutes())} UTC`;
}

const size = (n) => n < 2000 ? n + " B" : n < 2e6 ? (n / 1e3).toFixed(1) + " kB" : (n / 1e6).toFixed(1) + " MB";
const count = (n) => n.toLocaleString("en");
const several = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

// Indents JSON without reading its values: key order, duplicate keys and digits stay as sent.
function indented(text) {
  let out = "";
  let depth = 0;
  const line = () => "\n" + "  ".repeat(Math.min(depth, 40));
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === '"') {
      let end = i + 1;
      while (end < text.length && text[end] !== '"') end += text[end] === "\\" ? 2 : 1;
      out += text.slice(i, end + 1);
      i = end;
    } else if (c === "{" || c === "[") {
      const rest = /\S/.exec(text.slice(i + 1, i + 200));
      if (rest && (rest[0] === "}" || rest[0] === "]")) {
        out += c + rest[0];
        i += rest.index + 1;
      } else {
        depth++;
        out += c + line();
      }
    } else if (c === "}" || c === "]") {
      depth = Math.max(0, depth - 1);
      out += line() + c;
    } else if (c === ",") out += c + line();
    else if (c === ":") out += ": ";
    else if (!/\s/.test(c)) out += c;
  }
  return out;
}

// What every stateless request says of its client is one line; "As sent" shows it.
function withoutBoilerplate(text) {
  const lines = text.split("\n");
  const from = lines.findIndex((line, i) => /^ *"_meta": \{$/.test(line) && /^ *"io\.modelcontextprotocol\//.test(lines[i + 1] || ""));
  if (from < 0) return text;
  const margin = /^ */.exec(lines[from])[0];
  const to = lines.findIndex((line, i) => i > from && line.startsWith(margin + "}"));
  if (to < 0) return text;
  // Whatever was sent on purpose, such as a version that does not exist, is shown.
  const meta = lines.slice(from, to).join("\n");
  const usual = [/protocolVersion": "(202[4-6]-\d\d-\d\d|draft)"/, /clientInfo": \{\s*"name": "mcptest"/, /clientCapabilities": \{\}/];
  if (!usual.every((pattern) => pattern.test(meta)) || meta.match(/"io\.modelcontextprotocol\//g).length !== 3) return text;
  return [...lines.slice(0, from), lines[from] + "…" + lines[to].trim(), ...lines.slice(to + 1)].join("\n");
}

const looksLikeJson = (text) => /^\s*[[{]/.test(text) && text.length <= 400000;

function copyButton(text, label) {
  if (!navigator.clipboard) return null;
  return h("button", { type: "button", class: "small", onclick: async (event) => {
    const button = event.currentTarget;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch (error) {
      button.textContent = "Can't copy: " + error.name;
    }
  } }, label || "Copy");
}

// What is saved is what was sent: the very bytes, not what is shown of them.
function saveButton(content, name) {
  return h("button", { type: "button", class: "small", onclick: () => {
    const address = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
    const link = h("a", { href: address, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  } }, "Save");
}

const bytesOf = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

// A text of any length: a beginning that the browser can lay out, more of it on demand.
function longText(text, options) {
  const json = (options || {}).json && looksLikeJson(text);
  const body = h("pre", { class: "peer" });
  const tools = h("div", { class: "texttools" });
  let shown = 0;
  const pretty = () => ((options || {}).folded ? withoutBoilerplate(indented(text)) : indented(text));
  let source = json ? pretty() : text;
  const more = h("button", { type: "button", class: "small", onclick: () => grow(shown * 4) });
  function grow(by) {
    const end = Math.min(source.length, shown + by);
    addText(body, source.slice(shown, end), false);
    shown = end;
    more.hidden = shown >= source.length;
    more.textContent = `Show more (${count(shown)} of ${count(source.length)} characters)`;
  }
  function restart(raw) {
    source = raw ? text : pretty();
    body.replaceChildren();
    shown = 0;
    grow(STEP);
  }
  if (json) {
    let raw = false;
    tools.append(h("button", { type: "button", class: "small", onclick: (event) => {
      raw = !raw;
      event.currentTarget.textContent = raw ? "Indent" : "As sent";
      restart(raw);
    } }, "As sent"));
  }
  const copy = copyButton(text, text.length > STEP ? `Copy all ${size(text.length)}` : "Copy");
  if (copy) tools.append(copy);
  if ((options || {}).save || text.length > STEP) tools.append(saveButton((options || {}).bytes || text, (options || {}).save || "text.txt"));
  grow(STEP);
  return h("div", { class: "long" }, tools, body, more);
}
