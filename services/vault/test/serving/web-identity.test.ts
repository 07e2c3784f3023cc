// Session keys for tokens: AssumeRoleWithWebIdentity, the rights of a session, its end, restarts.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { appendFileSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  AbortMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  ListPartsCommand,
  PutObjectCommand,
  S3Client,
  type S3ClientConfig,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { fromWebToken } from "@aws-sdk/credential-provider-web-identity";
import { waitFor } from "@platform/testing/wait";
import { presignTarget } from "@platform/s3/signature";
import { serve, type Serving } from "./serving.ts";
import type { Answer } from "./s3-client.ts";

const SECRET = "a secret of more than thirty-two bytes";
const ISSUER = "http://identity.test";
const FEED_TOKEN = "the token of the revocation feed";
const NOTES = "arn:aws:iam:::role/notes";
const BOTH = "vault:read vault:write";

const revoked: { kind: string; value: string; epoch?: number }[] = [];
let isFeedUp = true;
const feed = createServer((request, response) => {
  if (!isFeedUp) {
    request.socket.destroy();
    return;
  }
  const isAllowed = request.headers.authorization === `Bearer ${FEED_TOKEN}`;
  const since = Number(new URL(request.url!, "http://-").searchParams.get("since"));
  const revocations = revoked.slice(since).map((one) => ({ ...one, expires_at: 4_000_000_000 }));
  response.writeHead(isAllowed ? 200 : 401, { "content-type": "application/json" });
  response.end(JSON.stringify({ revocations, next: revoked.length, latest: revoked.length }));
});

let serving: Serving;

before(async () => {
  feed.listen(0, "127.0.0.1");
  await once(feed, "listening");
  const { port } = feed.address() as AddressInfo;
  serving = await serve({
    env: {
      PLATFORM_JWT_SECRET: SECRET,
      PLATFORM_JWT_ISSUER: ISSUER,
      PLATFORM_VAULT_REVOCATIONS_URL: `http://127.0.0.1:${port}/revocations`,
      PLATFORM_VAULT_REVOCATIONS_TOKEN: FEED_TOKEN,
      PLATFORM_VAULT_TENANT_RATE: "1000",
    },
  });
  const { s3, admin } = serving;
  await s3.must("PUT", "/notes");
  await putRole("notes", [
    { Effect: "Allow", Action: "s3:ListBucket", Resource: "arn:aws:s3:::notes" },
    {
      Effect: "Allow",
      Action: ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
      Resource: "arn:aws:s3:::notes/${aws:PrincipalTag/tenant}/${aws:PrincipalTag/sub}/*",
    },
  ]);
  await admin.must("PUT", "/api/v1/roles/empty", json({ policies: {} }));
});
after(async () => {
  await serving[Symbol.asyncDispose]();
  feed.closeAllConnections();
  feed.close();
});

const json = (body: object) => ({
  body: JSON.stringify(body),
  headers: { "content-type": "application/json" },
});

function putRole(name: string, statements: object[]): Promise<Answer> {
  const policy = { Version: "2012-10-17", Statement: statements };
  return serving.admin.must("PUT", `/api/v1/roles/${name}`, json({ policies: { main: policy } }));
}

const now = () => Math.floor(Date.now() / 1_000);

function makeToken(claims: Record<string, unknown> = {}): string {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const body = encode({
    iss: ISSUER,
    sub: "ada",
    tenant: "main",
    roles: ["notes"],
    scope: BOTH,
    exp: now() + 900,
    ...claims,
  });
  const text = `${encode({ alg: "HS256", typ: "JWT" })}.${body}`;
  return `${text}.${createHmac("sha256", SECRET).update(text).digest("base64url")}`;
}

/** Sends the request of an SDK; `changes` replaces parameters, `undefined` leaves them out. */
function assume(
  token: string,
  changes: Record<string, string | undefined> = {},
  headers: Record<string, string> = {},
): Promise<Answer> {
  const parameters = {
    Action: "AssumeRoleWithWebIdentity",
    Version: "2011-06-15",
    RoleArn: NOTES,
    RoleSessionName: "test",
    WebIdentityToken: token,
    ...changes,
  };
  const given = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value]],
  );
  return serving.s3.send("POST", "/", {
    key: null,
    body: new URLSearchParams(given).toString(),
    headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
  });
}

interface Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string;
  expiration: Date;
}

function readCredentials({ status, text }: Answer): Credentials {
  assert.equal(status, 200, text);
  const read = (name: string) => new RegExp(`<${name}>([^<]*)</${name}>`).exec(text)![1]!;
  return {
    accessKeyId: read("AccessKeyId"),
    secretAccessKey: read("SecretAccessKey"),
    sessionToken: read("SessionToken"),
    expiration: new Date(read("Expiration")),
  };
}

async function getKey(claims: Record<string, unknown> = {}, more: Record<string, string> = {}) {
  return readCredentials(await assume(makeToken(claims), more));
}

const clients: S3Client[] = [];
after(() => {
  for (const client of clients) client.destroy();
});

function connect(credentials: NonNullable<S3ClientConfig["credentials"]>): S3Client {
  const client = new S3Client({
    endpoint: serving.vault.url,
    region: "us-east-1",
    forcePathStyle: true,
    maxAttempts: 1,
    credentials,
  });
  clients.push(client);
  return client;
}

const put = (client: S3Client, key: string) =>
  client.send(new PutObjectCommand({ Bucket: "notes", Key: key, Body: "a note" }));
const get = async (client: S3Client, key: string) =>
  (
    await client.send(new GetObjectCommand({ Bucket: "notes", Key: key }))
  ).Body!.transformToString();
const failsWith = (code: string) => (error: { name: string }) => {
  assert.equal(error.name, code);
  return true;
};

test("the AWS SDK exchanges a token and stores, reads and lists with the keys", async () => {
  const client = connect(
    fromWebToken({
      roleArn: NOTES,
      roleSessionName: "sdk",
      webIdentityToken: makeToken(),
      clientConfig: { endpoint: serving.vault.url, region: "us-east-1" },
    }),
  );
  await put(client, "main/ada/1");
  assert.equal(await get(client, "main/ada/1"), "a note");
  const { Contents } = await client.send(new ListObjectsV2Command({ Bucket: "notes" }));
  assert.equal(Contents?.[0]?.Key, "main/ada/1");
  await assert.rejects(put(client, "main/grace/1"), failsWith("AccessDenied"));
  await assert.rejects(put(client, "other/ada/1"), failsWith("AccessDenied"));
});

test("the user that starts an upload is its initiator, may list its parts and abort it", async () => {
  const begin = async (client: S3Client, Key: string) => {
    const { UploadId } = await client.send(
      new CreateMultipartUploadCommand({ Bucket: "notes", Key }),
    );
    return { Bucket: "notes", Key, UploadId };
  };
  const ada = connect(await getKey());
  const upload = await begin(ada, "main/ada/big");
  await ada.send(new UploadPartCommand({ ...upload, PartNumber: 1, Body: "part" }));
  const { Initiator, Owner, Parts } = await ada.send(new ListPartsCommand(upload));
  const arn = "arn:aws:sts::000000000001:assumed-role/notes/test";
  assert.deepEqual([Initiator?.ID, Initiator?.DisplayName], [arn, "notes/test"]);
  assert.match(Owner?.ID ?? "", /^[0-9a-f]{64}$/);
  assert.equal(Parts?.length, 1);
  const listed = await serving.s3.must("GET", "/notes?uploads");
  assert.ok(listed.text.includes(`<Initiator><ID>${arn}</ID>`), listed.text);

  // Names of sessions are chosen by their holders.
  const grace = connect(await getKey({ sub: "grace" }));
  const other = connect(await getKey({ tenant: "other" }));
  const reading = connect(await getKey({ scope: "vault:read" }));
  for (const client of [grace, other]) {
    await assert.rejects(client.send(new ListPartsCommand(upload)), failsWith("AccessDenied"));
  }
  for (const client of [grace, other, reading]) {
    await assert.rejects(
      client.send(new AbortMultipartUploadCommand(upload)),
      failsWith("AccessDenied"),
    );
  }
  const Statement = [
    {
      Effect: "Deny",
      Principal: "*",
      Action: "s3:AbortMultipartUpload",
      Resource: "arn:aws:s3:::notes/*",
    },
  ];
  const policy = JSON.stringify({ Version: "2012-10-17", Statement });
  await serving.s3.must("PUT", "/notes?policy", { body: policy });
  const later = connect(await getKey({}, { RoleSessionName: "later" }));
  await assert.rejects(
    later.send(new AbortMultipartUploadCommand(upload)),
    failsWith("AccessDenied"),
  );
  await serving.s3.must("DELETE", "/notes?policy");
  await later.send(new AbortMultipartUploadCommand(upload));
  await assert.rejects(later.send(new ListPartsCommand(upload)), failsWith("AccessDenied"));
});

test("the answer has the form of STS", async () => {
  const answer = await assume(makeToken({ aud: "platform" }));
  assert.equal(answer.headers["content-type"], "text/xml");
  assert.match(
    answer.text,
    /^<\?xml[^>]*\?>\n<AssumeRoleWithWebIdentityResponse xmlns="https:\/\/sts\.amazonaws\.com\/doc\/2011-06-15\/"><AssumeRoleWithWebIdentityResult><SubjectFromWebIdentityToken>ada<\/SubjectFromWebIdentityToken><Audience>platform<\/Audience><AssumedRoleUser><Arn>arn:aws:sts::000000000001:assumed-role\/notes\/test<\/Arn><AssumedRoleId>notes:test<\/AssumedRoleId><\/AssumedRoleUser><Credentials><AccessKeyId>ASIA[A-Z2-7]{16}<\/AccessKeyId>/,
  );
  assert.match(answer.text, /<ResponseMetadata><RequestId>[^<]+<\/RequestId><\/ResponseMetadata>/);
  assert.equal(answer.headers["access-control-allow-origin"], "*");
  assert.equal(answer.headers["cache-control"], "no-store");
});

const refusals: [
  name: string,
  ask: () => Promise<Answer>,
  status: number,
  code: string,
  message: RegExp,
][] = [
  [
    "a role that the token lacks",
    () => assume(makeToken({ roles: ["reader"] })),
    403,
    "AccessDenied",
    /does not have the role notes/,
  ],
  [
    "a role without a policy",
    () => assume(makeToken({ roles: ["empty"] }), { RoleArn: "arn:aws:iam:::role/empty" }),
    403,
    "AccessDenied",
    /role empty has no policy/,
  ],
  [
    "a token without a scope of storage",
    () => assume(makeToken({ scope: "pulse:publish" })),
    403,
    "AccessDenied",
    /neither the scope vault:read nor vault:write/,
  ],
  [
    "an expired token",
    () => assume(makeToken({ exp: now() - 60 })),
    400,
    "ExpiredTokenException",
    /expired/,
  ],
  [
    "a forged token",
    () => assume(`${makeToken().slice(0, -4)}AAAA`),
    400,
    "InvalidIdentityToken",
    /^The token is not valid\.$/,
  ],
  ["no token", () => assume("", {}), 400, "ValidationError", /WebIdentityToken is missing/],
  [
    "another issuer",
    () => assume(makeToken({ iss: "http://x" })),
    400,
    "InvalidIdentityToken",
    /issuer/,
  ],
  [
    "no subject",
    () => assume(makeToken({ sub: undefined })),
    400,
    "InvalidIdentityToken",
    /subject/,
  ],
  ["no action", () => assume(makeToken(), { Action: undefined }), 400, "MissingAction", /Action/],
  [
    "another action",
    () => assume(makeToken(), { Action: "AssumeRole" }),
    400,
    "InvalidAction",
    /AssumeRole of/,
  ],
  [
    "another version",
    () => assume(makeToken(), { Version: "2010-01-01" }),
    400,
    "InvalidAction",
    /2010-01-01/,
  ],
  [
    "no role",
    () => assume(makeToken(), { RoleArn: undefined }),
    400,
    "ValidationError",
    /RoleArn is missing/,
  ],
  [
    "a role of another account",
    () => assume(makeToken(), { RoleArn: "arn:aws:iam::123456789012:role/notes" }),
    400,
    "ValidationError",
    /RoleArn must have the form/,
  ],
  [
    "a session name with a slash",
    () => assume(makeToken(), { RoleSessionName: "a/b" }),
    400,
    "ValidationError",
    /RoleSessionName must have/,
  ],
  [
    "899 seconds",
    () => assume(makeToken(), { DurationSeconds: "899" }),
    400,
    "ValidationError",
    /from 900 to 43200/,
  ],
  [
    "12 h and a second",
    () => assume(makeToken(), { DurationSeconds: "43201" }),
    400,
    "ValidationError",
    /43200/,
  ],
  [
    "words as seconds",
    () => assume(makeToken(), { DurationSeconds: "1h" }),
    400,
    "ValidationError",
    /DurationSeconds/,
  ],
  [
    "a malformed policy",
    () => assume(makeToken(), { Policy: "{" }),
    400,
    "MalformedPolicyDocument",
    /JSON/,
  ],
  [
    "managed policies",
    () => assume(makeToken(), { "PolicyArns.member.1.arn": "arn:aws:iam::aws:policy/x" }),
    400,
    "InvalidParameterValue",
    /PolicyArns\.member\.1\.arn is not supported/,
  ],
  [
    "too large a body",
    () => assume("x".repeat(70_000)),
    400,
    "MaxMessageLengthExceeded",
    /too big/,
  ],
];
for (const [name, ask, status, code, message] of refusals) {
  test(`the exchange is refused with ${code}: ${name}`, async () => {
    const answer = await ask();
    assert.equal(answer.status, status, answer.text);
    assert.match(
      answer.text,
      /<ErrorResponse xmlns="https:\/\/sts\.amazonaws\.com\/doc\/2011-06-15\/"><Error><Type>Sender<\/Type>/,
    );
    assert.equal(answer.code, code, answer.text);
    assert.match(/<Message>([^<]*)</.exec(answer.text)![1]!, message);
  });
}

test("only forms are exchanged", async () => {
  const answer = await assume(makeToken(), {}, { "content-type": "application/json" });
  assert.deepEqual([answer.status, answer.code], [405, "MethodNotAllowed"], answer.text);
});

test("a bearer token is refused by the object API", async () => {
  const headers = {
    authorization: `Bearer ${makeToken()}`,
    "content-type": "application/x-www-form-urlencoded",
  };
  for (const [method, target] of [
    ["GET", "/notes/main/ada/1"],
    ["PUT", "/notes/main/ada/1"],
    ["POST", "/"],
  ] as const) {
    const answer = await serving.s3.send(method, target, { key: null, headers });
    assert.deepEqual([answer.status, answer.code], [400, "InvalidArgument"], answer.text);
    assert.match(answer.text, /Unsupported Authorization Type/);
  }
});

describe("the lifetime of a key", () => {
  const hours = (count: number) => count * 3_600;
  const lifetimes: [name: string, claims: object, asked: string | undefined, seconds: number][] = [
    ["an hour by default", { sid: "s", session_exp: now() + hours(24) }, undefined, hours(1)],
    ["what is asked for", { sid: "s", session_exp: now() + hours(24) }, "43200", hours(12)],
    ["never beyond the session", { sid: "s", session_exp: now() + 1_200 }, "43200", 1_200],
    ["that of a token without a session", {}, "43200", 900],
    ["that of a token that does not name the end of its session", { sid: "s" }, "43200", 900],
    [
      "not that of a session claimed without a sid",
      { session_exp: now() + hours(24) },
      "43200",
      900,
    ],
  ];
  for (const [name, claims, asked, seconds] of lifetimes) {
    test(`is ${name}`, async () => {
      const more = asked === undefined ? {} : { DurationSeconds: asked };
      const { expiration } = await getKey(claims as Record<string, unknown>, more);
      const found = expiration.getTime() / 1_000 - now();
      assert.ok(found <= seconds + 1 && found > seconds - 60, `${found} s`);
    });
  }
});

test("a key requires its session token, in headers and in presigned URLs", async () => {
  const key = await getKey();
  const { accessKeyId, secretAccessKey, sessionToken } = key;
  const whole = connect(key);
  await put(whole, "main/ada/token");
  const without = connect({ accessKeyId, secretAccessKey });
  await assert.rejects(get(without, "main/ada/token"), failsWith("InvalidToken"));
  const wrong = connect({ accessKeyId, secretAccessKey, sessionToken: `${sessionToken}x` });
  await assert.rejects(get(wrong, "main/ada/token"), failsWith("InvalidToken"));
  const { s3 } = serving;
  const presign = (token: string) =>
    presignTarget(
      { accessKey: accessKeyId, secret: secretAccessKey, region: "us-east-1" },
      {
        method: "GET",
        target: `/notes/main/ada/token?X-Amz-Security-Token=${encodeURIComponent(token)}`,
        headers: { host: `127.0.0.1:${serving.vault.port}` },
        expiresSeconds: 60,
        timeMs: Date.now(),
      },
    );
  const found = await s3.send("GET", presign(sessionToken), { key: null });
  assert.deepEqual([found.status, found.text], [200, "a note"], found.text);
  assert.equal((await s3.send("GET", presign("x"), { key: null })).code, "InvalidToken");
});

test("the scopes of the token limit what the role allows", async () => {
  const reader = connect(await getKey({ scope: "vault:read" }));
  const writer = connect(await getKey({ scope: "vault:write" }));
  await put(writer, "main/ada/scope");
  assert.equal(await get(reader, "main/ada/scope"), "a note");
  await assert.rejects(put(reader, "main/ada/scope"), failsWith("AccessDenied"));
  await assert.rejects(get(writer, "main/ada/scope"), failsWith("AccessDenied"));
  const remove = new DeleteObjectCommand({ Bucket: "notes", Key: "main/ada/scope" });
  await assert.rejects(reader.send(remove), failsWith("AccessDenied"));
  await writer.send(remove);
});

test("a policy in the request limits the key further and grants nothing", async () => {
  const allow = (action: string, resource: string) =>
    JSON.stringify({
      Version: "2012-10-17",
      Statement: [{ Effect: "Allow", Action: action, Resource: resource }],
    });
  const limited = connect(
    await getKey({}, { Policy: allow("s3:PutObject", "arn:aws:s3:::notes/*/limited/*") }),
  );
  await assert.rejects(put(limited, "main/ada/1"), failsWith("AccessDenied"));
  const wide = connect(await getKey({}, { Policy: allow("s3:*", "*") }));
  await put(wide, "main/ada/wide");
  await assert.rejects(put(wide, "main/grace/wide"), failsWith("AccessDenied"));
});

test("bucket policies can name a role and its sessions", async () => {
  const { s3 } = serving;
  await s3.must("PUT", "/shared");
  await putRole("guest", [{ Effect: "Allow", Action: "s3:ListAllMyBuckets", Resource: "*" }]);
  const statement = (effect: string, principal: string, resource: string) => ({
    Effect: effect,
    Principal: { AWS: principal },
    Action: "s3:PutObject",
    Resource: `arn:aws:s3:::shared/${resource}`,
  });
  await s3.must("PUT", "/shared?policy", {
    body: JSON.stringify({
      Version: "2012-10-17",
      Statement: [
        statement("Allow", "arn:aws:iam::000000000001:role/guest", "*"),
        statement("Deny", "arn:aws:sts::000000000001:assumed-role/guest/bad", "*"),
      ],
    }),
  });
  const guest = { RoleArn: "arn:aws:iam:::role/guest" };
  const as = async (name: string) =>
    connect(await getKey({ roles: ["guest"] }, { ...guest, RoleSessionName: name }));
  const store = (client: S3Client) =>
    client.send(new PutObjectCommand({ Bucket: "shared", Key: "k", Body: "x" }));
  await store(await as("good"));
  await assert.rejects(store(await as("bad")), failsWith("AccessDenied"));
  await assert.rejects(store(connect(await getKey())), failsWith("AccessDenied"));
});

test("a changed role applies to live keys, a deleted one ends them", async () => {
  const list = { Effect: "Allow", Action: "s3:ListBucket", Resource: "*" };
  await putRole("brief", [list]);
  const client = connect(
    await getKey({ roles: ["brief"] }, { RoleArn: "arn:aws:iam:::role/brief" }),
  );
  const look = () => client.send(new ListObjectsV2Command({ Bucket: "notes" }));
  await look();
  await putRole("brief", [{ ...list, Effect: "Deny" }]);
  await assert.rejects(look(), failsWith("AccessDenied"));
  await putRole("brief", [list]);
  await look();
  await serving.admin.must("DELETE", "/api/v1/roles/brief");
  await assert.rejects(look(), failsWith("AccessDenied"));
});

test("keys end within 2 s of the end of their session, their user, or their client", async () => {
  const ways: [claims: Record<string, unknown>, revocation: (typeof revoked)[number]][] = [
    [{ sid: "ended" }, { kind: "sid", value: "ended" }],
    [
      { sub: "eve", epoch: 1 },
      { kind: "sub", value: "eve", epoch: 2 },
    ],
    [{ client_id: "gone" }, { kind: "client", value: "gone" }],
    [{ jti: "t1" }, { kind: "jti", value: "t1" }],
  ];
  const kept = connect(await getKey({ sid: "kept" }));
  for (const [claims, revocation] of ways) {
    const client = connect(await getKey(claims));
    const look = () => client.send(new ListObjectsV2Command({ Bucket: "notes" }));
    await look();
    const startedMs = performance.now();
    revoked.push(revocation);
    const error = await waitFor(
      () =>
        look().then(
          () => undefined,
          (thrown: { name: string }) => thrown,
        ),
      "the end of the key",
    );
    assert.equal(error.name, "ExpiredToken");
    const elapsedMs = performance.now() - startedMs;
    assert.ok(elapsedMs < 20_000, `it took ${elapsedMs} ms`);
    const again = await assume(makeToken(claims));
    assert.deepEqual([again.status, again.code], [403, "IDPRejectedClaim"]);
  }
  await put(kept, "main/ada/kept");
});

test("keys survive a restart and a crash; ended ones stay ended even while identity is down", async () => {
  const lasting = await getKey({ sid: "lasting", session_exp: now() + 7_200 });
  const ended = await getKey({ sid: "short" });
  revoked.push({ kind: "sid", value: "short" });
  await waitFor(
    () =>
      put(connect(ended), "main/ada/r").then(
        () => undefined,
        () => true,
      ),
    "the end of the key",
  );
  isFeedUp = false;
  const { vault } = serving;
  for (const stop of ["stop", "kill"] as const) {
    await vault[stop]();
    await vault.start();
    await put(connect(lasting), "main/ada/r");
    await assert.rejects(put(connect(ended), "main/ada/r"), failsWith("ExpiredToken"));
    const issued = await getKey({ sid: "fresh" });
    await put(connect(issued), "main/ada/r");
  }
  const ready = await waitFor(async () => {
    const { status, text } = await serving.s3.send("GET", "/readyz", { key: null });
    return text.includes("revocations") ? { status, text } : undefined;
  }, "the warning");
  assert.equal(ready.status, 200, "storage serves on");
  isFeedUp = true;
  await waitFor(async () => {
    const { text } = await serving.s3.send("GET", "/readyz", { key: null });
    return !text.includes("revocations");
  }, "the end of the warning");
});

test("a torn record of a crash and a damaged one cost only themselves", async () => {
  const key = await getKey({ sid: "whole", session_exp: now() + 7_200 });
  const { vault } = serving;
  await vault.stop();
  const path = join(vault.dataDir, "access", "session-keys.journal");
  assert.ok(!readFileSync(path, "utf8").includes(key.secretAccessKey), "secrets are encrypted");
  assert.ok(!readFileSync(path, "utf8").includes(key.sessionToken));
  appendFileSync(path, '\n00000000 {"issued":{}}\n1234abcd {"issued":{"accessKey":"AS');
  await vault.start();
  assert.match(vault.output, /session keys were lost.*damaged lines: 1/);
  await put(connect(key), "main/ada/torn");
  const next = await getKey({ sid: "next", session_exp: now() + 7_200 });
  await vault.kill();
  await vault.start();
  await put(connect(key), "main/ada/torn");
  await put(connect(next), "main/ada/torn");
});

test("a user has at most 64 keys: the oldest ends, those of others do not", async () => {
  const { vault } = serving;
  // The budget of keys refills at two per second.
  const other = connect(await getKey({ sub: "frank" }));
  const first = connect(await getKey({ sub: "mia" }));
  const list = new ListObjectsV2Command({ Bucket: "notes" });
  await first.send(list);
  let issued = 1;
  while (issued <= 64) {
    const answer = await assume(makeToken({ sub: "mia" }));
    if (answer.status === 200) issued += 1;
    else {
      assert.deepEqual([answer.status, answer.code], [400, "Throttling"]);
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
  await assert.rejects(first.send(list), failsWith("ExpiredToken"));
  await other.send(list);
  const metrics = await (await fetch(`${vault.adminUrl}/metrics`)).text();
  assert.match(metrics, /platform_vault_session_keys \d+/);
});

test("pages of any origin may exchange tokens, with the preflight of an SDK", async () => {
  const answer = await serving.s3.send("OPTIONS", "/", {
    key: null,
    headers: {
      origin: "https://app.example",
      "access-control-request-method": "POST",
      "access-control-request-headers": "content-type,amz-sdk-invocation-id",
    },
  });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.headers["access-control-allow-origin"], "*");
  assert.equal(
    answer.headers["access-control-allow-headers"],
    "content-type,amz-sdk-invocation-id",
  );
  const refused = await serving.s3.send("OPTIONS", "/", {
    key: null,
    headers: { origin: "https://app.example", "access-control-request-method": "DELETE" },
  });
  assert.equal(refused.status, 403);
});
