// The list of results with its filters.
const wanted = { text: "", outcomes: new Set(), source: "", group: "", sort: "outcome" };
let chosenEntries = null;
let resultList;
const chips = {};

function rowOfEntry(at) {
  const entry = chosenEntries[at];
  return h("div", { class: "row entry " + entry.outcome },
    h("span", { class: "sign", "aria-label": OUTCOMES[entry.outcome][1] }, OUTCOMES[entry.outcome][0]),
    h("span", { class: "names peer" },
      h("span", { class: "name" }, entry.id && entry.id !== entry.name && h("code", {}, entry.id), " ", entry.name.slice(0, 300)),
      h("span", { class: "why" }, cut(entry.brief || entry.group || "", 300))),
    h("span", { class: "side" }, clock(entry.ms) || entry.severity || ""));
}

function fits(entry) {
  if (wanted.outcomes.size && !wanted.outcomes.has(entry.outcome)) return false;
  if (wanted.source !== "" && entry.source !== Number(wanted.source)) return false;
  if (wanted.group !== "" && (entry.group || "") !== wanted.group.slice(1)) return false;
  if (!wanted.text) return true;
  entry.hay = entry.hay || [entry.name, entry.id, entry.group, entry.brief, entry.column, entry.severity, OUTCOMES[entry.outcome][1]].join("\n").toLowerCase();
  return wanted.words.every((word) => entry.hay.includes(word));
}

const SORTS = {
  outcome: (a, b) => a.rank - b.rank || a.number - b.number,
  order: (a, b) => a.number - b.number,
  name: (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.number - b.number),
  slowest: (a, b) => (b.ms || 0) - (a.ms || 0) || a.number - b.number,
};

const sorted = {};

function filterResults(keep) {
  sorted[wanted.sort] = sorted[wanted.sort] || [...entries].sort(SORTS[wanted.sort]);
  wanted.words = wanted.text ? wanted.text.split(/\s+/) : [];
  chosenEntries = sorted[wanted.sort].filter(fits);
  for (const [outcome, chip] of Object.entries(chips)) chip.setAttribute("aria-pressed", wanted.outcomes.has(outcome));
  byId("result-count").textContent = `${count(chosenEntries.length)} of ${count(entries.length)}`;
  const at = keep === undefined ? -1 : chosenEntries.findIndex((entry) => entry.number === keep);
  resultList.show(chosenEntries.length, at);
  if (!chosenEntries.length) byId("result-detail").replaceChildren(h("p", { class: "soft empty" }, "No results match. Press Esc to clear the filters."));
  else if (at < 0 && !narrow()) resultList.choose(0, true), showEntry(byId("result-detail"), chosenEntries[0]);
}

const narrow = () => matchMedia("(max-width: 760px)").matches;

function openEntry(number) {
  showView("results");
  if (!chosenEntries || !chosenEntries.some((entry) => entry.number === number)) clearResultFilters();
  filterResults(number);
  showEntry(byId("result-detail"), entries[number]);
  byId("results").classList.add("detailed");
  remember(`results/${number}`);
}

function clearResultFilters() {
  Object.assign(wanted, { text: "", source: "", group: "" });
  wanted.outcomes.clear();
  for (const field of byId("result-filters").querySelectorAll("input,select")) {
    if (field.getAttribute("aria-label") !== "Order") field.value = "";
  }
}

function showOnly(outcome) {
  clearResultFilters();
  if (outcome) wanted.outcomes.add(outcome);
  showView("results");
  filterResults();
}

function prepareResults() {
  const bar = byId("result-filters");
  resultList = new LongList(byId("result-list"), 48, rowOfEntry, (at) => {
    showEntry(byId("result-detail"), chosenEntries[at]);
    byId("results").classList.add("detailed");
    remember(`results/${chosenEntries[at].number}`);
  });
  const again = () => filterResults();
  bar.append(h("button", { type: "button", class: "back", onclick: () => byId("results").classList.remove("detailed") }, "← List"));
  bar.append(filterBox("Search results ( / )", (text) => { wanted.text = text; again(); }));
  for (const outcome of ORDER.filter((one) => tally[one])) {
    chips[outcome] = h("button", { type: "button", class: "chip " + outcome, "aria-pressed": "false", onclick: () => {
      if (!wanted.outcomes.delete(outcome)) wanted.outcomes.add(outcome);
      again();
    } }, `${OUTCOMES[outcome][0]} ${OUTCOMES[outcome][1]} ${count(tally[outcome])}`);
    bar.append(chips[outcome]);
  }
  if (page.sources.length > 1) {
    bar.append(choice("File", [["", "all files"], ...page.sources.map((source, i) => [i, source.file])], (value) => { wanted.source = value; again(); }));
  }
  const groups = [...new Set(entries.map((entry) => entry.group || ""))].sort();
  if (groups.length > 1 && groups.length < 2000) {
    bar.append(choice("Group", [["", "all groups"], ...groups.map((group) => ["=" + group, group || "(none)"])], (value) => { wanted.group = value; again(); }));
  }
  bar.append(choice("Order", [["outcome", "failures first"], ["order", "as run"], ["name", "by name"], ["slowest", "slowest first"]], (value) => { wanted.sort = value; again(); }));
  bar.append(h("span", { id: "result-count", class: "soft", role: "status" }));
}
