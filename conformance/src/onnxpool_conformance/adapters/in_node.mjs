// Answers lines of JSON: {model, inputs} in base64 -> {outputs} or {error}. Usage: node in_node.mjs PACKAGE
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [name] = process.argv.slice(2);
const require = createRequire(`${process.cwd()}/`);
const ort = require(name);
const { version } = require(require.resolve(name).replace(new RegExp(`(.*/${name}/).*`), "$1package.json"));
const types = {
  float16: Uint16Array, float32: Float32Array, float64: Float64Array, int64: BigInt64Array, int8: Int8Array,
  uint8: Uint8Array,
};
ort.env.logLevel = "fatal";
if (ort.env.wasm) ort.env.wasm.numThreads = 1;

function bytes(text) {
  return Uint8Array.from(Buffer.from(text, "base64")).buffer;
}

async function run({ model, inputs }) {
  const session = await ort.InferenceSession.create(new Uint8Array(bytes(model)), {
    executionProviders: [name === "onnxruntime-web" ? "wasm" : "cpu"], logSeverityLevel: 4, intraOpNumThreads: 1,
  });
  try {
    const feeds = Object.fromEntries(inputs.map(({ dtype, shape, data }, place) => {
      if (!types[dtype]) throw new Error(`there are no arrays of ${dtype}`);
      return [session.inputNames[place], new ort.Tensor(dtype, new types[dtype](bytes(data)), shape)];
    }));
    const found = await session.run(feeds);
    return session.outputNames.map((output) => {
      const { type, dims, data } = found[output];
      return { dtype: type, shape: dims, data: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64") };
    });
  } finally {
    await session.release?.();
  }
}

console.log(JSON.stringify({ version }));
for await (const line of createInterface({ input: process.stdin })) {
  try {
    console.log(JSON.stringify({ outputs: await run(JSON.parse(line)) }));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error?.message ?? error) }));
  }
}
