// The overview, and what holds the views together.
const views = [["overview", "Overview"], ["results", `Results ${count(entries.length)}`]];
if (columns.length > 1) views.push(["matrix", "Matrix"]);
if (sessions.length) views.push(["wire", `Wire ${count(sessions.reduce((sum, session) => sum + session.kinds.length, 0))}`]);

function remember(place) {
  const view = (text) => text.replace(/^#\/?/, "").split("/")[0];
  // The browser's way back leads from one view to the one before, not through every row.
  const way = view(location.hash) && view(location.hash) !== view(place) ? "pushState" : "replaceState";
  try { history[way](null, "", "#/" + place); } catch (error) { /* a page without an address: nothing to remember */ }
}

function showView(name) {
  for (const [view] of views) {
    byId(view).hidden = view !== name;
    const tab = byId("tab-" + view);
    tab.setAttribute("aria-selected", view === name);
    tab.tabIndex = view === name ? 0 : -1;
  }
  // Long lists are made when they are first looked at.
  if (name === "results" && !chosenEntries) filterResults();
  if (name === "wire" && !wire.rows) beginWire();
}

// Places begin with a slash, so that none is the name of an element for the browser to jump to.
function go(place) {
  const [view, a, b] = place.replace(/^#?\/?/, "").split("/");
  if (view === "results" && entries[Number(a)] && a) openEntry(Number(a));
  else if (view === "wire" && sessions[Number(a)] && a && Number(b) < sessions[Number(a)].kinds.length) openWire(Number(a), Number(b) || 0);
  else if (view === "matrix" && matrixList && matrix.rows[Number(a)] && a) { showView("matrix"); openCell(Number(a), Number(b) || 0); }
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

function entryLink(entry, side, often) {
  return h("li", {}, h("button", { type: "button", class: "link peer", onclick: () => openEntry(entry.number) },
    h("span", { class: "sign " + entry.outcome }, OUTCOMES[entry.outcome][0]), " ", entry.id && entry.id !== entry.name && h("code", {}, entry.id), " ", entry.name.slice(0, 200)), often && h("b", { class: "tag" }, often),
    side && h("span", { class: "soft peer" }, " " + side));
}

function sourceCard() {
  if (page.sources.length < 2) return null;  // the head says it all
  const head = ["file", "what", "about", "result", "time", "exit code"];
  const rows = page.sources.slice(0, 200).map((source) => h("tr", {}, h("td", { class: "peer" }, cut(source.file, 300)),
    h("td", {}, source.kind), h("td", { class: "peer" }, (source.subject || "").slice(0, 200)),
    h("td", {}, source.grade && h("b", { class: "grade" }, source.grade), " ", cut(source.summary || "", 1000)),
    h("td", {}, clock(source.ms)), h("td", { class: source.exit_code ? "bad" : "" }, source.exit_code || 0)));
  return card(`${page.sources.length} reports, one verdict`,
    h("div", { class: "wide" }, h("table", {}, h("tr", {}, head.map((word) => h("th", {}, word))), rows)));
}

const gradeColour = (letter) => (/^A/.test(letter) ? "good" : /^[BC]/.test(letter) ? "fair" : letter ? "poor" : "none");

function sectionTable(sections) {
  const head = ["section", "", "score", "grade", "passed", "failed", "not observed"];
  return h("div", { class: "wide" }, h("table", { class: "sections" }, h("tr", {}, head.map((word) => h("th", {}, word))), sections.map((one) => {
    const { passed = 0, failed = 0, not_observed = 0 } = one;  // what is none is not written
    const bar = h("span", { class: "bar" }, h("i", { class: !failed ? "good" : one.score >= 70 ? "fair" : "poor" }));
    const seen = passed + failed;
    bar.firstChild.style.width = (seen ? Math.max(0, Math.min(100, one.score)) : 0) + "%";
    const score = seen ? (one.score >= 100 ? "100" : (Math.floor(one.score * 10) / 10).toFixed(1)) : "";
    return h("tr", {}, h("td", { class: "peer" }, one.section.slice(0, 100)), h("td", {}, bar), [score, one.grade, passed, failed, not_observed].map((value) => h("td", { class: value ? "number" : "number soft" }, value)));
  })));
}

function unjudgedLists(groups) {
  const words = { not_observed: "not observed, by what is needed to observe them", inconclusive: "inconclusive, by cause", not_applicable: "not applicable, by reason" };
  return Object.keys(words).map((kind) => {
    const mine = groups.filter((group) => group.kind === kind);
    if (!mine.length) return null;
    const total = mine.reduce((sum, group) => sum + group.ids.length, 0);
    return h("details", {}, h("summary", {}, `${count(total)} ${words[kind]}`), h("ul", {}, mine.map((group) => h("li", {}, h("span", { class: "peer" }, group.why), h("span", { class: "soft" }, ` (${group.ids.length}) `), h("code", {}, group.ids.join(", "))))));
  });
}

// A judged server: its grade, what it rests on, and what kept the rest from being judged.
function gradeCard(column, _number, all) {
  const [who, ...about] = column.about;
  return h("section", { class: "card graded" },
    h("div", { class: "medal " + gradeColour(column.grade), title: "grade" }, column.grade || "–"),
    h("div", { class: "about" }, h("h2", { class: "peer" }, cut(who, 200)), about.map((line) => h("p", { class: /^capped\b/.test(line) ? "capped peer" : "soft peer" }, cut(line, 400))),
      column.sections && column.sections.length ? h("details", { open: all.length < 3 }, h("summary", {}, "Score by section"), sectionTable(column.sections)) : null,
      unjudgedLists(column.unjudged || [])));
}

function listed(title, lines) {
  return lines.length ? card(title, h("ul", {}, lines.slice(0, 100).map((line) => h("li", { class: "peer" }, line.length > 1000 ? longText(line) : line)), lines.length > 100 && h("li", { class: "soft" }, `and ${lines.length - 100} more`))) : null;
}

function changesCard() {
  const changes = page.sources.flatMap((source) => source.changes || []);
  if (!changes.length) return null;
  const named = new Map([...entries].reverse().flatMap((entry) => [[entry.row, entry], [entry.name, entry]]));
  return card("Changed since the baseline", h("ul", {}, changes.slice(0, 100).map((change) => {
    const outcome = change.outcome || "fail";
    const entry = change.name && named.get(change.name);
    return h("li", {}, h("span", { class: "sign " + outcome }, OUTCOMES[outcome][0]), " ", entry ? h("button", { type: "button", class: "link peer", onclick: () => openEntry(entry.number) }, cut(change.text, 1000)) : h("span", { class: "peer" }, cut(change.text, 1000)));
  }), changes.length > 100 && h("li", { class: "soft" }, `and ${changes.length - 100} more`)));
}

// Where there are several servers, the one that it is about.
const severalServers = new Set([...heads.values()].map((column) => column.server)).size > 1;
function onServer(entry) {
  const { server } = heads.get(entry.column) || {};
  return severalServers && server && !entry.name.includes(server) ? `${server.slice(0, 60)}: ` : "";
}

function findingsCard(outcome) {
  const failed = entries.filter((entry) => entry.outcome === outcome);
  if (!failed.length) return null;
  const advice = failed.every((entry) => /^(SHOULD|MAY)$/.test(entry.severity || ""));
  const title = outcome === "fail" ? "Failures" : advice ? "SHOULD and MAY findings" : "Warnings";
  // Trials of one test are one line, and so is a rule that is broken in several revisions.
  const tests = new Map();
  for (const entry of failed) {
    const key = `${entry.source} ${rowKey(entry)} ${entry.brief || ""}`;
    if (!tests.has(key)) tests.set(key, []);
    tests.get(key).push(entry);
  }
  const line = (same) => entryLink(same[0], onServer(same[0]) + (same[0].brief || ""), same.length > 1 ? `${same.length}×` : "");
  return card(`${title} (${count(failed.length)})`, h("ul", { class: "failures " + outcome }, [...tests.values()].slice(0, 15).map(line),
    tests.size > 15 && h("li", {}, h("button", { type: "button", class: "link", onclick: () => showOnly(outcome) }, `Show all ${count(failed.length)}`))));
}

function wireCard() {
  if (!sessions.length) return card("Wire", h("p", { class: "soft" }, "No session is embedded in this page."));
  const pins = sessions.reduce((sum, session) => sum + session.pins.length, 0);
  return card("Wire", h("p", {}, `${several(sessions.length, "session")} embedded: ${page.embedded || "every recorded session"}. ${pins ? several(pins, "finding") + " marked on the messages." : ""} `, h("button", { type: "button", class: "link", onclick: () => { showView("wire"); remember("wire"); } }, "Open the wire view")),
    h("ul", { class: "sessions" }, sessions.slice(0, 8).map((session, number) => h("li", {}, h("button", { type: "button", class: "link peer", onclick: () => openWire(number, session.pins.length ? session.pins[0].row : 0) }, cut(session.label, 80)), h("span", { class: "soft peer" }, ` ${several(session.kinds.length, "record")}${session.pins.length ? ", " + several(session.pins.length, "finding") : ""} · ${cut(session.file.split("/").pop(), 120)}`)))),
    sessions.length > 8 && h("p", { class: "soft" }, `and ${sessions.length - 8} more`));
}

function hero() {
  const total = page.ms || page.sources.reduce((sum, source) => sum + (source.ms || 0), 0);
  const started = page.sources.map((source) => source.started).filter(Boolean).sort()[0];
  const only = page.summary ? page : page.sources.length === 1 ? page.sources[0] : {};
  const calls = page.sources.map((source) => source.invocation).filter(Boolean);
  const same = (name) => { const values = [...new Set(calls.map((call) => call[name]).filter(Boolean))]; return values.length === 1 ? values[0] : ""; };
  const commit = same("commit");
  const tiles = ORDER.filter((one) => tally[one]).map((outcome) => h("button", { type: "button", class: "tile " + outcome, onclick: () => showOnly(outcome) },
    h("b", {}, count(tally[outcome])), h("span", {}, OUTCOMES[outcome][1] + (outcome === "warn" && tally.warn > 1 ? "s" : ""))));
  return h("section", { class: "hero " + (page.exit_code ? "fail" : "pass") },
    h("p", { class: "headline" }, page.verdict),
    only.summary && !/^\d+ passed, \d+ failed, \d+ skipped$/.test(only.summary) && h("p", { class: "peer" }, cut(only.summary, 1000)),
    same("command") && h("pre", { class: "commandline peer" }, unbrokenWords(cut(same("command"), 4000))),
    h("p", { class: "soft peer" }, [started && dateInWords(started), total && clock(total), commit && `commit ${commit}`, same("platform"), page.made_by, `exit code ${page.exit_code}`].filter(Boolean).join(" · ")),
    outcomeBar(), h("div", { class: "tiles" }, tiles));
}

function prepareOverview() {
  const graded = page.sources.flatMap((source) => source.columns || []).filter((column) => column.graded);
  const column = h("div", { class: "column" }, hero(), changesCard(), findingsCard("fail"),
    h("div", { class: graded.length > 2 ? "grades many" : "grades" }, graded.slice(0, 60).map(gradeCard)), findingsCard("warn"), trialsCard(), latencyCard(), sourceCard(), wireCard(), slowest(),
    listed("Notes", [...page.notes, ...page.sources.flatMap((source) => source.notes || [])]));
  byId("overview").append(column);
}
