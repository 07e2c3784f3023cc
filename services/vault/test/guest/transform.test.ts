// Modules and transformations of objects over both APIs.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import { makeBytes } from "../store/fixture.ts";
import { addReader, callJson, readJson } from "../serving/json-api.ts";
import { S3TestClient } from "../serving/s3-client.ts";
import { serve, type Serving } from "../serving/serving.ts";
import {
  complains,
  endless,
  environment,
  failsLate,
  identity,
  lowerCase,
  otherIdentity,
  putModule,
} from "./guests.ts";

let serving: Serving;
before(async () => {
  serving = await serve();
  await putModule(serving, "copy", identity);
  await putModule(serving, "lower", lowerCase);
  await putModule(serving, "late", failsLate);
});
after(() => serving[Symbol.asyncDispose]());

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
const parse = (text: string) => JSON.parse(text) as Record<string, unknown>;

async function makeBucket(bucket: string): Promise<void> {
  await serving.s3.must("PUT", `/${bucket}`);
}

test("modules are registered, listed, read and removed, and survive a restart", async () => {
  const { admin } = serving;
  const put = await putModule(serving, "again", identity);
  assert.deepEqual(put, {
    name: "again",
    sha256: sha256(identity),
    abi: "command",
    bytes: identity.length,
  });
  await putModule(serving, "again", identity);
  const second = await putModule(serving, "again", otherIdentity);
  assert.equal(second.sha256, sha256(otherIdentity));
  await serving.vault.kill();
  await serving.vault.start();
  const { items } = await readJson<{ items: { name: string; sha256: string }[] }>(
    callJson(serving, "GET", "/admin/modules"),
  );
  assert.deepEqual(
    items.map(({ name }) => name),
    ["again", "copy", "late", "lower"],
  );
  assert.equal(items[0]?.sha256, sha256(otherIdentity));
  const content = await admin.must("GET", "/admin/modules/again?content");
  assert.deepEqual(content.body, otherIdentity);
  assert.equal((await admin.send("DELETE", "/admin/modules/again")).status, 204);
  assert.equal((await admin.send("GET", "/admin/modules/again")).status, 404);
  assert.equal((await admin.send("DELETE", "/admin/modules/again")).status, 404);
});

test("bad modules and bad names are refused with the reason", async () => {
  const put = (name: string, body: Buffer, type = "application/wasm") =>
    serving.admin.send("PUT", `/admin/modules/${name}`, {
      body,
      headers: { "content-type": type },
    });
  const refused: [Promise<{ status: number; text: string }>, number, RegExp][] = [
    [put("x", Buffer.from("no module")), 400, /invalid-module/],
    [put("x", Buffer.alloc(0)), 400, /invalid-module/],
    [put("Upper", identity), 400, /lower-case/],
    [put("..%2Fx", identity), 400, /lower-case/],
    [put("x", identity, "text/plain"), 415, /application\/wasm/],
    [put("x", Buffer.alloc(8 * 1024 * 1024 + 1)), 413, /8 MiB|8388608/],
  ];
  for (const [answer, status, reason] of refused) {
    const { status: got, text } = await answer;
    assert.equal(got, status, text);
    assert.match(text, reason);
  }
  const key = await addReader(serving, "anything", ["s3:*"]);
  const reader = new S3TestClient(serving.vault.adminPort, key);
  assert.equal((await reader.send("GET", "/admin/modules")).status, 403);
  assert.equal((await reader.send("PUT", "/admin/modules/x", { body: identity })).status, 403);
  reader.close();
});

test("the reserved bucket is read by root and written by nobody", async () => {
  const { s3 } = serving;
  assert.match((await s3.must("GET", "/system-modules?list-type=2")).text, /<Key>copy<\/Key>/);
  assert.deepEqual((await s3.must("GET", "/system-modules/copy")).body, identity);
  assert.equal((await s3.send("PUT", "/system-modules/copy", { body: "x" })).code, "AccessDenied");
  assert.equal((await s3.send("DELETE", "/system-modules/copy")).code, "AccessDenied");
  assert.equal((await s3.send("PUT", "/system-modules?policy", { body: "{}" })).status, 403);
  for (const name of ["system-modules", "system-jobs"])
    assert.equal((await s3.send("PUT", `/${name}`)).code, "BucketAlreadyExists");
  await makeBucket("system-other");
  const key = await addReader(serving, "system-modules", ["s3:*"]);
  const reader = new S3TestClient(serving.vault.port, key);
  assert.equal((await reader.send("GET", "/system-modules/copy")).code, "AccessDenied");
  reader.close();
});

test("a transformation answers its output, or writes it as a new object", async () => {
  const { s3 } = serving;
  await makeBucket("texts");
  const body = "HELLO World";
  await s3.must("PUT", "/texts/in", { body });
  const answer = await s3.must("POST", "/texts/in?transform&module=copy,lower");
  assert.equal(answer.text, "hello world");
  const put = await s3.must("POST", "/texts/in?transform&module=lower&target-key=out/in.txt");
  const made = parse(put.text);
  assert.deepEqual([made["key"], made["bytes"], made["version_id"]], ["out/in.txt", 11, "null"]);
  const got = await s3.must("GET", "/texts/out/in.txt");
  assert.equal(got.text, "hello world");
  assert.equal(got.headers["etag"], `"${String(made["etag"])}"`);
  assert.match(String(got.headers["x-amz-meta-store-guest"]), /^lower@[0-9a-f]{64}$/);
  const large = makeBytes(3_000_000);
  await s3.must("PUT", "/texts/large", {
    body: large,
    headers: { "x-amz-server-side-encryption": "AES256" },
  });
  await makeBucket("other");
  await s3.must(
    "POST",
    "/texts/large?transform&module=copy,copy&target-key=large&target-bucket=other",
  );
  const copied = await s3.must("GET", "/other/large");
  assert.ok(copied.body.equals(large));
  assert.equal(copied.headers["x-amz-server-side-encryption"], "AES256");
});

test("versions, conditions and keys of customers apply to the source and the target", async () => {
  const { s3 } = serving;
  await makeBucket("versioned");
  await s3.must("PUT", "/versioned?versioning", {
    body: "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>",
  });
  const first = await s3.must("PUT", "/versioned/a", { body: "FIRST" });
  await s3.must("PUT", "/versioned/a", { body: "SECOND" });
  const run = (query: string, headers: Record<string, string> = {}) =>
    s3.send("POST", `/versioned/a?transform&module=lower${query}`, { headers });
  const version = String(first.headers["x-amz-version-id"]);
  assert.equal((await run(`&versionId=${version}`)).text, "first");
  assert.equal((await run("", { "x-amz-copy-source-if-match": '"0"' })).status, 412);
  const fresh = { "if-none-match": "*" };
  assert.equal((await run("&target-key=b", fresh)).status, 200);
  assert.equal((await run("&target-key=b", fresh)).status, 412);
  const key = Buffer.alloc(32, 7);
  const customer = {
    "x-amz-server-side-encryption-customer-algorithm": "AES256",
    "x-amz-server-side-encryption-customer-key": key.toString("base64"),
    "x-amz-server-side-encryption-customer-key-md5": createHash("md5").update(key).digest("base64"),
  };
  await s3.must("PUT", "/versioned/secret", { body: "SECRET", headers: customer });
  const target = "/versioned/secret?transform&module=lower&target-key=hidden";
  assert.equal((await s3.send("POST", target)).status, 400);
  assert.equal((await s3.send("POST", target, { headers: customer })).status, 200);
  assert.equal((await s3.send("GET", "/versioned/hidden")).status, 400);
  assert.equal((await s3.must("GET", "/versioned/hidden", { headers: customer })).text, "secret");
});

test("a guest sees the object that it reads, with its metadata", async () => {
  const { s3 } = serving;
  await putModule(serving, "environment", environment);
  await makeBucket("seen");
  await s3.must("PUT", "/seen/in/a%20b", {
    body: "hello",
    headers: {
      "content-type": "text/x",
      "x-amz-meta-team-name": "red=1",
      "x-amz-meta-long": "y".repeat(1_900),
    },
  });
  const { text } = await s3.must("POST", "/seen/in/a%20b?transform&module=environment");
  const lines = text.split("\0").slice(0, -1);
  const variables = new Map(
    lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );
  const time = variables.get("STORE_TIME") ?? "";
  assert.ok(Math.abs(Date.parse(time) - Date.now()) < 60_000, time);
  variables.delete("STORE_TIME");
  assert.deepEqual(Object.fromEntries(variables), {
    STORE_BUCKET: "seen",
    STORE_KEY: "in/a b",
    STORE_VERSION_ID: "null",
    STORE_SIZE: "5",
    STORE_CONTENT_TYPE: "text/x",
    STORE_EVENT: "ObjectTransform",
    STORE_META_TEAM_NAME: "red=1",
    STORE_META_LONG: "y".repeat(1_900),
  });
});

test("without a module, those that the bucket names are run", async () => {
  const { s3 } = serving;
  await makeBucket("defaults");
  await s3.must("PUT", "/defaults/a", { body: "ABC" });
  const configure = (modules: string[]) =>
    s3.send("PUT", "/defaults?triggers", { body: JSON.stringify({ default_modules: modules }) });
  const unknown = await configure(["none"]);
  assert.deepEqual([unknown.status, unknown.code], [400, "InvalidRequest"]);
  assert.equal((await configure(["copy", "lower"])).status, 200);
  assert.equal((await s3.must("POST", "/defaults/a?transform")).text, "abc");
  assert.equal((await s3.must("POST", "/defaults/a?transform&module=copy")).text, "ABC");
});

test("the default retention and the quota of the target apply to outputs", async () => {
  const { s3 } = serving;
  await makeBucket("bounded-in");
  await s3.must("PUT", "/bounded-in/a", { body: "ABC" });
  await s3.must("PUT", "/kept", { headers: { "x-amz-bucket-object-lock-enabled": "true" } });
  await s3.must("PUT", "/kept?object-lock", {
    body: "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>COMPLIANCE</Mode><Days>1</Days></DefaultRetention></Rule></ObjectLockConfiguration>",
  });
  const run = (bucket: string) =>
    s3.send("POST", `/bounded-in/a?transform&module=copy&target-key=b&target-bucket=${bucket}`);
  const version = String(parse((await run("kept")).text)["version_id"]);
  assert.match((await s3.must("GET", "/kept/b?retention")).text, /COMPLIANCE/);
  assert.equal((await s3.send("DELETE", `/kept/b?versionId=${version}`)).code, "AccessDenied");
  await makeBucket("full");
  const set = await callJson(serving, "PUT", "/api/v1/buckets/full/quota", { max_bytes: 2 });
  assert.equal(set.status, 200, set.text);
  assert.equal((await run("full")).code, "QuotaExceeded");
  assert.equal((await s3.send("GET", "/full/b")).status, 404);
});

test("a failed guest leaves nothing, and its limit is named", async () => {
  const { s3 } = serving;
  await putModule(serving, "complains", complains);
  await makeBucket("failed");
  await s3.must("PUT", "/failed/a", { body: makeBytes(2_000_000) });
  const late = await s3.send("POST", "/failed/a?transform&module=late&target-key=b");
  assert.deepEqual([late.status, late.code], [400, "InvalidRequest"]);
  assert.match(late.text, /exited: .*exit code 4/);
  assert.equal((await s3.send("GET", "/failed/b")).status, 404);
  // As an answer, the connection ends without the last chunk.
  await assert.rejects(s3.send("POST", "/failed/a?transform&module=late"));
  const loud = await s3.send("POST", "/failed/a?transform&module=complains&target-key=b");
  assert.match(loud.text, /exit code 1/);
  const many = "copy,".repeat(9).slice(0, -1);
  for (const [target, status, reason] of [
    ["/failed/a?transform&module=nothing", 400, /Registered modules: complains, copy/],
    ["/failed/a?transform", 400, /Registered modules/],
    [`/failed/a?transform&module=${many}`, 400, /1 to 8/],
    ["/failed/a?transform&module=copy&target-key=a", 400, /the object itself/],
    ["/failed/a?transform&module=copy&target-key=", 400, /empty/],
    ["/failed/a?transform&module=copy&target-bucket=nowhere&target-key=a", 404, /bucket/],
    ["/failed/a?transform&module=copy&target-bucket=system-modules&target-key=a", 403, /Denied/],
    ["/failed/missing?transform&module=copy&target-key=b", 404, /key/],
  ] as const) {
    const answer = await s3.send("POST", target);
    assert.equal(answer.status, status, answer.text);
    assert.match(answer.text, reason);
  }
  assert.equal((await s3.send("POST", "/failed/a?transform&other=1")).status, 501);
});

test("a caller needs the right to run modules, to read the source, and to write the target", async () => {
  const { s3 } = serving;
  await makeBucket("rights");
  await s3.must("PUT", "/rights/a", { body: "A" });
  const target = "/rights/a?transform&module=lower&target-key=b";
  const judge = async (...actions: string[]): Promise<number> => {
    const key = await addReader(serving, "rights", actions);
    const client = new S3TestClient(serving.vault.port, key);
    const { status } = await client.send("POST", target);
    client.close();
    return status;
  };
  assert.equal(await judge("s3:GetObject", "s3:PutObject"), 403);
  assert.equal(await judge("s3:InvokeModule", "s3:PutObject"), 403);
  assert.equal(await judge("s3:InvokeModule", "s3:GetObject"), 403);
  assert.equal(await judge("objstore:InvokeModule", "s3:GetObject", "s3:PutObject"), 200);
  assert.equal((await s3.send("POST", target, { key: null })).status, 403);
});

test("a guest that never ends is stopped, and others go on", async () => {
  const { s3 } = serving;
  await putModule(serving, "endless", endless);
  await makeBucket("slow");
  await s3.must("PUT", "/slow/a", { body: "x" });
  const slow = s3.send("POST", "/slow/a?transform&module=endless&target-key=b");
  assert.equal((await s3.must("POST", "/slow/a?transform&module=copy")).text, "x");
  const { status, text } = await slow;
  assert.equal(status, 400);
  assert.match(text, /time-limit/);
});
