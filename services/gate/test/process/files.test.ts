// Static files of routes at the real gateway.
import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { brotliCompressSync, brotliDecompressSync, gunzipSync } from "node:zlib";
import { routeSchema } from "../../src/config/route.ts";
import {
  makeFolder,
  runtimes,
  runtimesOfRules,
  spawnGate,
  startGate,
} from "../fixture/gate-process.ts";

/** Sends the path as it is, without the normalization of `fetch`. */
function ask(
  port: number,
  path: string,
  headers: Record<string, string> = {},
  method = "GET",
): Promise<{ status: number; headers: Record<string, unknown>; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, method, headers, agent: false });
    sent.on("error", reject).on("response", (answer) => {
      const pieces: Buffer[] = [];
      answer.on("data", (piece: Buffer) => pieces.push(piece)).on("error", reject);
      answer.on("end", () => {
        const { statusCode: status = 0 } = answer;
        resolve({ status, headers: answer.headers, body: Buffer.concat(pieces) });
      });
    });
    sent.end();
  });
}

function makeSite(context: TestContext): string {
  const folder = makeFolder(context);
  const site = join(folder, "site");
  mkdirSync(join(site, "docs"), { recursive: true });
  writeFileSync(join(folder, "secret.txt"), "secret");
  writeFileSync(join(site, "index.html"), "<h1>home</h1>");
  writeFileSync(join(site, "docs", "index.html"), "<h1>docs</h1>");
  writeFileSync(join(site, "a b é.txt"), "0123456789");
  writeFileSync(join(site, ".env"), "secret");
  writeFileSync(join(site, "big.bin"), Buffer.alloc(5_000_000, "abc"));
  writeFileSync(join(site, "app.js"), "code ".repeat(100));
  writeFileSync(join(site, "app.js.br"), brotliCompressSync("code ".repeat(100)));
  const now = Date.now() / 1_000;
  for (const name of ["app.js", "app.js.br"]) utimesSync(join(site, name), now, now);
  symlinkSync(join(folder, "secret.txt"), join(site, "link.txt"));
  return site;
}

for (const runtime of runtimesOfRules) {
  test(`a route serves the files of a folder (${runtime.name})`, async (context) => {
    const root = makeSite(context);
    const gate = await startGate(context, {
      runtime,
      config: {
        routes: [
          {
            prefix: "/site",
            files: { root, precompressed: true, cache_control: "max-age=60" },
            response_headers: { set: { "X-Frame-Options": "DENY" } },
            cors: { origins: ["*"] },
          },
          { prefix: "/app", files: { root, fallback: "index.html" } },
          {
            prefix: "/small",
            files: { root, precompressed: true },
            compress: {
              codings: ["gzip"],
              types: ["text/*", "application/octet-stream"],
              min_size: 100,
            },
          },
        ],
      },
    });
    const { port } = gate;
    const whole = await ask(port, "/site/a%20b%20%C3%A9.txt", { Origin: "https://page.test" });
    assert.equal(whole.status, 200);
    assert.equal(whole.body.toString(), "0123456789");
    assert.equal(whole.headers["content-type"], "text/plain; charset=utf-8");
    assert.equal(whole.headers["content-length"], "10");
    assert.equal(whole.headers["cache-control"], "max-age=60");
    assert.equal(whole.headers["x-frame-options"], "DENY");
    assert.equal(whole.headers["x-content-type-options"], "nosniff");
    assert.equal(whole.headers["access-control-allow-origin"], "*");
    const etag = String(whole.headers["etag"]);

    const part = await ask(port, "/site/a%20b%20%C3%A9.txt", {
      Range: "bytes=2-4",
      "If-Range": etag,
    });
    assert.deepEqual([part.status, part.body.toString()], [206, "234"]);
    const stale = await ask(port, "/site/a%20b%20%C3%A9.txt", {
      Range: "bytes=2-4",
      "If-Range": '"old"',
    });
    assert.deepEqual([stale.status, stale.body.toString()], [200, "0123456789"]);
    const same = await ask(port, "/site/a%20b%20%C3%A9.txt", { "If-None-Match": etag });
    assert.deepEqual([same.status, same.body.length, same.headers["etag"]], [304, 0, etag]);
    const unmet = await ask(port, "/site/a%20b%20%C3%A9.txt", { "If-Match": '"old"' });
    assert.equal(unmet.status, 412);
    const head = await ask(port, "/site/big.bin", {}, "HEAD");
    assert.deepEqual([head.status, head.headers["content-length"]], [200, "5000000"]);
    assert.deepEqual((await ask(port, "/site/big.bin")).body, Buffer.alloc(5_000_000, "abc"));

    const coded = await ask(port, "/site/app.js", { "Accept-Encoding": "gzip, br" });
    assert.equal(coded.headers["content-encoding"], "br");
    assert.equal(coded.headers["vary"], "Accept-Encoding");
    assert.equal(brotliDecompressSync(coded.body).toString(), "code ".repeat(100));

    const gzip = { "Accept-Encoding": "gzip" };
    const big = await ask(port, "/small/big.bin", gzip);
    const { "content-encoding": coding, "content-length": length, vary, etag: weak } = big.headers;
    assert.deepEqual([coding, length, vary], ["gzip", undefined, "Accept-Encoding"]);
    assert.deepEqual(gunzipSync(big.body), Buffer.alloc(5_000_000, "abc"));
    assert.match(String(weak), /^W\/"/);
    const known = await ask(port, "/small/big.bin", { ...gzip, "If-None-Match": String(weak) });
    assert.equal(known.status, 304);
    const plain = await ask(port, "/small/big.bin");
    assert.deepEqual([plain.headers["content-length"], plain.headers["vary"]], ["5000000", vary]);
    const asked = await ask(port, "/small/big.bin", gzip, "HEAD");
    assert.deepEqual([asked.headers["content-encoding"], asked.body.length], ["gzip", 0]);
    const range = await ask(port, "/small/big.bin", { ...gzip, Range: "bytes=0-99" });
    assert.deepEqual([range.status, range.body.length], [206, 100]);
    const small = await ask(port, "/small/index.html", gzip);
    assert.equal(small.headers["content-encoding"], undefined);
    const prepared = await ask(port, "/small/app.js", { "Accept-Encoding": "br, gzip" });
    assert.equal(prepared.headers["content-encoding"], "br");

    const folder = await ask(port, "/site/docs?x=1");
    assert.deepEqual([folder.status, folder.headers["location"]], [301, "/site/docs/?x=1"]);
    assert.equal((await ask(port, "/site/docs/")).body.toString(), "<h1>docs</h1>");
    assert.equal((await ask(port, "/site")).headers["location"], "/site/");
    const post = await ask(port, "/site/app.js", {}, "POST");
    assert.deepEqual([post.status, post.headers["allow"]], [405, "GET, HEAD"]);
    for (const path of [
      "/site/none",
      "/site/.env",
      "/site/link.txt",
      "/site/%2e%2e/secret.txt",
      "/site/docs/../../secret.txt",
      "/site/..%2fsecret.txt",
      "/site/..%5csecret.txt",
      "/site/%00",
      "/site/%ff",
    ]) {
      const { status, body } = await ask(port, path);
      assert.ok(status >= 400 && status < 503, `${path}: ${status}`);
      assert.doesNotMatch(body.toString(), /^secret/, path);
    }
    assert.equal((await ask(port, "/app/users/7")).body.toString(), "<h1>home</h1>");
    assert.equal((await ask(port, "/app/app.js")).body.toString(), "code ".repeat(100));
  });

  test(`clients that leave while a file is sent do not leak descriptors (${runtime.name})`, async (context) => {
    const root = makeSite(context);
    writeFileSync(join(root, "huge.bin"), Buffer.alloc(8_000_000));
    const files = { root };
    const compress = { types: ["application/octet-stream"] };
    const routes = [
      { prefix: "/", files },
      { prefix: "/small", files, compress },
    ];
    const config = { workers: 1, routes };
    const gate = await startGate(context, { runtime, config, descriptors: 192 });
    for (let round = 0; round < 200; round += 20) {
      await Promise.all(
        Array.from({ length: 20 }, async (_, index) => {
          const socket = connect(gate.port, "127.0.0.1").on("error", () => undefined);
          const path = index % 2 === 0 ? "/huge.bin" : "/small/huge.bin";
          socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n`);
          await new Promise((resolve) => {
            socket.once("data", resolve).once("close", resolve);
          });
          socket.destroy();
        }),
      );
    }
    // While the gateway still closes connections, it may refuse further ones.
    let body = "";
    for (let round = 0; body === "" && round < 2_000; round++) {
      body = await ask(gate.port, "/index.html").then(
        (answer) => answer.body.toString(),
        () => "",
      );
      if (body === "") await sleep(100);
    }
    assert.equal(body, "<h1>home</h1>");
  });
}

test("a folder that does not exist is refused with its name", async (context) => {
  const files = { root: join(makeFolder(context), "none") };
  const config = { routes: [{ prefix: "/", files }] };
  const gate = spawnGate(context, { runtime: runtimes[0]!, config, args: ["validate"] });
  const { code, stderr } = await gate.ended;
  assert.notEqual(code, 0);
  assert.match(stderr, /files\.root .*none.* cannot be used/);
});

test("settings of files that contradict others are refused", () => {
  const files = { root: "/srv" };
  const cases: [route: object, message: RegExp][] = [
    [{ files: { root: "/srv", index: "../index.html" } }, /expected a file below the folder/],
    [{ files, target: "http://127.0.0.1:1" }, /exactly one of/],
    [{ files, strip_prefix: true }, /is not allowed with files/],
  ];
  for (const [route, message] of cases) {
    const { error } = routeSchema.safeParse({ prefix: "/", ...route });
    assert.match(error?.message ?? "", message);
  }
});
