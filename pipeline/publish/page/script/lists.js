// The worst lists as strips.

async function drawLists() {
  const attribute = doc.attributes[chosen.attribute];
  const found = doc.lists.filter((each) => each.attribute === attribute);
  if (!found.length) {
    note("lists", "");
    nothing("lists", attribute === null
      ? "Choose an attribute to see its lists."
      : "No lists are published: their rows are gone, or privacy.min_cell keeps single lists back.");
    return;
  }
  const names = [...new Set(found.flatMap((each) => each.entries.map(([, , group]) => group)))].sort();
  const letter = letters(names);
  const rows = found.flatMap((each) => {
    const name = `${each.place}. ${short(each.loses)} lacks ${digits(each.shortfall)}`;
    return each.entries.map(([rank, item, group, relevance]) => {
      const n = names.indexOf(group);
      return { name, rank, letter: letter[n], colour: doc.colours[n % doc.colours.length],
        ink: n % doc.colours.length === 0 ? "#FFFFFF" : "#000000",
        List: each.list, Rank: String(rank), Item: item, Group: group,
        Relevance: relevance === null ? "" : digits(relevance) };
    });
  });
  const cut = found.filter((each) => each.entries.length < each.length).length;
  note("lists", `Lists of ${found[0].batch} in which a group of ${short(attribute)} lacks most exposure, against an equal share for each entry. `
    + `${names.map((name, n) => `${letter[n]} is ${short(name)}`).join(", ")}.`
    + (cut ? ` ${count(cut, "list")} longer than what is drawn.` : ""));
  showTable("lists", ["list", "place", "loses", "exposure lacking", "groups from the top"],
    found.map((each) => [each.list, each.place, each.loses, digits(each.shortfall),
      each.entries.map(([, , group]) => group).join(", ")]), `Worst lists of ${found[0].batch}`);
  await draw("lists", rows, `${count(found.length, "list")}; in the worst, ${found[0].loses} lacks ${digits(found[0].shortfall)} of exposure.`);
}

// The shortest beginnings that tell names apart, up to three letters; then numbers.
function letters(names) {
  for (const length of [1, 2, 3]) {
    const cut = names.map((name) => [...name].slice(0, length).join(""));
    if (new Set(cut).size === names.length && cut.every((each) => each.trim())) return cut;
  }
  return names.map((_, n) => String(n + 1));
}
