// Batches as people call them: days, hours, or names.

const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August",
  "September", "October", "November", "December"];
const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const DAY = /^(\d{4})-(\d\d)-(\d\d)$/;
const HOUR = /^(\d{4})-(\d\d)-(\d\d)T(\d\d)$/;

const unitOf = (batches) =>
  (batches.every((name) => DAY.test(name)) ? "day" : batches.every((name) => HOUR.test(name)) ? "hour" : "batch");

// Year, month, day, hour, and the moment a batch begins; null for a name.
function dateOf(name) {
  const found = DAY.exec(name) ?? HOUR.exec(name);
  if (!found) return null;
  const [year, month, day, hour] = found.slice(1).map(Number);
  const moment = new Date(Date.UTC(year, month - 1, day, hour || 0));
  return { year, month: MONTHS[month - 1], day, hour: HOUR.test(name) ? found[4] : null, moment };
}

function longDay(name) {
  const date = dateOf(name);
  if (!date) return name;
  const hour = date.hour === null ? "" : `, ${date.hour}:00`;
  return `${WEEKDAYS[date.moment.getUTCDay()]} ${date.day} ${date.month} ${date.year}${hour}`;
}

function shortDay(name) {
  const date = dateOf(name);
  if (!date) return name;
  return date.hour === null ? `${date.day} ${date.month.slice(0, 3)}` : `${date.day} ${date.month.slice(0, 3)} ${date.hour}:00`;
}

function plainDay(name) {
  const date = dateOf(name);
  return date ? `${date.day} ${date.month}${date.hour === null ? "" : `, ${date.hour}:00`}` : name;
}

// What the batches of a band span: "January 2026".
function spanText(names) {
  const [first, last] = [names[0], names[names.length - 1]].map(dateOf);
  if (!first || !last) return count(names.length, "batch", "batches");
  if (first.year !== last.year) return `${first.month} ${first.year} to ${last.month} ${last.year}`;
  if (first.month !== last.month) return `${first.month} to ${last.month} ${last.year}`;
  if (first.hour !== null && first.day === last.day) return `${first.day} ${first.month} ${first.year}`;
  return `${first.month} ${first.year}`;
}

// Longer units that hold several batches: which a batch is in, and how that reads.
const LONGER = {
  day: (date) => [date.moment.toISOString().slice(0, 10), `${date.day} ${date.month.slice(0, 3)}`],
  week: (date) => {
    const monday = new Date(date.moment - ((date.moment.getUTCDay() + 6) % 7) * 86400000);
    const key = monday.toISOString().slice(0, 10);
    return [key, shortDay(key)];
  },
  month: (date) => [date.moment.toISOString().slice(0, 7), `${date.month.slice(0, 3)} ${date.year}`],
  year: (date) => [String(date.year), String(date.year)],
};

// All batches in longer units, few enough for a band; null where they fit, or have no dates.
function overview() {
  const dates = doc.batches.map(dateOf);
  if (doc.batches.length <= BAND_BATCHES || dates.some((date) => !date)) return null;
  for (const [unit, place] of Object.entries(LONGER)) {
    const found = new Map();
    dates.forEach((date, n) => {
      const [key, text] = place(date);
      if (!found.has(key)) found.set(key, { key, text, batches: [] });
      found.get(key).batches.push(n);
    });
    if (found.size <= BAND_BATCHES && found.size < doc.batches.length) return { unit, parts: [...found.values()] };
  }
  return null;
}
