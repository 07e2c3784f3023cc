// PutBucketNotificationConfiguration and its events: https://docs.aws.amazon.com/AmazonS3/latest/userguide/EventNotifications.html
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { assertEmpty, assertError, casesOf, md5, readResult, type Scene } from "../case.ts";
import { upload } from "../upload.ts";

const DELIVERY_MS = 30_000;
/** Without a listener. */
const NOWHERE = "http://127.0.0.1:9/hook";

interface EventRecord {
  eventVersion: string;
  eventName: string;
  eventTime: string;
  userIdentity: { principalId: string };
  s3: {
    bucket: { name: string; ownerIdentity: { principalId: string } };
    object: { key: string; size?: number; eTag?: string; versionId?: string };
  };
}

/** A server that records the events it receives. */
async function receive(run: (url: string, records: EventRecord[]) => Promise<void>): Promise<void> {
  const records: EventRecord[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    request.on("end", () => {
      records.push(...(JSON.parse(text) as { Records: EventRecord[] }).Records);
      response.end();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const { port } = server.address() as AddressInfo;
    await run(`http://127.0.0.1:${port}/hook`, records);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function awaitCount(records: readonly EventRecord[], count: number): Promise<void> {
  const deadline = Date.now() + DELIVERY_MS;
  while (records.length < count) {
    if (Date.now() > deadline) throw new Error(`${records.length} of ${count} events came`);
    await sleep(10);
  }
}

function toXml(url: string, events: readonly string[], filter = ""): string {
  const names = events.map((name) => `<Event>${name}</Event>`).join("");
  return `<NotificationConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><TopicConfiguration><Id>one</Id><Topic>${url}</Topic>${names}${filter}</TopicConfiguration></NotificationConfiguration>`;
}

const toFilter = (name: string, value: string) =>
  `<Filter><S3Key><FilterRule><Name>${name}</Name><Value>${value}</Value></FilterRule></S3Key></Filter>`;

const put = ({ ask }: Scene, body: string) => ask("PUT", "?notification", { body });

export const cases = casesOf(
  "PutBucketNotificationConfiguration",
  [
    "keeps a configuration of S3's form",
    async (scene) => {
      const filter = toFilter("prefix", "images/");
      assertEmpty(await put(scene, toXml(NOWHERE, ["s3:ObjectCreated:*"], filter)), 200);
      const answer = await scene.ask("GET", "?notification");
      const found = readResult(answer, "NotificationConfiguration");
      assert.equal(found.get("TopicConfiguration/Id"), "one");
      assert.equal(found.get("TopicConfiguration/Topic"), NOWHERE);
      assert.equal(found.get("TopicConfiguration/Event"), "s3:ObjectCreated:*");
      const rule = found.all("TopicConfiguration/Filter/S3Key/FilterRule")[0]!;
      assert.equal(rule.get("Name")!.toLowerCase(), "prefix");
      assert.equal(rule.get("Value"), "images/");
    },
  ],
  [
    "keeps a subscription of the store's own form",
    async (scene) => {
      const events = ["objstore:ObjectCreated:*"];
      const body = JSON.stringify({ bucket: scene.bucket, events, webhook: NOWHERE });
      assertEmpty(await put(scene, body), 200);
      const headers = { accept: "application/json" };
      const answer = await scene.ask("GET", "?notification", { headers });
      const { subscriptions } = JSON.parse(answer.text) as {
        subscriptions: { events: string[]; webhook: string }[];
      };
      assert.deepEqual(subscriptions[0]!.events, events);
      assert.equal(subscriptions[0]!.webhook, NOWHERE);
    },
  ],
  [
    "an empty configuration removes all",
    async (scene) => {
      await put(scene, toXml(NOWHERE, ["s3:ObjectCreated:*"]));
      assertEmpty(await put(scene, "<NotificationConfiguration/>"), 200);
      assert.deepEqual((await scene.ask("GET", "?notification")).document.children, []);
    },
  ],
  [
    "InvalidArgument for events, targets and filters that are none",
    async (scene) => {
      const all = ["s3:ObjectCreated:*"];
      const bodies = [
        toXml(NOWHERE, ["s3:ObjectEaten"]),
        toXml(NOWHERE, []),
        toXml("arn:aws:sns:us-east-1:1:topic", all),
        toXml("http://10.1.2.3/hook", all),
        toXml(NOWHERE, all, toFilter("infix", "a")),
        '{"events":["objstore:ObjectCreated:*"]}',
      ];
      for (const body of bodies) assertError(await put(scene, body), 400, "InvalidArgument");
    },
  ],
  [
    "tells of a put with S3's record of version 2.1",
    (scene) =>
      receive(async (url, records) => {
        await put(scene, toXml(url, ["s3:ObjectCreated:*"]));
        await scene.put("a%20b%2Bc", "hello");
        await awaitCount(records, 1);
        const [record] = records;
        assert.equal(record!.eventVersion, "2.1");
        assert.equal(record!.eventName, "ObjectCreated:Put");
        assert.match(record!.eventTime, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
        assert.equal(record!.s3.bucket.name, scene.bucket);
        assert.equal(record!.s3.object.key, "a+b%2Bc");
        assert.equal(record!.s3.object.size, 5);
        assert.equal(record!.s3.object.eTag, md5("hello"));
      }),
  ],
  [
    "tells of copies, uploads in parts and deletions by their names",
    (scene) =>
      receive(async (url, records) => {
        await put(scene, toXml(url, ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]));
        await scene.put("key", "x");
        const headers = { "x-amz-copy-source": `${scene.bucket}/key` };
        await scene.must("PUT", "/copy", { headers });
        await upload(scene, "parts", ["x"]);
        await scene.must("DELETE", "/key");
        await awaitCount(records, 4);
        assert.deepEqual(records.map(({ eventName }) => eventName).toSorted(), [
          "ObjectCreated:CompleteMultipartUpload",
          "ObjectCreated:Copy",
          "ObjectCreated:Put",
          "ObjectRemoved:Delete",
        ]);
      }),
  ],
  [
    "tells of a delete marker as such, with its version",
    (scene) =>
      receive(async (url, records) => {
        await scene.setVersioning("Enabled");
        await scene.put("key", "x");
        await put(scene, toXml(url, ["s3:ObjectRemoved:*"]));
        const marker = (await scene.must("DELETE", "/key")).headers["x-amz-version-id"];
        await awaitCount(records, 1);
        assert.equal(records[0]!.eventName, "ObjectRemoved:DeleteMarkerCreated");
        assert.equal(records[0]!.s3.object.versionId, marker);
      }),
  ],
  [
    "tells only of keys that a filter names",
    (scene) =>
      receive(async (url, records) => {
        await put(scene, toXml(url, ["s3:ObjectCreated:*"], toFilter("suffix", ".jpg")));
        await scene.putAll("a.png", "a.jpg", "b.txt", "b.jpg");
        await awaitCount(records, 2);
        const keys = records.map(({ s3 }) => s3.object.key).toSorted();
        assert.deepEqual(keys, ["a.jpg", "b.jpg"]);
      }),
  ],
  [
    "names events in the store's own form to who subscribed so",
    (scene) =>
      receive(async (url, records) => {
        await put(scene, JSON.stringify({ events: ["objstore:ObjectCreated:*"], webhook: url }));
        await scene.put("key", "x");
        await awaitCount(records, 1);
        assert.equal(records[0]!.eventName, "objstore:ObjectCreated:Put");
      }),
  ],
  [
    "tells topics, queues and functions as what they were put",
    async (scene) => {
      const forms = [
        ["TopicConfiguration", "Topic"],
        ["QueueConfiguration", "Queue"],
        ["CloudFunctionConfiguration", "CloudFunction"],
      ];
      const inner = forms.map(
        ([form, target]) =>
          `<${form}><Id>${target}</Id><${target}>${NOWHERE}</${target}><Event>s3:ObjectCreated:*</Event></${form}>`,
      );
      const body = `<NotificationConfiguration>${inner.join("")}</NotificationConfiguration>`;
      assertEmpty(await put(scene, body), 200);
      const { document } = await scene.must("GET", "?notification");
      for (const [form, target] of forms) {
        assert.equal(document.get(`${form}/Id`), target);
        assert.equal(document.get(`${form}/${target}`), NOWHERE);
      }
    },
  ],
  [
    "NotImplemented for events to a bus of the cloud's",
    async (scene) => {
      const body =
        "<NotificationConfiguration><EventBridgeConfiguration/></NotificationConfiguration>";
      assertError(await put(scene, body), 501, "NotImplemented");
    },
  ],

  [
    "tells who acted, whose the bucket is, and no version where there are none",
    (scene) =>
      receive(async (url, records) => {
        const as = await scene.createUser({
          Effect: "Allow",
          Action: "s3:PutObject",
          Resource: `arn:aws:s3:::${scene.bucket}/*`,
        });
        await put(scene, toXml(url, ["s3:ObjectCreated:*"]));
        assertEmpty(await scene.ask("PUT", "/key", { as, body: "x" }), 200);
        await awaitCount(records, 1);
        const [{ userIdentity, s3 }] = records as [EventRecord];
        assert.equal(userIdentity.principalId, as.user);
        const owner = (await scene.must("GET", "?acl")).document.get("Owner/ID");
        assert.equal(s3.bucket.ownerIdentity.principalId, owner);
        assert.ok(!("versionId" in s3.object));
      }),
  ],
);
