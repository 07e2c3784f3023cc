// Rights at every operation of every service: each is called by callers with and without the rights that it declares
// (`x-requires` of its OpenAPI document), as through a proxy, so that nobody counts as a program of this machine.
import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createPkce } from "../../services/auth/test/oauth/relying-party.ts";
import { PageBrowser } from "../../services/auth/test/pages/page-browser.ts";
import { makeFolder } from "@platform/testing/platform-process";
import { ADA, ADMIN, BOB, Platform, ROLE, type User } from "../identity/platform.ts";

type Requirement = readonly string[] | "caller" | "public" | "token";

interface Operation {
  id: string;
  service: string;
  url: URL;
  method: string;
  path: string;
  requires: Requirement | undefined;
  hasBody: boolean;
}

interface Principal {
  name: string;
  token: string | undefined;
  /** Scopes of a valid token for the platform; undefined if every service must refuse the token. */
  scopes: readonly string[] | undefined;
}

const METHODS = ["get", "post", "put", "patch", "delete"];
const CALLBACK = "http://localhost:9/callback";
const FORWARDED = { "x-forwarded-for": "192.0.2.7" };
/** Time in which a revocation reaches all services. */
const REVOCATION_MS = 2_500;
/** Beyond the clock skew that services tolerate. */
const EXPIRED_SECONDS = 600;
/** The guard of a tunnel refuses further wrong tokens of an address. */
const THROTTLED = new Set(["tunnel"]);

let platform: Platform;
let operations: Operation[];
let principals: Principal[];

// The first signing key of identity, so that a token can be signed that has expired.
const signing = generateKeyPairSync("rsa", { modulusLength: 2_048 });

before(async () => {
  const keyPath = join(makeFolder(), "key.pem");
  writeFileSync(keyPath, signing.privateKey.export({ type: "pkcs8", format: "pem" }));
  platform = await Platform.start({ environment: { PLATFORM_AUTH_JWT_KEY_PATH: keyPath } });
  operations = (await Promise.all(listServices().map(readOperations))).flat();
  principals = await createPrincipals();
});
after(() => platform.stop());

function listServices(): { service: string; url: URL; token: string }[] {
  const gateToken = platform.readCredential("PLATFORM_GATE_AUTH_TOKEN");
  return [
    { service: "gate", url: platform.gate, token: gateToken },
    { service: "auth", url: platform.auth, token: "" },
    { service: "notify", url: platform.notify, token: "" },
    { service: "pulse", url: platform.pulse, token: "" },
    { service: "tunnel", url: platform.tunnel, token: "" },
    { service: "vault", url: platform.vaultAdmin, token: "" },
    { service: "runtime", url: platform.runtime, token: "" },
  ];
}

async function readOperations({
  service,
  url,
  token,
}: {
  service: string;
  url: URL;
  token: string;
}): Promise<Operation[]> {
  const answer = await fetch(new URL("/api/docs/openapi.json", url), {
    headers: token === "" ? {} : { authorization: `Bearer ${token}` },
  });
  assert.equal(answer.status, 200, service);
  const { paths } = (await answer.json()) as {
    paths: Record<string, Record<string, Record<string, unknown>>>;
  };
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method];
      // Routes of the gateway, and the endpoints of OAuth, decide by their own rules.
      if (operation === undefined || operation["x-protocol"] !== undefined) return [];
      if ((operation["tags"] as string[] | undefined)?.[0] === "Proxied") return [];
      return {
        id: `${service} ${method.toUpperCase()} ${path}`,
        service,
        url,
        method: method.toUpperCase(),
        path,
        requires: operation["x-requires"] as Requirement | undefined,
        hasBody: method !== "get" && operation["requestBody"] !== undefined,
      };
    }),
  );
}

async function createPrincipals(): Promise<Principal[]> {
  const admin = (await platform.signIn(ADMIN)).access_token;
  const make = async (path: string, body: object) =>
    platform.identity("POST", path, body, platform.admin);
  await make("/api/v1/rbac/roles", { name: "app-shop", permissions: ["shop:buy"] });
  const scopes = ["openid", "profile", "notify:send", "pulse:subscribe", "gate:read"];
  const client = (await make("/api/v1/auth/clients", {
    client_name: "shop",
    redirect_uris: [CALLBACK],
    grant_types: ["authorization_code", "client_credentials"],
    scope: scopes.join(" "),
    platform_audience: "always",
    // Roles choose rules and policies of topics and buckets; they open nothing.
    acting_roles: ["app-shop", "admin"],
  })) as { client_id: string; client_secret: string };
  const signInAt = (scope: string, user: User, more: Record<string, string> = {}) =>
    obtainToken(client, user, scope, more);
  const application = await signInAt(scopes.join(" "), ADMIN);
  assert.deepEqual(readPayload(application)["roles"], ["admin"]);
  const revoked = await signInAt(scopes.join(" "), ADMIN);
  await revoke(client, revoked);
  const ended = await platform.signIn(ADA);
  await platform.identity("POST", "/api/v1/auth/logout", {}, ended.access_token);
  const users = [
    { name: "user without roles", token: (await platform.signIn(BOB)).access_token },
    { name: "user with a role", token: (await platform.signIn(ADA)).access_token },
    { name: "user of another tenant", token: await signInElsewhere() },
    { name: "administrator", token: admin },
    { name: "application with its scopes", token: application },
  ].map(({ name, token }) => ({ name, token, scopes: readScopes(token) }));
  const resource = { resource: "https://orders.example/" };
  const [head, payload, signature] = admin.split(".");
  const changed = { ...readPayload(admin), sub: "eve" };
  const forged = `${head}.${Buffer.from(JSON.stringify(changed)).toString("base64url")}.${signature}`;
  assert.notEqual(payload, forged.split(".")[1]);
  // Only the expiry of the expired token is wrong.
  const { status } = await fetch(new URL("/api/v1/auth/account", platform.auth), {
    headers: { authorization: `Bearer ${signAgain(admin, EXPIRED_SECONDS)}` },
  });
  assert.equal(status, 200);
  await sleep(REVOCATION_MS);
  const refused = { scopes: undefined };
  return [
    ...users,
    { ...refused, name: "nobody", token: undefined },
    {
      ...refused,
      name: "administrator at an application, openid",
      token: await signInAt("openid profile", ADMIN),
    },
    {
      ...refused,
      name: "another audience",
      token: await signInAt(scopes.join(" "), ADMIN, resource),
    },
    { ...refused, name: "forged", token: forged },
    { ...refused, name: "expired", token: signAgain(admin, -EXPIRED_SECONDS) },
    { ...refused, name: "revoked", token: revoked },
    { ...refused, name: "ended session", token: ended.access_token },
  ];
}

/** Signs in a user of another tenant with ada's role. */
async function signInElsewhere(): Promise<string> {
  const eve: User = { username: "eve", password: "yet another fine password" };
  const change = (method: string, path: string, body: object) =>
    platform.identity(method, path, body, platform.admin);
  const { user } = (await change("POST", "/api/v1/users", { ...eve })) as { user: { id: string } };
  await change("PATCH", `/api/v1/users/${user.id}`, { tenant: "elsewhere" });
  await change("POST", `/api/v1/rbac/users/${user.id}/roles`, { roles: [ROLE] });
  const { access_token: token } = await platform.signIn(eve);
  assert.equal(readPayload(token)["tenant"], "elsewhere");
  return token;
}

/** The same token, signed by identity's key with another expiry, in seconds from now. */
function signAgain(token: string, seconds: number): string {
  const [head] = token.split(".");
  const exp = Math.floor(Date.now() / 1_000) + seconds;
  const payload = { ...readPayload(token), jti: `signed-${seconds}`, iat: exp - 900, exp };
  const text = `${head}.${Buffer.from(JSON.stringify(payload)).toString("base64url")}`;
  return `${text}.${sign("sha256", Buffer.from(text), signing.privateKey).toString("base64url")}`;
}

/** Signs a user in at an application in a browser, and consents. */
async function obtainToken(
  client: { client_id: string; client_secret: string },
  { username, password }: User,
  scope: string,
  more: Record<string, string>,
): Promise<string> {
  const { verifier, challenge } = createPkce();
  const url = new URL("/api/v1/auth/authorize", platform.auth);
  url.search = new URLSearchParams({
    client_id: client.client_id,
    response_type: "code",
    redirect_uri: CALLBACK,
    scope,
    code_challenge: challenge,
    code_challenge_method: "S256",
    ...more,
  }).toString();
  const { origin } = platform.auth;
  const browser = new PageBrowser({ url: origin, publicUrl: origin });
  let page = await browser.submit(await browser.open(url), { username, password }, "/sign-in");
  if (page.status !== 0) page = await browser.submit(page, { decision: "allow" });
  const code = page.url.searchParams.get("code");
  assert.ok(code, `${page.url.href} ${page.text}`);
  const answer = await fetch(new URL("/api/v1/auth/token", platform.auth), {
    method: "POST",
    headers: { authorization: basic(client) },
    body: new URLSearchParams({
      grant_type: "authorization_code",
      code,
      redirect_uri: CALLBACK,
      code_verifier: verifier,
    }),
  });
  const { access_token: token } = (await answer.json()) as { access_token?: string };
  return token ?? assert.fail(`no token: ${answer.status}`);
}

async function revoke(client: { client_id: string; client_secret: string }, token: string) {
  const answer = await fetch(new URL("/api/v1/auth/token/revoke", platform.auth), {
    method: "POST",
    headers: { authorization: basic(client) },
    body: new URLSearchParams({ token }),
  });
  assert.equal(answer.status, 200);
}

function basic(client: { client_id: string; client_secret: string }): string {
  return `Basic ${Buffer.from(`${client.client_id}:${client.client_secret}`).toString("base64")}`;
}

function readPayload(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split(".")[1]!, "base64url").toString()) as never;
}

function readScopes(token: string): string[] {
  return (readPayload(token)["scope"] as string).split(" ");
}

/** True if the principal may do it. */
function isAllowed({ requires }: Operation, { scopes }: Principal): boolean {
  if (requires === "public") return true;
  if (scopes === undefined || requires === undefined || requires === "token") return false;
  return (
    requires === "caller" ||
    scopes.includes("*:*") ||
    requires.some((scope) => scopes.includes(scope))
  );
}

/** Calls an operation with names that do not exist, and a body that is no JSON: what is read before the rights shows. */
async function call({ url, method, path, hasBody }: Operation, { token }: Principal) {
  const ended = new AbortController();
  const answer = await fetch(new URL(path.replaceAll(/\{\w+\}/g, "nothing-such"), url), {
    method,
    redirect: "manual",
    signal: ended.signal,
    headers: {
      ...FORWARDED,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(hasBody ? { "content-type": "application/json" } : {}),
    },
    ...(hasBody ? { body: "{" } : {}),
  });
  const challenge = answer.headers.get("www-authenticate") ?? "";
  const type = answer.headers.get("content-type") ?? "";
  const text = /json/.test(type) ? await answer.text() : "";
  ended.abort();
  return { status: answer.status, challenge, text };
}

/** The difference to the declaration; undefined if there is none. */
async function judge(operation: Operation, principal: Principal): Promise<string | undefined> {
  const allowed = isAllowed(operation, principal);
  // A change that is allowed and reads no body would be made.
  const isChange = operation.method !== "GET" && !operation.hasBody;
  if (allowed && (operation.requires === "public" || isChange)) return undefined;
  const { status, challenge, text } = await call(operation, principal);
  const isRefused =
    principal.scopes === undefined || operation.requires === "token"
      ? status === 401 || (operation.requires === "token" && status === 403)
      : status === 403;
  // A plain request for a socket is answered before its caller is known; the upgrade is refused.
  const isSocket = status === 426;
  const isThrottled = status === 429 && THROTTLED.has(operation.service);
  const isPassed =
    status !== 401 &&
    (status < 500 || status === 501) &&
    !(status === 403 && /insufficient_scope/.test(challenge));
  if (allowed ? isPassed : isRefused || isThrottled || isSocket) return undefined;
  const wanted = allowed ? "be admitted" : "be refused";
  return `${operation.id} (${JSON.stringify(operation.requires)}): ${principal.name} should ${wanted}: ${status} ${text.slice(0, 120)}`;
}

test("every operation declares the rights that it requires", () => {
  assert.ok(operations.length > 250, `${operations.length} operations`);
  const without = operations.filter(({ requires }) => requires === undefined);
  assert.deepEqual(
    without.map(({ id }) => id),
    [],
  );
});

test("every operation admits callers with its rights, and refuses all others", async (t) => {
  const differences: string[] = [];
  let count = 0;
  for (const principal of principals) {
    const found = await Promise.all(
      listServices().map(async ({ service }) => {
        const own: string[] = [];
        for (const operation of operations.filter((one) => one.service === service)) {
          const difference = await judge(operation, principal);
          count += 1;
          if (difference !== undefined) own.push(difference);
        }
        return own;
      }),
    );
    differences.push(...found.flat());
  }
  t.diagnostic(`${operations.length} operations × ${principals.length} callers: ${count} answers`);
  assert.deepEqual(differences, []);
});

test("the legacy form of a path requires the same rights", async () => {
  const nobody = principals.find(({ name }) => name === "nobody")!;
  const legacy = operations
    .filter(({ path, requires }) => path.startsWith("/api/v1/") && requires !== "public")
    .map((operation) => ({ ...operation, path: operation.path.replace("/api/v1/", "/api/") }));
  const answers = await Promise.all(
    legacy.map(async (operation) => {
      const { status } = await call(operation, nobody);
      return [401, 403, 404, 405, 429].includes(status) ? [] : [`${operation.id}: ${status}`];
    }),
  );
  assert.deepEqual(answers.flat(), []);
});
