// The embedded data. Blocks of facts and records are read when they are looked at.
const readBlock = (name) => JSON.parse(document.getElementById(name).textContent);
const page = readBlock("page");
const sessions = readBlock("sessions");
const starts = readBlock("starts");
const readAlready = new Map();

function stored(kind, number) {
  const begins = starts[kind];
  let low = 0;
  let high = begins.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (begins[middle] <= number) low = middle;
    else high = middle - 1;
  }
  const name = `${kind}-${low}`;
  if (!readAlready.has(name)) {
    if (readAlready.size > 24) readAlready.delete(readAlready.keys().next().value);
    readAlready.set(name, readBlock(name));
  }
  return readAlready.get(name)[number - begins[low]];
}

const OUTCOMES = {
  fail: ["✗", "failed"], warn: ["!", "warning"], inconclusive: ["?", "inconclusive"],
  pass: ["✓", "passed"], skip: ["○", "skipped"], not_observed: ["·", "not observed"],
  not_applicable: ["–", "not applicable"],
};
const ORDER = Object.keys(OUTCOMES);
const entries = page.entries;
entries.forEach((entry, number) => { entry.number = number; entry.rank = ORDER.indexOf(entry.outcome); });
const tally = {};
for (const entry of entries) tally[entry.outcome] = (tally[entry.outcome] || 0) + 1;

for (const session of sessions) {
  session.mate = new Map(session.mates);
  session.pinned = new Map();
  for (const pin of session.pins) {
    if (!session.pinned.has(pin.row)) session.pinned.set(pin.row, []);
    session.pinned.get(pin.row).push(pin);
  }
}

const byId = (name) => document.getElementById(name);
