// Remotes over HTTP, with another store as the remote: registration, trials, rights, classes, and clients of the S3 API.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { LyingS3 } from "@platform/testing/lying-s3";
import { vaultRoot } from "@platform/testing/staged-vault";
import { waitFor } from "@platform/testing/wait";
import { addReader, callJson, readJson } from "../serving/json-api.ts";
import { serve, type Serving } from "../serving/serving.ts";
import { makeBytes } from "../store/fixture.ts";

interface RemoteAnswer {
  name: string;
  state: string;
  blobs: number;
  bytes: number;
}
interface Check {
  outcome: string;
  steps: { step: string; outcome: string; detail: string }[];
}
interface SweepAnswer {
  scanned: number;
  moved: number;
  bytes: number;
  skipped: number;
  failed: number;
  details: { key: string; reason: string }[];
}

let near: Serving;
let far: Serving;
const { accessKey: access_key, secretKey: secret_key } = vaultRoot;

before(async () => {
  [near, far] = await Promise.all([serve(), serve()]);
  await far.s3.must("PUT", "/cold-bucket");
  await near.s3.must("PUT", "/photos");
  const body = { name: "far", endpoint: far.vault.url, access_key, secret_key, allow: ["pho*"] };
  await readJson(
    callJson(near, "POST", "/admin/remotes", {
      ...body,
      classes: ["GLACIER"],
      bucket: "cold-bucket",
    }),
    201,
  );
});
after(async () => {
  await Promise.all([near[Symbol.asyncDispose](), far[Symbol.asyncDispose]()]);
});

const sweep = async (): Promise<SweepAnswer> =>
  readJson<SweepAnswer>(near.s3.must("POST", "/photos?cold-tier&sweep"));

test("a remote is registered, shown without its secret, tried and changed", async () => {
  const { text } = await callJson(near, "GET", "/admin/remotes");
  assert.ok(!text.includes(secret_key) && !text.includes("sealed"), text);
  assert.equal(
    (
      await callJson(near, "POST", "/admin/remotes", {
        name: "far",
        endpoint: far.vault.url,
        access_key,
        secret_key,
      })
    ).status,
    409,
  );
  for (const endpoint of ["ftp://a", "http://a/path", "http://u:p@a", "nothing"]) {
    const body = { name: "bad", endpoint, access_key, secret_key };
    assert.equal((await callJson(near, "POST", "/admin/remotes", body)).status, 400, endpoint);
  }
  const trial = await readJson<Check>(callJson(near, "POST", "/admin/remotes/far/check", {}));
  assert.deepEqual(
    trial.steps.map(({ step, outcome }) => `${step} ${outcome}`),
    [
      "bucket ok",
      "put ok",
      "ranged_get ok",
      "checksum ok",
      "delete ok",
      "versioning ok",
      "object_lock ok",
      "lifecycle ok",
    ],
  );
  await readJson(callJson(near, "PATCH", "/admin/remotes/far", { secret_key: "wrong" }));
  const refused = await readJson<Check>(callJson(near, "POST", "/admin/remotes/far/check", {}));
  assert.equal(refused.outcome, "failed");
  assert.match(refused.steps[0]!.detail, /^the store answered 403 SignatureDoesNotMatch/);
  assert.equal(
    (await readJson<RemoteAnswer>(callJson(near, "GET", "/admin/remotes/far"))).state,
    "failing",
  );
  await readJson(callJson(near, "PATCH", "/admin/remotes/far", { secret_key }));
  assert.equal(
    (await readJson<Check>(callJson(near, "POST", "/admin/remotes/far/check", {}))).outcome,
    "ok",
  );
});

test("a trial names versions, object lock and lifecycle rules of the bucket there", async () => {
  await far.s3.must("PUT", "/locked-bucket", {
    headers: { "x-amz-bucket-object-lock-enabled": "true" },
  });
  const trial = await readJson<Check>(
    callJson(near, "POST", "/admin/remotes/far/check", { bucket: "locked-bucket" }),
  );
  const found = trial.steps.filter(({ outcome }) => outcome === "warning").map(({ step }) => step);
  assert.deepEqual(found, ["versioning", "object_lock"]);
});

test("a remote that leads back to the store itself is found", async () => {
  await near.s3.must("PUT", "/own-bucket");
  const body = { name: "itself", endpoint: near.vault.url, access_key, secret_key };
  await readJson(callJson(near, "POST", "/admin/remotes", body), 201);
  const trial = await readJson<Check>(
    callJson(near, "POST", "/admin/remotes/itself/check", { bucket: "own-bucket" }),
  );
  assert.equal(trial.outcome, "failed");
  assert.match(trial.steps[0]!.detail, /InvalidRequest/);
  assert.equal((await callJson(near, "DELETE", "/admin/remotes/itself")).status, 204);
});

const body = makeBytes(400_000);

test("the S3 API shows a moved object as COLD and reads it through", async () => {
  const { s3 } = near;
  await s3.must("PUT", "/photos/a", {
    body,
    headers: { "content-type": "image/png", "x-amz-meta-x": "1", "x-amz-tagging": "t=1" },
  });
  await s3.must("PUT", "/photos/little", { body: "x" });
  const tier = { days: 0, prefix: "", remote: "far", bucket: "cold-bucket" };
  await s3.must("PUT", "/photos?cold-tier", { body: JSON.stringify(tier) });
  assert.deepEqual(await readJson(s3.must("GET", "/photos?cold-tier")), {
    prefix: "",
    remote: "far",
    bucket: "cold-bucket",
    minimum_size: 131_072,
    days: 0,
  });
  const before = await s3.must("HEAD", "/photos/a");
  const { details, ...report } = await sweep();
  assert.deepEqual(
    [report.scanned, report.moved, report.bytes, report.skipped, report.failed],
    [2, 1, 400_000, 1, 0],
  );
  assert.deepEqual(
    details.map(({ key, reason }) => [key, reason]),
    [["little", "smaller than minimum_size"]],
  );
  const after = await s3.must("HEAD", "/photos/a");
  assert.equal(after.headers["x-amz-storage-class"], "COLD");
  assert.equal(after.headers["x-store-storage-class"], "COLD");
  for (const name of [
    "etag",
    "last-modified",
    "content-type",
    "x-amz-meta-x",
    "x-amz-tagging-count",
  ])
    assert.equal(after.headers[name], before.headers[name], name);
});

test("listings, attributes, ranges, conditions and usage of a moved object are those of the object", async () => {
  const { s3 } = near;
  const after = await s3.must("HEAD", "/photos/a");
  assert.match(
    (await s3.must("GET", "/photos?list-type=2")).text,
    /<Key>a<\/Key>.*?<StorageClass>COLD</s,
  );
  assert.match(
    (
      await s3.must("GET", "/photos/a?attributes", {
        headers: { "x-amz-object-attributes": "StorageClass" },
      })
    ).text,
    /COLD/,
  );
  assert.ok((await s3.must("GET", "/photos/a")).body.equals(body));
  const ranged = await s3.must("GET", "/photos/a", { headers: { range: "bytes=100-300000" } });
  assert.equal(ranged.status, 206);
  assert.ok(ranged.body.equals(body.subarray(100, 300_001)));
  assert.equal(
    (
      await s3.send("GET", "/photos/a", {
        headers: { "if-none-match": String(after.headers["etag"]) },
      })
    ).status,
    304,
  );
  assert.equal(
    (await s3.send("GET", "/photos/a", { headers: { "if-match": '"other"' } })).status,
    412,
  );
  const usage = await readJson(callJson(near, "GET", "/api/v1/buckets/photos/usage"));
  assert.equal(usage["bytes"], 400_001, "quota and usage count logical bytes once");
});

test("the S3 API restores a moved object, and a copy onto itself brings it back", async () => {
  const { s3 } = near;
  const restore = {
    body: "<RestoreRequest><Days>1</Days><GlacierJobParameters><Tier>Standard</Tier></GlacierJobParameters></RestoreRequest>",
  };
  assert.equal(
    (await s3.send("POST", "/photos/little?restore", restore)).code,
    "InvalidObjectState",
  );
  assert.equal((await s3.send("POST", "/photos/a?restore", restore)).status, 202);
  await waitFor(
    async () =>
      String((await s3.must("HEAD", "/photos/a")).headers["x-amz-restore"]).includes('"false"'),
    "the restore",
  );
  assert.equal((await s3.send("POST", "/photos/a?restore", restore)).status, 200);
  const { blobs } = await readJson<RemoteAnswer>(callJson(near, "GET", "/admin/remotes/far"));
  assert.equal(blobs, 1);
  await s3.must("PUT", "/photos/a", {
    headers: { "x-amz-copy-source": "/photos/a", "x-amz-storage-class": "STANDARD" },
  });
  assert.equal((await s3.must("HEAD", "/photos/a")).headers["x-amz-storage-class"], undefined);
  await waitFor(
    async () =>
      !/<Key>[^<]*-[0-9a-f]{16}</.test((await far.s3.must("GET", "/cold-bucket?list-type=2")).text),
    "the deletion there",
  );
  const metrics = (await near.admin.send("GET", "/metrics")).text;
  assert.match(metrics, /platform_vault_remote_up\{remote="far"\} 1/);
});

test("lifecycle rules move to a remote that has the class, and refuse a class that none has", async () => {
  const { s3 } = near;
  const rule = (storageClass: string) =>
    `<LifecycleConfiguration><Rule><ID>r</ID><Status>Enabled</Status><Filter><Prefix>old/</Prefix></Filter><Transition><Date>2020-01-01T00:00:00Z</Date><StorageClass>${storageClass}</StorageClass></Transition></Rule></LifecycleConfiguration>`;
  const put = (storageClass: string) =>
    s3.send("PUT", "/photos?lifecycle", { body: rule(storageClass) });
  assert.equal((await put("DEEP_ARCHIVE")).code, "InvalidStorageClass");
  assert.equal((await put("GLACIER")).status, 200);
  assert.match((await s3.must("GET", "/photos?lifecycle")).text, /<StorageClass>GLACIER</);
  await s3.must("PUT", "/photos/old/a", { body: makeBytes(200_000) });
  await s3.must("PUT", "/photos/old/small", { body: makeBytes(100_000) });
  await s3.must("DELETE", "/photos?cold-tier");
  await sweep();
  assert.equal((await s3.must("HEAD", "/photos/old/a")).headers["x-amz-storage-class"], "GLACIER");
  assert.equal(
    (await s3.must("HEAD", "/photos/old/small")).headers["x-amz-storage-class"],
    undefined,
  );
  assert.ok((await s3.must("GET", "/photos/old/a")).body.equals(makeBytes(200_000)));
  await s3.must("DELETE", "/photos?lifecycle");
});

test("a bucket owner reaches only remotes that allow the bucket, and no address of their own", async () => {
  const key = await addReader(near, "photos", ["s3:*"]);
  const tier = (body: object) =>
    near.s3.send("PUT", "/photos?cold-tier", { key, body: JSON.stringify(body) });
  const inline = {
    endpoint: "http://169.254.169.254",
    bucket: "meta-data",
    access_key: "a",
    secret_key: "s",
  };
  assert.equal((await tier(inline)).code, "AccessDenied");
  assert.equal((await tier({ remote: "nothing", bucket: "cold-bucket" })).code, "InvalidArgument");
  assert.equal((await tier({ remote: "far", bucket: "cold-bucket", days: 1 })).status, 200);
  const { text } = await near.s3.must("GET", "/photos?cold-tier", { key });
  assert.ok(!text.includes(secret_key));
  assert.equal((await callJson(near, "GET", "/admin/remotes", undefined, { key })).status, 403);
  await readJson(callJson(near, "PATCH", "/admin/remotes/far", { allow: [] }));
  assert.equal((await tier({ remote: "far", bucket: "cold-bucket" })).code, "InvalidArgument");
  assert.equal((await near.s3.send("GET", "/photos?cold-tier", { key: null })).status, 403);
});

test("a private address is refused unless remote_networks has it", async () => {
  const body = { name: "private", endpoint: "http://10.0.0.1:9000", access_key, secret_key };
  await readJson(callJson(near, "POST", "/admin/remotes", body), 201);
  const trial = await readJson<Check>(
    callJson(near, "POST", "/admin/remotes/private/check", { bucket: "bucket" }),
  );
  assert.match(trial.steps[0]!.detail, /address is not allowed/);
  assert.equal((await callJson(near, "DELETE", "/admin/remotes/private")).status, 204);
});

test("root may give the endpoint and the keys with the cold tier, as in the specification", async () => {
  await using lying = await LyingS3.start();
  const { s3 } = near;
  await s3.must("PUT", "/inline-bucket");
  const tier = {
    days: 0,
    prefix: "x/",
    endpoint: lying.endpoint,
    bucket: "cold",
    access_key: "k",
    secret_key: "hidden",
  };
  await s3.must("PUT", "/inline-bucket?cold-tier", { body: JSON.stringify(tier) });
  assert.ok(!(await s3.must("GET", "/inline-bucket?cold-tier")).text.includes("hidden"));
  await s3.must("PUT", "/inline-bucket/x/a", { body: makeBytes(150_000) });
  await s3.must("PUT", "/inline-bucket/y/a", { body: makeBytes(150_000) });
  assert.equal(
    (await readJson<SweepAnswer>(s3.must("POST", "/inline-bucket?cold-tier&sweep"))).moved,
    1,
  );
  assert.ok((await s3.must("GET", "/inline-bucket/x/a")).body.equals(makeBytes(150_000)));
  await s3.must("DELETE", "/inline-bucket/x/a");
});
