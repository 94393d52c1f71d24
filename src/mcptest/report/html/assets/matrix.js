// The matrix: what was judged several times, on several servers or in several revisions.
const MOST_COLUMNS = 60;
const rowKey = (entry) => `${entry.group || ""}\n${entry.row || entry.id || entry.name}`;
// Tests and rules of one server share a column; the one that is graded knows more.
const heads = new Map(page.sources.flatMap((source) => source.columns || []).sort((a, b) => Boolean(a.graded) - Boolean(b.graded)).map((column) => [column.name, column]));
const matrix = { rows: [], all: [], text: "", only: "", at: -1, column: 0 };
let matrixList;

function worst(cells) { return Math.min(...cells.filter(Boolean).map((entry) => entry.rank)); }

function judgedSeveralTimes() {
  const found = new Map();
  for (const entry of entries) {
    if (!entry.column) continue;
    const key = rowKey(entry);
    if (!found.has(key)) found.set(key, new Map());
    const row = found.get(key);
    const known = row.get(entry.column);
    if (!known || entry.rank < known.rank) row.set(entry.column, entry);
  }
  return [...found.values()].filter((row) => row.size > 1);
}

const repeatedRows = judgedSeveralTimes();
// Servers stay together, the most broken first; their revisions beside each other.
const columns = (() => {
  const inUse = new Set(repeatedRows.flatMap((row) => [...row.keys()]));
  const known = [...heads.keys()].filter((name) => inUse.has(name));
  const all = [...known, ...[...inUse].filter((name) => !heads.has(name))];
  const server = (name) => (heads.get(name) || { server: name }).server;
  const broken = new Map();
  for (const row of repeatedRows) for (const [name, entry] of row) if (entry.outcome === "fail") broken.set(server(name), (broken.get(server(name)) || 0) + 1);
  const order = [...new Set(all.map(server))].sort((a, b) => (broken.get(b) || 0) - (broken.get(a) || 0));
  return all.sort((a, b) => order.indexOf(server(a)) - order.indexOf(server(b))).slice(0, MOST_COLUMNS);
})();

function matrixRows() {
  const rows = repeatedRows.map((row) => columns.map((name) => row.get(name)));
  return rows.filter((cells) => cells.some(Boolean)).map((cells) => {
    const first = cells.find(Boolean);
    const outcomes = new Set(cells.filter(Boolean).map((entry) => entry.outcome).filter((one) => one !== "not_applicable"));
    return { cells, id: first.row || first.id || first.name, name: first.row || first.id ? first.name : "", group: first.group || "", worst: worst(cells), differs: outcomes.size > 1, hay: `${first.id || ""} ${first.row || ""} ${first.name} ${first.group || ""}`.toLowerCase() };
  }).sort((a, b) => a.worst - b.worst);
}

function drawnMatrixRow(at) {
  const row = matrix.rows[at];
  const shared = row.name && row.name !== row.id && !row.name.startsWith(row.id + " [");
  const node = h("div", { class: "row matrixrow" },
    h("span", { class: "rule peer", title: row.name || row.id }, shared || row.cells.find(Boolean).id ? h("code", {}, row.id.slice(0, 120)) : row.id.slice(0, 200), shared ? " " + row.name.slice(0, 160) : null));
  row.cells.forEach((entry, column) => {
    const cell = h("span", { class: "cell" });
    if (entry) {
      const [sign, word] = OUTCOMES[entry.outcome];
      cell.append(h("button", { type: "button", tabindex: "-1", class: `mark ${entry.outcome}${at === matrix.at && column === matrix.column ? " here" : ""}`, title: word, "aria-label": `${row.id} in ${columns[column]}: ${word}`, onclick: (event) => {
        event.stopPropagation();
        openCell(at, column);
      } }, sign));
    }
    node.append(cell);
  });
  node.style.gridTemplateColumns = matrixTracks();
  return node;
}

// No wider than a name: cells stand beside it however wide the window is.
const matrixTracks = () => `minmax(var(--rule), 34rem) repeat(${columns.length}, var(--cell))`;

function openCell(at, column) {
  matrix.column = Math.max(0, Math.min(columns.length - 1, column));
  matrix.at = at;
  byId("matrix").classList.add("detailed");
  matrixList.choose(at, true);
  const here = byId("matrix-list").querySelector(".mark.here");
  if (here) here.scrollIntoView({ block: "nearest", inline: "nearest" });
  const entry = matrix.rows[at].cells[matrix.column];
  const box = byId("matrix-detail");
  if (entry) showEntry(box, entry);
  else box.replaceChildren(h("p", { class: "soft empty" }, `${matrix.rows[at].id} is not a rule of ${columns[matrix.column]}.`));
  remember(`matrix/${at}/${matrix.column}`);
}

function filterMatrix() {
  matrix.rows = matrix.all.filter((row) =>
    (!matrix.only || (matrix.only === "broken" ? row.worst < 2 : row.differs)) &&
    matrix.text.split(/\s+/).every((word) => row.hay.includes(word)));
  matrix.at = -1;
  byId("matrix-count").textContent = `${count(matrix.rows.length)} of ${count(matrix.all.length)}`;
  matrixList.show(matrix.rows.length);
  byId("matrix-empty").hidden = matrix.rows.length > 0;
}

function clearMatrixFilters() {
  Object.assign(matrix, { text: "", only: "" });
  for (const field of byId("matrix-filters").querySelectorAll("input")) field.value = "";
  for (const chip of byId("matrix-filters").querySelectorAll(".chip")) chip.setAttribute("aria-pressed", false);
}

function matrixHead() {
  const servers = h("div", { class: "matrixhead servers" }, h("span"));
  const revisions = h("div", { class: "matrixhead revisions" }, h("span", { class: "rule soft" }, "rule"));
  let at = 0;
  while (at < columns.length) {
    const server = (heads.get(columns[at]) || {}).server || columns[at];
    let end = at + 1;
    while (end < columns.length && (heads.get(columns[end]) || {}).server === server) end++;
    const name = h("b", { class: "peer", title: server }, server.slice(0, 120));
    name.style.gridColumn = `span ${end - at}`;
    servers.append(name);
    at = end;
  }
  for (const column of columns) {
    const head = heads.get(column) || {};
    const [day, ...more] = (head.revision || "").split(" ");
    revisions.append(h("span", { class: "peer", title: column }, h("span", { class: "revision" }, day || "·"), more.length ? h("span", { class: "soft" }, more.join(" ")) : null, head.graded ? h("b", { class: "grade " + gradeColour(head.grade) }, head.grade || "–") : null));
  }
  for (const line of [servers, revisions]) line.style.gridTemplateColumns = matrixTracks();
  return h("div", { class: "matrixtop" }, servers, revisions);
}

function onlyChip(name, label) {
  const chip = h("button", { type: "button", class: "chip", "aria-pressed": "false", onclick: () => {
    const on = matrix.only === name;
    for (const other of byId("matrix-filters").querySelectorAll(".chip")) other.setAttribute("aria-pressed", false);
    matrix.only = on ? "" : name;
    chip.setAttribute("aria-pressed", !on);
    filterMatrix();
  } }, label);
  return chip;
}

function prepareMatrix() {
  if (columns.length < 2) return;
  const box = byId("matrix-list");
  box.append(matrixHead());
  box.style.setProperty("--columns", columns.length);
  // Few columns have room for the names of their servers.
  const longest = Math.max(...columns.map((name) => ((heads.get(name) || {}).server || name).length));
  if (columns.length <= 6) box.style.setProperty("--named", `${Math.min(20, 56 / columns.length, Math.max(5.3, longest * 0.6 + 1.2))}rem`);
  box.append(h("p", { id: "matrix-empty", class: "soft", hidden: true }, "No rules match. Press Esc to clear the filters."));
  matrixList = new LongList(box, 34, drawnMatrixRow, (at) => openCell(at, matrix.column));
  box.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, l: 1, ArrowLeft: -1, h: -1 }[event.key];
    if (!step || matrix.at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    openCell(matrix.at, matrix.column + step);
  });
  matrix.all = matrixRows();
  const bar = byId("matrix-filters");
  const used = new Set(matrix.all.flatMap((row) => row.cells.filter(Boolean).map((entry) => entry.outcome)));
  bar.append(h("button", { type: "button", class: "back", onclick: () => { byId("matrix").classList.remove("detailed"); matrixList.later(); } }, "← Matrix"),
    filterBox("Search rules ( / )", (text) => { matrix.text = text; filterMatrix(); }),
    onlyChip("broken", "failed somewhere"), onlyChip("differs", "differs between columns"),
    h("span", { id: "matrix-count", class: "soft", role: "status" }),
    h("span", { class: "legend soft" }, ORDER.filter((one) => used.has(one)).map((one) => h("span", {}, h("i", { class: "mark " + one }, OUTCOMES[one][0]), " " + OUTCOMES[one][1]))));
  filterMatrix();
}
