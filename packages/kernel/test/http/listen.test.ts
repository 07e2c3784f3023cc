// The listener: actual port, Unix sockets, timeouts and limits, drain.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { request } from "node:http";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { listenHttp } from "@platform/kernel/http";

const ANY = { host: "127.0.0.1", port: 0 };

test("with port 0 the listener reports the chosen port", async () => {
  const listener = await listenHttp({ address: ANY, fetch: async () => new Response("hi") });
  assert.ok(listener.port! > 0);
  assert.equal(await (await fetch(listener.url)).text(), "hi");
  await listener.close(100);
  await assert.rejects(fetch(listener.url));
});

test("an intercepted request does not reach the API", async () => {
  const listener = await listenHttp({
    address: ANY,
    fetch: async () => new Response("api"),
    intercept: (asked, answer) => {
      if (asked.url !== "/raw") return false;
      answer.end("raw");
      return true;
    },
  });
  assert.equal(await (await fetch(`${listener.url}/raw`)).text(), "raw");
  assert.equal(await (await fetch(`${listener.url}/other`)).text(), "api");
  await listener.close(100);
});

test("a port in use is a startup error", async () => {
  const first = await listenHttp({ address: ANY, fetch: async () => new Response() });
  await assert.rejects(
    listenHttp({
      address: { host: "127.0.0.1", port: first.port! },
      fetch: async () => new Response(),
    }),
    { code: "EADDRINUSE" },
  );
  await first.close(100);
});

test("a Unix socket is accessible to its owner, replaces a stale one, and does not replace an active one", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sock-"));
  const path = join(folder, "run", "api.sock");
  // A killed process leaves its socket file.
  const first = await listenHttp({ address: { path }, fetch: async () => new Response("one") });
  const die = `require("node:net").createServer().listen(${JSON.stringify(join(folder, "dead.sock"))}, () => process.kill(process.pid, "SIGKILL"))`;
  spawnSync(process.execPath, ["-e", die]);
  assert.ok(statSync(join(folder, "dead.sock")).isSocket());
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(join(folder, "run")).mode & 0o777, 0o700);
  const body = await new Promise<string>((resolve, reject) => {
    request({ socketPath: path, path: "/" }, (answer) => {
      answer.setEncoding("utf8").on("data", resolve);
    })
      .on("error", reject)
      .end();
  });
  assert.equal(body, "one");
  await assert.rejects(listenHttp({ address: { path }, fetch: async () => new Response() }), {
    code: "EADDRINUSE",
  });
  const revived = await listenHttp({
    address: { path: join(folder, "dead.sock") },
    fetch: async () => new Response(),
  });
  await revived.close(100);
  await first.close(100);
  rmSync(folder, { recursive: true });
});

test("a client that does not complete its head is disconnected", async () => {
  const listener = await listenHttp({
    address: ANY,
    fetch: async () => new Response(),
    headTimeoutMs: 100,
  });
  const socket = connect(listener.port!, "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n");
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  await new Promise((resolve) => socket.once("close", resolve));
  assert.match(text, /^HTTP\/1\.1 408 /);
  await listener.close(100);
});

test("a head beyond the limit is 431", async () => {
  const listener = await listenHttp({
    address: ANY,
    fetch: async () => new Response("ok"),
    headBytesMax: 2_048,
  });
  const ask = (bytes: number): Promise<Response> =>
    fetch(listener.url, { headers: { "X-Fill": "x".repeat(bytes) } });
  assert.equal((await ask(1_000)).status, 200);
  assert.equal((await ask(3_000)).status, 431);
  await listener.close(100);
});

test("connections beyond the limit are closed immediately", async () => {
  const listener = await listenHttp({
    address: ANY,
    fetch: async () => new Response(),
    connectionsMax: 1,
  });
  const ask = (): Socket => {
    const socket = connect(listener.port!, "127.0.0.1").on("error", () => {});
    socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    return socket;
  };
  const first = ask();
  await new Promise((resolve) => first.once("data", resolve));
  const second = ask();
  await new Promise((resolve) => second.once("close", resolve));
  assert.ok(!first.destroyed);
  first.destroy();
  await listener.close(100);
});

test("invalid HTTP and an invalid Host are 400", async () => {
  const listener = await listenHttp({ address: ANY, fetch: async () => new Response() });
  for (const text of ["GARBAGE\r\n\r\n", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"]) {
    const socket = connect(listener.port!, "127.0.0.1").on("error", () => {});
    const status = new Promise<string>((resolve) =>
      socket.setEncoding("utf8").once("data", (chunk: string) => resolve(chunk.slice(9, 12))),
    );
    socket.write(text);
    assert.equal(await status, "400", text);
    socket.destroy();
  }
  await listener.close(100);
});

test("closing waits for a request in flight and aborts one that does not end", async () => {
  let finish = (): void => {};
  const under = new Promise<void>((resolve) => (finish = resolve));
  let arrived = (): void => {};
  const bothArrived = new Promise<void>((resolve) => (arrived = resolve));
  let arrivals = 0;
  const listener = await listenHttp({
    address: ANY,
    fetch: async (asked) => {
      arrivals += 1;
      if (arrivals === 2) arrived();
      if (asked.url.endsWith("/hang")) await new Promise(() => {});
      await under;
      return new Response("done");
    },
  });
  const slow = fetch(`${listener.url}/slow`).then((answer) => answer.text());
  const hanging = fetch(`${listener.url}/hang`).catch(() => "cut");
  await bothArrived;
  const started = performance.now();
  const closed = listener.close(300);
  await sleep(20);
  finish();
  assert.equal(await slow, "done");
  await closed;
  assert.equal(await hanging, "cut");
  const tookMs = performance.now() - started;
  assert.ok(tookMs >= 250 && tookMs < 20_000, String(tookMs));
});

test("an idle connection does not delay closing", async () => {
  const listener = await listenHttp({ address: ANY, fetch: async () => new Response("x") });
  await (await fetch(listener.url)).text();
  const started = performance.now();
  await listener.close(60_000);
  assert.ok(performance.now() - started < 30_000);
  const free = createServer().listen(listener.port, "127.0.0.1");
  await new Promise((resolve) => free.once("listening", resolve));
  free.close();
});
