// Files of a folder: which are found, and which bytes and fields are sent.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { openStaticFile, readPieces, type StaticFileOptions } from "../../src/content/index.ts";

const folder = mkdtempSync(join(tmpdir(), "content-"));
after(() => rmSync(folder, { recursive: true }));
const root = join(folder, "root");
mkdirSync(join(root, "sub"), { recursive: true });
mkdirSync(join(root, ".well-known"));
mkdirSync(join(root, "empty"));
writeFileSync(join(folder, "secret.txt"), "secret");
writeFileSync(join(root, "a.txt"), "0123456789");
writeFileSync(join(root, "sub", "index.html"), "<p>");
writeFileSync(join(root, ".hidden"), "hidden");
writeFileSync(join(root, ".well-known", "security.txt"), "contact");
symlinkSync(join(folder, "secret.txt"), join(root, "escape.txt"));
symlinkSync(folder, join(root, "up"));
symlinkSync("a.txt", join(root, "inside.txt"));
symlinkSync("loop", join(root, "loop"));
execFileSync("sh", ["-c", `mkfifo "$0"`, join(root, "pipe")]);

async function get(
  path: string,
  fields: Record<string, string> = {},
  more: Partial<StaticFileOptions> = {},
) {
  const answer = await openStaticFile(root, path, {
    method: "GET",
    read: (name) => fields[name],
    index: "index.html",
    cacheControl: "no-cache",
    ...more,
  });
  if (answer === undefined || answer === "folder") return answer;
  let text = "";
  if (answer.content !== undefined) {
    for await (const piece of readPieces(answer.content)) text += piece.toString();
    assert.equal(text.length, answer.content.length);
    await answer.content.handle.close();
  }
  return { status: answer.status, fields: Object.fromEntries(answer.headers), text };
}

const textOf = async (path: string): Promise<string | undefined> => {
  const answer = await get(path);
  return typeof answer === "object" ? answer.text : answer;
};

test("only regular, visible files inside the folder are found", async () => {
  assert.equal(await textOf("a.txt"), "0123456789");
  assert.equal(await textOf("inside.txt"), "0123456789");
  assert.equal(await textOf("sub/"), "<p>");
  assert.equal(await textOf("sub"), "folder");
  assert.equal(await textOf(".well-known/security.txt"), "contact");
  const missing = [
    "",
    "none",
    "a.txt/",
    "a.txt/x",
    "empty/",
    ".hidden",
    "../secret.txt",
    "sub/../../secret.txt",
    "escape.txt",
    "up/secret.txt",
    "up/",
    "loop",
    "pipe",
    "a.txt\0",
    "sub\\index.html",
    "x".repeat(5_000),
  ];
  for (const path of missing) assert.equal(await textOf(path), undefined, path);
  assert.equal(await get("sub/", {}, { index: "" }), undefined);
});

test("validators answer conditional and range requests", async () => {
  const whole = await get("a.txt");
  assert.ok(typeof whole === "object");
  assert.equal(whole.fields["Content-Type"], "text/plain; charset=utf-8");
  assert.equal(whole.fields["Accept-Ranges"], "bytes");
  const etag = whole.fields["ETag"]!;
  const part = await get("a.txt", { range: "bytes=2-4", "if-range": etag });
  assert.ok(typeof part === "object");
  assert.deepEqual(
    [part.status, part.text, part.fields["Content-Range"]],
    [206, "234", "bytes 2-4/10"],
  );
  const same = await get("a.txt", { "if-none-match": etag });
  assert.ok(typeof same === "object");
  assert.deepEqual([same.status, same.fields["ETag"], same.text], [304, etag, ""]);
  const beyond = await get("a.txt", { range: "bytes=10-" });
  assert.ok(typeof beyond === "object");
  assert.deepEqual([beyond.status, beyond.fields], [416, { "Content-Range": "bytes */10" }]);
});

test("several ranges are sent as the parts of one response", async () => {
  const bytes = Array.from({ length: 1_000 }, (_, at) => String(at % 10)).join("");
  writeFileSync(join(root, "digits.txt"), bytes);
  const answer = await get("digits.txt", { range: "bytes=0-2,995-,500-504" });
  assert.ok(typeof answer === "object");
  assert.equal(answer.status, 206);
  assert.equal(answer.fields["Content-Range"], undefined);
  const boundary = /^multipart\/byteranges; boundary=(\w+)$/.exec(
    answer.fields["Content-Type"]!,
  )![1]!;
  assert.deepEqual(
    answer.text.split(`\r\n--${boundary}`).map((part) => part.split("\r\n").slice(2)),
    [
      [],
      ["Content-Range: bytes 0-2/1000", "", "012"],
      ["Content-Range: bytes 995-999/1000", "", "56789"],
      ["Content-Range: bytes 500-504/1000", "", "01234"],
      [],
    ],
  );
});

test("an accepted precompressed sibling that is not older is sent in place of the file", async () => {
  writeFileSync(join(root, "app.js"), "code");
  writeFileSync(join(root, "app.js.gz"), "gzip bytes");
  writeFileSync(join(root, "app.js.br"), "brotli bytes");
  const now = Date.now() / 1_000;
  utimesSync(join(root, "app.js"), now, now);
  utimesSync(join(root, "app.js.gz"), now, now);
  utimesSync(join(root, "app.js.br"), now, now - 60);
  const options = { isPrecompressed: true };
  const accept = { "accept-encoding": "br, gzip" };
  const coded = await get("app.js", accept, options);
  assert.ok(typeof coded === "object");
  assert.equal(coded.text, "gzip bytes");
  assert.equal(coded.fields["Content-Encoding"], "gzip");
  assert.equal(coded.fields["Content-Type"], "text/javascript; charset=utf-8");
  assert.equal(coded.fields["Vary"], "Accept-Encoding");
  utimesSync(join(root, "app.js.br"), now, now);
  const best = await get("app.js", accept, options);
  assert.ok(typeof best === "object");
  assert.equal(best.text, "brotli bytes");
  const plain = await get("app.js", {}, options);
  assert.ok(typeof plain === "object");
  assert.deepEqual([plain.text, plain.fields["Content-Encoding"]], ["code", undefined]);
  assert.notEqual(plain.fields["ETag"], best.fields["ETag"]);
  assert.equal(plain.fields["Vary"], "Accept-Encoding");
  const off = await get("app.js", accept);
  assert.ok(typeof off === "object");
  assert.equal(off.text, "code");
});

test("a file that becomes shorter while it is sent fails", async () => {
  const path = join(root, "shrinks.bin");
  writeFileSync(path, Buffer.alloc(200_000));
  const answer = await openStaticFile(root, "shrinks.bin", {
    method: "GET",
    read: () => undefined,
    index: "",
    cacheControl: "no-cache",
  });
  assert.ok(typeof answer === "object" && answer.content !== undefined);
  const { handle } = answer.content;
  const pieces = readPieces(answer.content);
  await pieces.next();
  truncateSync(path, 70_000);
  await assert.rejects(async () => {
    for await (const _ of pieces);
  }, /shorter/);
  await handle.close();
});
