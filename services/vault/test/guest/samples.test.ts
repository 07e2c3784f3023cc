// The built modules of examples/guests: their hashes, what they do, and the one that this repository can build again.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { assemble } from "@platform/testing/guests";
import { serve, type Serving } from "../serving/serving.ts";
import { putModule } from "./guests.ts";

const SAMPLES = new URL("../../../../examples/guests/", import.meta.url);
const read = (name: string): Buffer => readFileSync(new URL(name, SAMPLES));

let serving: Serving;
before(async () => {
  serving = await serve();
  await serving.s3.must("PUT", "/samples");
});
after(() => serving[Symbol.asyncDispose]());

async function run(module: string, body: string | Buffer): Promise<string> {
  await serving.s3.must("PUT", "/samples/in", { body });
  return (await serving.s3.must("POST", `/samples/in?transform&module=${module}`)).text;
}

test("the built modules have the committed hashes", () => {
  const lines = read("sha256.txt").toString().trim().split("\n");
  assert.equal(lines.length, 3);
  for (const line of lines) {
    const [hash, name = ""] = line.split(/\s+/);
    assert.equal(createHash("sha256").update(read(name)).digest("hex"), hash!, name);
  }
  const built = assemble(read("text/count-lines.wat").toString());
  assert.ok(read("count-lines.wasm").equals(built));
});

test("csv2json: quotes, empty fields and short lines", async () => {
  await putModule(serving, "csv2json", read("csv2json.wasm"));
  const csv = 'name,"city, code",note\r\nAnn,"Berlin ""B""",\n"line\nbreak",Köln,x\nBob\n';
  const lines = (await run("csv2json", csv)).trimEnd().split("\n");
  assert.deepEqual(
    lines.map((line) => JSON.parse(line) as object),
    [
      { name: "Ann", "city, code": 'Berlin "B"', note: "" },
      { name: "line\nbreak", "city, code": "Köln", note: "x" },
      { name: "Bob" },
    ],
  );
  const many = `n\n${Array.from({ length: 200_000 }, (_, n) => n).join("\n")}\n`;
  const answer = await run("csv2json", many);
  assert.equal(answer.trimEnd().split("\n").length, 200_000);
});

test("redact: addresses go, other words stay", async () => {
  await putModule(serving, "redact", read("redact.wasm"));
  const text = "Write to ann.b+c@mail.example.org. Or to a@b.c, not to @home, x@y or 5@.";
  const expected = "Write to [e-mail]. Or to [e-mail], not to @home, x@y or 5@.";
  assert.equal(await run("redact", text), expected);
  assert.equal(await run("redact", "plain"), "plain");
});

test("count-lines, also behind another module", async () => {
  await putModule(serving, "count-lines", read("count-lines.wasm"));
  assert.equal(await run("count-lines", ""), "0\n");
  assert.equal(await run("count-lines", "a\nb\nc"), "2\n");
  const csv = `a,b\n${"1,2\n".repeat(70_000)}`;
  assert.equal(await run("csv2json,count-lines", csv), "70000\n");
});
