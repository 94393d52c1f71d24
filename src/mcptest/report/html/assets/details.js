// One entry in full: what was demanded, the verdict, the proof.
const KNOWN_PLACES = [
  "https://modelcontextprotocol.io/", "https://datatracker.ietf.org/", "https://www.rfc-editor.org/",
  "https://www.jsonrpc.org/", "https://html.spec.whatwg.org/", "https://json-schema.org/",
];

function expectedAndActual(fact) {
  const sides = ["expected", "actual"].filter((side) => typeof fact[side] === "string");
  const isShort = (text) => text.length <= 300 && !text.includes("\n") && !looksLikeJson(text);
  return h("div", { class: "sides" }, sides.map((side) => isShort(fact[side])
    ? h("p", { class: "peer" }, h("span", { class: "soft side-label" }, side), fact[side])
    : [h("p", { class: "soft side-label" }, side), longText(fact[side], { json: true })]));
}

function factBody(fact) {
  const text = fact.text || "";
  if (fact.form === "diff") {
    const box = h("div", {}, text && longText(text));
    if (typeof fact.expected === "string" && typeof fact.actual === "string") {
      box.append(difference(fact.expected, fact.actual));
    } else {
      box.append(expectedAndActual(fact));
    }
    return box;
  }
  if (fact.form === "wire") {
    return wireExcerpt(fact.session || 0, fact.row || 0);
  }
  if (fact.form === "link" && KNOWN_PLACES.some((place) => text.startsWith(place))) {
    return h("a", { href: text, rel: "noopener noreferrer", target: "_blank" }, text);
  }
  if (fact.form === "message") return longText(text, { json: true, folded: /^(Request|Sent)/.test(fact.label) });
  if (fact.form === "command" && text.length < 4000 && !text.includes("\n")) {
    const box = longText(text);
    box.querySelector("pre").replaceChildren(...h("pre", {}, unbrokenWords(text)).childNodes);
    return box;
  }
  if (fact.form === "code" || fact.form === "command" || text.length > 2000) return longText(text);
  const paragraph = h("p", { class: "peer prose" });
  // What stands between backticks is code, in our own words as in those of a peer.
  for (const piece of text.split(/(`[^`\n]+`)/)) {
    if (/^`[^`]+`$/.test(piece)) paragraph.append(h("code", {}, piece.slice(1, -1)));
    else addText(paragraph, piece, false);
  }
  return paragraph;
}

// Everything that the file holds of it, for whoever does not trust a rendering.
function rawEntry(entry) {
  const { number, hay, rank, ...kept } = entry;
  const whole = () => JSON.stringify({ ...kept, facts: stored("facts", number) || [] });
  const box = h("details", { class: "raw" }, h("summary", {}, "Raw JSON"));
  box.addEventListener("toggle", () => {
    if (box.open && box.children.length < 2) box.append(longText(whole(), { json: true, save: "result.json" }));
  });
  return box;
}

function showEntry(box, entry) {
  const source = page.sources[entry.source];
  const about = [entry.severity, entry.group, entry.column, clock(entry.ms), source.file].filter(Boolean);
  box.replaceChildren(
    h("div", { class: "entryhead" }, badge(entry.outcome), entry.id && entry.id !== entry.name && h("code", {}, entry.id)),
    h("h2", { class: "peer" }, cut(entry.name, 1000)),
    h("p", { class: "soft peer" }, cut(about.join(" · "), 1000)),
  );
  const list = h("dl");
  if (entry.name.length > 1000) list.append(h("dt", {}, "Name"), h("dd", {}, longText(entry.name)));
  for (const fact of stored("facts", entry.number) || []) {
    list.append(h("dt", {}, fact.label), h("dd", {}, factBody(fact)));
  }
  if (!list.children.length) list.append(h("dt", {}, "Evidence"), h("dd", { class: "soft" }, entry.outcome === "pass" ? "Only the verdict is stored for a test that passed." : "Nothing more is stored."));
  box.append(list, rawEntry(entry));
  box.scrollTop = 0;
}
