// The verdict of the chosen day, and the line of the chosen score.

const conclusion = () => doc.conclusions[chosen.batch]
  ?? { state: doc.states[chosen.batch], sign: "○", word: capital(doc.states[chosen.batch].replace("_", " ")),
    note: "", sentence: `There are no scores of ${plainDay(doc.batches[chosen.batch])}.`, second: "", small: "", facts: [] };

// Of a day that is not judged, headings claim nothing.
const isHeldBack = () => conclusion().state === "gated";

function drawTop() {
  const last = doc.batches.length - 1;
  const step = (batch, sign, text, rel) => (batch < 0 || batch > last
    ? element("span", { class: "off", "aria-hidden": "true" }, sign)
    : element("a", { href: address({ batch }), rel, "aria-label": `${text}: ${longDay(doc.batches[batch])}`, "data-key": rel }, sign));
  byId("walk").replaceChildren(
    step(chosen.batch - 1, "‹", "Before", "prev"),
    element("b", {}, name(longDay(doc.batches[chosen.batch]))),
    step(chosen.batch + 1, "›", "After", "next"),
    chosen.batch === doc.newest || chosen.batch === last ? element("span", {}, "newest")
      : element("a", { href: address({ batch: doc.newest ?? last }) }, "to the newest"));
}

function drawVerdict() {
  const said = conclusion();
  const stale = lateness();
  const bad = lookOf(said) === "bad";
  // A page that is overdue looks it, unless there is something worse to say.
  const overdue = stale?.late && chosen.batch === doc.newest && ["calm", "no_limits"].includes(said.state);
  drawStale(stale, overdue);
  const shown = overdue
    ? { ...said, sign: "○", word: stale.word, note: `Until then: ${said.word.toLowerCase()}`, sentence: stale.sentence, emphasis: null,
      second: `${stale.second} What follows is of ${plainDay(doc.batches[doc.newest])}: ${said.sentence}` } : said;
  document.documentElement.classList.toggle("bad-day", bad);
  byId("chip").className = `chip ${overdue ? "unsure" : lookOf(said) ?? ""}`;
  byId("chip").textContent = `${shown.sign} ${shown.word}`;
  byId("note").textContent = shown.note ?? "";
  const [before, after] = shown.emphasis && shown.sentence.includes(shown.emphasis)
    ? [shown.sentence.slice(0, shown.sentence.indexOf(shown.emphasis)), shown.sentence.slice(shown.sentence.indexOf(shown.emphasis) + shown.emphasis.length)]
    : [shown.sentence, null];
  byId("headline").className = shown.sentence.length > 110 ? "long" : "";
  byId("headline").replaceChildren(before, ...(after === null ? [] : [element("em", {}, shown.emphasis), after]));
  byId("second").replaceChildren(...withCode(shown.second ?? ""));
  byId("small").replaceChildren(`${shown.small ?? ""} `, ...(shown.label ? [element("code", {}, shown.label)] : []));
  byId("facts").replaceChildren(...(shown.facts ?? []).map((fact) => element("div", {},
    element("dt", {}, fact.name), element("dd", {}, element("b", {}, fact.text), ...(fact.more ? [" ", element("span", { class: "small" }, fact.more)] : [])))));
  drawActions(said, bad);
  const title = said.title ?? `${said.sign} ${said.sentence}`;
  document.title = overdue ? `○ ${stale.sentence}` : stale && said.sign === "✓" ? `○ ${stale.word}: ${title}` : title;
  byId("now").textContent = `${longDay(doc.batches[chosen.batch])}: ${shown.word}. ${shown.sentence}`;
}

// A command in a text stands between grave accents.
const withCode = (text) => text.split("`").map((piece, n) => (n % 2 ? element("code", {}, piece) : piece));

// The batches of a chart: "These 30 days".
function theseBatches(batches) {
  const unit = unitOf(doc.batches);
  return batches.length === 1 ? `This ${unit}` : `These ${count(batches.length, unit, unit === "batch" ? "batches" : `${unit}s`)}`;
}

function drawActions(said, bad) {
  const acts = [];
  const first = () => (acts.length ? "act" : bad ? "act first" : "act");
  if (doc.lists.some((list) => list.batch === chosen.batch)) acts.push(element("a", { class: first(), href: "#lists", "data-to": "lists" }, "See the lists of this day"));
  if (said.explain) acts.push(copyButton("Copy the explain command", said.explain, first()));
  if (said.acknowledge) acts.push(copyButton("Acknowledge", said.acknowledge, first()));
  const before = doc.conclusions.findLastIndex((each, n) => n < chosen.batch && lookOf(each) === "bad");
  if (!bad && before >= 0) acts.push(element("a", { class: "act", href: address({ batch: before, explicit: false }) }, "Go to the last breach"));
  byId("acts").replaceChildren(...acts);
  byId("said").textContent = "";
}

function copyButton(text, copied, look = "act") {
  return element("button", { type: "button", class: look, click: async () => {
    const said = byId("said");
    try {
      await navigator.clipboard.writeText(copied);
      said.textContent = "Copied: ";
    } catch {
      said.textContent = "To copy: ";
    }
    said.append(element("code", {}, copied));
  } }, text);
}

// Beside the verdict: the line of the score, or without limits what to do next.
function drawAside() {
  const place = byId("aside");
  const said = conclusion();
  const line = scoreLine();
  const next = said.state === "no_limits" && !chosen.explicit;
  place.replaceChildren(...(next ? [nextSteps()] : line ? [line] : []));
  byId("below").replaceChildren(...(next && line ? [line] : []));
}

function nextSteps() {
  const { yaml, reasons = [], attributes = [] } = doc.proposals ?? {};
  const lines = yaml ?? "evenrank suggest";
  const [first] = doc.batches;
  return element("div", { class: "part" }, element("h2", {}, "Next, in this order"), element("ol", { class: "steps" },
    element("li", {}, element("div", {}, element("b", {}, "Set a limit"),
      ...(yaml ? reasons.map((reason) => small(name(reason))) : [small("This command proposes limits from chance and from the days there are:")]),
      ...(attributes.length > 1 ? [small(`Attributes, the furthest from chance first: ${attributes.join(", ")}.`)] : []),
      element("pre", {}, lines), copyButton(yaml ? "Copy these lines" : "Copy the command", lines))),
    element("li", {}, element("div", {}, element("b", {}, "Say who hears of a breach"),
      small("A command or a webhook, under ", element("code", {}, "notify"), " in the same file."))),
    ...(dateOf(first) ? [element("li", {}, element("div", {}, element("b", {}, "Score the past, if you have its logs"),
      small(element("code", {}, `evenrank backfill --from ${dayBefore(first, 31)} --to ${dayBefore(first, 1)}`))))] : [])));
}

const dayBefore = (batch, days) => new Date(dateOf(batch).moment - days * 24 * HOURS).toISOString().slice(0, 10);

// How values of a score read: percentages where its sentence has them.
const textOf = (about) => (about.unit === "percent" ? percent : digits);
const tickOf = (about) => (about.unit === "percent" ? (value) => `${bare(value * 100)}%` : bare);

function scoreLine() {
  const columns = seriesOf(chosen.slice, chosen.attribute, chosen.label);
  const about = doc.labels[chosen.label];
  if (!columns || !about) return null;
  const batches = period();
  const found = batches.map((batch) => at(columns, batch));
  const limits = batches.map((batch) => limitsAt(columns, batch));
  if (found.every((each) => !each)) {
    return small(`${capital(scoreName(chosen.label, chosen.attribute))}, ${sliceName(chosen.slice)}: of these days the page holds no values; the history may.`);
  }
  const said = conclusion();
  // The verdict's own score has the usual value of its sentence.
  const speaks = said.score?.every((each, n) => each === [chosen.slice, chosen.attribute, chosen.label][n]);
  const usual = speaks && said.usual !== undefined ? { center: said.usual } : usualBefore(columns, chosen.batch);
  const all = [...found.flatMap((each) => (each ? [each.value, each.lower, each.upper] : [])), ...limits.map(limitOf), usual?.center];
  const [low, high] = rangeOf(all.filter((value) => value !== null && value !== undefined), about);
  const scale = scales(batches.length, low, high);
  const { svg, box } = canvas(low, high, scale.y, ticksIn(low, high), tickOf(about));
  const text = textOf(about);
  const here = batches.indexOf(chosen.batch);
  const [ownText, usualText] = apart([found[here]?.value ?? null, usual?.center ?? null, limitOf(limitsAt(columns, chosen.batch))],
    text, about.unit === "percent" ? 2 : 3);
  const limit = limitsAt(columns, chosen.batch);
  if (limitOf(limit) !== null && found[here]?.status === "breach") {
    const edge = scale.y(limitOf(limit));
    svg.append(drawing("rect", { class: "zone", x: 0, width: 100, y: limit.least === null ? 0 : edge, height: limit.least === null ? edge : 100 - edge }));
  }
  releasesOf(box, svg, batches, scale);
  bandOf(svg, found.map((each) => each?.lower ?? null), found.map((each) => each?.upper ?? null), scale);
  gapsOf(box, svg, batches, scale);
  if (usual) {
    svg.append(drawing("line", { class: "usual", x1: 0, x2: 100, y1: scale.y(usual.center), y2: scale.y(usual.center) }));
    put(box, { class: "end label", "data-at": scale.y(usual.center) }, 100, scale.y(usual.center), `usually ${usualText}`);
  }
  linesOf(svg, limits.map(limitOf), scale, "lim");
  const set = limits.findIndex((each) => limitOf(each) !== null);
  if (set >= 0) put(box, { class: `in limit ${limits[set].least === null ? "" : "below"}` }, scale.x(set), scale.y(limitOf(limits[set])), `limit ${tickOf(about)(limitOf(limits[set]))}`);
  linesOf(svg, found.map((each) => each?.value ?? null), scale, "ln");
  found.forEach((each, n) => {
    if (!each || each.value === null) return;
    const own = n === here;
    const bad = each.status === "breach";
    if (own && each.lower !== null) svg.append(drawing("line", { class: bad ? "ci bad" : "ci", x1: scale.x(n), x2: scale.x(n), y1: scale.y(each.lower), y2: scale.y(each.upper) }));
    if (own || bad) put(box, { class: `dot ${bad ? "bad" : ""} ${own ? "on" : ""}` }, scale.x(n), scale.y(each.value));
    const left = scale.x(n) > 60 && !(own && n === batches.length - 1);
    if (own) put(box, { class: `big ${bad ? "bad" : ""} ${n === batches.length - 1 ? "end" : left ? "in left" : "in"}`, "data-at": scale.y(each.value) }, scale.x(n), scale.y(each.value), ownText);
    else if (bad) put(box, { class: `alarm label ${left ? "in left" : "in"}` }, scale.x(n), scale.y(each.value), `✕ ${text(each.value)}`);
  });
  batchLabels(box, batches, scale.x);
  const title = `${capital(scoreName(chosen.label, chosen.attribute))}: ${sliceName(chosen.slice)}`;
  const equal = about.fairest === null ? "" : `${tickOf(about)(about.fairest)} is equal. `;
  const rows = batches.map((batch, n) => [doc.batches[batch], found[n]?.value ?? null, found[n]?.lower ?? null, found[n]?.upper ?? null,
    limitOf(limits[n]), found[n]?.status ?? doc.states[batch], groupName(found[n]?.worst ?? -1)]);
  return element("figure", { class: "part fig", "aria-label": title },
    element("h3", {}, name(title)),
    small(`${equal}Grey: ${Math.round(doc.confidence * 100)}% interval.${found[here]?.why ? ` ${capital(found[here].why)}.` : ""}`),
    box,
    rowsBehind(`${theseBatches(batches)} as a table`, "score",
      ["batch", "value", "lower", "upper", "limit", "verdict", "worst off"], rows,
      rows.map(([batch, ...numbers]) => [batch, ...numbers.slice(0, 4).map((value) => (value === null ? "" : digits(value))), numbers[4].replace("_", " "), numbers[5]]).reverse()));
}
