// What took how long, and how often it went well.
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

function trialRow(test) {
  const ran = test.outcomes.filter((outcome) => outcome !== "skip");
  const passed = ran.filter((outcome) => outcome === "pass").length;
  const sorted = [...test.ms].sort((a, b) => a - b);
  const flaky = passed > 0 && passed < ran.length;
  return h("li", { class: "trialrow" }, h("span", { class: "peer" }, test.name.slice(0, 200)), trialBars(test),
    h("span", { class: passed < ran.length ? "bad" : "" }, `${passed} of ${ran.length}`, flaky ? h("b", { class: "tag" }, "flaky") : null),
    h("span", { class: "soft" }, `median ${clock(sorted[sorted.length >> 1])}, longest ${clock(sorted[sorted.length - 1])}`));
}

const SVG = "http://www.w3.org/2000/svg";
function drawn(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// pass@k rises and pass^k falls with k; what lies between them is flakiness.
function reliabilityCurve(measured) {
  const [width, height, left, bottom, top, right] = [420, 170, 48, 26, 10, 56];
  const last = measured.every_one.length;
  const x = (k) => left + ((k - 1) / Math.max(1, last - 1)) * (width - left - right);
  const y = (share) => top + (1 - share) * (height - top - bottom);
  const path = (shares) => shares.map((share, i) => `${i ? "L" : "M"}${x(i + 1).toFixed(1)} ${y(share).toFixed(1)}`).join(" ");
  const back = measured.every_one.map((share, i) => `L${x(last - i).toFixed(1)} ${y(measured.every_one[last - 1 - i]).toFixed(1)}`).join(" ");
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, class: "curve", role: "img", "aria-label": `pass@k and pass^k for k from 1 to ${last}` });
  for (const share of [0, 0.5, 1]) {
    svg.append(drawn("line", { x1: left, x2: width - right, y1: y(share), y2: y(share), class: "grid" }),
      drawn("text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, `${share * 100}%`));
  }
  svg.append(drawn("path", { d: `${path(measured.at_least_one)} ${back} Z`, class: "between" }),
    drawn("path", { d: path(measured.at_least_one), class: "can" }), drawn("path", { d: path(measured.every_one), class: "always" }));
  const ends = [["pass@k", measured.at_least_one[last - 1], "can"], ["pass^k", measured.every_one[last - 1], "always"]];
  const near = Math.abs(y(ends[0][1]) - y(ends[1][1])) < 13;
  ends.forEach(([name, share, kind], i) => svg.append(drawn("text", { x: width - right + 6, y: y(share) + 4 + (near ? (i ? 7 : -7) : 0), class: kind }, name)));
  const ticks = [...new Set([1, Math.ceil(last / 2), last])];
  for (const k of ticks) svg.append(drawn("text", { x: x(k), y: height - 8, "text-anchor": "middle" }, k === last && last > 1 ? `k = ${k}` : String(k)));
  return svg;
}

function reliabilityCard(measured) {
  const share = (part) => `${part} of ${measured.tests}`;
  return h("div", { class: "reliability" },
    h("div", { class: "figures" },
      h("p", {}, h("b", {}, share(measured.capable)), " pass@k: passed at least once"),
      h("p", {}, h("b", { class: measured.reliable < measured.tests ? "bad" : "" }, share(measured.reliable)), " pass^k: passed every time"),
      measured.flaky.length ? h("p", {}, h("b", { class: "bad" }, count(measured.capable - measured.reliable)), " flaky: ", h("span", { class: "peer" }, cut(measured.flaky.slice(0, 5).join(", "), 300) + (measured.flaky.length > 5 ? " …" : ""))) : h("p", { class: "soft" }, "No test is flaky.")),
    measured.every_one.length > 1 ? reliabilityCurve(measured) : null);
}

function trialsCard() {
  const tests = page.sources.flatMap((source) => source.trials || []);
  if (!tests.length) return null;
  const measured = page.sources.map((source) => source.reliability).filter(Boolean);
  return card("Reliability over trials", ...measured.slice(0, 8).map(reliabilityCard),
    h("ul", { class: "trialrows" }, tests.slice(0, 30).map(trialRow), tests.length > 30 && h("li", { class: "soft" }, `and ${tests.length - 30} more`)));
}

// The full bar is the median, the light one the 95th percentile.
function latencyRow(one, longest) {
  const wide = (ms) => Math.max(0.4, (100 * ms) / longest) + "%";
  const bar = h("span", { class: "bar latency", title: `p50 ${clock(one.p50)}, p95 ${clock(one.p95)}, longest ${clock(one.longest)}` }, h("i", { class: "most" }), h("i", { class: "half" }), h("i", { class: "last" }));
  bar.children[0].style.width = wide(one.p95);
  bar.children[1].style.width = wide(one.p50);
  bar.children[2].style.left = `min(${wide(one.longest)}, calc(100% - 2px))`;
  return h("li", {}, h("span", { class: "peer name" }, cut(one.name, 120)), bar,
    h("span", { class: "number" }, clock(one.p50)), h("span", { class: "number" }, clock(one.p95)),
    h("span", { class: "number soft" }, clock(one.longest)),
    h("span", { class: "number soft" }, `${count(one.count)}×`));
}

function latencyCard() {
  const all = page.latencies || [];
  if (!all.length) return null;
  const servers = [...new Set(all.map((one) => one.server))];
  const box = h("div");
  for (const server of servers.slice(0, 12)) {
    const rows = all.filter((one) => one.server === server);
    const longest = Math.max(0.001, ...rows.map((one) => one.longest));
    const list = h("ul", { class: "latencies" }, h("li", { class: "soft", "aria-hidden": "true" }, h("span", { class: "peer" }, servers.length > 1 ? cut(server, 80) : ""), h("span"), ["p50", "p95", "longest", "results"].map((word) => h("span", { class: "number" }, word))), rows.slice(0, 10).map((one) => latencyRow(one, longest)));
    if (rows.length > 10) {
      const more = h("li", {}, h("button", { type: "button", class: "link", onclick: () => more.replaceWith(...rows.slice(10).map((one) => latencyRow(one, longest))) }, `${count(rows.length - 10)} more`));
      list.append(more);
    }
    box.append(list);
  }
  return card("Latency", h("p", { class: "soft" }, "Successful results only. Start-up and errors are left out."), box);
}
