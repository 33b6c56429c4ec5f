// Runs exported cases on a toy runtime, without Protobuf: node run.mjs DIR
import { readFileSync } from "node:fs";
import { run } from "./toy_runtime.mjs";

const folder = process.argv[2], counts = { passed: 0, wrong: 0, skipped: 0 };
const arrays = { float32: Float32Array, float64: Float64Array, int64: BigInt64Array, int8: Int8Array };

function read({ dtype, shape, raw }) {
  const bytes = readFileSync(`${folder}/${raw.path}`), type = arrays[dtype] ?? Uint8Array; // bytes of 16-bit floats
  return { shape, data: new type(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)) };
}

function equal(found, expected, { relative, absolute }) {
  return String(found.shape) === String(expected.shape) && expected.data.every((wanted, i) => {
    const value = found.data[i], near = Math.abs(value - wanted) <= absolute + relative * Math.abs(wanted);
    return Object.is(value, wanted) || value === wanted || near; // which is true of NaN, equal zeros and infinities
  });
}

for (const entry of JSON.parse(readFileSync(`${folder}/manifest.json`)).cases) {
  const outputs = entry.error ? undefined : run(entry, entry.inputs.map(read));
  const right = outputs?.every((found, i) => equal(found, read(entry.outputs[i]), entry.outputs[i].tolerance));
  counts[outputs === undefined ? "skipped" : right ? "passed" : "wrong"]++;
  if (right === false) console.log(`wrong: ${entry.name} (${entry.tier})`);
}
console.log(JSON.stringify(counts));
process.exit(counts.wrong ? 1 : 0);
