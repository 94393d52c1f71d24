// The overview, the matrix, and what holds the views together.
const views = [["overview", "Overview"], ["results", `Results ${count(entries.length)}`]];
// A matrix is for what was judged several times: the same rule on several servers or revisions.
const judgedIn = new Map();
for (const entry of entries) {
  if (!entry.id || !entry.column) continue;
  if (!judgedIn.has(entry.id)) judgedIn.set(entry.id, new Set());
  judgedIn.get(entry.id).add(entry.column);
}
const repeated = [...judgedIn.values()].filter((where) => where.size > 1);
const columns = [...new Set(repeated.flatMap((where) => [...where]))].slice(0, 40);
if (columns.length > 1) views.push(["matrix", "Matrix"]);
if (sessions.length) views.push(["wire", `Wire ${count(sessions.reduce((sum, session) => sum + session.kinds.length, 0))}`]);

function remember(place) {
  try { history.replaceState(null, "", "#/" + place); } catch (error) { /* a page without an address: nothing to remember */ }
}

function showView(name) {
  for (const [view] of views) {
    byId(view).hidden = view !== name;
    const tab = byId("tab-" + view);
    tab.setAttribute("aria-selected", view === name);
    tab.tabIndex = view === name ? 0 : -1;
  }
}

// Places begin with a slash, so that none is the name of an element for the browser to jump to.
function go(place) {
  const [view, a, b] = place.replace(/^#?\/?/, "").split("/");
  if (view === "results" && entries[Number(a)] && a) openEntry(Number(a));
  else if (view === "wire" && sessions[Number(a)] && a && Number(b) < sessions[Number(a)].kinds.length) openWire(Number(a), Number(b) || 0);
  else showView(views.some(([name]) => name === view) ? view : "overview");
}

function card(title, ...content) { return h("section", { class: "card" }, h("h2", {}, title), ...content); }

function outcomeBar() {
  const bar = h("div", { class: "stack", "aria-hidden": "true" });
  for (const outcome of ORDER.filter((one) => tally[one])) {
    const part = h("i", { class: outcome, title: `${OUTCOMES[outcome][1]} ${tally[outcome]}` });
    part.style.flexGrow = tally[outcome];
    bar.append(part);
  }
  return bar;
}

function entryLink(entry, side) {
  return h("li", {}, h("button", { type: "button", class: "link peer", onclick: () => openEntry(entry.number) },
    h("span", { class: "sign " + entry.outcome }, OUTCOMES[entry.outcome][0]), " ", entry.id && entry.id !== entry.name && h("code", {}, entry.id), " ", entry.name.slice(0, 200)),
    side && h("span", { class: "soft peer" }, " " + side));
}

function slowest() {
  const timed = entries.filter((entry) => entry.ms > 0).sort(SORTS.slowest).slice(0, 8);
  if (timed.length < 2) return null;
  return card("Slowest", h("ul", { class: "bars" }, timed.map((entry) => {
    const item = entryLink(entry);
    const bar = h("span", { class: "bar", "aria-hidden": "true" }, h("i"));
    bar.firstChild.style.width = Math.max(1, (100 * entry.ms) / timed[0].ms) + "%";
    item.append(bar, h("span", { class: "soft" }, clock(entry.ms)));
    return item;
  })));
}

// One bar for each trial: its height is the time it took, its colour what became of it.
function trialBars(test) {
  const longest = Math.max(1, ...test.ms);
  const bars = h("span", { class: "trials", "aria-hidden": "true" });
  test.outcomes.slice(0, 80).forEach((outcome, i) => {
    const bar = h("i", { class: outcome, title: `trial ${i + 1}: ${OUTCOMES[outcome][1]}, ${clock(test.ms[i])}` });
    bar.style.height = 4 + (24 * test.ms[i]) / longest + "px";
    bars.append(bar);
  });
  return bars;
}

function trialsCard() {
  const tests = page.sources.flatMap((source) => source.trials || []);
  if (!tests.length) return null;
  return card("Trials", h("ul", {}, tests.slice(0, 30).map((test) => {
    const ran = test.outcomes.filter((outcome) => outcome !== "skip");
    const passed = ran.filter((outcome) => outcome === "pass").length;
    const sorted = [...test.ms].sort((a, b) => a - b);
    const flaky = passed > 0 && passed < ran.length;
    return h("li", { class: "trialrow" }, h("span", { class: "peer" }, test.name.slice(0, 200)), trialBars(test),
      h("span", { class: passed < ran.length ? "bad" : "" }, `${passed} of ${ran.length}${flaky ? " flaky" : ""}`),
      h("span", { class: "soft" }, `median ${clock(sorted[sorted.length >> 1])}, longest ${clock(sorted[sorted.length - 1])}`));
  })));
}

function sourceCard() {
  const head = ["file", "what", "about", "result", "time", "exit code"];
  const rows = page.sources.slice(0, 200).map((source) => h("tr", {}, h("td", { class: "peer" }, cut(source.file, 300)),
    h("td", {}, source.kind), h("td", { class: "peer" }, (source.subject || "").slice(0, 200)),
    h("td", {}, source.grade && h("b", { class: "grade" }, source.grade), " ", cut(source.summary || "", 1000)),
    h("td", {}, clock(source.ms)), h("td", { class: source.exit_code ? "bad" : "" }, source.exit_code || 0)));
  return card(page.sources.length > 1 ? `${page.sources.length} files, one verdict` : "Where it is from",
    h("div", { class: "wide" }, h("table", {}, h("tr", {}, head.map((word) => h("th", {}, word))), rows)));
}

function listed(title, lines) {
  return lines.length ? card(title, h("ul", {}, lines.slice(0, 100).map((line) => h("li", { class: "peer" }, line.length > 1000 ? longText(line) : line)), lines.length > 100 && h("li", { class: "soft" }, `and ${lines.length - 100} more`))) : null;
}

function prepareOverview() {
  const failed = entries.filter((entry) => entry.outcome === "fail");
  const total = page.sources.reduce((sum, source) => sum + (source.ms || 0), 0);
  const tiles = ORDER.filter((one) => tally[one]).map((outcome) => h("button", { type: "button", class: "tile " + outcome, onclick: () => showOnly(outcome) },
    h("b", {}, count(tally[outcome])), h("span", {}, OUTCOMES[outcome][1])));
  const started = page.sources.map((source) => source.started).filter(Boolean).sort()[0];
  const pins = sessions.reduce((sum, session) => sum + session.pins.length, 0);
  byId("overview").append(h("div", { class: "column" },
    h("section", { class: "hero " + (page.exit_code ? "fail" : "pass") },
      h("p", { class: "headline" }, page.verdict),
      h("p", { class: "soft" }, [`exit code ${page.exit_code}`, started && cut(started, 60), total && clock(total), page.made_by].filter(Boolean).join(" · ")),
      outcomeBar(), h("div", { class: "tiles" }, tiles)),
    failed.length ? card(`Failures (${count(failed.length)})`, h("ul", { class: "failures" }, failed.slice(0, 15).map((entry) => entryLink(entry, entry.brief)),
      failed.length > 15 && h("li", {}, h("button", { type: "button", class: "link", onclick: () => showOnly("fail") }, `all ${count(failed.length)} failures`)))) : null,
    listed("Changed since the baseline", page.sources.flatMap((source) => source.changes || [])),
    sourceCard(),
    sessions.length ? card("Wire", h("p", {}, `${count(sessions.length)} recorded ${sessions.length === 1 ? "session" : "sessions"}, ${count(pins)} ${pins === 1 ? "finding" : "findings"} pinned. `, h("button", { type: "button", class: "link", onclick: () => openWire(wire.session, 0) }, "Open the diagram"))) : null,
    trialsCard(),
    slowest(),
    listed("Notes", [...page.notes, ...page.sources.flatMap((source) => source.notes || [])])));
}

function prepareMatrix() {
  if (columns.length < 2) return;
  const cells = new Map();
  const names = new Map();
  for (const entry of entries) {
    if (!columns.includes(entry.column) || judgedIn.get(entry.id).size < 2) continue;
    if (!cells.has(entry.id)) { cells.set(entry.id, new Map()); names.set(entry.id, entry.name); }
    const row = cells.get(entry.id);
    const known = row.get(entry.column);
    if (!known || ORDER.indexOf(entry.outcome) < ORDER.indexOf(known.outcome)) row.set(entry.column, entry);
  }
  const table = h("table", { class: "cells" }, h("thead", {}, h("tr", {}, h("th", {}, "rule"), columns.map((column) => h("th", { class: "peer" }, cut(column, 120))))));
  const body = h("tbody");
  const worst = (row) => Math.min(...[...row.values()].map((entry) => ORDER.indexOf(entry.outcome)));
  const rows = [...cells].sort((a, b) => worst(a[1]) - worst(b[1]));
  for (const [id, row] of rows.slice(0, 2000)) {
    body.append(h("tr", {}, h("th", { class: "peer", title: names.get(id) }, h("code", {}, id), id === names.get(id) ? null : " " + names.get(id).slice(0, 90)), columns.map((column) => {
      const entry = row.get(column);
      return h("td", {}, entry && h("button", { type: "button", class: "sign " + entry.outcome, title: OUTCOMES[entry.outcome][1], "aria-label": `${id} in ${column}: ${OUTCOMES[entry.outcome][1]}`, onclick: () => openEntry(entry.number) }, OUTCOMES[entry.outcome][0]));
    })));
  }
  table.append(body);
  const left = rows.length > 2000 && h("p", { class: "soft" }, `and ${count(rows.length - 2000)} more rules`);
  byId("matrix").append(h("div", { class: "wide fill" }, table, left));
}

const THEMES = ["auto", "light", "dark"];
function setTheme(name) {
  document.documentElement.dataset.theme = name;
  byId("theme").textContent = { auto: "◐", light: "☀", dark: "☾" }[name];
  byId("theme").setAttribute("aria-label", `Theme: ${name}`);
}

const KEYS = [["1 – 4", "overview, results, matrix, wire"], ["/", "search"], ["j k ↓ ↑", "next, previous"], ["Enter", "into the details"], ["n p", "next, previous finding on the wire"], ["Esc", "back; clear the filters"], ["t", "light, dark, as the system"], ["?", "these keys"]];

function escapeKey() {
  const view = views.find(([name]) => !byId(name).hidden)[0];
  const list = byId(view === "wire" ? "wire-list" : "result-list");
  const inside = document.activeElement && document.activeElement.closest(".detail, .filters");
  byId(view).classList.remove("detailed");
  if (inside && inside.classList.contains("detail")) list.focus();
  else if (view === "results") { clearResultFilters(); filterResults(); list.focus(); }
  else if (view === "wire") { clearWireFilters(); filterWire(wire.shown); list.focus(); }
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "Escape") { event.preventDefault(); return escapeKey(); }
  if (typing) return;
  const view = views.find(([name]) => !byId(name).hidden)[0];
  const detail = byId(view === "wire" ? "wire-detail" : "result-detail");
  const list = view === "wire" ? wireList : resultList;
  if (/^[1-4]$/.test(event.key) && views[event.key - 1]) byId("tab-" + views[event.key - 1][0]).click();
  else if (event.key === "/") { if (view !== "wire") showView("results"); byId(view === "wire" ? "wire-filters" : "result-filters").querySelector("input").focus(); }
  else if (event.key === "?") byId("keys").showModal();
  else if (event.key === "t") byId("theme").click();
  else if (view === "wire" && event.key === "n") nextFinding(1);
  else if (view === "wire" && event.key === "p") nextFinding(-1);
  else if ((event.key === "j" || event.key === "k") && (view === "results" || view === "wire")) list.choose(list.at + (event.key === "j" ? 1 : -1));
  else if (event.key === "Enter" && event.target.getAttribute("role") === "listbox") detail.focus();
  else return;
  event.preventDefault();
}

function prepareTabs() {
  for (const [name, label] of views) {
    byId("tabs").append(h("button", { type: "button", role: "tab", id: "tab-" + name, "aria-controls": name, onclick: () => {
      showView(name);
      remember(name);
      if (name === "results" && !chosenEntries.length) filterResults();
      const list = name === "wire" ? wireList : name === "results" ? resultList : null;
      if (list) { list.paint(); list.box.focus({ preventScroll: true }); }
    } }, label));
  }
  byId("tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const tabs = [...byId("tabs").children];
    const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    next.click();
    next.focus();
  });
}

function begin() {
  byId("app").hidden = false;
  byId("title").append(addText(document.createDocumentFragment(), page.title, true));
  byId("verdict").textContent = page.exit_code ? "✗ " + page.exit_code : "✓";
  byId("verdict").classList.add(page.exit_code ? "fail" : "pass");
  byId("verdict").title = plain(page.verdict);
  setTheme("auto");
  byId("theme").addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % 3]));
  byId("keys").append(h("h2", {}, "Keys"), h("table", {}, KEYS.map(([key, what]) => h("tr", {}, h("th", {}, key), h("td", {}, what)))), h("form", { method: "dialog" }, h("button", {}, "Close")));
  byId("keys").querySelector("form").addEventListener("submit", (event) => { event.preventDefault(); byId("keys").close(); });
  byId("keys-open").addEventListener("click", () => byId("keys").showModal());
  prepareTabs();
  prepareResults();
  if (sessions.length) prepareWire();
  prepareMatrix();
  prepareOverview();
  document.addEventListener("keydown", onKey);
  addEventListener("hashchange", () => go(location.hash));
  filterResults();
  go(location.hash);
}

begin();
