// Webhooks: signatures, retries, replay, rotation, private targets.
import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { after, describe, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { waitFor } from "@platform/testing/wait";
import { startSink } from "../sink.ts";
import { STAGE_KINDS, startStage, startStageOn } from "../stage.ts";

interface Call {
  headers: IncomingHttpHeaders;
  body: string;
}

const OPEN: { close(): unknown }[] = [];
after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
});

async function startTarget(statusOf: (count: number) => number = () => 200) {
  const calls: Call[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    request.on("end", () => {
      if (request.method !== "HEAD") calls.push({ headers: request.headers, body });
      const status = request.method === "HEAD" ? 200 : statusOf(calls.length);
      response.writeHead(status, status === 302 ? { location: "http://127.0.0.1:1/" } : {}).end();
    });
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  OPEN.push({ close: () => server.closeAllConnections() }, { close: () => server.close() });
  return { calls, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` };
}

const MAIL = { to: "ada@example.org", subject: "Hello", text: "Hello", metadata: { order: "17" } };

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`webhooks on ${kind}`, { skip: skip ?? false }, () => {
    test("a call has the event and a signature that standardwebhooks verifies", async () => {
      const stage = await startStageOn({ ...(await prepare()), allow_private_targets: true });
      OPEN.push(stage);
      const { calls, url } = await startTarget();
      const created = await stage.call("POST", "/api/v1/webhooks", { url });
      assert.equal(created.status, 201, created.text);
      assert.match(created.body.secret, /^whsec_/);
      const list = await stage.call("GET", "/api/v1/webhooks");
      assert.equal(list.body.webhooks[0].secret, undefined);
      const sent = await stage.call("POST", "/api/v1/send", MAIL);
      const [call] = await waitFor(() => (calls.length > 0 ? calls : undefined));
      const verified = new Webhook(created.body.secret).verify(call!.body, {
        "webhook-id": String(call!.headers["webhook-id"]),
        "webhook-timestamp": String(call!.headers["webhook-timestamp"]),
        "webhook-signature": String(call!.headers["webhook-signature"]),
      }) as { type: string; data: Record<string, unknown> };
      assert.equal(verified.type, "message.sent");
      assert.equal(verified.data["message_id"], sent.body.message_id);
      assert.equal(verified.data["recipient"], "ada@example.org");
      assert.deepEqual(verified.data["metadata"], { order: "17" });
    });

    test("a failed call is repeated with the same id, and can be replayed", async () => {
      const stage = await startStageOn({ ...(await prepare()), allow_private_targets: true });
      OPEN.push(stage);
      const { calls, url } = await startTarget((count) => [500, 302, 200, 200][count - 1]!);
      const { body } = await stage.call("POST", "/api/v1/webhooks", {
        url,
        events: ["message.sent"],
      });
      await stage.call("POST", "/api/v1/send", MAIL);
      await waitFor(() => calls.length === 1);
      const path = `/api/v1/webhooks/${body.id}/calls`;
      const failed = await waitFor(async () => {
        const { calls: found } = (await stage.call("GET", path)).body;
        return found[0].attempts === 1 ? found[0] : undefined;
      });
      assert.equal(failed.detail, "the target returned 500");
      for (const [minutes, count] of [
        [2, 2],
        [6, 3],
      ] as const) {
        stage.advance(minutes * 60_000);
        await waitFor(async () => {
          await stage.callWebhooks();
          return calls.length === count;
        });
      }
      const [done] = (await stage.call("GET", path)).body.calls;
      assert.equal(done.status, "delivered", "a redirect is a failure, 200 is not");
      const replayed = await stage.call("POST", `${path}/${done.id}/replay`);
      assert.equal(replayed.status, 202);
      await waitFor(async () => {
        await stage.callWebhooks();
        return calls.length === 4;
      });
      assert.equal(new Set(calls.map(({ headers }) => headers["webhook-id"])).size, 1);
    });
  });
}

test("a call that was planned while the clock was ahead is not late by the jump", async () => {
  const DAY_MS = 86_400_000;
  const stage = await startStage({ allow_private_targets: true });
  OPEN.push(stage);
  stage.setCalendar(DAY_MS);
  const { calls, url } = await startTarget((count) => [500, 200][count - 1]!);
  const { body } = await stage.call("POST", "/api/v1/webhooks", { url, events: ["message.sent"] });
  await stage.call("POST", "/api/v1/send", MAIL);
  await waitFor(async () => {
    const { calls: found } = (await stage.call("GET", `/api/v1/webhooks/${body.id}/calls`)).body;
    return found[0]?.attempts === 1;
  });
  stage.setCalendar(-DAY_MS);
  await waitFor(() => calls.length === 2);
});

test("a rotated secret signs together with the old one for 24 hours", async () => {
  const stage = await startStage({ allow_private_targets: true });
  OPEN.push(stage);
  const { calls, url } = await startTarget();
  const first = (await stage.call("POST", "/api/v1/webhooks", { url })).body;
  const second = (await stage.call("POST", `/api/v1/webhooks/${first.id}/secret`)).body;
  assert.notEqual(first.secret, second.secret);
  await stage.call("POST", "/api/v1/send", MAIL);
  await waitFor(() => calls.length === 1);
  const signatures = String(calls[0]!.headers["webhook-signature"]).split(" ");
  assert.equal(signatures.length, 2);
  stage.advance(25 * 3_600_000);
  await stage.call("POST", "/api/v1/send", MAIL);
  await waitFor(() => calls.length === 2);
  assert.equal(String(calls[1]!.headers["webhook-signature"]).split(" ").length, 1);
});

test("targets on private addresses are refused", async () => {
  const stage = await startStage();
  OPEN.push(stage);
  for (const url of [
    "http://127.0.0.1:9/hook",
    "http://localhost:9/hook",
    "http://[::1]/hook",
    "http://169.254.169.254/latest/meta-data",
    "http://0x7f000001/hook",
    "http://10.0.0.1/hook",
    "http://user:pass@203.0.113.1/hook",
  ]) {
    const { status, body } = await stage.call("POST", "/api/v1/webhooks", { url });
    assert.equal(status, 422, url);
    assert.match(body.detail, /not allowed|credentials/, url);
  }
  for (const url of ["ftp://example.org/", "file:///etc/passwd", "not a url"]) {
    assert.equal((await stage.call("POST", "/api/v1/webhooks", { url })).status, 400, url);
  }
});

test("several temporary failures of a delivery are one event", async () => {
  const replies = ["450 4.2.0 busy", "450 4.2.0 busy"];
  const sink = await startSink({
    reply: (step) => (step === "RCPT" ? replies.shift() : undefined),
  });
  const stage = await startStage({
    "smtp.host": "127.0.0.1",
    "smtp.port": sink.port,
    from_domain: "shop.example",
    allow_private_targets: true,
  });
  OPEN.push(sink, { close: () => stage.close(500) });
  const { calls, url } = await startTarget();
  await stage.call("POST", "/api/v1/webhooks", { url });
  await stage.call("POST", "/api/v1/send", MAIL);
  // A failure is planned again when it has been stored, which may be after the clock was advanced.
  await waitFor(async () => {
    stage.advance(60_000);
    await stage.refill();
    return calls.length >= 2;
  });
  assert.deepEqual(replies, []);
  const types = calls.map(({ body }) => (JSON.parse(body) as { type: string }).type);
  assert.deepEqual(types, ["message.deferred", "message.sent"]);
});

test("a bounce rate above the limit raises an alarm", async () => {
  const sink = await startSink({
    reply: (step, to) => (step === "RCPT" && to.startsWith("gone") ? "550 5.1.1 no" : undefined),
  });
  const stage = await startStage({
    "smtp.host": "127.0.0.1",
    "smtp.port": sink.port,
    from_domain: "shop.example",
    allow_private_targets: true,
  });
  OPEN.push(sink, { close: () => stage.close(500) });
  const { calls, url } = await startTarget();
  await stage.call("POST", "/api/v1/webhooks", { url, events: ["bounce_rate.exceeded"] });
  const messages = Array.from({ length: 60 }, (_, index) => ({
    ...MAIL,
    to: `${index < 6 ? "gone" : "ada"}${index}@example.org`,
  }));
  await stage.call("POST", "/api/v1/send/batch", { messages });
  await waitFor(() => calls.length === 1);
  assert.match(calls[0]!.body, /"type":"bounce_rate\.exceeded"/);
  const ready = await stage.call("GET", "/readyz");
  assert.equal(ready.status, 200);
  assert.match(ready.body.warnings.bounce_rate, /% of the mails of the last hour bounced/);
});
