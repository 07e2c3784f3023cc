// Settings of buckets as JSON: conditions, places of faults, limits and rights.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { StoreFolders } from "../../src/disk/files.ts";
import { readBucketsFile } from "../../src/store/buckets-file.ts";
import { addReader, callJson, readJson } from "./json-api.ts";
import { serve, type Serving } from "./serving.ts";
import type { Answer, Ask, Key } from "./s3-client.ts";

const API = "/api/v1/buckets";

let serving: Serving;
let reader: Key;

before(async () => {
  serving = await serve();
  await call("POST", API, { name: "set" });
  await call("POST", API, { name: "other" });
  await call("POST", API, { name: "locked", object_lock: true });
  reader = await addReader(serving, "set", [
    "s3:GetObject",
    "s3:GetObjectTagging",
    "s3:ListBucket",
    "s3:GetBucketCORS",
  ]);
});
after(() => serving[Symbol.asyncDispose]());

function call(method: string, path: string, body?: object, ask?: Ask): Promise<Answer> {
  return callJson(serving, method, path, body, ask);
}

interface Problem {
  detail: string;
  errors: { in: string; path: string; message: string }[];
}

test("a wildcard in an origin stands for a part of an origin, not of another URL", async () => {
  const rule = { AllowedMethods: ["GET"], AllowedOrigins: ["https://*.good.example"] };
  assert.equal((await call("PUT", `${API}/other/config/cors`, { CORSRules: [rule] })).status, 204);
  const ask = (origin: string) =>
    serving.s3.send("OPTIONS", "/other/key", {
      key: null,
      headers: { origin, "access-control-request-method": "GET" },
    });
  for (const [origin, status] of [
    ["https://app.good.example", 200],
    ["https://evil.example#.good.example", 403],
    ["https://evil.example/.good.example", 403],
    ["https://evil.example?.good.example", 403],
    ["https://user:pass@x.good.example", 403],
    ["https://evil.example\\.good.example", 403],
  ] as const) {
    assert.equal((await ask(origin)).status, status, origin);
    const { headers } = await serving.s3.send("GET", "/other/key", { headers: { origin } });
    const allowed = headers["access-control-allow-origin"];
    assert.equal(allowed, status === 200 ? origin : undefined);
  }
});

describe("settings", () => {
  const cors = (origin: string) => ({
    CORSRules: [{ AllowedMethods: ["GET"], AllowedOrigins: [origin] }],
  });

  test("a setting is replaced only if it is still the one that was read", async () => {
    const path = `${API}/set/config/cors`;
    const anyTag = { headers: { "if-match": '"x"' } };
    assert.equal((await call("PUT", path, cors("https://a.example"), anyTag)).status, 412);
    const none = { headers: { "if-none-match": "*" } };
    assert.equal((await call("PUT", path, cors("https://a.example"), none)).status, 204);
    assert.equal((await call("PUT", path, cors("https://b.example"), none)).status, 412);
    const etag = String((await call("GET", path)).headers["etag"]);
    const known = { headers: { "if-match": etag } };
    assert.equal((await call("PUT", path, cors("https://b.example"), known)).status, 204);
    const stale = await call("PUT", path, cors("https://c.example"), known);
    assert.equal(stale.status, 412, stale.text);
    assert.deepEqual(await readJson(call("GET", path)), cors("https://b.example"));
    assert.equal((await call("DELETE", path, undefined, known)).status, 412);
    const latest = String((await call("GET", path)).headers["etag"]);
    const removed = await call("DELETE", path, undefined, { headers: { "if-match": latest } });
    assert.equal(removed.status, 204, removed.text);
  });

  test("of several writers with the same ETag one succeeds", async () => {
    const path = `${API}/set/config/cors`;
    await call("PUT", path, cors("https://start.example"));
    const headers = { "if-match": String((await call("GET", path)).headers["etag"]) };
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        call("PUT", path, cors(`https://w${index}.example`), { headers }),
      ),
    );
    const statuses = answers.map(({ status }) => status).sort((a, b) => a - b);
    assert.deepEqual(statuses, [204, ...Array.from({ length: 7 }, () => 412)]);
  });

  const faults: readonly [name: string, document: object, path: string, message: RegExp][] = [
    [
      "lifecycle",
      { Rules: [{ Status: "Perhaps", Filter: {}, Expiration: { Days: 1 } }] },
      "Rules.0.Status",
      /^Status must be Enabled or Disabled$/,
    ],
    [
      "lifecycle",
      { Rules: [{ Status: "Enabled", Filter: { Prefix: "" }, Expiration: { Days: 0 } }] },
      "Rules.0.Expiration.Days",
      /must be an integer of at least 1/,
    ],
    [
      "cors",
      { CORSRules: [{ AllowedMethods: ["GET", "BREW"], AllowedOrigins: ["*"] }] },
      "CORSRules.0.AllowedMethods.1",
      /Unsupported method is BREW/,
    ],
    [
      "tags",
      {
        TagSet: [
          { Key: "a", Value: "b" },
          { Key: "a<b", Value: "c" },
        ],
      },
      "TagSet.1.Key",
      /Allowed are letters/,
    ],
    [
      "policy",
      {
        Version: "2012-10-17",
        Statement: [
          { Effect: "Allow", Principal: "*", Action: "s3:Fly", Resource: "arn:aws:s3:::set/*" },
        ],
      },
      "Statement.0.Action",
      /the action s3:Fly does not exist/,
    ],
    [
      "policy",
      { Version: "2012-10-17", Statement: [{ Efect: "Allow" }] },
      "Statement.0.Efect",
      /unknown/,
    ],
    ["website", { IndexDocument: { Suffix: "a/b" } }, "IndexDocument.Suffix", /not well formed/],
    [
      "events",
      { subscriptions: [{ events: ["objstore:ObjectCreated:*"], webhook: "ftp://x" }] },
      "subscriptions.0.webhook",
      /./,
    ],
    ["versioning", { Status: "Perhaps" }, "Status", /Enabled or Suspended/],
    ["cors", { Rules: [] }, "", /Rules/],
  ];
  for (const [name, document, path, message] of faults) {
    test(`${name}: the fault at ${path === "" ? "the whole document" : path} is named`, async () => {
      const answer = await call("PUT", `${API}/set/config/${name}`, document);
      assert.equal(answer.status, 400, answer.text);
      const { errors } = JSON.parse(answer.text) as Problem;
      assert.deepEqual([errors[0]!.in, errors[0]!.path], ["body", path], answer.text);
      assert.match(errors[0]!.message, message);
      assert.doesNotMatch(answer.text, /XML you provided/);
    });
  }

  test("object lock names the period that is too long", async () => {
    const lock = {
      ObjectLockEnabled: "Enabled",
      Rule: { DefaultRetention: { Mode: "GOVERNANCE", Years: 101 } },
    };
    const { errors } = await readJson<Problem>(call("PUT", `${API}/locked/config/lock`, lock), 400);
    assert.equal(errors[0]!.path, "Rule.DefaultRetention.Years");
  });

  test("a policy is checked without being set, and the check says whether it is public", async () => {
    const path = `${API}/set/config/policy/check`;
    const policy = (Principal: unknown) => ({
      Version: "2012-10-17",
      Statement: [
        { Effect: "Allow", Principal, Action: "s3:GetObject", Resource: "arn:aws:s3:::set/*" },
      ],
    });
    assert.deepEqual(await readJson(call("POST", path, policy("*"))), { is_public: true });
    const narrow = policy({ AWS: "arn:aws:iam:::user/reader" });
    assert.deepEqual(await readJson(call("POST", path, narrow)), { is_public: false });
    const { errors } = await readJson<Problem>(call("POST", path, { Statement: [{}] }), 400);
    assert.match(errors[0]!.path, /^Statement\.0/);
    assert.equal((await call("GET", `${API}/set/config/policy`)).status, 404);
    assert.equal((await call("POST", path, policy("*"), { key: reader })).status, 403);

    assert.equal((await call("PUT", `${API}/set/config/policy`, policy("*"))).status, 204);
    const bucket = await readJson(call("GET", `${API}/set`));
    assert.equal(bucket["has_public_policy"], true);
    await call("DELETE", `${API}/set/config/policy`);
    assert.equal((await readJson(call("GET", `${API}/set`)))["has_public_policy"], false);
  });

  test("a stomp subscription that is read and put again keeps its password, for the same target only", async () => {
    const path = `${API}/set/config/events`;
    const stomp = { url: "stomps://broker.example:61614", destination: "/topic/a", user: "u" };
    const events = ["objstore:ObjectCreated:*"];
    const first = { id: "one", events, stomp: { ...stomp, password: "secret-word" } };
    const put = await call("PUT", path, { subscriptions: [first] });
    assert.equal(put.status, 204, put.text);
    const shown = await call("GET", path);
    assert.doesNotMatch(shown.text, /secret-word/);
    // The copy of the settings on disk is written soon after a change.
    const { buckets: file } = new StoreFolders(serving.vault.dataDir);
    const findPassword = (id: string) => {
      const bucket = readBucketsFile(file).find(({ name }) => name === "set");
      const rule = bucket?.settings.notification?.rules[0];
      return rule?.id === id ? String(rule.target["password"]) : undefined;
    };
    const again = JSON.parse(shown.text) as object;
    assert.equal((await call("PUT", path, again)).status, 204);
    assert.equal(await waitFor(() => findPassword("one"), "the settings on disk"), "secret-word");
    const moved = { id: "one", events, stomp: { ...stomp, url: "stomps://evil.example:61614" } };
    assert.equal((await call("PUT", path, { subscriptions: [moved] })).status, 204);
    await waitFor(() => findPassword("one") === "undefined", "the password is gone");
    await call("DELETE", path);
  });

  test("invalid bodies of callers without rights are 403, not 400", async () => {
    const wrong = { body: "{", key: reader };
    for (const path of ["config/cors", "config/policy", "config/versioning", "object/tags?key=a"])
      assert.equal((await call("PUT", `${API}/set/${path}`, {}, wrong)).status, 403, path);
    for (const path of ["object/retention?key=a", "object/legal-hold?key=a"])
      assert.equal((await call("PUT", `${API}/locked/${path}`, {}, wrong)).status, 403, path);
    const check = `${API}/set/config/policy/check`;
    assert.equal((await call("POST", check, {}, wrong)).status, 403);
    const quota = `${API}/set/quota`;
    assert.equal((await call("PUT", quota, {}, wrong)).status, 403);
    const operator = { body: "{" };
    assert.equal((await call("PUT", `${API}/set/config/cors`, {}, operator)).status, 400);
    assert.equal((await call("PUT", `${API}/none/config/cors`, {}, operator)).status, 404);
    const missing = `${API}/set/object/tags?key=missing`;
    assert.equal((await call("PUT", missing, { tags: [] })).status, 404);
  });

  test("a reader may not write, and another bucket's settings stay closed", async () => {
    const asReader = { key: reader };
    const document = cors("https://reader.example");
    await call("PUT", `${API}/set/config/cors`, cors("https://a.example"));
    assert.equal((await call("GET", `${API}/set/config/cors`, undefined, asReader)).status, 200);
    assert.equal((await call("PUT", `${API}/set/config/cors`, document, asReader)).status, 403);
    const condition = { ...asReader, headers: { "if-match": '"x"' } };
    assert.equal((await call("PUT", `${API}/set/config/cors`, document, condition)).status, 403);
    assert.equal((await call("DELETE", `${API}/set/config/cors`, undefined, asReader)).status, 403);
    assert.equal((await call("GET", `${API}/other/config/cors`, undefined, asReader)).status, 403);
  });
});
