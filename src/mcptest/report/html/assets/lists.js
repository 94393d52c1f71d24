// A list of any length: only the rows in sight are elements.
class LongList {
  constructor(box, rowHeight, draw, chosen) {
    Object.assign(this, { box, rowHeight, draw, chosen, length: 0, at: -1, asked: false });
    this.sheet = h("div", { class: "sheet" });
    box.append(this.sheet);
    box.addEventListener("scroll", () => this.later());
    box.addEventListener("keydown", (event) => this.key(event));
    this.sheet.addEventListener("click", (event) => {
      const row = event.target.closest("[data-at]");
      if (row) this.choose(Number(row.dataset.at));
    });
    new ResizeObserver(() => this.later()).observe(box);
  }

  // What stands above the rows and stays there takes its part of the window.
  get head() { return this.sheet.offsetTop; }

  get window() { return Math.max(1, this.box.clientHeight - this.head); }

  // A browser lays out so many pixels and no more; beyond that the scroll bar is scaled.
  get height() { return Math.min(this.length * this.rowHeight, 8e6); }

  get first() {
    const room = this.height - this.window;
    if (room <= 0) return 0;
    const rows = this.length - this.window / this.rowHeight;
    return (this.box.scrollTop / room) * rows;
  }

  show(length, at) {
    this.length = length;
    this.at = at === undefined ? -1 : at;
    this.sheet.style.height = this.height + "px";
    if (this.at >= 0) this.reveal(this.at);
    else this.box.scrollTop = 0;
    this.paint();
  }

  later() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.paint(); });
  }

  paint() {
    const first = this.first;
    const from = Math.max(0, Math.floor(first) - 6);
    const to = Math.min(this.length, Math.ceil(first + this.window / this.rowHeight) + 6);
    const rows = [];
    for (let i = from; i < to; i++) {
      const row = this.draw(i);
      row.dataset.at = i;
      row.id = `${this.box.id}-${i}`;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", i === this.at);
      row.setAttribute("aria-posinset", i + 1);
      row.setAttribute("aria-setsize", this.length);
      row.classList.toggle("chosen", i === this.at);
      row.style.top = this.box.scrollTop + (i - first) * this.rowHeight + "px";
      rows.push(row);
    }
    this.sheet.replaceChildren(...rows);
    if (this.at >= 0) this.box.setAttribute("aria-activedescendant", `${this.box.id}-${this.at}`);
  }

  reveal(at) {
    const seen = this.window / this.rowHeight;
    if (at >= this.first + 1 && at < this.first + seen - 2) return;
    const rows = this.length - seen;
    const wanted = Math.max(0, Math.min(rows, at - seen / 3));
    this.box.scrollTop = rows > 0 ? (wanted / rows) * (this.height - this.window) : 0;
  }

  choose(at, quietly) {
    if (!this.length) return;
    this.at = Math.max(0, Math.min(this.length - 1, at));
    this.reveal(this.at);
    this.paint();
    if (!quietly) this.chosen(this.at);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const leap = Math.max(1, Math.floor(this.window / this.rowHeight) - 1);
    const moves = {
      ArrowDown: this.at + 1, j: this.at + 1, ArrowUp: this.at - 1, k: this.at - 1,
      PageDown: this.at + leap, PageUp: this.at - leap, Home: 0, End: this.length - 1,
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    event.stopPropagation();
    this.choose(moves[event.key]);
  }
}

function badge(outcome) {
  return h("span", { class: "badge " + outcome }, h("b", { "aria-hidden": "true" }, OUTCOMES[outcome][0]), OUTCOMES[outcome][1]);
}

function filterBox(label, changed) {
  const input = h("input", { type: "search", placeholder: label, "aria-label": label, spellcheck: "false", autocomplete: "off" });
  input.addEventListener("input", () => changed(input.value.trim().toLowerCase()));
  return input;
}

function choice(label, options, changed) {
  const select = h("select", { "aria-label": label }, options.map(([value, text]) => h("option", { value }, plain(text).slice(0, 90))));
  select.addEventListener("change", () => changed(select.value));
  return select;
}
