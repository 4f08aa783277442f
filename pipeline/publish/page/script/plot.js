// Line charts: SVG stretched to its box, and every text beside it as HTML.

// Runs of numbers of a column, without its gaps: [[place, value], ...] each.
function runs(values) {
  const found = [];
  values.forEach((value, n) => {
    if (value === null || value === undefined) return;
    if (!n || values[n - 1] === null || values[n - 1] === undefined) found.push([]);
    found[found.length - 1].push([n, value]);
  });
  return found;
}

// Where values and batches are in a box of 100 by 100.
function scales(count, low, high) {
  return {
    x: (n) => (count > 1 ? (n / (count - 1)) * 100 : 50),
    y: (value) => 100 - ((value - low) / (high - low || 1)) * 100,
  };
}

const pathOf = (points) => points.map(([x, y], n) => `${n ? "L" : "M"}${x.toFixed(2)},${y.toFixed(2)}`).join("");

function canvas(low, high, y, ticks, text) {
  const svg = drawing("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none" });
  const box = element("div", { class: "plot", "aria-hidden": "true" }, svg);
  for (const tick of ticks) {
    svg.append(drawing("line", { class: "grid-line", x1: 0, x2: 100, y1: y(tick), y2: y(tick) }));
    box.append(element("span", { class: "y", place: { top: pct(y(tick)) } }, text(tick)));
  }
  return { svg, box };
}

const put = (box, options, left, top, ...children) =>
  box.append(element("span", { ...options, place: { left: pct(left), ...(top === null ? {} : { top: pct(top) }) } }, ...children));

// The range of an axis that holds all values, with round ends where they are near.
function rangeOf(values, about = {}) {
  const known = values.filter((value) => value !== null && value !== undefined);
  let [low, high] = [Math.min(...known), Math.max(...known)];
  if (!known.length) return [0, 1];
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  low -= room;
  high += room;
  const ticks = ticksIn(low, high);
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : high - low;
  low = Math.floor(low / step + 1e-9) * step;
  high = Math.ceil(high / step - 1e-9) * step;
  if (about.low !== null && about.low !== undefined) low = Math.max(low, about.low);
  if (about.high !== null && about.high !== undefined) high = Math.min(high, about.high);
  return low < high ? [low, high] : [low - 0.5, low + 0.5];
}

// Names of batches under an axis: each seventh, and the chosen one.
function batchLabels(box, batches, x) {
  const step = batches.length > 12 ? 7 : Math.max(1, Math.ceil(batches.length / 5));
  batches.forEach((batch, n) => {
    const selected = batch === chosen.batch;
    if (!selected && n % step && n !== batches.length - 1) return;
    put(box, { class: selected ? "x sel" : "x" }, x(n), null, name(shortDay(doc.batches[batch])));
  });
}

// Lines through values of batches; breaks where there are none.
function linesOf(svg, values, { x, y }, look) {
  for (const run of runs(values)) {
    const points = run.map(([n, value]) => [x(n), y(value)]);
    if (points.length === 1) points.push([points[0][0] + 0.01, points[0][1]]);
    svg.append(drawing("path", { class: look, d: pathOf(points) }));
  }
}

function bandOf(svg, lower, upper, { x, y }) {
  const both = lower.map((value, n) => (value === null || upper[n] === null ? null : value));
  for (const run of runs(both)) {
    const there = run.map(([n]) => [x(n), y(upper[n])]);
    const back = run.map(([n, value]) => [x(n), y(value)]).reverse();
    svg.append(drawing("path", { class: "rg", d: `${pathOf([...there, ...back])}Z` }));
  }
}

// Batches without scores: a dashed line, named once for each run of them.
function gapsOf(box, svg, batches, { x }) {
  batches.forEach((batch, n) => {
    if (doc.scored[batch]) return;
    svg.append(drawing("line", { class: "break", x1: x(n), x2: x(n), y1: 0, y2: 100 }));
    if (!n || doc.scored[batches[n - 1]]) put(box, { class: "gap label" }, x(n), null, (doc.states[batch] ?? "no_data").replaceAll("_", " "));
  });
}

function releasesOf(box, svg, batches, { x }) {
  for (const [batch, text] of doc.releases) {
    const n = batches.indexOf(batch);
    if (n < 0) continue;
    svg.append(drawing("line", { class: "grid-line", x1: x(n), x2: x(n), y1: 0, y2: 100 }));
    put(box, { class: "flag label" }, x(n), null, "⚑ ", name(text));
  }
}

// After drawing: names at line ends stand apart, and of texts that touch only the first stays.
function settle(root = document) {
  for (const box of root.querySelectorAll(".plot")) {
    if (!box.clientHeight) continue;
    const ends = [...box.querySelectorAll(".end")].map((each) => ({ each, at: Number(each.dataset.at) * box.clientHeight / 100 }));
    ends.sort((a, b) => a.at - b.at);
    ends.forEach((end, n) => { if (n) end.at = Math.max(end.at, ends[n - 1].at + 17); });
    for (let n = ends.length - 1, most = box.clientHeight + 8; n >= 0; n -= 1) {
      ends[n].at = Math.min(ends[n].at, most);
      most = ends[n].at - 17;
    }
    for (const { each, at: top } of ends) each.style.top = `${top}px`;
    const kept = [];
    const order = (each) => ["big", "sel", "title", "y", "end", "limit", "x"].findIndex((look) => each.classList.contains(look)) >>> 0;
    for (const each of [...box.querySelectorAll("span:not(.dot)")].sort((a, b) => order(a) - order(b))) {
      each.hidden = false;
      const size = each.getBoundingClientRect();
      each.hidden = kept.some((other) => size.left < other.right + 3 && other.left < size.right + 3
        && size.top < other.bottom - 1 && other.top < size.bottom - 1);
      if (!each.hidden) kept.push(size);
    }
  }
  for (const row of root.querySelectorAll(".band, .scale")) thinOut(row);
}

const overlap = (one, other) => one.left < other.right + 3 && other.left < one.right + 3;

// Of the texts in a row, every second or seventh stays where they would touch; the chosen one always does.
function thinOut(row) {
  const texts = [...row.querySelectorAll(".n, :scope > span:not(.slot)")];
  const { left, right } = row.getBoundingClientRect();
  for (const each of texts) {
    each.hidden = false;
    if (!each.classList.contains("n")) continue;
    // A text at an edge moves in.
    each.style.transform = "";
    const size = each.getBoundingClientRect();
    const shift = Math.max(left - size.left, 0) + Math.min(right - size.right, 0);
    if (shift) each.style.transform = `translateX(${shift.toFixed(1)}px)`;
  }
  const sizes = texts.map((each) => each.getBoundingClientRect());
  const own = texts.findIndex((each) => each.closest("[aria-current]"));
  const kept = (step) => texts.map((_, n) => n).filter((n) => n === own || (n % step === 0 && (own < 0 || !overlap(sizes[n], sizes[own]))));
  const step = [1, 2, 7, 14, 28].find((each) => {
    const shown = texts.map((_, n) => n).filter((n) => n % each === 0);
    return shown.every((n, k) => !k || !overlap(sizes[shown[k - 1]], sizes[n]));
  }) ?? texts.length;
  const shown = new Set(kept(step));
  texts.forEach((each, n) => { each.hidden = !shown.has(n); });
}
