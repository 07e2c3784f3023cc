// Names of handshakes that are asked for: which ones, and how many.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { createLogger } from "@platform/kernel/log";
import { AskedNames } from "../../src/acme/asked-names.ts";

async function prepare(context: TestContext) {
  const asked: string[] = [];
  const server = createServer((incoming, outgoing) => {
    const name = new URL(incoming.url ?? "/", "http://judge").searchParams.get("domain") ?? "";
    asked.push(name);
    outgoing.writeHead(name.startsWith("no") ? 403 : 200).end();
  }).listen(0, "127.0.0.1");
  context.after(() => server.close());
  await once(server, "listening");
  const clock = { ms: 0 };
  const names = new AskedNames({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/?token=a`,
    onAdded: () => undefined,
    log: createLogger({ service: "test", level: "error" }),
    readNowMs: () => clock.ms,
  });
  names.adopt(["known.test"]);
  return { names, asked, clock };
}

test("names that are no DNS names are never asked for", async (context) => {
  const { names, asked } = await prepare(context);
  for (const name of ["", "localhost", "1.2.3.4", "a b.test", "*.test", "a..test", "known.test"]) {
    await names.note(name);
  }
  assert.deepEqual(asked, []);
});

test("a refusal holds for ten minutes", async (context) => {
  const { names, asked, clock } = await prepare(context);
  await names.note("no.test");
  await names.note("no.test");
  clock.ms = 599_000;
  await names.note("no.test");
  assert.equal(asked.length, 1);
  clock.ms = 601_000;
  await names.note("no.test");
  assert.equal(asked.length, 2);
});

test("ten names an hour are added", async (context) => {
  const { names, clock } = await prepare(context);
  for (let at = 0; at < 15; at++) await names.note(`n${at}.test`);
  assert.equal(names.list().length, 11);
  clock.ms = 3_601_000;
  await names.note("n14.test");
  assert.equal(names.list().length, 12);
});
