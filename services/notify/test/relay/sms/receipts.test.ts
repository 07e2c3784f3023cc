// Delivery receipts of SMS gateways: authentication, forms of the presets, effect.
import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, describe, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { startHookServer } from "../../receiver.ts";
import { STAGE_KINDS, startStageOn, type Stage } from "../../stage.ts";

const OPEN: { close(): Promise<void> | void }[] = [];
after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
});

const SECRET = "receipt-secret-0123456789";
const API_SECRET = "token";
const PATH = "/api/v1/sms/receipts";
const SMS = { channel: "sms", to: "+4915112345678", text: "Hello" };

/** Starts the service with a gateway that accepts each message as `m-1`, `m-2`, …; sends one. */
async function start(
  preset: string,
  kind = STAGE_KINDS[0]!,
): Promise<{ stage: Stage; id: string }> {
  let count = 0;
  const gateway = createServer((request, response) => {
    const id = `m-${(count += 1)}`;
    request.resume();
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ id, sid: id, message_uuid: id }));
  });
  await new Promise<void>((resolve) => gateway.listen(0, "127.0.0.1", resolve));
  const stage = await startStageOn({
    ...(await kind.prepare()),
    allow_private_targets: true,
    "sms.preset": preset,
    "sms.url": `http://127.0.0.1:${(gateway.address() as AddressInfo).port}/`,
    "sms.secret": API_SECRET,
    "sms.receipt_secret": SECRET,
  });
  OPEN.push({ close: () => void gateway.close() }, stage);
  const { status, body, text } = await stage.call("POST", "/api/v1/send", SMS);
  assert.equal(status, 200, text);
  return { stage, id: body.message_id };
}

const read = async (stage: Stage, id: string) =>
  (await stage.call("GET", `/api/v1/messages/${id}`)).body;
const bearer = { Authorization: `Bearer ${SECRET}`, "Content-Type": "application/json" };

for (const kind of STAGE_KINDS) {
  describe(`receipts on ${kind.kind}`, { skip: kind.skip ?? false }, () => {
    test("are events and webhooks once, also if they arrive at the same time", async () => {
      const { stage, id } = await start("json", kind);
      const hooks = await startHookServer();
      OPEN.push(hooks);
      await stage.call("POST", "/api/v1/webhooks", {
        url: hooks.url,
        events: ["message.delivered"],
      });
      const receipt = JSON.stringify({ id: "m-1", status: "Delivered" });
      // A gateway repeats a receipt that found the database busy.
      const post = async (): Promise<number> => {
        for (;;) {
          const answer = await stage.call("POST", PATH, receipt, bearer);
          if (answer.status !== 503) return answer.status;
        }
      };
      const statuses = await Promise.all(Array.from({ length: 10 }, post));
      assert.deepEqual(new Set(statuses), new Set([204]));
      const { status, events } = await read(stage, id);
      assert.equal(status, "sent");
      const delivered = events.filter(({ type }: { type: string }) => type === "delivered");
      assert.equal(delivered.length, 1);
      assert.equal(delivered[0].recipient, SMS.to);
      await stage.callWebhooks();
      await waitFor(() => hooks.requests[0]);
      await stage.callWebhooks();
      assert.equal(hooks.requests.length, 1);
      assert.equal(hooks.requests[0]!.body.data.message_id, id);
    });
  });
}

test("a failure after acceptance fails the message; states on the way change nothing", async () => {
  const { stage, id } = await start("json");
  await stage.call("POST", PATH, '{"id":"m-1","status":"buffered"}', bearer);
  assert.equal((await read(stage, id)).status, "sent");
  const answer = await stage.call("POST", PATH, '{"id":"m-1","status":"undelivered"}', bearer);
  assert.equal(answer.status, 204, answer.text);
  const { status, recipients, events } = await read(stage, id);
  assert.equal(status, "failed");
  assert.equal(recipients[0].detail, "the gateway reports: undelivered");
  assert.ok(events.some(({ type }: { type: string }) => type === "undelivered"));
});

test("receipts without proof are refused, and guessing is limited", async () => {
  const { stage, id } = await start("json");
  const receipt = '{"id":"m-1","status":"failed"}';
  const basic = (pair: string) => `Basic ${Buffer.from(pair).toString("base64")}`;
  for (const headers of [
    {},
    { Authorization: "Bearer wrong" },
    { Authorization: basic("x:wrong") },
    { Authorization: `Digest ${SECRET}` },
    { "X-Twilio-Signature": "AAAA" },
  ]) {
    assert.equal(
      (await stage.call("POST", PATH, receipt, headers as Record<string, string>)).status,
      401,
    );
  }
  assert.equal((await read(stage, id)).status, "sent");
  const invalid = await stage.call("POST", PATH, '{"id":1}', bearer);
  assert.equal(invalid.status, 400);
  assert.equal(
    (await stage.call("POST", PATH, '{"id":"m-9","status":"failed"}', bearer)).status,
    404,
  );
  const right = await stage.call("POST", PATH, receipt, { Authorization: basic(`any:${SECRET}`) });
  assert.equal(right.status, 204, right.text);
  let status = 401;
  for (let count = 0; count < 800 && status === 401; count += 1) {
    status = (await stage.call("POST", PATH, receipt)).status;
  }
  assert.equal(status, 429);
  assert.equal((await stage.call("POST", PATH, receipt, bearer)).status, 204, "valid ones are not");
});

describe("presets", () => {
  const url = `https://mail.test/notify${PATH}`;
  const token = (claims: object): string => {
    const encode = (value: object): string =>
      Buffer.from(JSON.stringify(value)).toString("base64url");
    const data = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`;
    return `${data}.${createHmac("sha256", SECRET).update(data).digest("base64url")}`;
  };
  const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

  test("twilio: a form with the signature of the URL and its fields", async () => {
    const { stage, id } = await start("twilio");
    const form = "MessageStatus=delivered&To=%2B4915112345678&MessageSid=m-1";
    const signed = `${url}MessageSidm-1MessageStatusdeliveredTo+4915112345678`;
    const signature = createHmac("sha1", API_SECRET).update(signed).digest("base64");
    const headers = {
      "Content-Type": "application/x-www-form-urlencoded",
      "X-Twilio-Signature": signature,
    };
    assert.equal(
      (await stage.call("POST", PATH, form.replace("delivered", "failed"), headers)).status,
      401,
    );
    assert.equal((await stage.call("POST", PATH, form, headers)).status, 204);
    assert.ok(
      (await read(stage, id)).events.some(({ type }: { type: string }) => type === "delivered"),
    );
  });

  test("vonage: JSON with a token that contains the hash of the body", async () => {
    const { stage, id } = await start("vonage");
    const receipt = '{"message_uuid":"m-1","status":"undeliverable","channel":"sms"}';
    const headers = { Authorization: `Bearer ${token({ payload_hash: sha256(receipt) })}` };
    const other = receipt.replace("undeliverable", "delivered");
    assert.equal((await stage.call("POST", PATH, other, headers)).status, 401);
    assert.equal((await stage.call("POST", PATH, receipt, headers)).status, 204);
    assert.equal((await read(stage, id)).status, "failed");
  });

  test("messagebird: a query with a token that contains the hash of the URL", async () => {
    const { stage, id } = await start("messagebird");
    const query = "?id=m-1&status=delivery_failed&recipient=4915112345678";
    const headers = { "MessageBird-Signature-JWT": token({ url_hash: sha256(url + query) }) };
    const other = query.replace("delivery_failed", "delivered");
    assert.equal((await stage.call("GET", PATH + other, undefined, headers)).status, 401);
    assert.equal((await stage.call("GET", PATH + query, undefined, headers)).status, 204);
    assert.equal((await read(stage, id)).status, "failed");
  });

  test("sinch: JSON with Basic authentication", async () => {
    const { stage, id } = await start("sinch");
    const receipt =
      '{"type":"recipient_delivery_report_sms","batch_id":"m-1","code":402,"status":"Rejected"}';
    const basic = `Basic ${Buffer.from(`sinch:${SECRET}`).toString("base64")}`;
    assert.equal((await stage.call("POST", PATH, receipt, { Authorization: basic })).status, 204);
    assert.equal((await read(stage, id)).status, "failed");
  });
});
