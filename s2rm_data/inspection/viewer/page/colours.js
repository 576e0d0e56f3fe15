// Palettes as tables of pixels, and pictures painted with them.

function channelsOf(hex) {
  const digits = hex.slice(1).padEnd(8, "f");
  return [0, 2, 4, 6].map((start) => parseInt(digits.slice(start, start + 2), 16));
}

const LEVELS = 256;

// Uint32 pixels as canvases lay them out in memory (little-endian: alpha, blue, green, red).
function tableOf(palette) {
  if (palette.table) return palette.table;
  const stops = palette.colours.map(channelsOf);
  const count = palette.names.length ? stops.length : LEVELS;
  const table = new Uint32Array(count);
  for (let level = 0; level < count; level++) {
    const at = palette.names.length ? level : (level / (LEVELS - 1)) * (stops.length - 1);
    const below = stops[Math.floor(at)];
    const above = stops[Math.min(Math.floor(at) + 1, stops.length - 1)];
    const [r, g, b, a] = below.map((part, n) => Math.round(part + (above[n] - part) * (at - Math.floor(at))));
    table[level] = ((a << 24) | (b << 16) | (g << 8) | r) >>> 0;
  }
  palette.table = table;
  return table;
}

// The table's index of a value is value * scale + shift, cut to the table.
function scalingOf(palette, divisor) {
  if (palette.names.length) return [1 / divisor, 0];
  const scale = (LEVELS - 1) / (palette.high - palette.low || 1);
  return [scale / divisor, -palette.low * scale];
}

// A canvas of H x W pixels of which one step at a time is painted; `cellOf` maps pixels to cells (-1: none).
class Painter {
  constructor(array, palette, { width = 0, bits = false, cellOf = null, side = 0, upward = false, divisor = 1 } = {}) {
    const [, rows, columns, channels = 1] = array.shape;
    this.array = array;
    this.coloured = channels === 3;
    this.palette = palette;
    this.bits = bits;
    this.cellOf = cellOf;
    this.upward = upward;
    this.divisor = divisor;
    this.rows = rows;
    this.columns = width || columns;
    this.canvas = document.createElement("canvas");
    this.canvas.width = side || this.columns;
    this.canvas.height = side || rows;
    this.context = this.canvas.getContext("2d");
    this.image = this.context.createImageData(this.canvas.width, this.canvas.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.step = -2;
  }

  // True if there is a picture of this step.
  paint(step) {
    const steps = this.array.shape[0];
    const at = steps === 1 && !this.cellOf ? 0 : step;
    if (at < 0 || at >= steps) return false;
    if (at === this.step) return true;
    this.step = at;
    if (this.bits) this.paintBits(at);
    else if (this.cellOf) this.paintCells(at);
    else if (this.coloured) this.paintColours(at);
    else this.paintRows(at);
    this.context.putImageData(this.image, 0, 0);
    return true;
  }

  paintBits(step) {
    const [, rows, bytes] = this.array.shape;
    const [off, on] = tableOf(this.palette);
    const { values } = this.array;
    let pixel = 0;
    for (let row = 0; row < rows; row++) {
      const start = (step * rows + row) * bytes;
      for (let column = 0; column < this.columns; column++) {
        this.pixels[pixel++] = (values[start + (column >> 3)] >> (7 - (column & 7))) & 1 ? on : off;
      }
    }
  }

  paintRows(step) {
    const { rows, columns, pixels } = this;
    const { values } = this.array;
    const table = tableOf(this.palette);
    const [scale, shift] = scalingOf(this.palette, this.divisor);
    const last = table.length - 1;
    for (let row = 0; row < rows; row++) {
      const from = (step * rows + (this.upward ? rows - 1 - row : row)) * columns;
      for (let column = 0; column < columns; column++) {
        const level = Math.round(values[from + column] * scale + shift);
        pixels[row * columns + column] = level >= 0 ? table[level > last ? last : level] : table[0];
      }
    }
  }

  paintColours(step) {
    const { rows, columns, pixels } = this;
    const { values } = this.array;
    for (let row = 0; row < rows; row++) {
      let at = 3 * (step * rows + (this.upward ? rows - 1 - row : row)) * columns;
      for (let column = 0; column < columns; column++, at += 3) {
        pixels[row * columns + column] = (0xff000000 | (values[at + 2] << 16) | (values[at + 1] << 8) | values[at]) >>> 0;
      }
    }
  }

  paintCells(step) {
    const { cellOf, pixels } = this;
    const { values } = this.array;
    const table = tableOf(this.palette);
    const [scale, shift] = scalingOf(this.palette, this.divisor);
    const last = table.length - 1;
    const start = step * this.rows * this.columns;
    for (let pixel = 0; pixel < pixels.length; pixel++) {
      const cell = cellOf[pixel];
      if (cell < 0) continue;
      const level = Math.round(values[start + cell] * scale + shift);
      pixels[pixel] = level >= 0 ? table[level > last ? last : level] : table[0];
    }
  }
}

// For every pixel of a square, the polar cell it lies in: ring i reaches from (i - 1/2) to (i + 1/2) radial units,
// the last one to the edge; sector j is centred on its angle, counter-clockwise from the east. Ring 0 is one point: its
// cell 0 stands for all of them.
const polarMaps = new Map();
function polarCells(rings, sectors, side) {
  const key = `${rings} ${sectors} ${side}`;
  if (polarMaps.has(key)) return polarMaps.get(key);
  const cells = new Int32Array(side * side).fill(-1);
  for (let row = 0; row < side; row++) {
    for (let column = 0; column < side; column++) {
      const x = ((column + 0.5) / side) * 2 - 1;
      const y = 1 - ((row + 0.5) / side) * 2;
      const radius = Math.hypot(x, y);
      if (radius >= 1) continue;
      const ring = Math.min(Math.floor(radius * rings + 0.5), rings - 1);
      const turn = Math.atan2(y, x) / (2 * Math.PI);
      const sector = ((Math.round(turn * sectors) % sectors) + sectors) % sectors;
      cells[row * side + column] = ring ? ring * sectors + sector : 0;
    }
  }
  polarMaps.set(key, cells);
  return cells;
}
