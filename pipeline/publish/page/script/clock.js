// How old the page is, by the clock of whoever reads it.

const HOURS = 3600000;
const OLD = 3 * 24 * HOURS;

function ago(milliseconds) {
  const hours = Math.max(0, Math.floor(milliseconds / HOURS));
  if (hours < 1) return "less than an hour";
  return hours < 48 ? count(hours, "hour") : count(Math.floor(hours / 24), "day");
}

const clockText = (moment) => `${new Date(moment).toISOString().slice(11, 16)} UTC`;

// When the newest batch with scores ended, by its name; one without a date was new when it was scored.
function newestEnd() {
  const date = doc.newest === null ? null : dateOf(doc.batches[doc.newest]);
  return date ? date.moment.getTime() + (date.hour === null ? 24 : 1) * HOURS : doc.finished;
}

// What is late, in a sentence and the facts behind it; null while all is in time.
function lateness() {
  const now = Date.now();
  const late = doc.due.filter(([, due]) => due <= now);
  const end = newestEnd();
  const age = end === null ? null : now - end;
  const newest = doc.newest === null ? "" : plainDay(doc.batches[doc.newest]);
  if (late.length) {
    const [first, due] = late[0];
    const last = late[late.length - 1][0];
    const what = late.length === 1 ? `${plainDay(first)} was` : `${plainDay(first)} to ${plainDay(last)} were`;
    const when = late.length === 1 ? ` at ${clockText(due)}, ${ago(now - due)} ago` : "";
    const known = late.length === doc.due.length && doc.due.length >= 40 ? "at least " : "";
    const many = late.length === 1 ? "" : ` (${known}${late.length})`;
    return { late: true, word: "Overdue", sentence: age === null ? "This page is overdue." : `This page is ${ago(age)} old.`,
      second: `${what} due${when} and ${late.length === 1 ? "has" : "have"} no scores here${many}.` };
  }
  if (age === null || age < OLD) return null;
  const old = `the newest ${unitOf([doc.batches[doc.newest]])} on this page, ${newest}, is ${ago(age)} old`;
  const ended = dateOf(doc.batches[doc.newest]) && doc.about.schedule_end && doc.about.schedule_end <= doc.batches[doc.newest].slice(0, 10);
  return ended
    ? { late: false, word: "Ended", sentence: `No day is due any more: ${old}.`, second: "" }
    : { late: true, word: "Old", sentence: `No ${unitOf([doc.batches[doc.newest]])} came after ${newest}.`, second: `${capital(old)}.` };
}

// Above the verdict, unless that says it itself.
function drawStale(stale, isVerdict) {
  const place = byId("stale");
  place.hidden = !stale || isVerdict;
  place.className = "stale";
  if (stale) place.replaceChildren(element("b", {}, `○ ${stale.word}: `), `${stale.sentence} ${stale.second}`);
  const when = byId("when");
  const next = doc.due.find(([, due]) => due > Date.now());
  when.textContent = `Published ${when.dataset.text} (${ago(Date.now() - Number(when.dataset.epoch))} ago).`
    + (next ? ` Next due ${shortDay(next[0])}, until ${shortDay(new Date(next[1]).toISOString().slice(0, 10))} ${clockText(next[1])}.`
      : doc.about.schedule_end && newestEnd() !== doc.finished ? " No day is due after these." : "");
}
