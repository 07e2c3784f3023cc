// Buckets and objects through the admin API: the same rights as through S3, and bytes that no browser runs.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { callJson, readJson } from "./json-api.ts";
import { serve, type Serving } from "./serving.ts";
import type { Answer, Ask, Key } from "./s3-client.ts";

const JSON_TYPE = { "content-type": "application/json" };
const SECRET = "a secret of more than thirty-two bytes";
const ISSUER = "http://identity.test";
const API = "/api/v1/buckets";

let serving: Serving;
let reader: Key;

before(async () => {
  serving = await serve({
    env: { PLATFORM_JWT_SECRET: SECRET, PLATFORM_JWT_ISSUER: ISSUER },
  });
  await call("POST", API, { name: "photos" });
  await call("POST", API, { name: "private" });
  reader = await createUser("reader", [
    allow(["s3:ListBucket"], "photos"),
    allow(["s3:GetObject"], "photos/public/*"),
  ]);
  await putRole("readers", [
    allow(["s3:ListBucket"], "photos"),
    allow(["s3:GetObject"], "photos/public/*"),
  ]);
  await putRole("writers", [
    allow(["s3:PutObject", "s3:DeleteObject"], "photos/${aws:PrincipalTag/sub}/*"),
  ]);
});
after(() => serving[Symbol.asyncDispose]());

function call(method: string, path: string, body?: object, ask?: Ask): Promise<Answer> {
  return callJson(serving, method, path, body, ask);
}

function allow(actions: string[], resource: string): object {
  return { Effect: "Allow", Action: actions, Resource: `arn:aws:s3:::${resource}` };
}

const toPolicies = (Statement: object[]) => ({
  policies: { main: { Version: "2012-10-17", Statement } },
});

async function createUser(name: string, statements: object[]): Promise<Key> {
  await call("PUT", `/api/v1/users/${name}`, { ...toPolicies(statements), namespaces: [] });
  const made = await readJson(call("POST", "/api/v1/keys", { user: name }), 201);
  return { accessKey: String(made["access_key"]), secretKey: String(made["secret_key"]) };
}

const putRole = (name: string, statements: object[]) =>
  readJson(call("PUT", `/api/v1/roles/${name}`, toPolicies(statements)));

function asToken(claims: Record<string, unknown> = {}): Ask {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const exp = Math.floor(Date.now() / 1_000) + 900;
  const own = { iss: ISSUER, sub: "ada", scope: "vault:read vault:write", exp, ...claims };
  const text = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(own)}`;
  const token = `${text}.${createHmac("sha256", SECRET).update(text).digest("base64url")}`;
  return { key: null, headers: { ...JSON_TYPE, authorization: `Bearer ${token}` } };
}

interface Page {
  items: { key: string; version?: string; is_latest?: boolean }[];
  prefixes: string[];
  next_cursor: string | null;
}

describe("objects through the admin API", () => {
  test("an object is written, read in ranges, listed by page and deleted", async () => {
    const path = `${API}/photos/objects/holiday/${encodeURIComponent("a b/ü.txt")}`;
    const headers = { "content-type": "text/plain", "x-amz-meta-place": "sea" };
    const put = await readJson(call("PUT", path, undefined, { body: "0123456789", headers }));
    assert.equal(put["key"], "holiday/a b/ü.txt");
    assert.match(String(put["etag"]), /^[0-9a-f]{32}$/);

    const whole = await call("GET", path);
    assert.equal(whole.text, "0123456789");
    assert.equal(whole.headers["content-type"], "text/plain");
    assert.equal(whole.headers["x-amz-meta-place"], "sea");
    const part = await call("GET", path, undefined, { headers: { range: "bytes=2-4" } });
    assert.deepEqual([part.status, part.text], [206, "234"]);
    const head = await call("HEAD", path);
    assert.deepEqual([head.status, head.headers["content-length"]], [200, "10"]);
    const fresh = { headers: { "if-none-match": `"${String(put["etag"])}"` } };
    assert.equal((await call("GET", path, undefined, fresh)).status, 304);
    const beyond = await call("GET", path, undefined, { headers: { range: "bytes=99-" } });
    assert.equal(beyond.status, 416);

    for (const key of ["p1", "p2", "p3"]) await call("PUT", `${API}/photos/objects/page/${key}`);
    const first = await readJson<Page>(call("GET", `${API}/photos/objects?prefix=page/&limit=2`));
    assert.deepEqual(
      first.items.map(({ key }) => key),
      ["page/p1", "page/p2"],
    );
    const next = `${API}/photos/objects?prefix=page/&limit=2&cursor=${first.next_cursor}`;
    const second = await readJson<Page>(call("GET", next));
    assert.deepEqual([second.items.map(({ key }) => key), second.next_cursor], [["page/p3"], null]);
    const folders = await readJson<Page>(call("GET", `${API}/photos/objects?delimiter=/`));
    assert.deepEqual(folders.prefixes, ["holiday/", "page/"]);

    assert.equal((await call("DELETE", path)).status, 204);
    assert.equal((await call("GET", path)).status, 404);
    assert.equal((await call("GET", `${API}/photos/objects?limit=1001`)).status, 400);
    assert.equal((await call("GET", `${API}/photos/objects?cursor=bm8`)).status, 400);
  });

  test("bytes come as an attachment that no browser runs", async () => {
    const path = `${API}/photos/objects/${encodeURIComponent("x/<img onerror>.html")}`;
    const body = "<script>alert(1)</script>";
    await call("PUT", `${path}?content_type=text/html`, undefined, {
      body,
      headers: { "content-type": "application/octet-stream" },
    });
    const { headers, text } = await call("GET", path);
    assert.equal(text, body);
    assert.equal(headers["content-type"], "text/html");
    assert.equal(headers["content-security-policy"], "sandbox; default-src 'none'");
    assert.equal(headers["x-content-type-options"], "nosniff");
    assert.equal(
      headers["content-disposition"],
      "attachment; filename*=UTF-8''%3Cimg%20onerror%3E.html",
    );
  });

  test("an object is described as JSON, with the tags that the caller may read", async () => {
    const path = `${API}/photos/objects/public/described`;
    const headers = { "x-amz-tagging": "team=sea", "x-amz-meta-a": "1", "content-type": "a/b" };
    await call("PUT", path, undefined, { body: "12345", headers });
    const info = await readJson(call("GET", `${path}?info`));
    assert.deepEqual(
      [info["size"], info["content_type"], info["tags"], info["metadata"]],
      [5, "a/b", { team: "sea" }, { a: "1" }],
    );
    const seen = await readJson(call("GET", `${path}?info`, undefined, { key: reader }));
    assert.deepEqual([seen["size"], seen["tags"]], [5, null]);
    const secret = `${API}/private/objects/secret?info`;
    assert.equal((await call("GET", secret, undefined, { key: reader })).status, 403);
  });

  test("keys that a path cannot express are named in the query", async () => {
    const key = "a/../b//./c";
    const path = `${API}/photos/object?key=${encodeURIComponent(key)}`;
    assert.equal((await readJson(call("PUT", path, undefined, { body: "dots" })))["key"], key);
    assert.equal((await call("GET", path)).text, "dots");
    assert.equal((await call("DELETE", path)).status, 204);
    assert.equal((await call("GET", `${API}/photos/object`)).status, 400);
  });

  test("a write states its condition", async () => {
    const path = `${API}/photos/objects/once`;
    const headers = { "if-none-match": "*" };
    assert.equal((await call("PUT", path, undefined, { body: "1", headers })).status, 200);
    const again = await call("PUT", path, undefined, { body: "2", headers });
    assert.equal(again.status, 412, again.text);
    assert.equal((await call("GET", path)).text, "1");
  });

  test("a large body passes in pieces, both ways", async () => {
    const body = Buffer.alloc(24 * 1024 * 1024, "0123456789abcdef");
    const path = `${API}/photos/objects/large`;
    const asAdmin = asToken({ scope: "vault:admin" });
    const put = await call("PUT", path, undefined, { ...asAdmin, body });
    assert.equal(put.status, 200, put.text);
    const got = await call("GET", path, undefined, asAdmin);
    assert.ok(got.body.equals(body));
  });

  test("versions are listed, read and deleted one by one", async () => {
    await call("POST", API, { name: "versioned" });
    await call("PUT", `${API}/versioned/config/versioning`, { Status: "Enabled" });
    const path = `${API}/versioned/objects/doc`;
    const first = await readJson(call("PUT", path, undefined, { body: "one" }));
    await call("PUT", path, undefined, { body: "two" });
    await call("DELETE", path);
    const { items } = await readJson<Page>(call("GET", `${API}/versioned/objects?versions`));
    assert.deepEqual(
      items.map((item) => [item.key, item.is_latest]),
      [
        ["doc", true],
        ["doc", false],
        ["doc", false],
      ],
    );
    assert.equal((await call("GET", `${path}?version=${String(first["version"])}`)).text, "one");
    const objects = items.map(({ key, version }) => ({ key, version }));
    const gone = await readJson<{ deleted: object[] }>(
      call("POST", `${API}/versioned/delete`, { objects }),
    );
    assert.equal(gone.deleted.length, 3);
    assert.equal((await call("DELETE", `${API}/versioned`)).status, 204);
  });

  test("an object is copied with its metadata", async () => {
    const headers = { "x-amz-meta-a": "b" };
    await call("PUT", `${API}/photos/objects/from%20here`, undefined, { body: "copied", headers });
    const body = { source_bucket: "photos", source_key: "from here", key: "to here" };
    await readJson(call("POST", `${API}/private/copy`, body), 201);
    const copy = await call("GET", `${API}/private/objects/to%20here`);
    assert.deepEqual([copy.text, copy.headers["x-amz-meta-a"]], ["copied", "b"]);
    assert.equal((await call("DELETE", `${API}/private`)).status, 409);
  });
});

describe("uploads in parts", () => {
  const part = (fill: string) => Buffer.alloc(5 * 1024 * 1024, fill);

  test("parts are repeated, listed and completed", async () => {
    const admin = asToken({ scope: "vault:admin" });
    const uploads = `${API}/photos/uploads`;
    const body = { key: "films/long.mp4", content_type: "video/mp4", metadata: { cut: "final" } };
    const { upload_id: id } = await readJson<{ upload_id: string }>(
      call("POST", uploads, body),
      201,
    );
    const send = (number: number, bytes: Buffer) =>
      call("PUT", `${uploads}/${id}/${number}`, undefined, { ...admin, body: bytes });
    await readJson(send(1, part("x")));
    await readJson(send(1, part("a")));
    await readJson(send(2, Buffer.from("end")));
    const listed = await readJson<{ parts: { part: number; size: number }[]; key: string }>(
      call("GET", `${uploads}/${id}`),
    );
    assert.deepEqual(
      [listed.key, listed.parts.map(({ part: number, size }) => [number, size])],
      [
        "films/long.mp4",
        [
          [1, 5 * 1024 * 1024],
          [2, 3],
        ],
      ],
    );
    const open = await readJson<{ items: { upload_id: string }[] }>(call("GET", uploads));
    assert.deepEqual(
      open.items.map((item) => item.upload_id),
      [id],
    );
    const done = await readJson(call("POST", `${uploads}/${id}`, {}));
    assert.match(String(done["etag"]), /-2$/);
    const film = await call("GET", `${API}/photos/objects/films/long.mp4`);
    assert.ok(film.body.equals(Buffer.concat([part("a"), Buffer.from("end")])));
    assert.deepEqual(
      [film.headers["content-type"], film.headers["x-amz-meta-cut"]],
      ["video/mp4", "final"],
    );
  });

  test("a completion whose answer was lost is answered again", async () => {
    const uploads = `${API}/photos/uploads`;
    const { upload_id: id } = await readJson<{ upload_id: string }>(
      call("POST", uploads, { key: "films/once" }),
      201,
    );
    const sent = await readJson(call("PUT", `${uploads}/${id}/1`, undefined, { body: "whole" }));
    const body = { parts: [{ part: 1, etag: sent["etag"] }] };
    const headers = { ...JSON_TYPE, "if-none-match": "*" };
    const first = await readJson(call("POST", `${uploads}/${id}`, body, { headers }));
    assert.deepEqual(await readJson(call("POST", `${uploads}/${id}`, body, { headers })), first);
    assert.equal((await call("DELETE", `${uploads}/${id}`)).status, 404);
    assert.equal((await call("GET", `${uploads}/${id}`)).status, 404);
    assert.equal((await call("GET", `${API}/photos/objects/films/once`)).text, "whole");
  });

  test("an aborted upload is gone, and a part number has bounds", async () => {
    const uploads = `${API}/photos/uploads`;
    const { upload_id: id } = await readJson<{ upload_id: string }>(
      call("POST", uploads, { key: "never" }),
      201,
    );
    assert.equal((await call("PUT", `${uploads}/${id}/0`)).status, 400);
    assert.equal((await call("PUT", `${uploads}/${id}/10001`)).status, 400);
    assert.equal((await call("POST", `${uploads}/${id}`, {})).status, 409);
    assert.equal((await call("DELETE", `${uploads}/${id}`)).status, 204);
    assert.equal((await call("GET", `${uploads}/${id}`)).status, 404);
    assert.equal((await call("PUT", `${uploads}/${id}/1`)).status, 404);
  });
});

describe("settings of a bucket as JSON", () => {
  const documents: Record<string, object> = {
    lifecycle: {
      Rules: [
        {
          ID: "old",
          Filter: { And: { Prefix: "logs/", Tags: [{ Key: "keep", Value: "no" }] } },
          Status: "Enabled",
          Expiration: { Days: 30 },
        },
        {
          ID: "uploads",
          Filter: { Prefix: "" },
          Status: "Disabled",
          AbortIncompleteMultipartUpload: { DaysAfterInitiation: 7 },
        },
      ],
    },
    cors: {
      CORSRules: [
        {
          AllowedHeaders: ["*"],
          AllowedMethods: ["GET", "PUT"],
          AllowedOrigins: ["https://app.example"],
          MaxAgeSeconds: 60,
        },
      ],
    },
    tags: { TagSet: [{ Key: "team", Value: "sea + sun" }] },
    website: {
      IndexDocument: { Suffix: "index.html" },
      RoutingRules: [
        { Condition: { KeyPrefixEquals: "old/" }, Redirect: { ReplaceKeyPrefixWith: "new/" } },
      ],
    },
    policy: {
      Version: "2012-10-17",
      Statement: [
        { Effect: "Deny", Principal: "*", Action: "s3:PutObject", Resource: "arn:aws:s3:::set/x*" },
      ],
    },
  };

  before(() => call("POST", API, { name: "set" }));

  for (const [name, document] of Object.entries(documents)) {
    test(`${name}: put, read and removed`, async () => {
      const path = `${API}/set/config/${name}`;
      assert.equal((await call("GET", path)).status, 404);
      const put = await call("PUT", path, document);
      assert.equal(put.status, 204, put.text);
      assert.deepEqual(await readJson(call("GET", path)), document);
      const { settings } = await readJson<{ settings: string[] }>(call("GET", `${API}/set`));
      assert.deepEqual(settings, [name]);
      assert.equal((await call("DELETE", path)).status, 204);
      assert.equal((await call("GET", path)).status, 404);
    });
  }

  test("events, versioning and object lock", async () => {
    const events = `${API}/set/config/events`;
    const subscription = { events: ["objstore:ObjectCreated:*"], webhook: "https://hook.example/" };
    assert.equal((await call("PUT", events, { subscriptions: [subscription] })).status, 204);
    const { subscriptions } = await readJson<{ subscriptions: { webhook: string }[] }>(
      call("GET", events),
    );
    assert.deepEqual(
      subscriptions.map(({ webhook }) => webhook),
      ["https://hook.example/"],
    );
    assert.equal((await call("DELETE", events)).status, 204);
    assert.deepEqual(await readJson(call("GET", events)), { subscriptions: [] });
    assert.deepEqual(await readJson(call("GET", `${API}/set/config/versioning`)), {});
    assert.equal((await call("DELETE", `${API}/set/config/versioning`)).status, 405);

    await call("POST", API, { name: "locked", object_lock: true });
    const lock = {
      ObjectLockEnabled: "Enabled",
      Rule: { DefaultRetention: { Mode: "GOVERNANCE", Days: 1 } },
    };
    assert.equal((await call("PUT", `${API}/locked/config/lock`, lock)).status, 204);
    assert.deepEqual(await readJson(call("GET", `${API}/locked/config/lock`)), lock);
  });

  test("an invalid document is refused with its fault", async () => {
    const rules = { Rules: [{ Status: "Perhaps", Filter: {}, Expiration: { Days: 1 } }] };
    const answer = await call("PUT", `${API}/set/config/lifecycle`, rules);
    assert.equal(answer.status, 400);
    assert.match(answer.text, /Status must be Enabled or Disabled/);
    assert.equal((await call("PUT", `${API}/set/config/cors`, { Rules: [] })).status, 400);
  });
});

describe("rights", () => {
  test("a user may do what their policies allow, with their key's signature or in a session", async () => {
    await call("PUT", `${API}/photos/objects/public/a`, undefined, { body: "open" });
    await call("PUT", `${API}/photos/objects/secret`, undefined, { body: "closed" });
    const key = { key: reader };
    assert.deepEqual(await readJson(call("GET", API, undefined, key)), ["photos"]);
    assert.equal(
      (await call("GET", `${API}/photos/objects/public/a`, undefined, key)).text,
      "open",
    );
    for (const [method, path, body] of [
      ["GET", `${API}/photos/objects/secret`],
      ["PUT", `${API}/photos/objects/public/a`],
      ["DELETE", `${API}/photos/objects/public/a`],
      ["GET", `${API}/photos/objects?versions`],
      ["GET", `${API}/private/objects`],
      ["DELETE", `${API}/photos`],
      ["POST", API, { name: "mine" }],
      ["GET", `${API}/photos/config/policy`],
      ["PUT", `${API}/photos/config/versioning`, { Status: "Enabled" }],
      ["POST", `${API}/photos/copy`, { source_key: "secret", key: "public/b" }],
      ["POST", `${API}/photos/share`, { key: "secret" }],
      ["POST", `${API}/photos/uploads`, { key: "public/u" }],
      ["POST", `${API}/photos/delete`, { objects: [{ key: "public/a" }] }],
      ["GET", "/api/v1/users"],
      ["POST", "/api/v1/keys", { user: "reader" }],
      ["GET", "/api/v1/usage"],
      ["GET", "/api/v1/drives"],
      ["GET", "/api/v1/maintenance"],
      ["POST", "/api/v1/maintenance/scrub"],
      ["GET", "/api/v1/jobs"],
      ["POST", "/api/v1/jobs/scrub/start"],
      ["POST", "/api/v1/jobs/scrub/cancel"],
      ["GET", "/api/v1/events/deliveries"],
      ["POST", "/api/v1/events/test", { bucket: "photos", id: "hook" }],
      ["DELETE", "/api/v1/events/subscriptions?bucket=photos&id=hook"],
      ["GET", "/api/v1/admin/attention"],
    ] as const) {
      assert.equal((await call(method, path, body, key)).status, 403, `${method} ${path}`);
    }
    const page = { origin: serving.vault.adminUrl, "sec-fetch-site": "same-origin", ...JSON_TYPE };
    const login = await call(
      "POST",
      "/console/login",
      { access_key: reader.accessKey, secret_key: reader.secretKey },
      { key: null, headers: page },
    );
    assert.equal(login.status, 200, login.text);
    assert.equal((JSON.parse(login.text) as { is_admin: boolean }).is_admin, false);
    const cookie = String(login.headers["set-cookie"]).split(";")[0]!;
    const session = { key: null, headers: { ...page, cookie } };
    const got = await call("GET", `${API}/photos/objects/public/a`, undefined, session);
    assert.equal(got.text, "open");
    assert.equal((await call("GET", "/api/v1/users", undefined, session)).status, 403);

    await call("PATCH", `/api/v1/keys/${reader.accessKey}`, { enabled: false });
    assert.equal((await call("GET", API, undefined, session)).status, 401);
    await call("PATCH", `/api/v1/keys/${reader.accessKey}`, { enabled: true });
  });

  test("a token acts in each of its roles that storage has", async () => {
    const both = asToken({ roles: ["readers", "writers"] });
    const own = `${API}/photos/objects/ada/note`;
    assert.equal((await call("PUT", own, undefined, { ...both, body: "mine" })).status, 200);
    assert.equal(
      (await call("GET", `${API}/photos/objects/public/a`, undefined, both)).text,
      "open",
    );
    assert.equal((await call("GET", own, undefined, both)).status, 403);
    const objects = [{ key: "ada/note" }, { key: "bob/note" }];
    const result = await readJson<{ deleted: { key: string }[]; errors: { key: string }[] }>(
      call("POST", `${API}/photos/delete`, { objects }, both),
    );
    assert.deepEqual(
      [result.deleted.map(({ key }) => key), result.errors.map(({ key }) => key)],
      [["ada/note"], ["bob/note"]],
    );
    const readOnly = asToken({ roles: ["readers", "writers"], scope: "vault:read" });
    assert.equal((await call("PUT", own, undefined, { ...readOnly, body: "x" })).status, 403);
    const stranger = await call("GET", API, undefined, asToken({ roles: ["others"] }));
    assert.equal(stranger.status, 403);
    assert.match(stranger.text, /no role with a policy in storage/);
    assert.equal((await call("GET", "/api/v1/users", undefined, both)).status, 403);
    for (const [claims, status] of [
      [{ roles: ["admin"], scope: "openid" }, 403],
      [{ scope: "vault:admin" }, 200],
      [{ scope: "*:*" }, 200],
    ] as const)
      assert.equal((await call("GET", "/api/v1/users", undefined, asToken(claims))).status, status);
  });

  test("a body is judged after the right to send it", async () => {
    const invalid = { body: "{", headers: JSON_TYPE };
    const writer = await createUser("writer", [
      allow(["s3:PutObject", "s3:DeleteObject"], "photos/in/*"),
      allow(["s3:CreateBucket"], "own-*"),
    ]);
    const { upload_id: upload } = await readJson<{ upload_id: string }>(
      call("POST", `${API}/photos/uploads`, { key: "in/big" }),
      201,
    );
    for (const path of [
      API,
      `${API}/photos/copy`,
      `${API}/photos/delete`,
      `${API}/photos/uploads`,
      `${API}/photos/uploads/${upload}`,
      `${API}/photos/uploads/missing`,
      `${API}/photos/share`,
    ]) {
      const send = (key?: Key) =>
        call("POST", path, undefined, key === undefined ? invalid : { ...invalid, key });
      assert.equal((await send()).status, 400, `root: ${path}`);
      assert.equal((await send(writer)).status, 400, `writer: ${path}`);
      const status = path.endsWith("/share") ? 400 : 403;
      assert.equal((await send(reader)).status, status, `reader: ${path}`);
    }
    const nothing = await createUser("nothing", [allow(["s3:ListBucket"], "*")]);
    const link = await call("POST", `${API}/photos/share`, undefined, { ...invalid, key: nothing });
    assert.equal(link.status, 403);
    await call("DELETE", `${API}/photos/uploads/${upload}`);
  });

  test("a bucket policy denies through this API as well", async () => {
    const Statement = [
      {
        Effect: "Deny",
        Principal: "*",
        Action: "s3:GetObject",
        Resource: "arn:aws:s3:::photos/public/hidden",
      },
    ];
    await call("PUT", `${API}/photos/objects/public/hidden`, undefined, { body: "no" });
    await call("PUT", `${API}/photos/config/policy`, { Version: "2012-10-17", Statement });
    const path = `${API}/photos/objects/public/hidden`;
    assert.equal((await call("GET", path, undefined, { key: reader })).status, 403);
    assert.equal((await call("GET", path)).status, 403);
    await call("DELETE", `${API}/photos/config/policy`);
    assert.equal((await call("GET", path)).status, 200);
  });
});

describe("links", () => {
  const open = (url: string, init?: RequestInit) => fetch(url, init);

  test("a link of root, of a user and of a token works without a sign-in", async () => {
    await call("PUT", `${API}/photos/objects/public/${encodeURIComponent("ü &?.txt")}`, undefined, {
      body: "shared",
    });
    const key = "public/ü &?.txt";
    for (const ask of [{}, { key: reader }, asToken({ roles: ["readers"] })]) {
      const { url } = await readJson<{ url: string }>(
        call("POST", `${API}/photos/share`, { key }, { headers: JSON_TYPE, ...ask }),
        201,
      );
      const got = await open(url);
      assert.deepEqual([got.status, await got.text()], [200, "shared"], url);
      assert.equal(got.headers.get("content-disposition"), "attachment");
      assert.equal((await open(url.replace("%20", "%21"))).status, 403);
    }
    const missing = await call("POST", `${API}/photos/share`, { key: "missing" });
    assert.equal(missing.status, 404);
  });

  test("a key that no link reaches is refused", async () => {
    for (const dots of ["..", "a/./b", "a/../b"]) {
      const refused = await call("POST", `${API}/photos/share`, { key: dots });
      assert.equal(refused.status, 400, dots);
      assert.match(refused.text, /no link reaches this key/);
    }
  });

  test("a link accepts an upload", async () => {
    const { url } = await readJson<{ url: string }>(
      call("POST", `${API}/photos/share`, { key: "inbox/a", method: "PUT" }),
      201,
    );
    assert.equal((await open(url, { method: "PUT", body: "sent" })).status, 200);
    assert.equal((await call("GET", `${API}/photos/objects/inbox/a`)).text, "sent");
    assert.equal((await open(url)).status, 403);
  });
});

describe("upkeep", () => {
  test("the drive and its space, and the state of the scrub", async () => {
    const { drives } = await readJson<{ drives: { state: string; free_bytes: number }[] }>(
      call("GET", "/api/v1/drives"),
    );
    assert.deepEqual(
      drives.map(({ state }) => state),
      ["present"],
    );
    assert.ok(drives[0]!.free_bytes > 0);
    assert.equal((await call("POST", "/api/v1/maintenance/scrub")).status, 202);
    const { scrub } = await readJson<{ scrub: { state: string } }>(
      call("GET", "/api/v1/maintenance"),
    );
    assert.match(scrub.state, /^(?:running|idle)$/);
  });
});

test("operations are in the access log, with the identity that did them", async () => {
  await call("GET", `${API}/photos/objects/public/a`, undefined, { key: reader });
  const lines = await waitFor(async () => {
    const { items } = await readJson<Page>(call("GET", `${API}/system-access-logs/objects`)).catch(
      () => ({ items: [] as Page["items"] }),
    );
    const texts = await Promise.all(
      items.map(({ key }) => call("GET", `${API}/system-access-logs/objects/${key}`)),
    );
    const found = texts
      .flatMap(({ text }) => text.split("\n"))
      .filter((line) => line.includes(reader.accessKey) && line.includes('"GetObject"'));
    return found.length > 0 ? found : undefined;
  }, "the access log");
  assert.match(lines[0]!, /"bucket":"photos","key":"public\/a"/);
});
