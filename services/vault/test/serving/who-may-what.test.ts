// Rights at every operation of the object API: each is called by callers with and without the scope that its row declares, with
// keys of storage, keys that were exchanged for tokens, and tokens themselves.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { STORAGE_SCOPES } from "../../src/access/authorizer.ts";
import type { Operation } from "../../src/s3/context.ts";
import { OPERATIONS } from "../../src/s3/operations.ts";
import { readJson } from "./json-api.ts";
import type { Answer, Key } from "./s3-client.ts";
import { serve, type Serving } from "./serving.ts";

const SECRET = "a secret of more than thirty-two bytes";
const ISSUER = "http://identity.test";
const AUDIENCE = "platform";
const FEED_TOKEN = "the token of the revocation feed";
const ROLE = "member";
const BUCKET = "of-main";
const { read: READ, write: WRITE } = STORAGE_SCOPES;
const BOTH = `${READ} ${WRITE}`;
/** Refusals of callers with a key or without, and of bearer tokens ("Unsupported Authorization Type"). */
const REFUSALS = new Set(["AccessDenied", "ExpiredToken", "InvalidAccessKeyId"]);
const BEARER_REFUSALS = new Set(["InvalidArgument"]);

/** A caller and its credential. */
interface Principal {
  readonly name: string;
  readonly key?: Key | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** Scopes that it has at the bucket; `all` of the operator. */
  readonly rights: readonly string[] | "all";
  /** The same at operations without a bucket, if they differ. */
  readonly serviceRights?: readonly string[];
}

const revoked: { kind: string; value: string }[] = [];
const feed = createServer((request, response) => {
  const since = Number(new URL(request.url!, "http://-").searchParams.get("since"));
  const revocations = revoked.slice(since).map((one) => ({ ...one, expires_at: 4_000_000_000 }));
  response.writeHead(200, { "content-type": "application/json" });
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
      PLATFORM_JWT_AUDIENCE: AUDIENCE,
      PLATFORM_VAULT_REVOCATIONS_URL: `http://127.0.0.1:${port}/revocations`,
      PLATFORM_VAULT_REVOCATIONS_TOKEN: FEED_TOKEN,
      PLATFORM_VAULT_TENANT_RATE: "0",
      PLATFORM_VAULT_ENABLE_AUDIT: "false",
    },
  });
  await serving.s3.must("PUT", `/${BUCKET}`);
  // It keeps the bucket from being deleted.
  await serving.s3.must("PUT", `/${BUCKET}/kept`, { body: "kept" });
  const own = "of-${aws:PrincipalTag/tenant}";
  const Resource = [`arn:aws:s3:::${own}`, `arn:aws:s3:::${own}/*`];
  await putPolicy(`/api/v1/roles/${ROLE}`, [
    { Effect: "Allow", Action: "s3:*", Resource },
    { Effect: "Allow", Action: "s3:ListAllMyBuckets", Resource: "*" },
  ]);
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

function putPolicy(path: string, Statement: object[], more: object = {}): Promise<Answer> {
  const policies = { main: { Version: "2012-10-17", Statement } };
  return serving.admin.must("PUT", path, json({ policies, ...more }));
}

const now = () => Math.floor(Date.now() / 1_000);

function makeToken(claims: Record<string, unknown> = {}): string {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const own = { iss: ISSUER, aud: AUDIENCE, sub: "ada", tenant: "main", roles: [ROLE] };
  const body = encode({ ...own, scope: BOTH, exp: now() + 900, ...claims });
  const text = `${encode({ alg: "HS256", typ: "at+jwt" })}.${body}`;
  return `${text}.${createHmac("sha256", SECRET).update(text).digest("base64url")}`;
}

function assume(token: string): Promise<Answer> {
  return serving.s3.send("POST", "/", {
    key: null,
    body: new URLSearchParams({
      Action: "AssumeRoleWithWebIdentity",
      Version: "2011-06-15",
      RoleArn: `arn:aws:iam:::role/${ROLE}`,
      RoleSessionName: "test",
      WebIdentityToken: token,
    }).toString(),
    headers: { "content-type": "application/x-www-form-urlencoded" },
  });
}

/** A caller with the key that a token is exchanged for. */
async function exchange(
  name: string,
  claims: Record<string, unknown>,
  rights: Principal["rights"],
  serviceRights?: readonly string[],
): Promise<Principal> {
  const { status, text } = await assume(makeToken(claims));
  assert.equal(status, 200, `${name}: ${text}`);
  const read = (element: string) => new RegExp(`<${element}>([^<]*)<`).exec(text)![1]!;
  return {
    name,
    key: { accessKey: read("AccessKeyId"), secretKey: read("SecretAccessKey") },
    headers: { "x-amz-security-token": read("SessionToken") },
    rights,
    ...(serviceRights === undefined ? {} : { serviceRights }),
  };
}

async function addUser(
  name: string,
  Action: string,
  rights: readonly string[],
): Promise<Principal> {
  await putPolicy(`/api/v1/users/${name}`, [{ Effect: "Allow", Action, Resource: "*" }], {
    namespaces: [],
  });
  const made = await readJson(
    serving.admin.send("POST", "/api/v1/keys", json({ user: name })),
    201,
  );
  const key = { accessKey: String(made["access_key"]), secretKey: String(made["secret_key"]) };
  return { name: `key of ${name}`, key, rights };
}

function bear(name: string, claims: Record<string, unknown>): Principal {
  const headers = { authorization: `Bearer ${makeToken(claims)}` };
  return { name: `bearer token: ${name}`, key: null, headers, rights: [] };
}

/** Calls an operation with a body that is no document, at a key that does not exist: it changes nothing. */
function call({ method, level, parameters }: Operation, { key, headers = {} }: Principal) {
  const query = parameters.filter((name) => name !== "copy" && name !== "form");
  const values = query.map((name) => `${name}=${name === "partNumber" ? "1" : ""}`);
  const path = level === "service" ? "/" : level === "bucket" ? `/${BUCKET}` : `/${BUCKET}/none`;
  return serving.s3.send(method, values.length === 0 ? path : `${path}?${values.join("&")}`, {
    body: method === "PUT" || method === "POST" ? "<" : "",
    ...(key === undefined ? {} : { key }),
    headers: {
      ...headers,
      ...(parameters.includes("copy") ? { "x-amz-copy-source": `/${BUCKET}/kept` } : {}),
    },
  });
}

function isAllowed({ requires, level, parameters }: Operation, principal: Principal): boolean {
  const { rights, serviceRights = rights } = principal;
  const scopes = level === "service" ? serviceRights : rights;
  if (scopes === "all") return true;
  return scopes.includes(requires) && (!parameters.includes("copy") || scopes.includes(READ));
}

/** The difference to the declaration; undefined if there is none. */
async function judge(operation: Operation, principal: Principal): Promise<string | undefined> {
  const { status, code, text } = await call(operation, principal);
  const isBearer = principal.headers?.["authorization"] !== undefined;
  const refusals = isBearer ? BEARER_REFUSALS : REFUSALS;
  // An answer to HEAD has no code.
  const isRefused = code === undefined ? status === 403 || status === 400 : refusals.has(code);
  const allowed = isAllowed(operation, principal);
  if (allowed !== isRefused && (status < 500 || status === 501)) return undefined;
  const wanted = allowed ? "be admitted" : "be refused";
  return `${operation.name} (${operation.requires}): ${principal.name} should ${wanted}: ${status} ${text.slice(0, 160)}`;
}

test("every operation declares the scope that it requires", () => {
  for (const { name, requires, method, parameters } of OPERATIONS) {
    const isQuestion = ["pipeline", "select", "sql", "transform", "vector-search"].some(
      (parameter) => parameters.includes(parameter),
    );
    const isRead = method === "GET" || method === "HEAD" || isQuestion;
    const wanted = name === "AssumeRoleWithWebIdentity" ? "token" : isRead ? READ : WRITE;
    assert.equal(requires, wanted, name);
  }
});

test("every operation admits callers with its rights, and refuses all others", async (t) => {
  const short = await exchange("expired key", { exp: now() + 2, sub: "short" }, []);
  const ended = await exchange("ended session", { sid: "ended" }, []);
  const gone = await exchange("revoked token", { jti: "gone" }, []);
  revoked.push({ kind: "sid", value: "ended" }, { kind: "jti", value: "gone" });
  const principals: Principal[] = [
    { name: "nobody", key: null, rights: [] },
    { name: "operator", rights: "all" },
    await exchange("user", {}, [READ, WRITE]),
    await exchange("application that may read", { scope: READ }, [READ]),
    await exchange("application that may write", { scope: WRITE }, [WRITE], []),
    await exchange("user of another tenant", { tenant: "other" }, [], [READ]),
    // No operation is named so.
    await addUser("nothing", "s3:GetObjectTorrent", []),
    await addUser("anything", "s3:*", [READ, WRITE]),
    bear("user", {}),
    bear("user without roles", { roles: [] }),
    bear("administrator", { scope: "*:*", roles: ["admin"] }),
    bear("expired", { exp: now() - 600 }),
    short,
    ended,
    gone,
  ];
  // Forms are signed by their fields, tokens are in their form: both are tested by themselves.
  const operations = OPERATIONS.filter(
    ({ name }) => name !== "PostObject" && name !== "AssumeRoleWithWebIdentity",
  );
  for (const principal of [short, ended, gone]) {
    await waitFor(async () => {
      const { status } = await serving.s3.send("GET", `/${BUCKET}`, principal);
      return status !== 200;
    }, `the end of: ${principal.name}`);
  }
  const differences: string[] = [];
  for (const principal of principals) {
    const found = await Promise.all(operations.map((operation) => judge(operation, principal)));
    differences.push(...found.filter((text) => text !== undefined));
  }
  const count = operations.length * principals.length;
  t.diagnostic(`${operations.length} operations × ${principals.length} callers: ${count} answers`);
  assert.deepEqual(differences, []);
});

const exchanges: [name: string, claims: Record<string, unknown>, code: string | undefined][] = [
  ["a user with a role and the scopes", {}, undefined],
  ["a user without roles", { roles: [] }, "AccessDenied"],
  [
    "an application with openid, at which an administrator signed in",
    { scope: "openid" },
    "AccessDenied",
  ],
  [
    "an administrator without a role of storage",
    { scope: "*:*", roles: ["admin"] },
    "AccessDenied",
  ],
  ["a token of another audience", { aud: "https://orders.example/" }, "InvalidIdentityToken"],
  ["an expired token", { exp: now() - 600 }, "ExpiredTokenException"],
  ["a revoked token", { jti: "gone" }, "IDPRejectedClaim"],
  ["a token of an ended session", { sid: "ended" }, "IDPRejectedClaim"],
];
for (const [name, claims, code] of exchanges) {
  test(`the exchange of a token ${code === undefined ? "gives a key to" : `is ${code} for`} ${name}`, async () => {
    const answer = await assume(makeToken(claims));
    assert.equal(answer.code, code, answer.text);
    assert.equal(answer.text.includes("<SecretAccessKey>"), code === undefined);
  });
}

test("a form without a signature is refused", async () => {
  const boundary = "x";
  const field = (name: string, value: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const body = `${field("key", "a")}${field("file", "b")}--${boundary}--\r\n`;
  const headers = { "content-type": `multipart/form-data; boundary=${boundary}` };
  const answer = await serving.s3.send("POST", `/${BUCKET}`, { key: null, body, headers });
  assert.deepEqual([answer.status, answer.code], [403, "AccessDenied"], answer.text);
});
