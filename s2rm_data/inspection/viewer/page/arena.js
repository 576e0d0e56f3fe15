// The arena: layers drawn over one another in the world's own coordinates, one step at a time.

const MOST_PIXELS = 1200; // side of the arena's canvas
const MARK_STEPS = 3; // that an event stays visible
const CHOSEN = "#ffd400"; // what is selected, what it sees and how far it reaches

class ArenaView {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.layers = [];
    this.arena = null;
    this.part = -1; // of a stack; -1: all of them
  }

  show(arena, layers) {
    this.arena = arena;
    this.layers = layers;
    this.canvas.hidden = !arena;
    for (const layer of layers) {
      if (layer.kind === "Raster") layer.painter ??= new Painter(layer.values, layer.palette, layer);
    }
    this.resize();
  }

  resize() {
    if (!this.arena) return;
    const [left, low, right, high] = this.arena.extent;
    const wide = Math.max(1, Math.min(MOST_PIXELS, Math.round(this.canvas.clientWidth * (window.devicePixelRatio || 1))));
    const tall = Math.max(1, Math.round((wide * (high - low)) / (right - left)));
    if (this.canvas.width !== wide || this.canvas.height !== tall) {
      this.canvas.width = wide;
      this.canvas.height = tall;
    }
    this.scale = wide / (right - left);
  }

  x(value) {
    return (value - this.arena.extent[0]) * this.scale;
  }

  y(value) {
    const [, low, , high] = this.arena.extent;
    return (this.arena.y_down ? value - low : high - value) * this.scale;
  }

  draw(step, selected) {
    if (!this.arena) return;
    const { context, canvas } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = "#202020";
    context.fillRect(0, 0, canvas.width, canvas.height);
    for (const layer of this.layers) {
      if (layer.shown) this[`draw${layer.kind}`](layer, step, selected);
    }
  }

  // Lays a canvas of cells over an extent, its first row at the low end of y.
  lay(picture, extent) {
    const [left, low, right, high] = extent;
    const across = ((right - left) * this.scale) / picture.width;
    const up = ((high - low) * this.scale) / picture.height;
    this.context.imageSmoothingEnabled = false;
    this.context.setTransform(across, 0, 0, this.arena.y_down ? up : -up, this.x(left), this.y(low));
    this.context.drawImage(picture, 0, 0);
    this.context.setTransform(1, 0, 0, 1, 0, 0);
  }

  drawRaster(layer, step) {
    if (layer.painter.paint(step - layer.first)) this.lay(layer.painter.canvas, layer.extent);
  }

  drawBoxes(layer, step) {
    const { context, canvas } = this;
    const count = layer.centre.shape[1];
    if (step >= layer.centre.shape[0]) return;
    const side = layer.side * this.scale;
    const corners = [];
    for (let n = 0; n < count; n++) {
      if (layer.there && !layer.there.values[step * count + n]) continue;
      const at = 2 * (step * count + n);
      corners.push([this.x(layer.centre.values[at]) - side / 2, this.y(layer.centre.values[at + 1]) - side / 2, n]);
    }
    if (layer.dim) {
      const shade = (this.shade ??= document.createElement("canvas"));
      if (shade.width !== canvas.width || shade.height !== canvas.height) {
        shade.width = canvas.width;
        shade.height = canvas.height;
      }
      const pen = shade.getContext("2d");
      pen.clearRect(0, 0, shade.width, shade.height);
      pen.fillStyle = layer.dim;
      pen.fillRect(0, 0, shade.width, shade.height);
      for (const [x, y] of corners) pen.clearRect(x, y, side, side);
      context.drawImage(shade, 0, 0);
    }
    context.lineWidth = Math.max(1.5, this.scale / 8);
    for (const [x, y, n] of corners) {
      context.strokeStyle = layer.colours[n % layer.colours.length];
      context.strokeRect(x, y, side, side);
    }
  }

  drawArrows(layer, step) {
    const { context } = this;
    const count = layer.there.shape[1];
    if (step >= layer.there.shape[0]) return;
    const unit = this.canvas.width / 500;
    for (let n = 0; n < count; n++) {
      if (!layer.there.values[step * count + n]) continue;
      const at = 2 * (step * count + n);
      const [x, y] = [this.x(layer.start.values[at]), this.y(layer.start.values[at + 1])];
      const [endX, endY] = [this.x(layer.end.values[at]), this.y(layer.end.values[at + 1])];
      const angle = Math.atan2(endY - y, endX - x);
      context.strokeStyle = context.fillStyle = layer.colours[n % layer.colours.length];
      context.lineWidth = layer.width * unit;
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(endX, endY);
      context.stroke();
      context.beginPath();
      context.moveTo(endX, endY);
      for (const turn of [2.7, -2.7]) {
        context.lineTo(endX + 8 * unit * Math.cos(angle + turn), endY + 8 * unit * Math.sin(angle + turn));
      }
      context.fill();
    }
  }

  drawDiscs(layer, step, selected) {
    const count = layer.position.shape[1];
    if (step >= layer.position.shape[0]) return;
    if (selected >= 0 && selected < count && this.isThere(layer, step, selected)) this.drawSight(layer, step, selected);
    for (let n = 0; n < count; n++) {
      if (this.isThere(layer, step, n)) this.drawDisc(layer, step, n, n === selected);
    }
  }

  isThere(layer, step, n) {
    return !layer.there || layer.there.values[step * layer.position.shape[1] + n] === 1;
  }

  placeOf(layer, step, n) {
    const at = 2 * (step * layer.position.shape[1] + n);
    return [this.x(layer.position.values[at]), this.y(layer.position.values[at + 1])];
  }

  circle(x, y, radius) {
    this.context.beginPath();
    this.context.arc(x, y, Math.max(radius, 0.5), 0, 2 * Math.PI);
  }

  drawSight(layer, step, n) {
    const { context } = this;
    const [x, y] = this.placeOf(layer, step, n);
    context.lineWidth = 2;
    context.strokeStyle = CHOSEN;
    if (layer.sight) {
      this.circle(x, y, layer.sight * this.scale);
      context.fillStyle = "#fff3c433";
      context.fill();
      context.stroke();
    }
    if (layer.reach) {
      context.setLineDash([4, 5]);
      this.circle(x, y, layer.reach.values[n] * this.scale);
      context.stroke();
      context.setLineDash([]);
    }
  }

  drawDisc(layer, step, n, isSelected) {
    const { context } = this;
    const [x, y] = this.placeOf(layer, step, n);
    const radius = layer.radius.values[n] * this.scale;
    this.circle(x, y, radius);
    context.lineWidth = isSelected ? 4 : layer.outline ? 2 : 1;
    context.strokeStyle = isSelected ? CHOSEN : layer.outline ? layer.colours[n] : "#000000";
    if (!layer.outline) {
      context.fillStyle = layer.colours[n];
      context.fill();
    }
    context.stroke();
    if (layer.letters.length) {
      context.fillStyle = layer.outline ? layer.colours[n] : "#ffffff";
      context.font = `bold ${Math.max(9, Math.min(radius * 1.1, this.canvas.width / 28))}px system-ui, sans-serif`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      if (layer.outline) {
        // What lies below may have any colour.
        context.lineJoin = "round";
        context.lineWidth = Math.max(2, this.canvas.width / 250);
        context.strokeStyle = "#ffffff";
        context.strokeText(layer.letters[n], x, y);
      }
      context.fillText(layer.letters[n], x, y);
    }
    this.drawBars(layer, step, n, x, y - radius);
  }

  drawBars(layer, step, n, x, top) {
    const { context } = this;
    const wide = 0.9 * this.scale;
    const tall = Math.max(2, 0.12 * this.scale);
    let row = 0;
    for (const bar of layer.bars) {
      const full = bar.full.values[n];
      if (!(full > 0)) continue;
      const share = Math.max(0, Math.min(1, bar.values.values[step * layer.position.shape[1] + n] / full));
      const low = top - 2 - ++row * (tall + 1);
      context.fillStyle = "#e4e4e4";
      context.fillRect(x - wide / 2, low, wide, tall);
      context.fillStyle = bar.colour;
      context.fillRect(x - wide / 2, low, wide * share, tall);
    }
  }

  drawMarks(layer, step) {
    const { context } = this;
    context.strokeStyle = layer.colour;
    for (let k = 0; k < layer.step.values.length; k++) {
      const age = step - layer.step.values[k];
      if (age < 0 || age >= MARK_STEPS) continue;
      context.lineWidth = 3 - age;
      this.circle(this.x(layer.position.values[2 * k]), this.y(layer.position.values[2 * k + 1]), (1.4 + 0.9 * age) * this.scale);
      context.stroke();
    }
  }

  drawStack(layer) {
    if (layer.painted !== this.part) {
      layer.picture = stackPicture(layer, this.part, layer.picture);
      layer.painted = this.part;
    }
    this.lay(layer.picture, layer.extent);
  }

  // The number of the disc nearest to a place on the canvas, -1 if none is near.
  discAt(x, y, step) {
    const layer = this.layers.find((one) => one.kind === "Discs");
    if (!layer || step >= layer.position.shape[0]) return -1;
    let [best, distance] = [-1, Infinity];
    for (let n = 0; n < layer.position.shape[1]; n++) {
      if (!this.isThere(layer, step, n)) continue;
      const [discX, discY] = this.placeOf(layer, step, n);
      const away = Math.hypot(discX - x, discY - y) - layer.radius.values[n] * this.scale;
      if (away < distance) [best, distance] = [n, away];
    }
    return distance < this.canvas.width / 40 ? best : -1;
  }
}

// Every cell in the colour of its strongest part, the fainter the weaker that is; or one part alone.
function stackPicture(layer, part, canvas) {
  const [parts, rows, columns] = layer.values.shape;
  canvas ??= document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const colours = layer.colours.map(channelsOf);
  const cells = rows * columns;
  for (let cell = 0; cell < cells; cell++) {
    let best = part < 0 ? 0 : part;
    for (let n = 0; part < 0 && n < parts; n++) {
      if (layer.values.values[n * cells + cell] > layer.values.values[best * cells + cell]) best = n;
    }
    const strength = layer.values.values[best * cells + cell];
    image.data.set([...colours[best % colours.length].slice(0, 3), Math.round(190 * strength)], 4 * cell);
  }
  context.putImageData(image, 0, 0);
  return canvas;
}
