// What the page is given: scenes as typed arrays, from the server or from inside this very file.

const MAGIC = "S2VIEW1\n";
const TYPES = { u1: Uint8Array, i2: Int16Array, i4: Int32Array, f4: Float32Array };

function unpacked(buffer) {
  const bytes = new Uint8Array(buffer);
  if (new TextDecoder().decode(bytes.subarray(0, 8)) !== MAGIC) throw new Error("The answer is not a scene.");
  const length = new DataView(buffer).getUint32(8, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(12, 12 + length)));
  const arrays = header.arrays.map(({ type, shape, offset }) => {
    const count = shape.reduce((product, side) => product * side, 1);
    return { shape, values: new TYPES[type](buffer, 12 + length + offset, count) };
  });
  return withArrays(header.body, arrays);
}

function withArrays(value, arrays) {
  if (Array.isArray(value)) return value.map((part) => withArrays(part, arrays));
  if (value === null || typeof value !== "object") return value;
  if (Object.keys(value).length === 1 && "array" in value) return arrays[value.array];
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, withArrays(part, arrays)]));
}

const addressOf = (route, parameters) => `${route}?${new URLSearchParams(parameters)}`;

const embedded = (() => {
  const element = document.getElementById("embedded");
  if (!element) return null;
  return new Map(JSON.parse(element.textContent).map(([route, given, data]) => [addressOf(route, given), data]));
})();

async function bytesInside(address) {
  if (!embedded.has(address)) throw new Error("This file does not hold that; open the store itself with s2rm-data view.");
  const packed = Uint8Array.from(atob(embedded.get(address)), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

async function bytesOf(route, parameters, signal) {
  const address = addressOf(route, parameters);
  if (embedded) return bytesInside(address);
  let response;
  try {
    response = await fetch(address, { signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The viewer's server does not answer; is s2rm-data view still running?");
  }
  if (!response.ok) throw new Error((await response.text()) || `The server answered ${response.status}.`);
  return response.arrayBuffer();
}

const askForScene = async (...what) => unpacked(await bytesOf(...what));
const askForTable = async (...what) => JSON.parse(new TextDecoder().decode(await bytesOf(...what)));
