// What stands beside the arena: pictures with their colours explained, and curves over time.

const element = (name, { text = "", ...properties } = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  if (text) made.textContent = text; // never as markup: names in a store are anybody's words
  made.append(...children);
  return made;
};
const inkOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const spelled = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(4))) : "–");

const POLAR_PIXELS = 144; // side of a polar picture

class PicturesPanel {
  constructor(panel) {
    this.element = element("section", { className: "panel" }, element("h2", { text: panel.title }));
    if (panel.note) this.element.append(element("p", { className: "note", text: panel.note }));
    const tiles = element("div", { className: panel.small ? "tiles small" : panel.paired ? "tiles paired" : "tiles" });
    this.tiles = panel.pictures.map((picture) => new Tile(picture, panel.small));
    tiles.append(...this.tiles.map((tile) => tile.element));
    this.element.append(tiles);
    if (panel.small && panel.pictures.length) this.element.append(legendOf(panel.pictures[0].palette));
  }

  draw(step) {
    for (const tile of this.tiles) tile.draw(step);
  }
}

class Tile {
  constructor(picture, small) {
    const [, rows, columns] = picture.values.shape;
    const shape = picture.polar ? { cellOf: polarCells(rows, columns, POLAR_PIXELS), side: POLAR_PIXELS } : {};
    this.picture = picture;
    this.painter = new Painter(picture.values, picture.palette, { ...shape, upward: picture.upward, divisor: picture.divisor });
    this.canvas = this.painter.canvas;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", picture.title);
    if (picture.polar) this.canvas.className = "polar";
    if (picture.border) this.canvas.style.border = `3px solid ${picture.border}`;
    this.element = element("figure", {}, this.canvas, element("figcaption", { text: picture.title }));
    if (!small) this.element.append(legendOf(picture.palette));
    this.isBlank = false;
  }

  draw(step) {
    const there = this.painter.paint(step - this.picture.first);
    if (there === !this.isBlank) return;
    this.isBlank = !there;
    this.canvas.style.opacity = there ? "1" : "0.12";
  }
}

// A bar of colours begins with the title, if there is one; colours with names need none.
function legendOf(palette, title = "") {
  if (palette.names.length) {
    const named = palette.names.map((name, n) => [name, palette.colours[n]]).filter(([name]) => name);
    return element("ul", { className: "names" }, ...named.map(([name, colour]) => {
      return element("li", {}, swatch(colour), ` ${name}`);
    }));
  }
  const bar = element("canvas", { width: LEVELS, height: 1 });
  bar.setAttribute("role", "img");
  bar.setAttribute("aria-label", `colours from ${spelled(palette.low)} to ${spelled(palette.high)}`);
  const context = bar.getContext("2d");
  const image = context.createImageData(LEVELS, 1);
  new Uint32Array(image.data.buffer).set(tableOf(palette));
  context.putImageData(image, 0, 0);
  const ends = [palette.low, palette.high].map((value) => element("span", { text: spelled(value) }));
  return element("div", { className: "bar" }, ...(title ? [element("span", { text: title })] : []), ends[0], bar, ends[1]);
}

function swatch(colour) {
  const made = element("span", { className: "swatch" });
  made.style.background = colour;
  return made;
}

class CurvesPanel {
  constructor(panel, steps) {
    this.panel = panel;
    this.steps = steps;
    const title = panel.unit ? `${panel.title}, ${panel.unit}` : panel.title;
    this.canvas = element("canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${title} over time`);
    this.numbers = panel.curves.map(() => document.createTextNode(""));
    const names = panel.curves.map((curve, n) => {
      return element("li", {}, swatch(curve.colour), ` ${curve.title} `, this.numbers[n]);
    });
    this.element = element(
      "section", { className: "panel curves" }, element("h2", { text: title }), this.canvas,
      element("ul", { className: "names" }, ...names),
    );
    this.drawn = null; // the curves without the line of the present
  }

  range() {
    let [low, high] = [this.panel.low ?? Infinity, this.panel.high ?? -Infinity];
    for (const { values } of this.panel.curves) {
      for (const value of values.values) {
        if (!Number.isFinite(value)) continue;
        if (this.panel.low === null) low = Math.min(low, value);
        if (this.panel.high === null) high = Math.max(high, value);
      }
    }
    if (!Number.isFinite(low)) low = 0;
    if (!Number.isFinite(high)) high = low + 1;
    return high > low ? [low, high] : [low, low + 1];
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    this.ratio = ratio;
    this.drawn ??= document.createElement("canvas");
    this.drawn.width = this.canvas.width;
    this.drawn.height = this.canvas.height;
    this.drawCurves(this.drawn.getContext("2d"));
  }

  x(step) {
    const left = 46 * this.ratio;
    return left + (step / Math.max(1, this.steps - 1)) * (this.canvas.width - left - 6 * this.ratio);
  }

  y(value) {
    const [low, high] = this.limits;
    const pad = 8 * this.ratio;
    return this.canvas.height - pad - ((value - low) / (high - low)) * (this.canvas.height - 2 * pad);
  }

  drawCurves(context) {
    this.limits ??= this.range();
    context.clearRect(0, 0, this.drawn.width, this.drawn.height);
    context.font = `${11 * this.ratio}px system-ui, sans-serif`;
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillStyle = inkOf("--soft");
    context.strokeStyle = inkOf("--line");
    context.lineWidth = this.ratio;
    for (const value of this.limits) {
      context.fillText(spelled(value), this.x(0) - 5 * this.ratio, this.y(value));
      context.beginPath();
      context.moveTo(this.x(0), this.y(value));
      context.lineTo(this.x(this.steps - 1), this.y(value));
      context.stroke();
    }
    context.lineWidth = 1.6 * this.ratio;
    for (const curve of this.panel.curves) this.drawCurve(context, curve);
  }

  drawCurve(context, { values, colour, first }) {
    context.strokeStyle = colour;
    context.beginPath();
    let pen = false;
    values.values.forEach((value, n) => {
      if (!Number.isFinite(value)) pen = false;
      else if (pen) context.lineTo(this.x(first + n), this.y(value));
      else context.moveTo(this.x(first + n), this.y(value));
      pen = Number.isFinite(value);
    });
    context.stroke();
  }

  draw(step) {
    if (!this.drawn || this.canvas.width < 2) this.resize();
    const context = this.canvas.getContext("2d");
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.drawn, 0, 0);
    context.strokeStyle = inkNow.ink;
    context.lineWidth = this.ratio;
    context.beginPath();
    context.moveTo(this.x(step), 0);
    context.lineTo(this.x(step), this.canvas.height);
    context.stroke();
    this.panel.curves.forEach((curve, n) => {
      const value = curve.values.values[step - curve.first];
      this.numbers[n].data = value === undefined ? "–" : spelled(value);
    });
  }
}

const inkNow = { ink: "#000000" }; // asked of the style sheet when the theme changes, not at every step

const panelOf = (panel, steps) => (panel.kind === "Curves" ? new CurvesPanel(panel, steps) : new PicturesPanel(panel));
