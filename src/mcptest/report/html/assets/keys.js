// The keyboard and the looks.
const THEMES = ["auto", "light", "dark"];
function setTheme(name) {
  document.documentElement.dataset.theme = name;
  byId("theme").textContent = { auto: "◐", light: "☀", dark: "☾" }[name];
  byId("theme").setAttribute("aria-label", `Theme: ${name}`);
}

const KEYS = [
  ["1 – 4", "overview, results, matrix, wire"], ["/", "search"], ["j k ↓ ↑", "next, previous"],
  ["h l ← →", "previous, next column of the matrix"], ["Enter", "open the details"], ["w", "open the messages of a result"],
  ["n p", "next, previous finding on the wire"], ["Esc", "go back, clear the filters"],
  ["t", "theme: light, dark, system"], ["?", "show these keys"],
];

const currentView = () => views.find(([name]) => !byId(name).hidden)[0];
const PARTS = { results: "result", matrix: "matrix", wire: "wire" };
const part = (view, name) => byId(`${PARTS[view] || "result"}-${name}`);
const listOf = (view) => ({ results: resultList, matrix: matrixList, wire: wireList }[view]);

function clearFilters(view) {
  if (view === "results") { clearResultFilters(); filterResults(); }
  else if (view === "matrix") { clearMatrixFilters(); filterMatrix(); }
  else if (view === "wire") { clearWireFilters(); filterWire(wire.shown); }
}

function escapeKey() {
  const view = currentView();
  if (!PARTS[view]) return;
  const inside = document.activeElement && document.activeElement.closest(".detail");
  byId(view).classList.remove("detailed");
  if (!inside) clearFilters(view);
  part(view, "list").focus();
}

function search(view) {
  const where = PARTS[view] ? view : "results";
  if (where !== view) byId("tab-results").click();
  part(where, "filters").querySelector("input").focus();
}

function walk(view, step) {
  const list = listOf(view);
  if (list) return list.choose(list.at + step), true;
  const links = [...byId("overview").querySelectorAll("button, summary")];
  const at = links.indexOf(document.activeElement);
  const next = links[Math.max(0, Math.min(links.length - 1, at + step))];
  if (next) next.focus();
  return true;
}

const ACTIONS = {
  "/": search,
  "?": () => byId("keys").showModal(),
  t: () => byId("theme").click(),
  j: (view) => walk(view, 1),
  k: (view) => walk(view, -1),
  n: (view) => view === "wire" && nextFinding(1),
  p: (view) => view === "wire" && nextFinding(-1),
  w: (view) => { const link = PARTS[view] && part(view, "detail").querySelector(".to-wire"); if (link) link.click(); },
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "Escape") { event.preventDefault(); return escapeKey(); }
  const view = currentView();
  if (typing) {
    // From the search box straight into what it found.
    if (event.target.type === "search" && (event.key === "Enter" || event.key === "ArrowDown") && PARTS[view]) { event.preventDefault(); part(view, "list").focus(); }
    return;
  }
  if (/^[1-4]$/.test(event.key) && views[event.key - 1]) byId("tab-" + views[event.key - 1][0]).click();
  else if (event.key === "Enter" && event.target.getAttribute("role") === "listbox") enter(view);
  else if (Object.hasOwn(ACTIONS, event.key)) ACTIONS[event.key](view);
  else return;
  event.preventDefault();
}

function enter(view) {
  const list = listOf(view);
  if (list.at < 0) list.choose(0);
  else list.chosen(list.at);
  part(view, "detail").focus();
}
