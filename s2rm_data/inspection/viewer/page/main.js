// The page: what is chosen, what has been fetched for it, and what the keys and buttons do.

const $ = (id) => document.getElementById(id);
const arena = new ArenaView($("arena"));
const player = new Player(drawStep);
let catalogue = null;
let group = { path: "", count: 0 };
let scene = null;
let selected = -1;
let details = null; // of the selected thing
let panels = []; // all that are drawn at every step
let asked = new AbortController(); // cancels what is being fetched for an earlier choice

function complain(error) {
  if (error && error.name === "AbortError") return;
  $("alert").hidden = !error;
  $("alert").textContent = error ? error.message : "";
}

// -- the address: what is shown, so that it survives a reload and can be sent to somebody

let wished = new Map(); // what the address asks for and has not been chosen yet
const wish = (name) => {
  const value = wished.get(name);
  wished.delete(name);
  return value;
};

let telling = 0; // browsers allow few changes per second
function tellAddress() {
  clearTimeout(telling);
  telling = setTimeout(() => {
    const shown = { group: group.path, number: numberNow(), step: player.step, selected, ...modelShown() };
    history.replaceState(null, "", `#${new URLSearchParams(shown)}`);
  }, 150);
}

async function follow() {
  wished = new Map(new URLSearchParams(location.hash.slice(1)));
  const path = wished.get("group");
  const world = catalogue.worlds.find(({ groups }) => groups.includes(path));
  if (world) $("world").value = world.name;
  await chooseWorld();
  wished.clear();
  if (path && !world) throw new Error(`The address asks for ${path}, which is not here.`);
}

// -- choosing

async function begin() {
  catalogue = await askForTable("catalogue", {});
  $("store").textContent = catalogue.store;
  document.title = `${catalogue.store} - s2rm-data view`;
  fill($("world"), catalogue.worlds.map((world) => [world.name, world.title]));
  fill($("speed"), SPEEDS.map((speed) => [speed, `${speed} per second`]));
  beginModel();
  if (!catalogue.worlds.length) throw new Error("This store has no finished group to show.");
  await follow();
}

function fill(select, entries) {
  select.replaceChildren(...entries.map(([value, text]) => element("option", { value: String(value), text: String(text) })));
}

const worldNow = () => catalogue.worlds.find((world) => world.name === $("world").value);

async function chooseWorld() {
  const world = worldNow();
  fill($("group"), world.groups.map((path) => [path, path.slice(world.name.length + 1) || path]));
  const usual = world.groups.find((path) => path.endsWith("/train")) ?? world.groups[0];
  $("group").value = [wish("group")].find((path) => world.groups.includes(path)) ?? usual;
  await chooseGroup();
}

async function chooseGroup() {
  const path = $("group").value;
  group = { path, ...(await askForTable("group", { group: path })) };
  $("unit").textContent = group.unit;
  $("count").textContent = `of ${group.count.toLocaleString("en")}`;
  $("number").max = group.count - 1;
  $("number").value = wish("number") ?? (group.numbers ? group.numbers[0] : 0);
  chooseRuns();
  await chooseNumber();
}

const numberNow = () => Math.max(0, Math.min(group.count - 1, Math.floor(Number($("number").value)) || 0));

async function chooseNumber() {
  const given = $("number").value.trim();
  if (given !== String(numberNow())) {
    complain(new Error(`${group.path} has ${group.unit}s 0 to ${group.count - 1}; shown is ${numberNow()}.`));
  }
  $("number").value = numberNow();
  asked.abort();
  asked = new AbortController();
  const { signal } = asked;
  document.body.ariaBusy = "true"; // the style sheet dims what is of another sequence
  const found = await askForScene("episode", { group: group.path, number: numberNow() }, signal);
  if (signal.aborted) return;
  showScene(found);
  const n = Number(wish("selected") ?? startingSelection());
  await Promise.all([select(n < (discs()?.names.length ?? 0) ? n : startingSelection()), predict()]);
}

function turn(by) {
  const numbers = group.numbers; // those that an exported page holds
  if (!numbers) $("number").value = (numberNow() + by + group.count) % group.count;
  else $("number").value = numbers[(numbers.indexOf(numberNow()) + by + numbers.length) % numbers.length];
  guarded(chooseNumber)();
}

// -- showing

const discs = () => scene.layers.find((layer) => layer.kind === "Discs");

// Who is selected when nobody has chosen: the first, if there is something to see of it beyond the arena.
const startingSelection = () => (discs()?.detailed ? 0 : -1);

function showScene(found) {
  scene = found;
  document.body.ariaBusy = "false";
  details = null;
  selected = -1;
  const closest = SPEEDS.reduce((best, speed) => {
    const wanted = 1000 / scene.milliseconds;
    return Math.abs(speed - wanted) < Math.abs(best - wanted) ? speed : best;
  });
  player.load(scene.steps, Number($("speed").dataset.chosen) || closest);
  $("speed").value = player.perSecond;
  $("step").max = scene.steps - 1;
  $("facts").replaceChildren(...scene.facts.map(([name, text]) => pair(name, text)));
  fill($("selected"), [[-1, "nothing"], ...(discs()?.names ?? []).map((name, n) => [n, name])]);
  $("thing").hidden = !discs();
  $("panels").replaceChildren();
  $("details").replaceChildren();
  scene.views = scene.panels.map((panel) => panelOf(panel, scene.steps));
  $("panels").append(...scene.views.map((view) => view.element));
  showLayers();
  measure();
  player.go(Math.floor(Number(wish("step"))) || 0);
  if (!performance.getEntriesByName("first picture").length) performance.mark("first picture");
}

const pair = (name, text) => element("div", {}, element("dt", { text: name }), element("dd", { text }));

function showLayers() {
  const layers = [...scene.layers, ...modelLayers()];
  const depth = (layer) => ["Raster", "Stack"].indexOf(layer.kind) + 1 || 3; // maps lie below things
  layers.sort((one, other) => depth(one) - depth(other));
  const boxes = layers.map((layer) => {
    const box = element("input", { type: "checkbox", checked: layer.shown });
    box.addEventListener("change", () => {
      layer.shown = box.checked;
      redraw();
    });
    const signs = [...(layer.legend ?? []), ...(layer.bars ?? []).map((bar) => [bar.colour, bar.title])];
    if (layer.kind === "Marks") signs.push([layer.colour, ""]);
    if (layer.sight) signs.push([CHOSEN, "sight of the selected one"]);
    if (layer.reach) signs.push([CHOSEN, "dashed: its reach"]);
    const words = signs.map(([colour, title]) => element("span", { className: "sign" }, swatch(colour), ` ${title}`));
    return element("label", {}, box, layer.title, ...words);
  });
  const bars = layers.filter((layer) => layer.kind === "Raster").map((layer) => legendOf(layer.palette, layer.title));
  $("layers").replaceChildren($("layers").firstElementChild, ...boxes, ...bars);
  $("layers").hidden = !layers.length;
  arena.show(scene.arena, layers);
}

function measure() {
  inkNow.ink = inkOf("--ink");
  arena.resize();
  panels = [...(scene?.views ?? []), ...(details?.views ?? []), ...modelViews()];
  for (const panel of panels) panel.resize?.();
  drawTicks();
}

function drawTicks() {
  const canvas = $("ticks");
  canvas.width = Math.max(1, canvas.clientWidth);
  canvas.height = 8;
  const context = canvas.getContext("2d");
  for (const layer of scene?.layers.filter((one) => one.kind === "Marks") ?? []) {
    context.fillStyle = inkOf("--mark");
    for (const step of layer.step.values) {
      context.fillRect(8 + (step / Math.max(1, scene.steps - 1)) * (canvas.width - 16) - 0.5, 0, 1.5, 8);
    }
  }
}

const redraw = () => scene && drawStep(player.step, player.isPlaying);

function drawStep(step, isPlaying) {
  arena.draw(step, selected);
  for (const panel of panels) panel.draw(step);
  $("step").value = step;
  $("where").textContent = `${scene.step_word} ${step} of ${scene.steps - 1}`;
  tellReadings(step);
  const label = isPlaying ? "Pause" : "Play";
  if ($("play").textContent !== label) $("play").textContent = label;
  $("rate").textContent = player.rate ? `${player.rate.toFixed(0)} drawn per second` : "";
  if (isPlaying) return;
  describe(step);
  tellAddress();
}

// Words for those who do not see the picture; not while it plays, which would never stop talking.
function describe(step) {
  const there = discs() ? discs().names.filter((_, n) => arena.isThere(discs(), step, n)).length : 0;
  const things = discs() ? `, ${there} of ${discs().names.length} ${discs().title}` : "";
  const events = scene.layers
    .filter((layer) => layer.kind === "Marks")
    .map((layer) => `, ${layer.step.values.filter((at) => at === step).length} ${layer.title}`);
  const words = `${group.path} ${group.unit} ${numberNow()}, ${scene.step_word} ${step} of ${scene.steps - 1}`;
  $("arena").setAttribute("aria-label", words + things + events.join(""));
  $("step").setAttribute("aria-valuetext", `${scene.step_word} ${step} of ${scene.steps - 1}`);
}

function tellReadings(step) {
  const layer = discs();
  const shown = layer && selected >= 0 ? layer.readings : [];
  const list = $("readings");
  if (list.childElementCount !== shown.length) list.replaceChildren(...shown.map(({ title }) => pair(title, "")));
  shown.forEach((reading, n) => {
    const value = reading.values.values[step * reading.values.shape[1] + selected];
    const words = reading.names.length ? reading.names[value] ?? "none" : `${spelled(value)} ${reading.unit}`;
    const gone = !arena.isThere(layer, step, selected);
    list.children[n].lastElementChild.textContent = gone ? "gone" : words;
  });
}

async function select(n) {
  selected = n;
  $("selected").value = n;
  const layer = discs();
  details = null;
  if (layer && n >= 0 && n < layer.detailed) {
    const { signal } = asked;
    const found = await askForScene("details", { group: group.path, number: numberNow(), index: n }, signal);
    if (selected !== n || signal.aborted) return;
    details = { views: found.panels.map((panel) => panelOf(panel, scene.steps)) };
  }
  $("details").replaceChildren(...(details?.views ?? []).map((view) => view.element));
  measure();
  redraw();
}

// -- keys and buttons

const guarded = (action) => async (...given) => {
  try {
    complain(null);
    await action(...given);
  } catch (error) {
    complain(error);
  }
};

function toggle() {
  if (player.isPlaying) player.pause();
  else player.play();
}

function stepBy(by) {
  player.pause();
  player.go(player.step + by);
}

function chooseSpeed(speed) {
  player.perSecond = speed;
  $("speed").value = speed;
  $("speed").dataset.chosen = speed;
}

function changeSpeed(by) {
  const at = SPEEDS.indexOf(player.perSecond) + by;
  chooseSpeed(SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, at))]);
}

const KEYS = {
  " ": toggle,
  ArrowLeft: () => stepBy(-1),
  ArrowRight: () => stepBy(1),
  ArrowUp: () => stepBy(10),
  ArrowDown: () => stepBy(-10),
  Home: () => stepBy(-Infinity),
  End: () => stepBy(Infinity),
  PageUp: () => turn(-1),
  PageDown: () => turn(1),
  "+": () => changeSpeed(1),
  "-": () => changeSpeed(-1),
};

document.addEventListener("keydown", (event) => {
  const own = event.target.closest("input, select, button, textarea"); // these have keys of their own
  const action = KEYS[event.key];
  if (own || !action || !scene || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  action();
});
$("play").addEventListener("click", toggle);
$("back").addEventListener("click", () => stepBy(-1));
$("forth").addEventListener("click", () => stepBy(1));
$("step").addEventListener("input", () => {
  player.pause();
  player.go(Number($("step").value));
});
$("speed").addEventListener("change", () => chooseSpeed(Number($("speed").value)));
$("loop").addEventListener("change", () => (player.repeats = $("loop").checked));
$("world").addEventListener("change", guarded(chooseWorld));
$("group").addEventListener("change", guarded(chooseGroup));
$("number").addEventListener("change", guarded(chooseNumber));
$("previous").addEventListener("click", () => turn(-1));
$("next").addEventListener("click", () => turn(1));
$("random").addEventListener("click", () => turn(1 + Math.floor(Math.random() * Math.max(1, group.count - 1))));
$("selected").addEventListener("change", guarded(() => choose(Number($("selected").value))));
$("arena").addEventListener("click", guarded(async (event) => {
  const box = $("arena").getBoundingClientRect();
  const ratio = $("arena").width / box.width;
  await choose(arena.discAt((event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio, player.step));
}));
for (const form of [$("choice"), $("model")]) form.addEventListener("submit", (event) => event.preventDefault());
let resizing = 0;
window.addEventListener("resize", () => {
  cancelAnimationFrame(resizing);
  resizing = requestAnimationFrame(() => {
    measure();
    redraw();
  });
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  measure();
  redraw();
});

async function choose(n) {
  await select(n);
  if (discs().detailed) await predict();
}

window.addEventListener("hashchange", guarded(follow));
guarded(begin)();
