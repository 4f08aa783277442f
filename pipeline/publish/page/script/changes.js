// What changed: from the usual value to that of the day, each in its own units.

const CHANGES_SHOWN = 12;

function changesAt(slice, batch) {
  const moves = [];
  for (const [of, attribute, label, columns] of doc.series) {
    if (of !== slice) continue;
    const value = judgedValue(columns, batch);
    const { lower, upper, status } = at(columns, batch) ?? {};
    const usual = value === null ? null : usualBefore(columns, batch, (upper ?? 0) - (lower ?? 0));
    if (!usual) continue;
    const reach = usual.reach || 1e-12 * Math.max(1, Math.abs(usual.center));
    moves.push({ attribute, label, about: doc.labels[label], value, usual, status,
      moved: usual.moved(value), size: Math.abs(value - usual.center) / reach });
  }
  return moves.sort((a, b) => b.size - a.size || a.label - b.label || a.attribute - b.attribute);
}

const isRatio = (about) => about.low === 0 && about.high === 1 && about.fairest === 1;

// The axis of a row: one for all ratios, and its own for any other score.
function changeAxis(move, ratios) {
  if (isRatio(move.about)) return ratios;
  const { center, reach } = move.usual;
  const [low, high] = rangeOf([move.value, center, center - reach, center + reach], move.about);
  return { low, high };
}

function changeRow(move, axis) {
  const x = (value) => Math.max(0, Math.min(100, ((value - axis.low) / (axis.high - axis.low || 1)) * 100));
  const { center, reach } = move.usual;
  const [from, to] = [x(center), x(move.value)];
  const bad = move.status === "breach" && move.moved;
  const between = (class_, low, high) => element("i", { class: class_, place: { left: pct(low), width: pct(high - low) } });
  const track = element("div", { class: "track", "aria-hidden": "true" },
    between("chance", x(center - reach), x(center + reach)), between("mv", Math.min(from, to), Math.max(from, to)),
    element("i", { class: "from", place: { left: pct(from) } }), element("i", { class: "pt", place: { left: pct(to) } }));
  const worse = move.about.alarm === "high" ? move.value > center : move.about.alarm === "low" ? move.value < center : null;
  const side = worse === null ? "" : worse ? ", towards unfair" : ", towards fair";
  const what = bad ? "✕ beyond the limit" : move.moved ? `beyond chance${isRatio(move.about) ? "" : side}` : "within chance";
  return element("div", { class: `row ${bad ? "bad" : ""}`, "data-score": move.about.label, "data-attribute": doc.attributes[move.attribute][0] ?? "" },
    element("span", { class: "name" }, element("a", { href: scoreAddress(chosen.slice, move.attribute, move.label) }, name(capital(scoreName(move.label, move.attribute)))),
      element("small", {}, element("code", {}, move.about.label), isRatio(move.about) || !move.about.alarm ? "" : `, ${move.about.alarm === "high" ? "right" : "left"} is worse`)),
    track, element("span", { class: "say" }, `${digits(center)} → `, element("b", {}, digits(move.value)), element("small", {}, what)));
}

function changeRows(moves) {
  const values = moves.filter(({ about }) => isRatio(about)).flatMap(({ value, usual }) => [value, usual.center, usual.center - usual.reach]);
  const low = values.length ? Math.max(0, Math.floor(Math.min(...values) * 10) / 10) : 0;
  const ratios = { low: Math.min(low, 0.9), high: 1 };
  const scale = values.length ? [element("div", { class: "row line", "aria-hidden": "true" }, element("span", { class: "small empty" }, "Ratios: 1 is equal"),
    element("div", { class: "scale" }, ...ticksIn(ratios.low, 1).map((tick) => element("span", { place: { left: pct(((tick - ratios.low) / (1 - ratios.low)) * 100) } }, bare(tick)))),
    element("span", { class: "empty" }))] : [];
  return element("div", { class: "rows wide" }, ...scale, ...moves.map((move) => changeRow(move, changeAxis(move, ratios))));
}

function drawChanges() {
  const batch = shownBatch();
  const place = part("changes");
  const moves = batch === null ? [] : changesAt(chosen.slice, batch);
  const where = chosen.slice ? ` in ${sliceName(chosen.slice)}` : "";
  const title = byId("h-changes");
  if (!moves.length) {
    title.textContent = "What changed";
    place.replaceChildren(small(`Nothing can be said yet: ${doc.usual.least} batches of the same release are needed to know what is usual.`));
    return;
  }
  const moved = moves.filter((move) => move.moved);
  const rest = moves.filter((move) => !move.moved);
  title.replaceChildren(name(moved.length ? `What changed${where}: ${moved.length} of ${count(moves.length, "score")} moved beyond chance`
    : `What changed${where}: nothing moved beyond chance`));
  const folded = [...moved.slice(CHANGES_SHOWN), ...rest];
  const most = Math.max(...moves.map(({ usual }) => usual.count));
  const closed = (summary, list) => {
    const details = element("details", {}, element("summary", {}, summary));
    details.addEventListener("toggle", () => { if (details.open && details.childElementCount === 1) details.append(changeRows(list)); });
    return details;
  };
  const columns = ["score", "attribute", "usual", "value", "chance", "beyond chance"];
  const rows = moves.map((move) => [move.about.label, doc.attributes[move.attribute][0] ?? "", move.usual.center, move.value, move.usual.reach,
    move.moved ? "yes" : "no"]);
  place.replaceChildren(small(`From the usual value (hollow, the median of the ${most} batches before) to that of ${plainDay(doc.batches[batch])} (solid), the largest in units of chance first. Grey: as far as day-to-day chance goes.`),
    ...(moved.length ? [changeRows(moved.slice(0, CHANGES_SHOWN))] : []),
    ...(folded.length ? [closed(moved.length ? `The other ${count(folded.length, "score")}` : `All ${count(folded.length, "score")}`, folded)] : []),
    element("div", { class: "tools" }, csvButton("changes", columns, rows)));
}
