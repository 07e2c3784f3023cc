// Events from a request to the receiver: a running service and a real HTTP server.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, describe, test } from "node:test";
import { serve, waitFor, type Serving } from "./serving.ts";

interface Received {
  headers: IncomingHttpHeaders;
  body: string;
}

let serving: Serving;
let receiver: Server;
let url: string;
let status = 200;
const received: Received[] = [];

before(async () => {
  receiver = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      if (status === 200) received.push({ headers: request.headers, body });
      response.writeHead(status).end();
    });
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => receiver.once("listening", resolve));
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
  serving = await serve({ env: { PLATFORM_VAULT_EVENT_NETWORKS: "127.0.0.0/8" } });
});
after(async () => {
  receiver.close();
  await serving[Symbol.asyncDispose]();
});
beforeEach(() => {
  status = 200;
  received.length = 0;
});

function readRecord({ body }: Received) {
  return (JSON.parse(body) as { Records: Record<string, never>[] }).Records[0] as unknown as {
    eventName: string;
    eventSource: string;
    s3: { configurationId: string; object: { key: string; size?: number; sequencer: string } };
  };
}

function isSigned({ headers, body }: Received, secret: string): boolean {
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const text = `${String(headers["webhook-id"])}.${String(headers["webhook-timestamp"])}.${body}`;
  const signature = createHmac("sha256", key).update(text).digest("base64");
  return headers["webhook-signature"] === `v1,${signature}`;
}

describe("events", () => {
  test("a subscription of the admin API receives puts and deletions, signed, with the specification's event names", async () => {
    const { s3, admin } = serving;
    await s3.must("PUT", "/photos");
    const subscribed = await admin.must("POST", "/api/v1/events/subscribe", {
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        bucket: "photos",
        events: ["objstore:ObjectCreated:*", "objstore:ObjectRemoved:*"],
        webhook: url,
        filter: { suffix: ".jpg" },
      }),
    });
    const { secret } = JSON.parse(subscribed.text) as { secret: string };
    await s3.must("PUT", "/photos/other.txt", { body: "no" });
    await s3.must("PUT", "/photos/a%20b.jpg", { body: "hello" });
    await s3.must("DELETE", "/photos/a%20b.jpg");
    await waitFor("two events", () => received.length >= 2);
    const [first, second] = received as [Received, Received];
    assert.ok(isSigned(first, secret) && isSigned(second, secret));
    const records = [first, second].map(readRecord);
    const put = records.find(({ eventName }) => eventName === "objstore:ObjectCreated:Put")!;
    assert.deepEqual([put.s3.object.key, put.s3.object.size], ["a+b.jpg", 5]);
    const deleted = records.find(({ eventName }) => eventName === "objstore:ObjectRemoved:Delete")!;
    assert.ok(deleted.s3.object.sequencer > put.s3.object.sequencer);
  });

  test("concurrently added subscriptions are all stored, up to a hundred", async () => {
    const { s3, admin } = serving;
    await s3.must("PUT", "/crowded");
    const subscribe = (id: string) =>
      admin.send("POST", "/api/v1/events/subscribe", {
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          id,
          bucket: "crowded",
          events: ["objstore:ObjectCreated:*"],
          webhook: url,
        }),
      });
    const ids = Array.from({ length: 100 }, (_, index) => `id-${index}`);
    const answers = await Promise.all(ids.map(subscribe));
    assert.ok(answers.every((answer) => answer.status === 201));
    assert.equal((await subscribe("one-more")).status, 409);
    assert.equal((await subscribe("id-7")).status, 201, "one of the same id is replaced");
    const listed = await admin.must("GET", "/api/v1/events/subscriptions?bucket=crowded");
    const { subscriptions } = JSON.parse(listed.text) as { subscriptions: { id: string }[] };
    assert.deepEqual(subscriptions.map(({ id }) => id).toSorted(), ids.toSorted());
    await s3.must("DELETE", "/crowded");
  });

  test("an S3 configuration receives S3's event names, and an administrator can read its secret", async () => {
    const { s3, admin } = serving;
    await s3.must("PUT", "/documents");
    await s3.must("PUT", "/documents?notification", {
      body: `<NotificationConfiguration><TopicConfiguration><Id>mine</Id><Topic>${url}</Topic><Event>s3:ObjectCreated:*</Event></TopicConfiguration></NotificationConfiguration>`,
    });
    await s3.must("PUT", "/documents/a", { body: "hello" });
    const event = await waitFor("an event", () => received[0]);
    const listed = await admin.must("GET", "/api/v1/events/subscriptions?bucket=documents");
    const { subscriptions } = JSON.parse(listed.text) as { subscriptions: { secret: string }[] };
    assert.equal(subscriptions.length, 1);
    assert.ok(isSigned(event, subscriptions[0]!.secret));
    const record = readRecord(event);
    assert.equal(record.eventName, "ObjectCreated:Put");
    assert.equal(record.eventSource, "aws:s3");
    assert.equal(record.s3.configurationId, "mine");
  });

  test("an undelivered event is delivered after kill -9 and a restart", async () => {
    const { s3, vault } = serving;
    await s3.must("PUT", "/kept");
    await s3.must("PUT", "/kept?notification", {
      body: JSON.stringify({ bucket: "kept", events: ["objstore:ObjectCreated:*"], webhook: url }),
    });
    status = 503;
    await s3.must("PUT", "/kept/a", { body: "survives" });
    await vault.kill();
    status = 200;
    await vault.start();
    const event = await waitFor("the event", () => received[0]);
    assert.equal(readRecord(event).s3.object.key, "a");
    assert.equal((await s3.must("GET", "/kept/a")).text, "survives");
  });

  test("an address in a private network that is not allowed is refused when the subscription is created", async () => {
    const { s3 } = serving;
    await s3.must("PUT", "/closed");
    const answer = await s3.send("PUT", "/closed?notification", {
      body: JSON.stringify({ events: ["objstore:ObjectCreated:*"], webhook: "http://10.0.0.1/" }),
    });
    assert.equal(answer.status, 400);
    assert.equal(answer.code, "InvalidArgument");
  });
});
