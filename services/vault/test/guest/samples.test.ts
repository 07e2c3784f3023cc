// The built modules of examples/guests: their hashes, what they do, and the one that this repository can build again.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { assemble } from "@platform/testing/guests";
import { createRandom } from "@platform/testing/random";
import { serve, type Serving } from "../serving/serving.ts";
import { putModule } from "./guests.ts";
import { decodePng, encodePng } from "./png.ts";

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
  assert.equal(lines.length, 6);
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

test("redact: addresses go, other words stay; AssemblyScript, C and Rust write the same bytes", async () => {
  const modules = ["redact", "redact-c", "redact-rust"];
  for (const name of modules) await putModule(serving, name, read(`${name}.wasm`));
  const text = "Write to ann.b+c@mail.example.org. Or to a@b.c, not to @home, x@y or 5@.";
  const expected = "Write to [e-mail]. Or to [e-mail], not to @home, x@y or 5@.";
  const random = createRandom(37);
  const letters = "ab@..@-_% \n\0é";
  const noise = Array.from({ length: 200_000 }, () => letters[Math.floor(random() * 13)]).join("");
  const large = "a@b.c ".repeat(500_000);
  for (const [body, wanted] of [
    [text, expected],
    ["plain", "plain"],
    ["", ""],
    ["a@b.c", "[e-mail]"],
    [large, "[e-mail] ".repeat(500_000)],
    [noise, undefined],
  ] as const) {
    const outputs: string[] = [];
    for (const name of modules) outputs.push(await run(name, body));
    assert.equal(outputs[0], wanted ?? outputs[1]);
    assert.ok(outputs.every((output) => output === outputs[0]));
  }
  assert.ok((await run("redact", noise)).includes("[e-mail]"));
});

test("count-lines, also behind another module", async () => {
  await putModule(serving, "count-lines", read("count-lines.wasm"));
  assert.equal(await run("count-lines", ""), "0\n");
  assert.equal(await run("count-lines", "a\nb\nc"), "2\n");
  const csv = `a,b\n${"1,2\n".repeat(70_000)}`;
  assert.equal(await run("csv2json,count-lines", csv), "70000\n");
});

test("thumbnail: all kinds of PNG, with the mean of the pixels weighted by their alpha", async () => {
  await putModule(serving, "thumbnail", read("thumbnail.wasm"));
  const shrink = async (body: Buffer) => {
    await serving.s3.must("PUT", "/samples/in", { body });
    return serving.s3.send("POST", "/samples/in?transform&module=thumbnail");
  };
  // The left half is red, the right half a transparent blue.
  const colour = (x: number, y: number): number[] =>
    x < 160 ? [250, 10, 20, 255] : [10, 20, 250, y % 2 === 0 ? 0 : 200];
  const made = await shrink(
    encodePng({ width: 320, height: 90, kind: 6, depth: 8, pixel: colour }),
  );
  assert.equal(made.status, 200, made.text);
  const small = decodePng(made.body);
  assert.deepEqual([small.width, small.height], [160, 45]);
  assert.deepEqual(small.pixel(10, 20), [250, 10, 20, 255]);
  assert.deepEqual(small.pixel(150, 20), [10, 20, 250, 100]);

  for (const [kind, depth, sample, expected] of [
    [0, 1, [1], [255, 255, 255, 255]],
    [0, 4, [3], [51, 51, 51, 255]],
    [0, 16, [0x12_34], [0x12, 0x12, 0x12, 255]],
    [2, 8, [1, 2, 3], [1, 2, 3, 255]],
    [2, 16, [0x01_00, 0x02_00, 0x03_ff], [1, 2, 3, 255]],
    [3, 8, [1], [40, 50, 60, 7]],
    [3, 2, [1], [40, 50, 60, 7]],
    [4, 8, [90, 33], [90, 90, 90, 33]],
    [6, 16, [0x05_00, 0x06_00, 0x07_00, 0x08_00], [5, 6, 7, 8]],
  ] as const) {
    const png = encodePng({ width: 13, height: 7, kind, depth, pixel: () => [...sample] });
    const { status, body, text } = await shrink(png);
    assert.equal(status, 200, `${kind}/${depth}: ${text}`);
    const { width, height, pixel } = decodePng(body);
    assert.deepEqual([width, height, pixel(12, 6)], [13, 7, expected], `${kind}/${depth}`);
  }
});

test("thumbnail: what is no whole PNG is refused", async () => {
  await putModule(serving, "thumbnail", read("thumbnail.wasm"));
  const whole = encodePng({
    width: 40,
    height: 30,
    kind: 2,
    depth: 8,
    pixel: (x, y) => [x * 6, y * 8, (x * y) % 256],
  });
  const damaged = [Buffer.alloc(0), Buffer.from("GIF89a"), whole.subarray(0, 60)];
  for (let at = 8; at < whole.length; at += 41) {
    const bytes = Buffer.from(whole);
    bytes[at]! ^= 0x55;
    damaged.push(bytes);
  }
  let refused = 0;
  for (const body of damaged) {
    await serving.s3.must("PUT", "/samples/in", { body });
    const { status, text } = await serving.s3.send(
      "POST",
      "/samples/in?transform&module=thumbnail",
    );
    if (status !== 200) assert.match(text, /GuestFailed|InvalidRequest/);
    if (status !== 200) refused += 1;
  }
  assert.ok(refused > damaged.length / 2, `${refused} of ${damaged.length}`);
});
