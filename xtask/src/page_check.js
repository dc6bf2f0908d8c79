// Checks the page it is part of, and sends the problems to the page around it.
addEventListener("load", () => {
  const problems = [];
  const say = (text) => problems.push(text);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const name = (element) => element.outerHTML.slice(0, 80);
  all("details").forEach((element) => { element.open = true; });
  // Layout: the page does not scroll sideways.
  const excess = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (excess > 0) say(`the page is ${excess} pixels too wide`);
  // Nothing is fetched.
  performance.getEntriesByType("resource").forEach((entry) => say(`fetches ${entry.name}`));
  // Roles and names.
  if (document.documentElement.lang !== "en") say("no language");
  for (const selector of ["h1", "main", "nav[aria-label]"]) {
    if (all(selector).length !== 1) say(`not one ${selector}`);
  }
  all("table").forEach((table) => { if (!table.caption) say(`no caption: ${name(table)}`); });
  all("th").forEach((cell) => { if (!cell.scope) say(`no scope: ${name(cell)}`); });
  all("svg").forEach((svg) => {
    const image = svg.getAttribute("role") === "img" && svg.getAttribute("aria-label");
    if (!image && svg.getAttribute("aria-hidden") !== "true") say(`no label: ${name(svg)}`);
  });
  all("input").forEach((input) => { if (!input.labels.length) say(`no label: ${name(input)}`); });
  all("[tabindex]").forEach((element) => {
    if (element.tabIndex > 0) say(`changes the order of focus: ${name(element)}`);
  });
  const regions = all("[role=region]").map((element) => element.getAttribute("aria-label"));
  regions.forEach((label) => { if (!label) say("a region without a label"); });
  if (new Set(regions).size !== regions.length) say("two regions with one label");
  // Contrast of text: 4.5 to 1 (WCAG 2.2, 1.4.3).
  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = ([red, green, blue]) => [red, green, blue]
    .map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
  const background = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = channels(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const texts = all("h1, h2, p, li, a, th, td, caption, label, legend, summary, code, figcaption");
  for (const element of texts.filter((element) => element.textContent.trim())) {
    const ink = luminance(channels(getComputedStyle(element).color)) + 0.05;
    const page = luminance(background(element)) + 0.05;
    const contrast = Math.max(ink, page) / Math.min(ink, page);
    if (contrast < 4.5) say(`contrast ${contrast.toFixed(2)}: ${name(element)}`);
  }
  all("svg text").forEach((element) => {
    const ink = luminance(channels(getComputedStyle(element).fill)) + 0.05;
    const page = luminance(background(element.closest("div"))) + 0.05;
    const contrast = Math.max(ink, page) / Math.min(ink, page);
    if (contrast < 4.5) say(`contrast ${contrast.toFixed(2)}: ${name(element)}`);
  });
  // The keyboard: arrow keys move the focus in the heat map, and its cell is described.
  const first = document.querySelector("#heat td[tabindex='0']");
  if (first) {
    const press = (key) => document.activeElement.dispatchEvent(
      new KeyboardEvent("keydown", { key, bubbles: true }),
    );
    first.focus();
    const before = document.getElementById("told").textContent;
    press("ArrowDown");
    press("End");
    const after = document.getElementById("told").textContent;
    if (document.activeElement === first || before === after) say("arrow keys do nothing");
  }
  // Each layer of the heat map shows its own figures.
  for (const input of all("input[name='layer']")) {
    input.checked = true;
    const shown = all("#heat td:not(.none) b").filter((figure) => figure.offsetParent);
    if (!shown.length || shown.some((figure) => !figure.classList.contains(input.value))) {
      say(`the layer ${input.value} is not shown alone`);
    }
  }
  const dark = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const facts = `${innerWidth} pixels, ${dark}, ${texts.length} texts`;
  parent.postMessage({ facts, problems }, "*");
});
