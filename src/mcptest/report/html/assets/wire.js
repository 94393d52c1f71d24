// The wire view: a session as a sequence diagram, one row for each record.
const WIRE_KINDS = {
  messages: ["request", "notification", "result", "error", "batch", "invalid"],
  http: ["http-request", "http-response", "sse", "stream-end"],
  stderr: ["stderr"],
  other: ["opened", "closed", "exit", "exit-badly", "trouble", "note"],
};
const wire = { session: 0, text: "", hidden: new Set(), pinnedOnly: false, rows: null, shown: -1 };
let wireList;

const kindOf = (session, row) => session.kindNames[session.kinds[row]];

const rowOfWire = (at) => drawnRow(sessions[wire.session], wire.rows[at], wire.shown);

function drawnRow(session, row, chosen) {
  const kind = kindOf(session, row);
  const sender = session.senders[row];
  const mate = session.mate.get(row);
  const within = chosen >= 0 && session.mate.has(chosen) &&
    row >= Math.min(chosen, session.mate.get(chosen)) && row <= Math.max(chosen, session.mate.get(chosen));
  const classes = ["row", "wirerow", kind, ["nobody", "client", "server"][sender]];
  if (session.working[row] & 1) classes.push("server-works");
  if (session.working[row] & 2) classes.push("client-works");
  if (within) classes.push("within");
  if (mate !== undefined && mate === chosen) classes.push("mate");
  const pins = session.pinned.get(row) || [];
  const label = session.labels[row];
  const took = mate !== undefined && mate < row ? clock(session.times[row] - session.times[mate]) : "";
  return h("div", { class: classes.join(" ") },
    h("span", { class: "time" }, clock(session.times[row])),
    h("span", { class: "lane" }, h("span", { class: "arrow", "aria-hidden": "true" }), h("span", { class: "label peer" }, label)),
    h("span", { class: "marks" },
      pins.length ? h("span", { class: "pin " + (pins.some((pin) => pin.severe !== false) ? "fail" : "warn"), title: pins.map((pin) => pin.rule).join(", ") }, "⚑ " + pins[0].rule.slice(0, 40) + (pins.length > 1 ? " +" + (pins.length - 1) : "")) : took));
}

function filterWire(keep) {
  const session = sessions[wire.session];
  const rows = [];
  const hiddenKinds = new Set(session.kindNames.map((name, i) => (wire.hidden.has(name) ? i : -1)));
  for (let row = 0; row < session.kinds.length; row++) {
    if (hiddenKinds.has(session.kinds[row])) continue;
    if (wire.pinnedOnly && !session.pinned.has(row)) continue;
    if (wire.text && !session.labels[row].toLowerCase().includes(wire.text)) continue;
    rows.push(row);
  }
  wire.rows = rows;
  byId("wire-count").textContent = `${count(rows.length)} of ${count(session.kinds.length)}`;
  wireList.show(rows.length, keep === undefined ? -1 : rows.indexOf(keep));
}

// The messages around one, in place: the log behind a verdict without leaving it.
function wireExcerpt(number, row) {
  const session = sessions[number];
  const mate = session.mate.get(row);
  const from = Math.max(0, mate !== undefined && mate < row && row - mate < 6 ? mate - 1 : row - 3);
  const to = Math.min(session.kinds.length, from + 7);
  const rows = h("div", { class: "excerpt" });
  for (let at = from; at < to; at++) {
    const drawn = drawnRow(session, at, row);
    drawn.classList.toggle("chosen", at === row);
    drawn.addEventListener("click", () => openWire(number, at));
    rows.append(drawn);
  }
  return h("div", {}, rows, h("button", { type: "button", class: "link to-wire", onclick: () => openWire(number, row) },
    `Open record ${row} of ${plain(session.label).slice(0, 80)} in the wire view`));
}

function findingOf(pin) {
  const box = h("div", { class: "finding " + (pin.severe !== false ? "fail" : "warn") }, h("p", { class: "peer" }, h("code", {}, pin.rule), " ", pin.message));
  if (pin.pointer) box.append(h("p", { class: "soft peer" }, "at " + pin.pointer));
  if (typeof pin.expected === "string" && typeof pin.actual === "string") box.append(difference(pin.expected, pin.actual));
  const found = pin.entry === undefined ? entries.find((entry) => entry.id === pin.rule && (entry.outcome === "fail" || entry.outcome === "warn")) : entries[pin.entry];
  if (found) box.append(h("button", { type: "button", class: "link", onclick: () => openEntry(found.number) }, found.id ? "Show the rule" : "Show the test"));
  return box;
}

function showRecord(row) {
  const session = sessions[wire.session];
  const record = stored("wire", session.first + row);
  const kind = kindOf(session, row);
  const who = ["", "client → server", "server → client"][session.senders[row]];
  const box = byId("wire-detail");
  const mate = session.mate.get(row);
  const about = [`record ${record.place === undefined ? row : record.place}`, who, clock(session.times[row]), record.bytes !== undefined && size(record.bytes), record.stream !== undefined && `HTTP exchange ${record.stream}`, record.status && `HTTP ${record.status}`].filter(Boolean);
  box.replaceChildren(
    h("div", { class: "entryhead" }, h("span", { class: "badge kind-" + kind }, kind),
      mate !== undefined && h("button", { type: "button", class: "link", onclick: () => openWire(wire.session, mate) }, mate > row ? `response after ${clock(session.times[mate] - session.times[row])}` : `response to record ${mate}`)),
    h("h2", { class: "peer" }, session.labels[row]),
    h("p", { class: "soft" }, about.join(" · ")),
    ...(session.pinned.get(row) || []).map(findingOf));
  if (kind === "request" && mate === undefined) box.append(h("p", { class: "soft" }, "The capture has no response to this request."));
  const file = `record-${row}${kind === "invalid" ? ".bin" : ".json"}`;
  if (record.raw !== undefined) box.append(longText(record.raw, { json: true, save: file }));
  else if (record.base64 !== undefined) box.append(h("p", { class: "soft" }, "Not valid UTF-8. The bytes in base64:"), longText(record.base64, { save: file, bytes: bytesOf(record.base64) }));
  if (record.sse) box.append(h("p", { class: "soft" }, "Server-sent event"), longText(JSON.stringify(record.sse), { json: true }));
  if (record.kind !== undefined) recordMembers(box, record);
  box.scrollTop = 0;
}

function recordMembers(box, record) {
  const list = h("dl");
  for (const [name, value] of Object.entries(record)) {
    if (name === "kind" || name === "t") continue;
    const body = name === "headers"
      ? h("table", {}, value.map(([key, text]) => h("tr", {}, h("th", { class: "peer" }, key), h("td", { class: "peer" }, text))))
      : longText(typeof value === "string" ? value : JSON.stringify(value));
    list.append(h("dt", {}, name), h("dd", {}, body));
  }
  box.append(list);
}

function openWire(session, row) {
  showView("wire");
  const select = byId("wire-filters").querySelector("select");
  if (session !== wire.session) wire.session = session;
  if (select) select.value = session;
  wire.shown = row;
  const kind = kindOf(sessions[session], row);
  if (wire.text || wire.pinnedOnly || wire.hidden.has(kind)) clearWireFilters();
  filterWire(row);
  showRecord(row);
  byId("wire").classList.add("detailed");
  remember(`wire/${session}/${row}`);
}

function clearWireFilters() {
  Object.assign(wire, { text: "", pinnedOnly: false });
  wire.hidden.clear();
  for (const field of byId("wire-filters").querySelectorAll("input")) field.value = "";
  for (const chip of byId("wire-filters").querySelectorAll(".chip")) chip.setAttribute("aria-pressed", chip.dataset.pinned === undefined);
}

// The view opens where something was found: a failure before a warning.
function beginWire() {
  const found = sessions.flatMap((session, number) => session.pins.map((pin) => [pin.severe === false, number, pin.row]));
  found.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
  if (!found.length) return filterWire();
  const [, session, row] = found[0];
  Object.assign(wire, { session, shown: row });
  const select = byId("wire-filters").querySelector("select");
  if (select) select.value = session;
  filterWire(row);
  showRecord(row);
}

function nextFinding(step) {
  const session = sessions[wire.session];
  const rows = [...session.pinned.keys()].sort((a, b) => a - b);
  if (!rows.length) return;
  const after = step > 0 ? rows.find((row) => row > wire.shown) : rows.filter((row) => row < wire.shown).pop();
  openWire(wire.session, after === undefined ? (step > 0 ? rows[0] : rows[rows.length - 1]) : after);
}

function prepareWire() {
  const bar = byId("wire-filters");
  wireList = new LongList(byId("wire-list"), 34, rowOfWire, (at) => {
    wire.shown = wire.rows[at];
    wireList.paint();
    showRecord(wire.shown);
    byId("wire").classList.add("detailed");
    remember(`wire/${wire.session}/${wire.shown}`);
  });
  bar.append(h("button", { type: "button", class: "back", onclick: () => byId("wire").classList.remove("detailed") }, "← Diagram"));
  if (sessions.length > 1) {
    bar.append(choice("Session", sessions.map((session, i) => [i, `${i + 1}. ${session.label} ${session.transport} (${session.kinds.length})${session.pins.length ? " ⚑ " + session.pins.length : ""} ${session.file}`]), (value) => {
      wire.session = Number(value);
      wire.shown = -1;
      filterWire();
      byId("wire-detail").replaceChildren(sessionCard(sessions[wire.session]));
    }));
  }
  bar.append(filterBox("Search messages ( / )", (text) => { wire.text = text; filterWire(); }));
  for (const [name, kinds] of Object.entries(WIRE_KINDS)) {
    if (!sessions.some((session) => session.kindNames.some((kind) => kinds.includes(kind)))) continue;
    bar.append(h("button", { type: "button", class: "chip", "aria-pressed": "true", onclick: (event) => {
      const on = event.currentTarget.getAttribute("aria-pressed") === "true";
      event.currentTarget.setAttribute("aria-pressed", !on);
      for (const kind of kinds) on ? wire.hidden.add(kind) : wire.hidden.delete(kind);
      filterWire();
    } }, name));
  }
  if (sessions.some((session) => session.pins.length)) {
    const only = h("button", { type: "button", class: "chip fail", "aria-pressed": "false", onclick: () => {
      wire.pinnedOnly = !wire.pinnedOnly;
      only.setAttribute("aria-pressed", wire.pinnedOnly);
      filterWire();
    } }, "⚑ findings only");
    only.dataset.pinned = "";
    bar.append(only, h("button", { type: "button", class: "small", title: "n", onclick: () => nextFinding(1) }, "Next finding"));
  }
  bar.append(h("span", { id: "wire-count", class: "soft", role: "status" }));
  byId("wire-detail").append(sessionCard(sessions[0]));
}

function sessionCard(session) {
  const last = session.times[session.times.length - 1] || 0;
  return h("div", {}, h("h2", { class: "peer" }, cut(session.label, 1000)), h("p", { class: "soft peer" }, cut(session.file, 1000)),
    h("p", {}, `${several(session.kinds.length, "record")}, ${session.transport || "transport unknown"}, ${clock(last)}`),
    session.pins.length ? h("p", {}, `${several(session.pins.length, "finding")} marked on the messages.`) : h("p", { class: "soft" }, "No findings in this session."),
    h("p", { class: "soft" }, "Select a row to see the message exactly as sent."));
}
