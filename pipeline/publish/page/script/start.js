// What the address asks for, and drawing it.

// The score of a day where none is asked for: the one of its verdict, else the first there is.
function scoreOfDay(batch) {
  const said = doc.conclusions[batch]?.score;
  if (said) return said;
  const shown = doc.conclusions[batch]?.shown;
  if (shown !== null && shown !== undefined && shown !== batch && doc.conclusions[shown]?.score) return doc.conclusions[shown].score;
  const whole = doc.series.filter(([slice]) => slice === 0);
  const grouped = whole.find(([, attribute, label]) => doc.labels[label].unit === "percent" && attribute !== noGroups());
  return (grouped ?? whole[0] ?? [0, 0, 0]).slice(0, 3);
}

// Reads an address into what is chosen; what it does not name, or names wrongly, follows the day.
function choose(text) {
  const asked = new URLSearchParams(text.replace(/^#/, ""));
  const batch = doc.batches.indexOf(asked.get("batch"));
  chosen.batch = batch >= 0 ? batch : doc.newest ?? doc.batches.length - 1;
  const [slice, attribute, label] = scoreOfDay(chosen.batch);
  Object.assign(chosen, { slice, attribute, label, explicit: false });
  if (!asked.has("score")) return;
  const named = {
    label: doc.labels.findIndex((about) => about.label === asked.get("score")),
    attribute: doc.attributes.findIndex(([each]) => (each ?? "") === (asked.get("attribute") ?? "")),
    slice: doc.slices.findIndex(([each, value]) => each === (asked.get("slice") ?? WHOLE) && value === (asked.get("value") ?? WHOLE)),
  };
  if (named.label >= 0 && named.attribute >= 0 && named.slice >= 0 && seriesOf(named.slice, named.attribute, named.label)) {
    Object.assign(chosen, named, { explicit: true });
  }
}

const SECTIONS = { groups: drawGroups, heat: drawHeat, changes: drawChanges, lists: drawLists };

function draw() {
  const focused = document.activeElement?.dataset?.key;
  for (const each of [drawTop, drawVerdict, drawAside, drawBand]) each();
  for (const [id, each] of Object.entries(SECTIONS)) {
    byId(id).hidden = doc.newest === null;
    if (doc.newest !== null) each();
  }
  const shown = shownBatch();
  byId("older").hidden = shown === null || shown === chosen.batch;
  if (shown !== null) byId("older").textContent = `What follows is of ${longDay(doc.batches[shown])}.`;
  settle();
  if (focused) [...document.querySelectorAll("[data-key]")].find((each) => each.dataset.key === focused)?.focus({ preventScroll: true });
  if (!performance.getEntriesByName("first-chart").length) performance.mark("first-chart");
}

// Links within the page go there without becoming its address.
function jump(event) {
  const link = event.target.closest?.("a[data-to]");
  if (!link) return;
  event.preventDefault();
  const target = byId(link.dataset.to);
  target.scrollIntoView();
  target.querySelector("h1, h2")?.setAttribute("tabindex", "-1");
  (target.querySelector("h1, h2") ?? target).focus({ preventScroll: true });
}

function step(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (event.target.closest?.("input, textarea, select, .scroll")) return;
  const next = chosen.batch + { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!(next >= 0 && next < doc.batches.length)) return;
  event.preventDefault();
  location.hash = address({ batch: next });
}

async function start() {
  doc = await unpacked(byId("data").textContent);
  if (!doc.batches.length) return;
  index = indexed(doc);
  document.documentElement.classList.add("drawn");
  choose(location.hash);
  draw();
  document.addEventListener("click", jump);
  document.addEventListener("keydown", step);
  addEventListener("hashchange", () => {
    choose(location.hash);
    draw();
  });
  let waiting = 0;
  addEventListener("beforeprint", () => settle());
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => settle(), 60);
  });
}

start().then(() => {
  document.documentElement.dataset.ready = "yes";
}, (error) => {
  document.documentElement.classList.remove("drawn");
  byId("broken").hidden = false;
  document.documentElement.dataset.ready = "failed";
  console.error(error);
});
