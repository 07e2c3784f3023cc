// Delivery through a relay that works, refuses, defers, hangs or drops the connection.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { startRelayedStage } from "../relayed-stage.ts";
import { startSink, type Sink, type SinkOptions } from "../sink.ts";
import { startStage, type Stage } from "../stage.ts";

const MAIL = { to: "ada@example.org", subject: "Hello", text: "Hello Ada" };
const start = (options: SinkOptions = {}, settings: Record<string, unknown> = {}) =>
  startRelayedStage(settings, options);

const SINKS: Sink[] = [];
after(async () => {
  for (const sink of SINKS) await sink.close();
});

interface Event {
  type: string;
  detail: string;
}

async function readEvents(stage: Stage, id: string): Promise<Event[]> {
  const { body } = await stage.call("GET", `/api/v1/messages/${id}`);
  return body.events;
}

describe("a working relay", () => {
  test("gets the mail with the right envelope, and the answer is `sent`", async () => {
    const { sink, stage } = await start();
    const sent = await stage.call("POST", "/api/v1/send", { ...MAIL, bcc: ["eve@example.org"] });
    assert.equal(sent.status, 200, sent.text);
    assert.deepEqual(sink.accepted.map(({ recipient }) => recipient).sort(), [
      "ada@example.org",
      "eve@example.org",
    ]);
    assert.ok(sink.accepted.every(({ sender }) => sender === "no-reply@shop.example"));
    assert.match(sink.accepted[0]!.data, /^Subject: Hello\r$/m);
    assert.ok(sink.commands.includes("EHLO notify.test"));
  });

  test("several mails share a connection, without and with PIPELINING", async () => {
    for (const features of [["SIZE 1000000"], ["PIPELINING"]]) {
      const { sink, stage } = await start({ features });
      for (let index = 0; index < 5; index += 1) {
        assert.equal((await stage.call("POST", "/api/v1/send", MAIL)).status, 200);
      }
      assert.equal(sink.connections, 1);
      assert.equal(sink.accepted.length, 5);
      await stage.close();
      await waitFor(() => sink.open === 0);
    }
  });

  test("lines that start with a dot arrive unchanged", async () => {
    const { sink, stage } = await start();
    await stage.call("POST", "/api/v1/send", { ...MAIL, text: ".\n..\n.hidden\nend" });
    assert.match(sink.accepted[0]!.data, /\r\n\r\n\.\r\n\.\.\r\n\.hidden\r\nend\r\n$/);
  });
});

describe("a refusing relay", () => {
  test("550 to RCPT is 422, and the address is suppressed", async () => {
    const { stage } = await start({
      reply: (step, to) =>
        step === "RCPT" && to.startsWith("gone") ? "550 5.1.1 user unknown" : undefined,
    });
    const refused = await stage.call("POST", "/api/v1/send", { ...MAIL, to: "Gone@example.org" });
    assert.equal(refused.status, 200, "the local part keeps its case");
    const gone = await stage.call("POST", "/api/v1/send", { ...MAIL, to: "gone@example.org" });
    assert.equal(gone.status, 422);
    assert.equal(gone.body.code, "recipient_rejected");
    assert.equal(gone.body.delivery_status, "bounced");
    assert.match(gone.body.detail, /550 5\.1\.1 user unknown/);
    const list = await stage.call("GET", "/api/v1/suppression");
    assert.deepEqual(
      list.body.addresses.map((one: { email: string; reason: string }) => [one.email, one.reason]),
      [["gone@example.org", "hard_bounce"]],
    );
    const again = await stage.call("POST", "/api/v1/send", { ...MAIL, to: "GONE@EXAMPLE.ORG" });
    assert.equal(again.status, 422);
    assert.equal(again.body.code, "recipient_suppressed");
    assert.equal(again.body.delivery_status, "suppressed");
    const metrics = await stage.call("GET", "/metrics");
    assert.match(metrics.text, /platform_notify_bounces_total\{type="hard"\} 1/);
    assert.match(metrics.text, /platform_notify_suppressed_total 1/);
    assert.match(metrics.text, /platform_notify_sent_total\{channel="email",status="sent"\} 1/);
  });

  test("policy rejections and bare codes do not suppress", async () => {
    const replies = ["550 5.7.1 blocked by policy", "554 5.0.0 rejected", "552 5.2.2 mailbox full"];
    const { stage } = await start({
      reply: (step) => (step === "RCPT" ? replies.shift() : undefined),
    });
    for (let index = 0; index < 3; index += 1) {
      assert.equal((await stage.call("POST", "/api/v1/send", MAIL)).status, 422);
    }
    const list = await stage.call("GET", "/api/v1/suppression");
    assert.deepEqual(list.body.addresses, []);
  });

  test("one refused recipient of several is named, and the others get the mail", async () => {
    const { sink, stage } = await start({
      reply: (step, to) => (step === "RCPT" && to.startsWith("bob") ? "550 5.1.1 no" : undefined),
    });
    const { status, body } = await stage.call("POST", "/api/v1/send", {
      ...MAIL,
      cc: ["bob@example.org"],
    });
    assert.equal(status, 200);
    assert.deepEqual(
      body.recipients.map((one: { status: string; code: number }) => [one.status, one.code]),
      [
        ["sent", 250],
        ["bounced", 550],
      ],
    );
    assert.equal(sink.accepted.length, 1);
  });

  test("a suppressed cc is left out and named", async () => {
    const { sink, stage } = await start();
    await stage.call("POST", "/api/v1/suppression", { email: "bob@example.org" });
    const { status, body } = await stage.call("POST", "/api/v1/send", {
      ...MAIL,
      cc: ["bob@example.org"],
    });
    assert.equal(status, 200);
    assert.deepEqual(body.suppressed, ["bob@example.org"]);
    assert.equal(sink.accepted.length, 1);
  });
});

describe("a deferring relay", () => {
  test("450 is retried after the base delay, and a hint is honoured", async () => {
    let replies = ["450 4.2.0 busy", "451 4.7.1 greylisted, try again in 30 minutes"];
    const { sink, stage } = await start({
      reply: (step) => (step === "RCPT" ? replies.shift() : undefined),
    });
    const queued = await stage.call("POST", "/api/v1/send", MAIL);
    assert.equal(queued.status, 202);
    assert.equal(queued.body.status, "queued");
    const id = queued.body.message_id;
    const read = async () => (await stage.call("GET", `/api/v1/messages/${id}`)).body;
    assert.equal((await read()).status, "deferred");
    stage.advance(4 * 60_000);
    await stage.refill();
    assert.equal((await read()).recipients[0].attempts, 1, "not before its time");
    stage.advance(2 * 60_000);
    await waitFor(async () => {
      await stage.refill();
      return (await read()).recipients[0].attempts === 2;
    });
    stage.advance(25 * 60_000);
    await stage.refill();
    assert.equal((await read()).recipients[0].attempts, 2, "the relay asked for 30 minutes");
    stage.advance(6 * 60_000);
    await waitFor(async () => {
      await stage.refill();
      return (await read()).status === "sent";
    });
    assert.equal(sink.accepted.length, 1);
    const types = (await readEvents(stage, id)).map(({ type }) => type);
    assert.deepEqual(types, ["queued", "deferred", "deferred", "sent"]);
    replies = [];
  });

  test("a message that is deferred 19 times is given up", async () => {
    const { stage } = await start({
      reply: (step) => (step === "RCPT" ? "450 4.2.0 busy" : undefined),
    });
    const { body } = await stage.call("POST", "/api/v1/send", MAIL);
    const read = async () => (await stage.call("GET", `/api/v1/messages/${body.message_id}`)).body;
    for (let attempt = 2; attempt <= 19; attempt += 1) {
      stage.advance(12 * 3_600_000);
      await waitFor(async () => {
        await stage.refill();
        return (await read()).recipients[0].attempts === attempt;
      });
    }
    const final = await read();
    assert.equal(final.status, "failed");
    assert.match(final.events.at(-1).detail, /given up after 19 attempts/);
    const list = await stage.call("GET", "/api/v1/suppression");
    assert.deepEqual(list.body.addresses, [], "temporary failures never suppress");
  });
});

describe("messages that expire", () => {
  test("are not sent after their time, whether they wait or are retried", async () => {
    const { sink, stage } = await start();
    await sink.close();
    const inMinutes = (minutes: number): string =>
      new Date(Date.now() + minutes * 60_000).toISOString();
    const late = await stage.call("POST", "/api/v1/send", { ...MAIL, expires_at: inMinutes(8) });
    assert.equal(late.status, 202, late.text);
    const soon = await stage.call("POST", "/api/v1/send", { ...MAIL, expires_at: inMinutes(2) });
    assert.equal(soon.status, 422, "the first retry would be after its end");
    assert.equal(soon.body.delivery_status, "failed");
    const back = await startSink({ port: sink.port });
    SINKS.push(back);
    stage.advance(10 * 60_000);
    const events = await waitFor(async () => {
      await stage.refill();
      const found = await readEvents(stage, late.body.message_id);
      return found.some(({ type }) => type === "expired") ? found : undefined;
    });
    assert.match(events.at(-1)!.detail, /expired before it could be sent/);
    const { body } = await stage.call("GET", `/api/v1/messages/${late.body.message_id}`);
    assert.equal(body.status, "failed");
    assert.equal(Date.parse(body.expires_at) > 0, true);
    assert.equal(back.arrived.length, 0);
    const sent = await stage.call("POST", "/api/v1/send", { ...MAIL, expires_at: inMinutes(30) });
    assert.equal(sent.status, 200, sent.text);
  });

  test("must expire in the future, and after send_at", async () => {
    const { stage } = await start();
    const [past, later] = ["2020-01-01T00:00:00Z", new Date(Date.now() + 3_600_000).toISOString()];
    for (const times of [{ expires_at: past }, { expires_at: later, send_at: later }]) {
      const { status, body } = await stage.call("POST", "/api/v1/send", { ...MAIL, ...times });
      assert.equal(status, 400);
      assert.match(body.detail, /expires_at/);
    }
  });
});

describe("a broken relay", () => {
  test("nothing is lost while it is down, and it is sent once when it is back", async () => {
    const { sink, stage } = await start();
    await sink.close();
    const queued = await stage.call("POST", "/api/v1/send", MAIL);
    assert.equal(queued.status, 202);
    const back = await startSink({ port: sink.port });
    SINKS.push(back);
    stage.advance(10 * 60_000);
    await waitFor(async () => {
      await stage.refill();
      return back.accepted.length > 0;
    });
    const events = await readEvents(stage, queued.body.message_id);
    assert.ok(!events.some(({ type }) => type === "duplicate_possible"));
    assert.equal(back.accepted.length, 1);
  });

  test("a connection lost after the final dot is sent again, marked duplicate_possible", async () => {
    const replies = ["drop"];
    const { sink, stage } = await start({
      reply: (step) => (step === "content" ? replies.shift() : undefined),
    });
    const queued = await stage.call("POST", "/api/v1/send", MAIL);
    assert.equal(queued.status, 202);
    stage.advance(10 * 60_000);
    await waitFor(async () => {
      await stage.refill();
      return sink.accepted.length > 0;
    });
    assert.equal(sink.arrived.length, 2);
    const id = /^Message-ID: (.*)\r$/m;
    assert.equal(id.exec(sink.arrived[0]!.data)![1], id.exec(sink.arrived[1]!.data)![1]);
    const events = await waitFor(async () => {
      const found = await readEvents(stage, queued.body.message_id);
      return found.some(({ type }) => type === "sent") ? found : undefined;
    });
    assert.ok(events.some(({ type }) => type === "duplicate_possible"));
  });

  test("a connection lost during the commands is no possible duplicate", async () => {
    const replies = ["drop"];
    const { sink, stage } = await start({
      reply: (step) => (step === "RCPT" ? replies.shift() : undefined),
    });
    const queued = await stage.call("POST", "/api/v1/send", MAIL);
    stage.advance(10 * 60_000);
    await waitFor(async () => {
      await stage.refill();
      return sink.accepted.length > 0;
    });
    const events = await readEvents(stage, queued.body.message_id);
    assert.ok(!events.some(({ type }) => type === "duplicate_possible"));
    assert.equal(sink.arrived.length, 1);
  });

  test("a relay that hangs after the content ends in duplicate_possible", async () => {
    const replies = ["hang"];
    const { sink, stage } = await start(
      { reply: (step) => (step === "content" ? replies.shift() : undefined) },
      { "smtp.content_timeout_ms": 200 },
    );
    const queued = await stage.call("POST", "/api/v1/send", MAIL);
    assert.equal(queued.status, 202);
    const events = await readEvents(stage, queued.body.message_id);
    assert.deepEqual(
      events.map(({ type }) => type),
      ["queued", "deferred", "duplicate_possible"],
    );
    assert.match(events[1]!.detail, /no reply within 200 ms/);
    assert.equal(sink.arrived.length, 1);
  });

  test("an idle connection that the relay closed is replaced without a failure", async () => {
    const { sink, stage } = await start();
    await stage.call("POST", "/api/v1/send", MAIL);
    const replies = ["drop"];
    const flaky = await start({
      reply: (step) =>
        step === "MAIL" && flaky.sink.accepted.length === 1 ? replies.shift() : undefined,
    });
    assert.equal((await flaky.stage.call("POST", "/api/v1/send", MAIL)).status, 200);
    assert.equal((await flaky.stage.call("POST", "/api/v1/send", MAIL)).status, 200);
    assert.equal(flaky.sink.connections, 2);
    assert.equal(sink.accepted.length, 1);
  });

  test("replies that violate the protocol are errors of the connection", async () => {
    const { stage } = await start({ reply: (step) => (step === "EHLO" ? "hello" : undefined) });
    const queued = await stage.call("POST", "/api/v1/send", MAIL);
    assert.equal(queued.status, 202);
    const events = await readEvents(stage, queued.body.message_id);
    assert.match(events[1]!.detail, /EHLO: the reply is malformed/);
  });
});

describe("several relays", () => {
  test("an unreachable one is replaced by the others", async () => {
    const good = await startSink();
    const bad = await startSink();
    await bad.close();
    SINKS.push(good);
    const stage = await startStage({
      "smtp.relays": [
        { host: "127.0.0.1", port: bad.port, tls: "off", weight: 100 },
        { host: "127.0.0.1", port: good.port, tls: "off", weight: 0 },
      ],
      from_domain: "shop.example",
    });
    for (let index = 0; index < 3; index += 1) {
      assert.equal((await stage.call("POST", "/api/v1/send", MAIL)).status, 200);
    }
    assert.equal(good.accepted.length, 3);
  });

  test("messages are distributed by weight", async () => {
    const sinks = [await startSink(), await startSink(), await startSink()];
    SINKS.push(...sinks);
    const [heavy, light, spare] = sinks;
    const stage = await startStage({
      "smtp.relays": sinks.map(({ port }, index) => ({
        host: "127.0.0.1",
        port,
        tls: "off",
        weight: [4, 1, 0][index],
      })),
      from_domain: "shop.example",
    });
    const messages = Array.from({ length: 200 }, () => MAIL);
    const { body } = await stage.call("POST", "/api/v1/send/batch", { messages });
    assert.ok(body.results.every((one: { status: string }) => one.status === "sent"));
    assert.equal(spare!.accepted.length, 0);
    assert.ok(heavy!.accepted.length > 2 * light!.accepted.length, `${heavy!.accepted.length}`);
    assert.ok(light!.accepted.length > 10);
  });
});
