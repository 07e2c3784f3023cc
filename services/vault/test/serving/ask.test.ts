// Plain questions over HTTP: the answer equals the filters that it shows.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Answer } from "./s3-client.ts";
import { serve, type Serving } from "./serving.ts";

let serving: Serving;

before(async () => {
  serving = await serve();
  const { s3 } = serving;
  await s3.must("PUT", "/data");
  await s3.must("PUT", "/data?vector-index", { body: '{"dimension":2,"metric":"cosine"}' });
  const objects: [key: string, size: number, headers: Record<string, string>][] = [
    [
      "photos/cat.jpg",
      300,
      { "content-type": "image/jpeg", "x-amz-tagging": "team=red", "x-store-vector": "[1,0]" },
    ],
    ["photos/dog.png", 200, { "x-store-vector": "[0.9,0.1]" }],
    ["photos/tree.webp", 50, { "x-store-vector": "[0,1]" }],
    ["legal/solar-panel-contract.pdf", 900, { "x-amz-meta-author": "alice" }],
    ["legal/lease.pdf", 100, { "x-amz-meta-summary": "contract for the house" }],
    ["logs/2026.log", 0, {}],
  ];
  for (const [key, size, headers] of objects)
    await s3.must("PUT", `/data/${key}`, { body: "x".repeat(size), headers });
});
after(() => serving[Symbol.asyncDispose]());

const ask = (question: string, more = ""): Promise<Answer> =>
  serving.s3.send("GET", `/data?ask=${encodeURIComponent(question).replaceAll("'", "%27")}${more}`);

interface Found {
  query: string;
  interpreted: { by: string; filters: object };
  results?: { key: string; score?: number }[];
  answer?: { count: number; bytes: number };
  truncated: boolean;
}

async function find(question: string, more = ""): Promise<Found> {
  const answer = await ask(question, more);
  assert.equal(answer.status, 200, answer.text);
  return JSON.parse(answer.text) as Found;
}

test("results are the objects that match the filters shown", async () => {
  const QUESTIONS: [question: string, keys: string[]][] = [
    ["all images", ["photos/cat.jpg", "photos/dog.png", "photos/tree.webp"]],
    ["the 2 largest files", ["legal/solar-panel-contract.pdf", "photos/cat.jpg"]],
    ["pictures bigger than 100 bytes", ["photos/cat.jpg", "photos/dog.png"]],
    ["everything in the folder legal", ["legal/lease.pdf", "legal/solar-panel-contract.pdf"]],
    ["files tagged team=red", ["photos/cat.jpg"]],
    ["files with metadata author=Alice", []],
    ["files with metadata author=alice", ["legal/solar-panel-contract.pdf"]],
    ["empty files", ["logs/2026.log"]],
    ["files older than 1 day", []],
    [
      "files from today that are not images in legal/",
      ["legal/lease.pdf", "legal/solar-panel-contract.pdf"],
    ],
    ["the solar panel contracts", ["legal/solar-panel-contract.pdf", "legal/lease.pdf"]],
    ["files similar to photos/cat.jpg", ["photos/dog.png", "photos/tree.webp"]],
    ["images similar to legal/lease.pdf", []],
    ["something about 'nothing'", []],
  ];
  for (const [question, keys] of QUESTIONS) {
    const { query, interpreted, results } = await find(question);
    assert.deepEqual([query, interpreted.by], [question, "grammar"]);
    assert.deepEqual(
      results?.map(({ key }) => key),
      keys,
      `${question}: ${JSON.stringify(interpreted)}`,
    );
  }
  assert.deepEqual(
    (await find("all images", "&prefix=photos/d")).results?.map(({ key }) => key),
    ["photos/dog.png"],
  );
});

test("numbers and sizes are answers", async () => {
  assert.deepEqual((await find("how many pdfs are there?")).answer, { count: 2, bytes: 1_000 });
  assert.deepEqual((await find("how much space do images use?")).answer, { count: 3, bytes: 550 });
});

test("questions that are empty or too long, and anonymous ones, are refused", async () => {
  for (const question of ["", "  ", "x".repeat(3_000)]) {
    assert.equal((await ask(question)).code, "InvalidArgument");
  }
  assert.equal((await serving.s3.send("GET", "/data?ask=files", { key: null })).status, 403);
  for (const question of ["'; drop table objects; --", "什么", '"', "a".repeat(2_000), "%%% ((("]) {
    assert.equal((await ask(question)).status, 200, question);
  }
});
