// What time it is, and the start.

function ago(milliseconds) {
  const hours = Math.floor(milliseconds / 3600000);
  return hours < 1 ? "less than an hour" : hours < 48 ? count(hours, "hour") : count(Math.floor(hours / 24), "day");
}

function drawAge() {
  const now = Date.now();
  const made = byId("made");
  if (made) made.textContent = `${made.dataset.text} (${ago(Math.max(0, now - Number(made.dataset.epoch)))} ago)`;
  const late = doc.due
    .map(([batch, due]) => ({ batch, due, n: doc.batches.indexOf(batch) }))
    .filter(({ due, n }) => due <= now || n >= 0);
  const bar = byId("missing");
  bar.hidden = !late.length;
  if (!late.length) return;
  const states = late.map(({ n }) => (n < 0 ? "missing" : doc.states[n]));
  const first = late[0];
  const last = late[late.length - 1];
  const older = doc.newest === null ? "" : " What follows is older.";
  if (late.length === 1) {
    const why = doc.messages[first.n] ? ` (${doc.messages[first.n]})` : "";
    const when = first.due <= now ? ` It was due ${ago(now - first.due)} ago.` : "";
    bar.textContent = `${first.batch}: ${verdict(states[0])}${why}.${when}${older}`;
    return;
  }
  const each = [...new Set(states)].map((state) =>
    `${LOOKS[state].symbol} ${states.filter((other) => other === state).length} ${LOOKS[state].word}`).join(", ");
  const least = late.length === doc.due.length && doc.due.length >= DUE_KNOWN ? "at least " : "";
  bar.textContent = `${first.batch} to ${last.batch} have no scores: ${least}${each}.${older}`;
}

async function start() {
  for (const look of JSON.parse(byId("looks").textContent)) LOOKS[look.name] = look;
  doc = await unpacked(byId("data").textContent);
  drawAge();
  if (!doc.labels.length) {
    for (const section of document.querySelectorAll("section.needs-script")) {
      section.hidden = section.id !== "calendar" || !doc.batches.length;
    }
    if (doc.batches.length) await drawCalendar();
    document.documentElement.dataset.ready = "yes";
    return;
  }
  index = indexed(doc);
  firstChoice();
  Object.assign(chosen, asked(location.hash));
  for (const [id, key] of [["choose-slice", "slice"], ["choose-attribute", "attribute"],
    ["choose-metric", "label"], ["choose-batch", "batch"], ["choose-period", "period"]]) {
    byId(id).addEventListener("change", (event) => choose({ [key]: Number(event.target.value) }));
  }
  for (const button of document.querySelectorAll("button[data-show]")) {
    button.addEventListener("click", () => {
      choose(asked(button.dataset.show));
      byId("heat").scrollIntoView();
    });
  }
  addEventListener("hashchange", () => choose(asked(location.hash)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw(EVERYTHING));
  let resized = 0;
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(resized);
    resized = setTimeout(() => redraw(EVERYTHING), 200);
  });
  setInterval(drawAge, 60000);
  fillChoosers();
  await redraw(EVERYTHING);
}

document.documentElement.classList.add("drawn");
start().catch((error) => {
  document.documentElement.dataset.ready = "failed";
  byId("broken").hidden = false;
  console.error(error);
});
