// The addresses of an HTTP endpoint over time: conditional requests, changes, faults.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { createLogger } from "@platform/kernel/log";
import { waitFor } from "@platform/testing/wait";
import { Discovery } from "../../src/source/discovery.ts";
import { serve } from "../fixture/serve.ts";

const FAULTS: readonly (readonly [status: number, body: string, says: RegExp])[] = [
  [200, "<html>", /is not JSON/],
  [200, '{"services": []}', /expected \{"services"/],
  [200, `"${"x".repeat(5_000_000)}"`, /./],
  [500, "", /status 500/],
];

const log = createLogger({ service: "gate", level: "error", write: () => undefined });

test("addresses change with the document; a fault keeps the last ones, readiness warns after a minute", async (context) => {
  let answer = { status: 200, body: "" };
  const publish = (services: object): void => {
    answer = { status: 200, body: JSON.stringify({ services }) };
  };
  let [unchanged, asked] = [0, 0];
  const text = await serve(
    context,
    createServer((request, response) => {
      const etag = `"${Buffer.from(answer.body).toString("hex")}"`;
      const isSame = request.headers["if-none-match"] === etag;
      if (isSame) unchanged++;
      else asked++;
      response.setHeader("ETag", etag);
      response.writeHead(isSame ? 304 : answer.status).end(isSame ? undefined : answer.body);
    }),
  );
  let nowMs = 0;
  let changes = 0;
  const address = { kind: "http", url: text } as const;
  const discovery = new Discovery({ address, text, log, readNowMs: () => nowMs });
  const list = (name: string) => discovery.find(name).map((one) => one.kind === "url" && one.url);
  publish({ orders: ["http://a", "http://b", "http://a"], stock: ["http://c"] });
  await discovery.prepare([]);
  assert.deepEqual(list("orders"), ["http://a", "http://b"]);
  discovery.start(
    () => new Set(),
    async () => void changes++,
  );
  context.after(() => discovery.stop());
  const wait = (look: () => boolean, what: string): Promise<unknown> => {
    nowMs += 5_000;
    return waitFor(look, what);
  };
  // Answers of the server are read a little later.
  const waitForRead = (look: () => boolean, what: string): Promise<unknown> => {
    const before = discovery.view().readAtMs;
    return wait(() => look() && discovery.view().readAtMs !== before, what);
  };
  await waitForRead(() => unchanged > 0, "a conditional request");
  // The order of a document means nothing.
  publish({ stock: ["http://c"], orders: ["http://b", "http://a"] });
  const known = asked;
  await waitForRead(() => asked > known, "the other order");
  const before = changes;
  publish({ orders: ["ftp://x"], stock: ["http://d"] });
  await wait(() => list("stock")[0] === "http://d", "the valid service");
  assert.deepEqual(list("orders"), ["http://a", "http://b"]);
  assert.match(discovery.view().error ?? "", /^services\.orders\[0\]: /);
  await waitFor(() => changes === before + 1, "one change");
  for (const [status, body, says] of FAULTS) {
    answer = { status, body };
    await wait(() => says.test(discovery.view().error ?? ""), String(says));
    assert.deepEqual(list("stock"), ["http://d"]);
  }
  assert.equal(discovery.describe(), undefined);
  nowMs += 60_000;
  assert.match(discovery.describe() ?? "", /status 500/);
  publish({ stock: [] });
  await wait(() => list("stock").length === 0, "no address");
  assert.equal(discovery.describe(), undefined);
});
