// The order of search results: pages that explain come before generated pages, and generated pages before the others.
// Sphinx's defaults score a term in the text, and sort by title among equals.

"use strict";

const PLACES = [
  [/^concepts\/(?!index)/, 6],
  [/^(howto|start)\/(?!index)/, 4],
  [/^reference\/porting/, 4],
  [/^(operators|embedding|compatibility|project\/contributing)$/, 6],
  [/^(arrays|onnx|onnxruntime|dask|xarray|guarantees|reference\/decisions)/, 2],
  [/^(reference\/array_peers|generated\/operators\/(?!index))/, 2],
  [/^(index$|benchmarking|architecture|performance|reliability|releasing|scaling|project\/|reference\/builds)/, -2],
];

var Scorer = {
  score: ([page, , , , score]) => score + (PLACES.find(([name]) => name.test(page))?.[1] ?? 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
