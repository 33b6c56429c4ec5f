// The order of the results of a search: pages that explain come before generated ones, and those before the rest.
// Sphinx's defaults score a term in the text, and sort by title among equals.

"use strict";

const PLACES = [
  [/^concepts\/(?!index)/, 6],
  [/^(howto|start)\/(?!index)/, 4],
  [/^reference\/porting/, 4],
  [/^(operators|arrays|onnx|onnxruntime|dask|xarray|guarantees|decisions)/, 2],
  [/^(reference\/array_peers|generated\/operators\/(?!index))/, 2],
  [/^(index$|benchmarking|architecture|performance|reliability|releasing|scaling|project\/)/, -2],
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
