// The worst lists of the chosen day: a place is as tall as its exposure.

const LISTS_SHOWN = 8;
const exposure = (rank) => 1 / Math.log2(rank + 1);

function drawLists() {
  const place = part("lists");
  const title = byId("h-lists");
  const day = plainDay(doc.batches[chosen.batch]);
  const ofDay = doc.lists.filter((list) => list.batch === chosen.batch);
  const attribute = ofDay.some((list) => list.attribute === chosen.attribute) ? chosen.attribute : ofDay[0]?.attribute;
  const lists = ofDay.filter((list) => list.attribute === attribute);
  if (!lists.length) {
    title.textContent = `The lists of ${day}`;
    place.replaceChildren(small(doc.scored[chosen.batch]
      ? "They are not in the published copy: it keeps those of the last days whose rows are kept, and none with privacy.min_cell."
      : "There are none."));
    return;
  }
  const losers = [...new Set(lists.map((list) => list.loses))];
  title.replaceChildren(name(losers.length === 1 ? `The lists of ${day} in which ${groupName(losers[0])} lack most` : `The lists of ${day} in which one group lacks most`));
  const shown = lists.slice(0, LISTS_SHOWN);
  place.replaceChildren(
    element("p", { class: "small legend" }, element("span", {}, element("i", { class: "swatch loser" }), losers.length === 1 ? name(groupName(losers[0])) : "the group named"),
      element("span", {}, element("i", { class: "swatch" }), "others"), element("span", {}, element("i", { class: "swatch unknown" }), "not known"),
      "Left is the top of the list. The taller the bar, the more exposure the place gets."),
    element("ol", { class: "lists" }, ...shown.map(listRow)),
    small(`${shown.length} of the ${lists.length} worst lists by ${attributeName(attribute)}; all are in `, element("code", {}, "v_lists"), "."),
    element("div", { class: "tools" }, csvButton("lists", ["batch", "list", "place", "loses", "rank", "group"],
      lists.flatMap((list) => list.ranks.map((rank, n) => [doc.batches[list.batch], list.list, list.place, doc.groups[list.loses][1], rank, doc.groups[list.groups[n]][1]])))));
}

// What share of the items, and of the exposure, the group has among the places that are shown.
function shares(list) {
  const total = list.ranks.reduce((sum, rank) => sum + exposure(rank), 0);
  const own = list.ranks.filter((_, n) => list.groups[n] === list.loses);
  return { items: own.length / list.ranks.length, exposure: own.reduce((sum, rank) => sum + exposure(rank), 0) / total };
}

function listRow(list) {
  const share = shares(list);
  const who = groupTitle(list.loses);
  const cut = list.length > list.ranks.length ? ` of the first ${list.ranks.length} of ${list.length}` : "";
  const places = list.ranks.filter((_, n) => list.groups[n] === list.loses);
  const strip = element("div", { class: "strip", role: "img", "aria-label": `${list.length} places; ${groupName(list.loses)} at ${places.join(", ")}` },
    ...list.ranks.map((rank, n) => element("i", { class: list.groups[n] === list.loses ? "loser" : doc.groups[list.groups[n]][1] === "unknown" ? "unknown" : null,
      place: { height: pct(Math.max(100 * exposure(rank), 8)) } })));
  const where = [...list.slices, ...(list.query ? [`query ${list.query}`] : [])].join(", ");
  return element("li", {}, strip, element("div", {},
    element("b", {}, name(`${who}: ${percent(share.items)} of the items, ${percent(share.exposure)} of the exposure${cut}`)),
    element("p", { class: "small" }, where ? name(`${where}; `) : "", element("code", {}, list.list))));
}
