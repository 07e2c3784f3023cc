// Tags and locks of objects as JSON: conditions, places of faults, limits and rights.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { addReader, callJson, readJson } from "./json-api.ts";
import { serve, type Serving } from "./serving.ts";
import type { Answer, Ask, Key } from "./s3-client.ts";

const API = "/api/v1/buckets";

let serving: Serving;
let reader: Key;

before(async () => {
  serving = await serve();
  await call("POST", API, { name: "set" });
  await call("POST", API, { name: "locked", object_lock: true });
  reader = await addReader(serving, "set", [
    "s3:GetObject",
    "s3:GetObjectTagging",
    "s3:ListBucket",
  ]);
});
after(() => serving[Symbol.asyncDispose]());

function call(method: string, path: string, body?: object, ask?: Ask): Promise<Answer> {
  return callJson(serving, method, path, body, ask);
}

interface Problem {
  errors: { path: string }[];
}

describe("tags of an object", () => {
  const path = (key: string, version?: string) =>
    `${API}/set/object/tags?${new URLSearchParams({ key, ...(version === undefined ? {} : { version }) }).toString()}`;
  const write = (key: string) =>
    call("PUT", `${API}/set/object?${new URLSearchParams({ key }).toString()}`, undefined, {
      body: "x",
    });

  test("are set, read and removed, of keys that no path expresses", async () => {
    const key = "../<img src=x onerror=alert(1)>/\u202e.txt";
    assert.equal((await write(key)).status, 200);
    const tags = [
      { key: "team", value: "sea + sun" },
      { key: "__proto__", value: "x" },
    ];
    const put = await call("PUT", path(key), { tags });
    assert.equal(put.status, 204, put.text);
    assert.deepEqual((await readJson(call("GET", path(key))))["tags"], tags);
    assert.equal((await call("DELETE", path(key))).status, 204);
    assert.deepEqual((await readJson(call("GET", path(key))))["tags"], []);
    assert.equal((await call("GET", path("missing"))).status, 404);
  });

  test("are not overwritten by somebody who has not seen them", async () => {
    assert.equal((await write("shared")).status, 200);
    const tagged = (key: string) => ({ tags: [{ key, value: "1" }] });
    const readTag = async () => String((await call("GET", path("shared"))).headers["etag"]);
    const seen = await readTag();
    const asSeen = { headers: { "if-match": seen } };
    assert.equal((await call("PUT", path("shared"), tagged("mine"), asSeen)).status, 204);
    const late = await call("PUT", path("shared"), tagged("yours"), asSeen);
    assert.deepEqual([late.status, late.headers["etag"]], [412, await readTag()]);
    assert.equal((await call("DELETE", path("shared"), undefined, asSeen)).status, 412);
    assert.deepEqual((await readJson(call("GET", path("shared"))))["tags"], tagged("mine").tags);
    const asNow = { headers: { "if-match": await readTag() } };
    assert.equal((await call("DELETE", path("shared"), undefined, asNow)).status, 204);
    assert.equal((await call("PUT", path("shared"), tagged("any"))).status, 204);
  });

  test("belong to a version", async () => {
    await call("PUT", `${API}/set/config/versioning`, { Status: "Enabled" });
    const first = JSON.parse((await write("v")).text) as { version: string };
    await write("v");
    await call("PUT", path("v", first.version), { tags: [{ key: "old", value: "1" }] });
    assert.deepEqual((await readJson(call("GET", path("v", first.version))))["tags"], [
      { key: "old", value: "1" },
    ]);
    assert.deepEqual((await readJson(call("GET", path("v"))))["tags"], []);
    assert.equal((await call("GET", path("v", "x".repeat(31)))).status, 400);
  });

  const tag = (key: string, value = "v") => ({ key, value });
  const eleven = Array.from({ length: 11 }, (_, index) => tag(`k${index}`));
  const faults: readonly [name: string, tags: object[], place: string][] = [
    ["eleven tags", eleven, "tags"],
    ["an empty key", [tag("")], "tags.0.key"],
    ["a key of 129 characters", [tag("a"), tag("k".repeat(129))], "tags.1.key"],
    ["a value of 257 characters", [tag("k", "v".repeat(257))], "tags.0.value"],
    ["a character that S3 does not allow", [tag("k", "a<b")], "tags.0.value"],
    ["a control character", [tag("k\u0001")], "tags.0.key"],
    ["a reserved key", [tag("aws:x")], "tags.0.key"],
    ["a key twice", [tag("k"), tag("k")], "tags.1.key"],
  ];
  for (const [name, tags, place] of faults) {
    test(`${name} is refused at ${place}`, async () => {
      await write("bad");
      const { errors } = await readJson<Problem>(call("PUT", path("bad"), { tags }), 400);
      assert.equal(errors[0]!.path, place, JSON.stringify(errors));
      assert.deepEqual((await readJson(call("GET", path("bad"))))["tags"], []);
    });
  }

  test("ten tags with the longest texts are accepted", async () => {
    await write("full");
    const tags = Array.from({ length: 10 }, (_, index) =>
      tag(`${index}${"k".repeat(127)}`, "v".repeat(256)),
    );
    assert.equal((await call("PUT", path("full"), { tags })).status, 204);
    assert.deepEqual((await readJson(call("GET", path("full"))))["tags"], tags);
  });

  test("a reader sees them and may not change them", async () => {
    await write("seen");
    await call("PUT", path("seen"), { tags: [tag("k")] });
    const asReader = { key: reader };
    assert.deepEqual((await readJson(call("GET", path("seen"), undefined, asReader)))["tags"], [
      tag("k"),
    ]);
    assert.equal((await call("PUT", path("seen"), { tags: [] }, asReader)).status, 403);
    assert.equal((await call("DELETE", path("seen"), undefined, asReader)).status, 403);
  });
});

describe("locks of an object", () => {
  const path = (part: string, more = "") => `${API}/locked/object${part}?key=kept${more}`;
  const info = async () => readJson(call("GET", path("", "&info")));
  const tagOf = async (part: string) => String((await call("GET", path(part))).headers["etag"]);
  const asOf = (etag: string) => ({ headers: { "if-match": etag } });

  test("a retention and a legal hold are set, shown and released", async () => {
    await call("PUT", path(""), undefined, { body: "x" });
    const until = new Date(Date.now() + 86_400_000).toISOString();
    const retention = { mode: "GOVERNANCE", until };
    const put = await call("PUT", path("/retention"), retention);
    assert.equal(put.status, 204, put.text);
    assert.equal((await call("PUT", path("/legal-hold"), { held: true })).status, 204);
    const shown = await info();
    assert.deepEqual([shown["retention"], shown["legal_hold"]], [retention, true]);

    const version = `&version=${String(shown["version"])}`;
    assert.equal((await call("DELETE", path("", version))).status, 403);
    assert.equal((await call("DELETE", path("/retention"))).status, 403);
    const bypassed = await call("DELETE", path("/retention", "&bypass_governance=true"));
    assert.equal(bypassed.status, 204, bypassed.text);
    assert.equal((await call("PUT", path("/legal-hold"), { held: false })).status, 204);
    assert.deepEqual((await info())["retention"], null);
    assert.equal((await call("DELETE", path("", version))).status, 204);
  });

  test("are not overwritten by somebody who has not seen them", async () => {
    await call("PUT", path(""), undefined, { body: "x" });
    const retention = (days: number) => ({
      mode: "GOVERNANCE",
      until: new Date(Date.now() + days * 86_400_000).toISOString(),
    });
    const first = await readJson(call("GET", path("/retention")));
    assert.deepEqual([first["mode"], first["until"]], [null, null]);
    const none = asOf(await tagOf("/retention"));
    const chosen = retention(1);
    assert.equal((await call("PUT", path("/retention"), chosen, none)).status, 204);
    const late = await call("PUT", path("/retention"), retention(9), none);
    assert.deepEqual([late.status, late.headers["etag"]], [412, await tagOf("/retention")]);
    const ended = path("/retention", "&bypass_governance=true");
    assert.equal((await call("DELETE", ended, undefined, none)).status, 412);
    const kept = await readJson(call("GET", path("/retention")));
    assert.deepEqual({ mode: kept["mode"], until: kept["until"] }, chosen);
    assert.equal(kept["version"], (await info())["version"]);
    const known = asOf(await tagOf("/retention"));
    assert.equal((await call("DELETE", ended, undefined, known)).status, 204);

    const free = asOf(await tagOf("/legal-hold"));
    assert.equal((await call("PUT", path("/legal-hold"), { held: true }, free)).status, 204);
    assert.equal((await call("PUT", path("/legal-hold"), { held: false }, free)).status, 412);
    assert.equal((await readJson(call("GET", path("/legal-hold"))))["held"], true);
    const held = asOf(await tagOf("/legal-hold"));
    assert.equal((await call("PUT", path("/legal-hold"), { held: false }, held)).status, 204);

    // The live version is another one now, with the same values.
    const seen = asOf(await tagOf("/retention"));
    await call("PUT", path(""), undefined, { body: "y" });
    assert.equal((await call("PUT", path("/retention"), retention(1), seen)).status, 412);
    assert.equal((await call("PUT", path("/tags"), { tags: [] }, seen)).status, 412);
    assert.equal((await info())["retention"], null);
  });

  test("of two writers with the same ETag one succeeds, each time", async () => {
    await call("PUT", path(""), undefined, { body: "x" });
    const until = (n: number) => new Date(Date.now() + 86_400_000 + n * 60_000).toISOString();
    const settings: readonly [part: string, bodyOf: (round: number, writer: number) => object][] = [
      ["/tags", (round, writer) => ({ tags: [{ key: "by", value: `${round} ${writer}` }] })],
      ["/retention", (round, writer) => ({ mode: "GOVERNANCE", until: until(2 * round + writer) })],
      // Both change the hold: the same change twice would be none the second time.
      ["/legal-hold", (round) => ({ held: round % 2 === 0 })],
    ];
    for (let round = 0; round < 20; round += 1) {
      for (const [part, bodyOf] of settings) {
        const known = asOf(await tagOf(part));
        const answers = await Promise.all(
          [0, 1].map((writer) => call("PUT", path(part), bodyOf(round, writer), known)),
        );
        const statuses = answers.map(({ status }) => status).sort((one, other) => one - other);
        assert.deepEqual(statuses, [204, 412], `${part}, round ${round}`);
      }
    }
    assert.equal((await readJson(call("GET", path("/legal-hold"))))["held"], false);
  });

  test("an end in the past, and a bucket without object lock, are refused", async () => {
    await call("PUT", path(""), undefined, { body: "x" });
    const past = { mode: "GOVERNANCE", until: "2001-01-01T00:00:00Z" };
    assert.equal((await call("PUT", path("/retention"), past)).status, 400);
    const elsewhere = `${API}/set/object/legal-hold?key=full`;
    assert.equal((await call("PUT", elsewhere, { held: true })).status, 400);
    assert.equal((await call("GET", elsewhere)).status, 400);
    const asReader = { key: reader };
    assert.equal((await call("PUT", path("/legal-hold"), { held: true }, asReader)).status, 403);
    assert.equal((await call("GET", path("/retention"), undefined, asReader)).status, 403);
  });

  test("of versions are listed for callers that may read them", async () => {
    await call("PUT", `${API}/locked/object?key=listed`, undefined, { body: "x" });
    const until = new Date(Date.now() + 86_400_000).toISOString();
    await call("PUT", `${API}/locked/object/retention?key=listed`, { mode: "COMPLIANCE", until });
    await call("PUT", `${API}/locked/object?key=listed`, undefined, { body: "y" });
    await call("PUT", `${API}/locked/object/legal-hold?key=listed`, { held: true });
    const list = async (ask: Ask = {}) => {
      const answer = call("GET", `${API}/locked/objects?versions&prefix=listed`, undefined, ask);
      const { items } = await readJson<{ items: Record<string, unknown>[] }>(answer);
      return items.map(({ retention, legal_hold: hold }) => [retention, hold]);
    };
    assert.deepEqual(await list(), [
      [undefined, true],
      [{ mode: "COMPLIANCE", until }, undefined],
    ]);
    const allow = async (Action: string[]) => {
      const statement = {
        Effect: "Allow",
        Principal: { AWS: "arn:aws:iam:::user/reader" },
        Action,
        Resource: ["arn:aws:s3:::locked", "arn:aws:s3:::locked/*"],
      };
      const policy = { Version: "2012-10-17", Statement: [statement] };
      assert.equal((await call("PUT", `${API}/locked/config/policy`, policy)).status, 204);
    };
    const none = [undefined, undefined];
    await allow(["s3:ListBucketVersions"]);
    assert.deepEqual(await list({ key: reader }), [none, none]);
    await allow(["s3:ListBucketVersions", "s3:GetObjectLegalHold"]);
    assert.deepEqual(await list({ key: reader }), [[undefined, true], none]);
    await call("DELETE", `${API}/locked/config/policy`);
  });
});

test("S3 and the console see the same tags and locks, whoever sets them", async () => {
  const key = "both //..%2f 😀";
  const target = `/locked/${key.split("/").map(encodeURIComponent).join("/")}`;
  const at = (part: string) =>
    `${API}/locked/object${part}?${new URLSearchParams({ key }).toString()}`;
  const s3 = async (method: string, part: string, body = "") => {
    const answer = await serving.s3.send(method, `${target}?${part}`, { body });
    assert.equal(answer.status, 200, answer.text);
    return answer.text;
  };
  const until = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
  await call("PUT", at(""), undefined, { body: "x" });

  const [first, second] = [until(1), until(2)];
  await call("PUT", at("/tags"), { tags: [{ key: "by", value: "console" }] });
  await call("PUT", at("/retention"), { mode: "GOVERNANCE", until: first });
  await call("PUT", at("/legal-hold"), { held: true });
  assert.match(await s3("GET", "tagging"), /<Key>by<\/Key><Value>console<\/Value>/);
  const retention = await s3("GET", "retention");
  assert.ok(retention.includes(first) && retention.includes(">GOVERNANCE<"), retention);
  assert.match(await s3("GET", "legal-hold"), />ON</);
  const { headers } = await serving.s3.send("HEAD", target);
  assert.equal(headers["x-amz-object-lock-retain-until-date"], first);
  assert.equal(headers["x-amz-tagging-count"], "1");

  const tags = "<TagSet><Tag><Key>by</Key><Value>S3</Value></Tag></TagSet>";
  await s3("PUT", "tagging", `<Tagging>${tags}</Tagging>`);
  const lock = `<Mode>COMPLIANCE</Mode><RetainUntilDate>${second}</RetainUntilDate>`;
  await serving.s3.must("PUT", `${target}?retention`, {
    body: `<Retention>${lock}</Retention>`,
    headers: { "x-amz-bypass-governance-retention": "true" },
  });
  await s3("PUT", "legal-hold", "<LegalHold><Status>OFF</Status></LegalHold>");
  const shown = await readJson(call("GET", `${at("")}&info`));
  assert.deepEqual(shown["tags"], { by: "S3" });
  const version = shown["version"];
  assert.deepEqual(await readJson(call("GET", at("/tags"))), {
    tags: [{ key: "by", value: "S3" }],
    version,
  });
  const stored = { mode: "COMPLIANCE", until: second };
  assert.deepEqual(shown["retention"], stored);
  assert.deepEqual(await readJson(call("GET", at("/retention"))), { ...stored, version });
  assert.deepEqual(await readJson(call("GET", at("/legal-hold"))), { held: false, version });
});

describe("operations that the caller may not run", () => {
  const denied = async (key: string, ask: Ask = {}, more = "") => {
    const path = `${API}/set/object/permissions?${new URLSearchParams({ key }).toString()}${more}`;
    return (await readJson<{ denied: object }>(call("GET", path, undefined, ask))).denied;
  };

  test("are named with the missing action, also of an object that does not exist", async () => {
    assert.deepEqual(await denied("any"), {});
    const asReader = { key: reader };
    const expected = {
      read_version: "s3:GetObjectVersion",
      write: "s3:PutObject",
      delete: "s3:DeleteObject",
      delete_version: "s3:DeleteObjectVersion",
      tags: "s3:PutObjectTagging",
      retention: "s3:GetObjectRetention",
      legal_hold: "s3:GetObjectLegalHold",
    };
    assert.deepEqual(await denied("missing", asReader), expected);
    assert.deepEqual(await denied("missing", asReader, "&version=null"), {
      ...expected,
      tags: "s3:GetObjectVersionTagging",
    });
    const nowhere = await call("GET", `${API}/nowhere/object/permissions?key=a`);
    assert.equal(nowhere.status, 404);
  });

  test("of a bucket are named by the setting", async () => {
    const path = `${API}/set/permissions`;
    assert.deepEqual(await readJson(call("GET", path)), { denied: {} });
    const { denied: found } = await readJson<{ denied: Record<string, string> }>(
      call("GET", path, undefined, { key: reader }),
    );
    assert.equal(found["delete"], "s3:DeleteBucket");
    assert.equal(found["lifecycle"], "s3:GetLifecycleConfiguration");
    assert.equal(found["replication"], "s3:GetReplicationConfiguration");
    assert.equal(Object.keys(found).length, 11);
    assert.equal((await call("GET", `${API}/nowhere/permissions`)).status, 404);
  });

  test("a condition on the request is decided when the request is made", async () => {
    const policy = (Condition: object) => ({
      Version: "2012-10-17",
      Statement: [
        {
          Effect: "Allow",
          Principal: { AWS: "arn:aws:iam:::user/reader" },
          Action: ["s3:PutObjectTagging", "s3:DeleteObject"],
          Resource: "arn:aws:s3:::set/*",
          Condition,
        },
      ],
    });
    const put = (Condition: object) => call("PUT", `${API}/set/config/policy`, policy(Condition));
    assert.equal((await put({ StringEquals: { "s3:RequestObjectTag/a": "b" } })).status, 204);
    const found = await denied("any", { key: reader });
    assert.ok(!("tags" in found), "it depends on the tags");
    assert.ok("delete" in found, "it has no tags");
    await call("DELETE", `${API}/set/config/policy`);
    assert.ok("tags" in (await denied("any", { key: reader })));
  });
});
