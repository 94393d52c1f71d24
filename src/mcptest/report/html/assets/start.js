// Everything is put together here.
function prepareTabs() {
  for (const [name, label] of views) {
    byId("tabs").append(h("button", { type: "button", role: "tab", id: "tab-" + name, "aria-controls": name, onclick: () => {
      showView(name);
      remember(name);
      const list = listOf(name);
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
  byId("verdict").textContent = page.exit_code ? ("✗ " + count(tally.fail || 0)).replace(/ 0$/, "") : "✓";
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
  go(location.hash);
}

begin();
