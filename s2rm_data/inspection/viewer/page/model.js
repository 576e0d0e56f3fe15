// Models: what a run predicts of the sequence that is shown, and which part of the arena each of its modules serves.

const MODEL = { views: [], layers: [], enclaves: null, asked: new AbortController(), timer: 0 };

const modelViews = () => MODEL.views;
const modelLayers = () => [...MODEL.layers, ...(MODEL.enclaves && $("enclaves").checked ? MODEL.enclaves : [])];
const runNow = () => catalogue.runs.find((run) => run.name === $("run").value);
const modeNow = () => document.querySelector("input[name=mode]:checked").value;
const chooseMode = (mode) => (document.querySelector(`input[name=mode][value=${mode}]`).checked = true);
const modelShown = () =>
  runNow() ? { run: runNow().name, mode: modeNow(), start: startNow(), dropped: droppedNow() } : {};
const droppedNow = () => catalogue.dropped[Number($("dropped").value)];

function beginModel() {
  $("dropped").max = catalogue.dropped.length - 1;
  $("dropped").parentElement.hidden = catalogue.dropped.length < 2;
  $("here").hidden = $("start").readOnly = catalogue.starts !== null;
  if (catalogue.starts) $("start").value = catalogue.starts[0];
  tellDropped();
  for (const box of document.querySelectorAll("input[name=mode]")) box.addEventListener("change", guarded(predict));
  $("run").addEventListener("change", guarded(async () => {
    chooseRun();
    await Promise.all([showEnclaves(), predict()]);
  }));
  $("dropped").addEventListener("input", () => {
    tellDropped();
    soon(predict);
  });
  $("start").addEventListener("change", guarded(async () => {
    $("start").value = startNow();
    await predict();
  }));
  $("here").addEventListener("click", guarded(async () => {
    $("start").value = Math.max(1, Math.min(player.step, scene.steps - 1));
    chooseMode("rollout");
    await predict();
  }));
  $("enclaves").addEventListener("change", guarded(showEnclaves));
  $("part").addEventListener("change", () => {
    arena.part = Number($("part").value);
    redraw();
  });
}

// Waits until a slider stands still.
function soon(action) {
  clearTimeout(MODEL.timer);
  MODEL.timer = setTimeout(guarded(action), 200);
}

const startNow = () => Math.max(1, Math.min(scene.steps - 1, Math.floor(Number($("start").value)) || 1));
const tellDropped = () => ($("dropped-share").textContent = `${Math.round(100 * droppedNow())} %`);

// The runs of the world that is shown.
function chooseRuns() {
  const runs = catalogue.runs.filter((run) => run.world === $("world").value);
  $("model").hidden = !runs.length;
  const before = $("run").value;
  fill($("run"), runs.map((run) => [run.name, `${run.label}: ${run.name}`]));
  const after = wish("run") ?? before;
  if (runs.some((run) => run.name === after)) $("run").value = after;
  const mode = wish("mode");
  if (["none", "ahead", "rollout"].includes(mode)) chooseMode(mode);
  $("start").value = wish("start") ?? $("start").value;
  $("dropped").value = Math.max(0, catalogue.dropped.indexOf(Number(wish("dropped") ?? droppedNow())));
  tellDropped();
  chooseRun();
}

function chooseRun() {
  const run = runNow();
  MODEL.enclaves = null;
  $("enclaves-label").hidden = !run?.enclaves;
  $("part-label").hidden = true;
  if (!run?.enclaves) $("enclaves").checked = false;
  const rolls = document.querySelector("input[name=mode][value=rollout]");
  rolls.disabled = !run?.rolls_out;
  if (rolls.disabled && rolls.checked) chooseMode("ahead");
}

async function showEnclaves() {
  const run = runNow();
  if (run?.enclaves && $("enclaves").checked && !MODEL.enclaves) {
    MODEL.enclaves = (await askForScene("enclaves", { run: run.name })).layers;
    const [stack] = MODEL.enclaves;
    const parts = Array.from({ length: stack.values.shape[0] }, (_, n) => [n, `${stack.part} ${n}`]);
    fill($("part"), [[-1, "all"], ...parts]);
    arena.part = -1;
  }
  $("part-label").hidden = !(MODEL.enclaves && $("enclaves").checked);
  showLayers();
  redraw();
}

async function predict() {
  const run = runNow();
  const mode = run ? modeNow() : "none";
  MODEL.asked.abort();
  MODEL.asked = new AbortController();
  const { signal } = MODEL.asked;
  $("start-label").hidden = mode !== "rollout";
  let found = { panels: [], layers: [], note: "" };
  if (mode !== "none") {
    $("busy").textContent = "The model is computing ...";
    const start = mode === "rollout" ? startNow() : 0;
    const index = selected >= 0 && selected < (discs()?.detailed ?? 0) ? selected : 0;
    const what = { run: run.name, group: group.path, number: numberNow(), index, start, dropped: droppedNow() };
    try {
      found = await askForScene("prediction", what, signal);
    } catch (error) {
      if (!signal.aborted) $("busy").textContent = "";
      throw error;
    }
    if (signal.aborted) return;
  }
  $("busy").textContent = found.note;
  MODEL.views = found.panels.map((panel) => panelOf(panel, scene.steps));
  MODEL.layers = found.layers;
  $("prediction").replaceChildren(...MODEL.views.map((view) => view.element));
  showLayers();
  if (MODEL.enclaves === null && $("enclaves").checked) await showEnclaves();
  measure();
  redraw();
}
