// SMS through HTTP gateways: requests of the presets, own templates, answers, retries, secrets, egress.
import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, describe, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { STAGE_KINDS, startStage, startStageOn, type Stage } from "../../stage.ts";

const OPEN: { close(): Promise<void> | void }[] = [];

after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
});

interface GatewayRequest {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

type Reply = [status: number, body: string, headers?: Record<string, string>] | "hang" | "drop";

interface Gateway {
  url: string;
  requests: GatewayRequest[];
  /** Replies in order; the last one is repeated. */
  replies: Reply[];
}

async function startGateway(...replies: Reply[]): Promise<Gateway> {
  const gateway: Gateway = { url: "", requests: [], replies };
  const server: Server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    request.on("end", () => {
      const { method = "", url: path = "", headers } = request;
      gateway.requests.push({ method, path, headers, body });
      const reply = replies.length > 1 ? replies.shift()! : replies[0]!;
      if (reply === "drop") request.socket.destroy();
      if (reply === "drop" || reply === "hang") return;
      response.writeHead(reply[0], { "Content-Type": "application/json", ...reply[2] });
      response.end(reply[1]);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  gateway.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  OPEN.push({
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  });
  return gateway;
}

async function start(settings: Record<string, unknown>): Promise<Stage> {
  const stage = await startStage({ allow_private_targets: true, ...settings });
  OPEN.push(stage);
  return stage;
}

const SMS = { channel: "sms", to: "+4915112345678", text: 'Your "code"\nis 987654 & ü' };

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`delivery on ${kind}`, { skip: skip ?? false }, () => {
    test("a temporary failure is repeated after the gateway's hint; events and content follow", async () => {
      const gateway = await startGateway(
        [503, '{"message":"busy"}', { "Retry-After": "60" }],
        [202, '{"id":"m-1"}'],
      );
      const stage = await startStageOn({
        ...(await prepare()),
        allow_private_targets: true,
        "sms.url": `${gateway.url}/send`,
        "sms.secret": "s3cret-token",
        "sms.from": "Shop",
      });
      OPEN.push(stage);
      const { status, body } = await stage.call("POST", "/api/v1/send", {
        ...SMS,
        sensitive: true,
        tags: ["login"],
      });
      assert.equal(status, 202);
      assert.equal(body.status, "queued");
      const path = `/api/v1/messages/${body.message_id}`;
      const waiting = await stage.call("GET", path);
      assert.equal(waiting.body.status, "deferred");
      assert.equal(waiting.body.recipients[0].code, 503);
      stage.advance(61_000);
      await stage.refill();
      const found = await waitFor(async () => {
        const answer = await stage.call("GET", path);
        return answer.body.status === "sent" ? answer : undefined;
      });
      assert.equal(found.body.channel, "sms");
      assert.equal(found.body.recipients[0].address, SMS.to);
      assert.equal(found.body.recipients[0].detail, "accepted as m-1");
      assert.deepEqual(
        found.body.events.map(({ type }: { type: string }) => type),
        ["queued", "deferred", "sent"],
      );
      const [first, second] = gateway.requests;
      assert.equal(first!.headers.authorization, "Bearer s3cret-token");
      assert.deepEqual(JSON.parse(first!.body), {
        to: SMS.to,
        from: "Shop",
        text: SMS.text,
        id: body.message_id,
      });
      assert.equal(second!.headers["idempotency-key"], body.message_id);
      const bodies = await stage.database.db.selectFrom("notify_bodies").selectAll().execute();
      assert.deepEqual(bodies, [], "sensitive contents are erased");
      const { text } = await stage.call("GET", "/metrics");
      assert.match(text, /platform_notify_sent_total\{channel="sms",status="sent"\} 1/);
    });
  });
}

describe("answers", () => {
  test("400 and 422 reject the message, wrong credentials and missing credit are repeated", async () => {
    const gateway = await startGateway(
      [400, '{"message":"The number s3cret-token is invalid"}'],
      [401, "{}"],
      [402, "{}"],
      [302, "", { Location: "http://127.0.0.1:1/" }],
      [429, "slow down"],
    );
    const stage = await start({
      "sms.url": gateway.url,
      "sms.secret": "s3cret-token",
      retry_ms: 3_600_000,
    });
    const rejected = await stage.call("POST", "/api/v1/send", SMS);
    assert.equal(rejected.status, 422, rejected.text);
    assert.equal(rejected.body.code, "recipient_rejected");
    assert.equal(rejected.body.smtp_code, 400);
    assert.match(rejected.body.detail, /The number … is invalid/);
    for (const code of [401, 402, 302, 429]) {
      stage.advance(120_000);
      const { body, status } = await stage.call("POST", "/api/v1/send", SMS);
      assert.equal(status, 202, String(code));
      const found = await stage.call("GET", `/api/v1/messages/${body.message_id}`);
      assert.equal(found.body.recipients[0].code, code);
      assert.equal(found.body.status, "deferred");
    }
    assert.equal(gateway.requests.length, 5, "redirects are not followed");
    assert.doesNotMatch(stage.log.join(""), /s3cret-token|987654/);
  });

  test("a gateway that reports errors with 200 is understood by sms.status_field", async () => {
    const gateway = await startGateway(
      [200, '{"messages":[{"status":"0","id":"7"}]}'],
      [200, '{"messages":[{"status":"4"}]}'],
      [200, "no json"],
    );
    const stage = await start({
      "sms.url": gateway.url,
      "sms.status_field": "messages.0.status",
      "sms.status_accepted": ["0"],
      "sms.id_field": "messages.0.id",
    });
    assert.equal((await stage.call("POST", "/api/v1/send", SMS)).status, 200);
    const refused = await stage.call("POST", "/api/v1/send", SMS);
    assert.equal(refused.status, 422);
    assert.match(refused.body.detail, /messages\.0\.status: 4/);
    const odd = await stage.call("POST", "/api/v1/send", SMS);
    assert.match(odd.body.detail, /messages\.0\.status: missing/);
  });

  for (const [name, reply] of [
    ["hangs", "hang"],
    ["drops the connection", "drop"],
  ] as const) {
    test(`a gateway that ${name} may have sent the message: it is repeated as duplicate_possible`, async () => {
      const gateway = await startGateway(reply);
      const stage = await start({ "sms.url": gateway.url, "sms.timeout_ms": 300 });
      const { body } = await stage.call("POST", "/api/v1/send", SMS);
      const found = await stage.call("GET", `/api/v1/messages/${body.message_id}`);
      const types = found.body.events.map(({ type }: { type: string }) => type);
      assert.deepEqual(types, ["queued", "deferred", "duplicate_possible"]);
    });
  }

  test("a gateway that does not listen has sent nothing", async () => {
    const stage = await start({ "sms.url": "http://127.0.0.1:1/" });
    const { body } = await stage.call("POST", "/api/v1/send", SMS);
    const found = await stage.call("GET", `/api/v1/messages/${body.message_id}`);
    const types = found.body.events.map(({ type }: { type: string }) => type);
    assert.deepEqual(types, ["queued", "deferred"]);
  });
});

describe("presets", () => {
  const account = "AC12";
  const basic = `Basic ${Buffer.from("AC12:key").toString("base64")}`;
  // Examples of the vendors' pages.
  const cases: {
    preset: string;
    path: string;
    authorization: string;
    body: (body: string) => unknown;
    expected: unknown;
  }[] = [
    {
      preset: "twilio",
      path: "/2010-04-01/Accounts/AC12/Messages.json",
      authorization: basic,
      body: (body) => Object.fromEntries(new URLSearchParams(body)),
      expected: { To: SMS.to, From: "Shop", Body: SMS.text },
    },
    {
      preset: "vonage",
      path: "/v1/messages",
      authorization: basic,
      body: JSON.parse,
      expected: {
        channel: "sms",
        message_type: "text",
        to: "4915112345678",
        from: "Shop",
        text: SMS.text,
      },
    },
    {
      preset: "messagebird",
      path: "/messages",
      authorization: "AccessKey key",
      body: JSON.parse,
      expected: {
        originator: "Shop",
        recipients: ["4915112345678"],
        body: SMS.text,
        datacoding: "auto",
      },
    },
    {
      preset: "sinch",
      path: "/xms/v1/AC12/batches",
      authorization: "Bearer key",
      body: JSON.parse,
      expected: { from: "Shop", to: ["4915112345678"], body: SMS.text },
    },
  ];
  for (const { preset, path, authorization, body, expected } of cases) {
    test(preset, async () => {
      const gateway = await startGateway([201, '{"id":"1","sid":"1","message_uuid":"1"}']);
      const template = path.replace(account, "{account}");
      const stage = await start({
        "sms.preset": preset,
        "sms.url": gateway.url + template,
        "sms.account": account,
        "sms.secret": "key",
        "sms.from": "Shop",
      });
      assert.equal((await stage.call("POST", "/api/v1/send", SMS)).status, 200);
      const [request] = gateway.requests;
      assert.equal(request!.path, path);
      assert.equal(request!.headers.authorization, authorization);
      assert.deepEqual(body(request!.body), expected);
    });
  }

  test("templates of URL, headers and body escape each value for its place", async () => {
    const gateway = await startGateway([200, ""]);
    const stage = await start({
      "sms.url": `${gateway.url}/sms?to={to}&key={secret}`,
      "sms.headers": { "X-Sender": "{from}", "content-type": "text/plain" },
      "sms.body": "{from}: {text}",
      "sms.secret": "a b&c",
    });
    const sent = await stage.call("POST", "/api/v1/send", { ...SMS, from: "My Shop" });
    assert.equal(sent.status, 200, sent.text);
    const [request] = gateway.requests;
    assert.equal(request!.path, "/sms?to=%2B4915112345678&key=a%20b%26c");
    assert.equal(request!.headers["x-sender"], "My Shop");
    assert.equal(request!.body, `My Shop: ${SMS.text}`);
    assert.doesNotMatch(stage.log.join(""), /a%20b/);
  });

  test("a wrong template stops the start and names its setting", async () => {
    const wrong: [settings: Record<string, unknown>, message: RegExp][] = [
      [{ "sms.preset": "json" }, /^sms\.url is required/],
      [{ "sms.url": "http://x.example/{number}" }, /^sms\.url: unknown placeholder \{number\}/],
      [{ "sms.url": "gateway/{to}" }, /^sms\.url: not a URL/],
      [{ "sms.url": "http://x.example", "sms.body": '{"to":{to}}' }, /^sms\.body: not JSON/],
    ];
    for (const [settings, message] of wrong) {
      await assert.rejects(startStage(settings), { message });
    }
  });
});

describe("bounds", () => {
  test("a gateway at a private address is refused unless that is allowed", async () => {
    const gateway = await startGateway([200, "{}"]);
    const stage = await start({ "sms.url": gateway.url, allow_private_targets: false });
    const { body } = await stage.call("POST", "/api/v1/send", SMS);
    const found = await stage.call("GET", `/api/v1/messages/${body.message_id}`);
    assert.match(found.body.recipients[0].detail, /the address is not allowed/);
    assert.equal(gateway.requests.length, 0);
  });

  test("invalid requests are refused before anything is stored", async () => {
    const gateway = await startGateway([200, "{}"]);
    const stage = await start({ "sms.url": gateway.url });
    const wrong: [change: Record<string, unknown>, path: string][] = [
      [{ to: "0151 1234567" }, "to"],
      [{ to: "+0123456789" }, "to"],
      [{ to: "+49151123456789012" }, "to"],
      [{ to: ["+4915112345678"] }, "to"],
      [{ to: "ada@example.org" }, "to"],
      [{ text: "" }, "text"],
      [{ text: undefined }, "text"],
      [{ text: "x".repeat(1_601) }, "text"],
      [{ from: "Shop\r\nX: y" }, "from"],
      [{ from: "a@shop.example" }, "from"],
      [{ html: "<p>" }, "html"],
      [{ subject: "x" }, "subject"],
      [{ cc: ["+4915112345679"] }, "cc"],
    ];
    for (const [change, path] of wrong) {
      const { status, body } = await stage.call("POST", "/api/v1/send", { ...SMS, ...change });
      assert.equal(status, 400, JSON.stringify(change));
      assert.equal(body.errors[0].path, path);
    }
    assert.equal(gateway.requests.length, 0);
  });

  test("without a gateway SMS go to the inbox, or are refused where a relay sends mail", async () => {
    const local = await start({});
    const { body } = await local.call("POST", "/api/v1/send", SMS);
    const kept = await local.call("GET", `/api/v1/inbox/${body.message_id}`);
    assert.equal(kept.body.text, SMS.text);
    const stage = await start({ "smtp.host": "127.0.0.1", "smtp.port": 1 });
    const refused = await stage.call("POST", "/api/v1/send", SMS);
    assert.equal(refused.status, 422);
    assert.equal(refused.body.code, "channel_unavailable");
    assert.equal(refused.body.status, 422);
  });

  test("an unreachable mail relay does not delay SMS in the queue", async () => {
    const gateway = await startGateway([200, "{}"]);
    const stage = await start({
      "sms.url": gateway.url,
      "smtp.host": "127.0.0.1",
      "smtp.port": 1,
      send_wait_ms: 0,
      from_domain: "shop.example",
    });
    const sendAt = new Date(Date.now() + 60_000).toISOString();
    const later = await stage.call("POST", "/api/v1/send", { ...SMS, send_at: sendAt });
    stage.advance(61_000);
    // The relay is paused when the SMS becomes due.
    const mail = { to: "ada@example.org", subject: "Hello", text: "Hello" };
    for (let count = 0; count < 5; count += 1) await stage.call("POST", "/api/v1/send", mail);
    await waitFor(async () => {
      await stage.refill();
      return gateway.requests[0];
    });
    const found = await stage.call("GET", `/api/v1/messages/${later.body.message_id}`);
    assert.equal(found.status, 200);
  });
});
