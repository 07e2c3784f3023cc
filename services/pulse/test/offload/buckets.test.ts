// Buckets that keep what is deleted, that refuse deletion, and one bucket of two brokers.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { findFreePort } from "@platform/kernel/testing";
import { waitFor } from "@platform/testing/wait";
import {
  makeTopic,
  OFFLOADER,
  publishMany,
  readByKafka,
  startBroker,
  waitForOffload,
} from "./rig.ts";
import { OffloadStore } from "./store.ts";

let store: OffloadStore;
before(async () => {
  store = await OffloadStore.start();
});
after(() => store.end());

const VERSIONING = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
const LOCK =
  "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>" +
  "<Mode>GOVERNANCE</Mode><Days>1</Days></DefaultRetention></Rule></ObjectLockConfiguration>";

for (const { name, documents } of [
  { name: "versioned", documents: [["versioning", VERSIONING]] },
  {
    name: "locked",
    documents: [
      ["versioning", VERSIONING],
      ["object-lock", LOCK],
    ],
  },
] as const) {
  test(`a ${name} bucket takes segments, and a deleted topic leaves no live object in it`, async (t) => {
    await store.makeBucket(name);
    for (const [kind, body] of documents) await store.send("PUT", `/${name}?${kind}`, body);
    const pulse = await startBroker(t);
    const set = await pulse.post(OFFLOADER, store.settings({ s3_bucket: name }));
    assert.equal(set.status, 200, JSON.stringify(set.body));
    await makeTopic(pulse, "kept");
    const payloads = await publishMany(pulse, "kept");
    await waitForOffload(pulse, 3);
    assert.deepEqual(await readByKafka(pulse, "kept", payloads.length), payloads);
    const deleted = await pulse.get("/api/v1/topics/kept", { method: "DELETE" });
    assert.ok(deleted.status < 300, JSON.stringify(deleted.body));
    await waitFor(async () => (await store.list(name)).size === 0);
    await waitFor(async () => (await pulse.get(OFFLOADER)).body.remote_segments === 0);
  });
}

test("while a bucket refuses deletion removals wait, visibly, and happen later", async (t) => {
  const bucket = "frozen";
  await store.makeBucket(bucket);
  const admin = store.vault.adminUrl;
  const put = (actions: string[]): Promise<string> => {
    const Resource = [`arn:aws:s3:::${bucket}`, `arn:aws:s3:::${bucket}/*`];
    const Statement = [{ Effect: "Allow", Action: actions, Resource }];
    const policies = { main: { Version: "2012-10-17", Statement } };
    return store.send(
      "PUT",
      "/api/v1/users/broker",
      JSON.stringify({ policies, namespaces: [] }),
      admin,
    );
  };
  const reading = ["s3:GetObject", "s3:PutObject", "s3:ListBucket"];
  await put(reading);
  const made = await store.send("POST", "/api/v1/keys", JSON.stringify({ user: "broker" }), admin);
  const key = JSON.parse(made) as { access_key: string; secret_key: string };
  const pulse = await startBroker(t);
  const settings = store.settings({
    s3_bucket: bucket,
    s3_token: `${key.access_key}:${key.secret_key}`,
  });
  const refused = await pulse.post(OFFLOADER, settings);
  assert.deepEqual([refused.status, refused.body.code], [422, "offload_unreachable"]);
  assert.match(JSON.stringify(refused.body), /AccessDenied/);

  await put([...reading, "s3:DeleteObject", "s3:AbortMultipartUpload"]);
  assert.equal((await pulse.post(OFFLOADER, settings)).status, 200);
  await makeTopic(pulse, "orders");
  await publishMany(pulse, "orders");
  await waitForOffload(pulse, 3);
  await put(reading);
  const held = (await store.list(bucket)).size;
  await pulse.get("/api/v1/topics/orders", { method: "DELETE" });
  const error = await waitFor(async () => {
    const { body } = await pulse.get(OFFLOADER);
    return body.last_error?.operation === "remove" ? body.last_error : undefined;
  });
  assert.equal(error.code, "access_denied");
  assert.ok((await store.list(bucket)).size > held - 3, "what is refused stays");
  // Publishing does not wait for it.
  assert.equal((await pulse.publish({ topic: "others", payload: "x" })).status, 200);
  await put([...reading, "s3:DeleteObject"]);
  await waitFor(async () => {
    const names = [...(await store.list(bucket)).keys()];
    return names.every((name) => name.startsWith("probe-"));
  });
});

test("a bucket whose notifications send uploads to the same broker is refused", async (t) => {
  const bucket = "loop";
  await store.makeBucket(bucket);
  const port = await findFreePort();
  const pulse = await startBroker(t, { PLATFORM_PULSE_HTTP_ADDR: `127.0.0.1:${port}` });
  const notify = (prefix: string, target: object, events = ["ObjectCreated:*"]): Promise<string> =>
    store.send(
      "PUT",
      `/${bucket}?notification`,
      JSON.stringify({ subscriptions: [{ id: "loop", events, filter: { prefix }, ...target }] }),
    );
  const set = () => pulse.post(OFFLOADER, store.settings({ s3_bucket: bucket, s3_prefix: "a/" }));
  const own = { webhook: `http://127.0.0.1:${port}/api/v1/publish` };
  for (const prefix of ["", "a/", "a/log/0"]) {
    await notify(prefix, own);
    const { status, body } = await set();
    assert.deepEqual([status, body.code, body.notification], [422, "offload_loop", "loop"], prefix);
  }
  const { body } = await pulse.get(OFFLOADER);
  assert.equal(body.s3_bucket, null);
  await notify("", own, ["ObjectRemoved:*"]);
  assert.equal((await set()).status, 200);
  await notify("b/", own);
  assert.equal((await set()).status, 200);
  await notify("", { webhook: "http://127.0.0.1:9/api/v1/publish" });
  assert.equal((await set()).status, 200);
});

test("two brokers on one prefix read their own segments and remove nothing of the other", async (t) => {
  const env = store.configOf("both/");
  const [one, other] = await Promise.all([startBroker(t, env), startBroker(t, env)]);
  const payloads = new Map<typeof one, string[]>();
  for (const pulse of [one, other]) {
    await makeTopic(pulse, "orders");
    payloads.set(pulse, await publishMany(pulse, "orders"));
  }
  await waitForOffload(one, 3);
  await waitForOffload(other, 3);
  const objectsOf = async (): Promise<Map<string, number>> => {
    const counts = new Map<string, number>();
    for (const name of (await store.list()).keys()) {
      const log = name.split("/")[2]!;
      counts.set(log, (counts.get(log) ?? 0) + 1);
    }
    return counts;
  };
  const before = await objectsOf();
  assert.equal(before.size, 2, "each log has its own folder");
  await one.get("/api/v1/topics/orders", { method: "DELETE" });
  await waitFor(async () => (await objectsOf()).size === 1);
  assert.equal(
    [...(await objectsOf()).values()][0],
    (await other.get(OFFLOADER)).body.remote_segments,
  );
  assert.deepEqual(
    await readByKafka(other, "orders", payloads.get(other)!.length),
    payloads.get(other),
  );
});
