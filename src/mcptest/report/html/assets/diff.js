// The difference of what was expected and what came.
function changedLines(before, after) {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < before.length - head && tail < after.length - head &&
    before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++;
  const a = before.slice(head, before.length - tail);
  const b = after.slice(head, after.length - tail);
  const out = before.slice(0, head).map((text) => [" ", text]);
  if (a.length * b.length > 2e6 || !a.length || !b.length) {
    out.push(...a.map((text) => ["-", text]), ...b.map((text) => ["+", text]));
  } else out.push(...commonLines(a, b));
  return out.concat(before.slice(before.length - tail).map((text) => [" ", text]));
}

function commonLines(a, b) {
  const width = b.length + 1;
  const longest = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i * width + j] = a[i] === b[j]
        ? longest[(i + 1) * width + j + 1] + 1
        : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  const out = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) out.push([" ", a[i++]], j++ && null);
    else if (i < a.length && (j === b.length || longest[(i + 1) * width + j] >= longest[i * width + j + 1])) out.push(["-", a[i++]]);
    else out.push(["+", b[j++]]);
  }
  return out.filter(Boolean);
}

function withMark(node, text, other) {
  let head = 0;
  while (head < text.length && text[head] === other[head]) head++;
  let tail = 0;
  while (tail < text.length - head && tail < other.length - head &&
    text[text.length - 1 - tail] === other[other.length - 1 - tail]) tail++;
  addText(node, text.slice(0, head), true);
  if (text.length > head + tail) {
    node.append(addText(h("mark"), text.slice(head, text.length - tail), true));
  }
  addText(node, text.slice(text.length - tail), true);
}

// Two sentences are not compared letter by letter; values and texts that resemble each other are.
function isComparable(expected, actual) {
  if (looksLikeJson(expected) && looksLikeJson(actual)) return true;
  if (expected.includes("\n") && actual.includes("\n")) return true;
  const least = Math.min(expected.length, actual.length);
  if (Math.max(expected.length, actual.length) <= 24) return true;
  let head = 0;
  while (head < least && expected[head] === actual[head]) head++;
  let tail = 0;
  while (tail < least - head && expected[expected.length - 1 - tail] === actual[actual.length - 1 - tail]) tail++;
  return head + tail >= least / 2;
}

const SIDES = { "-": "gone", "+": "come", " ": "same" };

function difference(expected, actual) {
  if (!isComparable(expected, actual)) return expectedAndActual({ expected, actual });
  const both = looksLikeJson(expected) && looksLikeJson(actual);
  const shape = (text) => (both ? indented(text) : text.slice(0, 400000)).split("\n");
  const lines = changedLines(shape(expected), shape(actual));
  const box = h("div", { class: "diff peer", role: "group", "aria-label": "difference" });
  box.append(h("div", { class: "diffhead" },
    h("span", { class: "gone" }, "− expected"), h("span", { class: "come" }, "+ actual")));
  const most = 2000;
  lines.slice(0, most).forEach(([side, text], i) => {
    const row = h("div", { class: "line " + SIDES[side] }, h("i", { "aria-hidden": "true" }, side === "-" ? "−" : side));
    const next = lines[i + 1];
    const last = lines[i - 1];
    const shownText = text.slice(0, STEP);
    if (side === "-" && next && next[0] === "+") withMark(row, shownText, next[1]);
    else if (side === "+" && last && last[0] === "-") withMark(row, shownText, last[1]);
    else addText(row, shownText, true);
    if (text.length > STEP) row.append(h("em", {}, ` … ${count(text.length - STEP)} more characters`));
    box.append(row);
  });
  if (lines.length > most) box.append(h("div", { class: "line" }, `… ${count(lines.length - most)} more lines`));
  return box;
}
