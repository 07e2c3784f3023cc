// Events from a request to the receiver: a running service and a real HTTP server.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, describe, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { serve, type Serving } from "./serving.ts";

interface Received {
  headers: IncomingHttpHeaders;
  body: string;
}

/** A subscription in the list of deliveries. */
interface Delivery {
  id: string;
  bucket: string;
  webhook: string;
  waiting: number;
  has_more: boolean;
  delivered: number;
  failed: number;
  abandoned: number;
  tries: {
    ended_at: string;
    duration_ms: number;
    event: string;
    key: string;
    attempt: number;
    outcome: string;
    reason?: string;
    status?: number;
    next_at?: string;
  }[];
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
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const trace = { traceparent: `00-${traceId}-b7ad6b7169203331-01`, tracestate: "vendor=a" };
    await s3.must("PUT", "/photos/a%20b.jpg", { body: "hello", headers: trace });
    await s3.must("DELETE", "/photos/a%20b.jpg");
    await waitFor(() => received.length >= 2, "two events");
    const [first, second] = received as [Received, Received];
    assert.ok(isSigned(first, secret) && isSigned(second, secret));
    const traced = received.filter(({ headers }) => headers["tracestate"] === "vendor=a");
    assert.deepEqual(
      traced.map((item) => [
        readRecord(item).eventName,
        String(item.headers["traceparent"]).split("-")[1],
      ]),
      [["objstore:ObjectCreated:Put", traceId]],
    );
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
    const event = await waitFor(() => received[0], "an event");
    const listed = await admin.must("GET", "/api/v1/events/subscriptions?bucket=documents");
    const { subscriptions } = JSON.parse(listed.text) as { subscriptions: { secret: string }[] };
    assert.equal(subscriptions.length, 1);
    assert.ok(isSigned(event, subscriptions[0]!.secret));
    const record = readRecord(event);
    assert.equal(record.eventName, "ObjectCreated:Put");
    assert.equal(record.eventSource, "aws:s3");
    assert.equal(record.s3.configurationId, "mine");
  });

  test("administrators see the last tries of each subscription, page by page", async () => {
    const { s3, admin } = serving;
    for (const bucket of ["tries-a", "tries-b"]) {
      await s3.must("PUT", `/${bucket}`);
      await s3.must("PUT", `/${bucket}?notification`, {
        body: JSON.stringify({ id: "hook", events: ["objstore:ObjectCreated:*"], webhook: url }),
      });
    }
    status = 503;
    await s3.must("PUT", "/tries-a/one", { body: "hello" });
    const read = async (query = "") => {
      const { text } = await admin.must("GET", `/api/v1/events/deliveries${query}`);
      return JSON.parse(text) as { items: Delivery[]; next_cursor: string | null };
    };
    const find = async (bucket: string): Promise<Delivery | undefined> =>
      (await read("?limit=200")).items.find((item) => item.bucket === bucket);
    await waitFor(async () => (await find("tries-a"))?.failed !== 0, "a failed try");
    const failing = (await find("tries-a"))!;
    assert.deepEqual([failing.id, failing.webhook, failing.waiting], ["hook", url, 1]);
    const [last] = failing.tries;
    assert.deepEqual(
      [last!.event, last!.key, last!.outcome],
      ["objstore:ObjectCreated:Put", "one", "failed"],
    );
    assert.match(last!.reason!, /status 503/);
    assert.equal(last!.status, 503);
    assert.ok(Date.parse(last!.next_at!) > Date.parse(last!.ended_at), JSON.stringify(last));
    assert.ok(Math.abs(Date.parse(last!.ended_at) - Date.now()) < 60_000 && last!.duration_ms >= 0);

    status = 200;
    await waitFor(async () => (await find("tries-a"))?.delivered === 1, "the delivery");
    const done = (await find("tries-a"))!;
    assert.deepEqual([done.waiting, done.has_more, done.abandoned], [0, false, 0]);
    assert.equal(done.tries[0]!.outcome, "delivered");
    assert.deepEqual([done.tries[0]!.status, done.tries[0]!.next_at], [200, undefined]);
    assert.equal(done.tries[0]!.attempt, done.failed + 1);
    assert.equal(done.tries.length, done.failed + 1);
    const unused = (await find("tries-b"))!;
    assert.deepEqual([unused.delivered, unused.tries], [0, []]);

    const all = (await read("?limit=200")).items.map((item) => item.bucket);
    const paged: string[] = [];
    for (let cursor: string | null = ""; cursor !== null;) {
      const page = await read(`?limit=1${cursor === "" ? "" : `&cursor=${cursor}`}`);
      paged.push(...page.items.map((item) => item.bucket));
      cursor = page.next_cursor;
    }
    assert.deepEqual(paged, all);
  });

  test("a test message says whether the target answers, in the form of the subscription", async () => {
    const { s3, admin } = serving;
    await s3.must("PUT", "/tested");
    await s3.must("PUT", "/tested?notification", {
      body: `<NotificationConfiguration><TopicConfiguration><Id>its name</Id><Topic>${url}</Topic><Event>s3:ObjectCreated:*</Event></TopicConfiguration></NotificationConfiguration>`,
    });
    const send = (body: object) =>
      admin.send("POST", "/api/v1/events/test", {
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const ask = async (body: object) =>
      JSON.parse((await send(body)).text) as Record<string, never>;
    const done = await ask({ bucket: "tested", id: "its name" });
    assert.deepEqual([done["outcome"], done["status"]], ["delivered", 200]);
    const { subscriptions } = JSON.parse(
      (await admin.must("GET", "/api/v1/events/subscriptions?bucket=tested")).text,
    ) as { subscriptions: { secret: string }[] };
    const [message] = received;
    assert.ok(isSigned(message!, subscriptions[0]!.secret));
    const { Event: event, Bucket: bucket } = JSON.parse(message!.body) as Record<string, string>;
    assert.deepEqual([event, bucket], ["s3:TestEvent", "tested"]);

    status = 500;
    const failed = await ask({ bucket: "tested", id: "its name" });
    assert.deepEqual([failed["outcome"], failed["status"]], ["failed", 500]);
    assert.equal((await send({ bucket: "tested", id: "another" })).status, 404);
    assert.equal((await send({ bucket: "nowhere", id: "its name" })).status, 404);
    assert.equal((await send({ bucket: "tested" })).status, 400);
  });

  test("of many tests at a time only some run, so that a slow target holds few connections", async () => {
    const { s3, admin } = serving;
    const slow = createServer(() => {
      // Answers nothing: each test ends at its time limit.
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => slow.once("listening", resolve));
    try {
      const webhook = `http://127.0.0.1:${(slow.address() as AddressInfo).port}/`;
      await s3.must("PUT", "/slow");
      await s3.must("PUT", "/slow?notification", {
        body: JSON.stringify({ id: "hook", events: ["objstore:ObjectCreated:*"], webhook }),
      });
      const answers = await Promise.all(
        Array.from({ length: 12 }, () =>
          admin.send("POST", "/api/v1/events/test", {
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ bucket: "slow", id: "hook" }),
          }),
        ),
      );
      const refused = answers.filter((answer) => answer.status === 429);
      assert.ok(refused.length > 0 && refused.length <= 8, `${refused.length} refused`);
      assert.equal(refused[0]!.headers["retry-after"], "5");
      const failed = answers.find((answer) => answer.status === 200)!;
      assert.match(failed.text, /"outcome":"failed".*no response within/);
    } finally {
      slow.closeAllConnections();
      slow.close();
    }
  });

  test("a deleted subscription sends no further events, and the others stay", async () => {
    const { s3, admin } = serving;
    await s3.must("PUT", "/shrinking");
    const rule = { events: ["objstore:ObjectCreated:*"], webhook: url };
    await s3.must("PUT", "/shrinking?notification", {
      body: JSON.stringify([
        { ...rule, id: "one/&=" },
        { ...rule, id: "two" },
      ]),
    });
    const remove = async (id: string) => {
      const query = `bucket=shrinking&id=${encodeURIComponent(id)}`;
      return (await admin.send("DELETE", `/api/v1/events/subscriptions?${query}`)).status;
    };
    assert.equal(await remove("one/&="), 204);
    assert.equal(await remove("one/&="), 404);
    await s3.must("PUT", "/shrinking/a", { body: "hello" });
    const event = await waitFor(() => received[0], "an event");
    assert.equal(readRecord(event).s3.configurationId, "two");
    assert.equal(await remove("two"), 204);
    const { text } = await s3.must("GET", "/shrinking?notification");
    assert.ok(!text.includes("TopicConfiguration"), text);
    assert.equal(received.length, 1);
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
    const event = await waitFor(() => received[0], "the event");
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
