// Bad input to every operation: malformed, oversized, of wrong types, without rights, repeated.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ADMIN, expectStatus, join, signIn, startWithAdmin, type Person } from "../client.ts";
import { STAGE_KINDS, type Stage } from "../stage.ts";

/** Above the limit of each operation: a logo has 64 KiB, in base64. */
const OVERSIZED_BYTES = 131_072;
const TEXT_CHARACTERS = 60_000;

interface Schema {
  type?: string;
  maxLength?: number;
  properties?: Record<string, Schema>;
  additionalProperties?: unknown;
}

interface Operation {
  name: string;
  method: string;
  path: string;
  isGuarded: boolean;
  body: Schema | undefined;
  isBodyRequired: boolean;
  query: string[];
  needsParameters: boolean;
  /** `schema` is undefined for streams. */
  success: { status: number; schema: object | undefined; required: readonly string[] };
}

/** Operations that every signed-in user may use on their own account. */
const OWN = new Set([
  "GET /api/v1/auth/account",
  "PATCH /api/v1/auth/account",
  "GET /api/v1/auth/grants",
  "DELETE /api/v1/auth/grants/{client_id}",
  "POST /api/v1/auth/password/change",
  "POST /api/v1/auth/email/verify/begin",
  "POST /api/v1/auth/logout",
  "GET /api/v1/sessions",
  "DELETE /api/v1/sessions/{id}",
  "POST /api/v1/sessions/invalidate",
  "POST /api/v1/auth/mfa/step-up",
  "GET /api/v1/auth/mfa/factors",
  "DELETE /api/v1/auth/mfa/factors/{id}",
  "POST /api/v1/auth/mfa/backup-codes",
  "GET /api/v1/auth/passkeys",
  "PATCH /api/v1/auth/passkeys/{id}",
  "DELETE /api/v1/auth/passkeys/{id}",
]);

/** A valid body for each operation that requires a permission; its path parameters name nothing that exists. */
const SHAPES: Record<string, unknown> = {
  "POST /api/v1/users": { username: "somebody" },
  "PATCH /api/v1/users/{id}": { name: "Somebody" },
  "POST /api/v1/groups": { name: "somebody" },
  "POST /api/v1/rbac/roles": { name: "something" },
  "POST /api/v1/auth/scopes": { name: "something", permissions: ["some:thing"] },
  // Any printable text may be a scope's name; the role is what does not exist.
  "PUT /api/v1/auth/scopes/{name}": { roles: ["nowhere"] },
  "POST /api/v1/auth/clients": { redirect_uris: [] },
  "PATCH /api/v1/auth/clients/{id}": { client_name: "Something" },
  "PUT /api/v1/auth/clients/{id}/logo": { image: "aW1hZ2U=" },
  "POST /api/v1/auth/clients/initial-access-tokens": { expires_in: 60 },
  "POST /api/v1/auth/keys/rotate": { mode: "scheduled" },
  "POST /api/v1/auth/mfa/policies": { scope: "role", subject: "something", required: true },
};
for (const method of ["POST", "PUT", "DELETE"]) {
  SHAPES[`${method} /api/v1/rbac/roles/{role}/permissions`] = { permissions: ["some:thing"] };
  SHAPES[`${method} /api/v1/rbac/roles/{role}/parents`] = { parents: ["something"] };
  for (const kind of ["users", "groups", "clients"]) {
    SHAPES[`${method} /api/v1/rbac/${kind}/{id}/roles`] = { roles: ["something"] };
  }
}

const STRANGE = [
  "%00",
  "%2e%2e%2f%2e%2e%2fetc",
  "%27%20or%201%3d1--",
  "x".repeat(5_000),
  "%F0%9F%90%8E",
];

interface Sent {
  body?: string | Uint8Array<ArrayBuffer> | undefined;
  type?: string;
  token?: string | undefined;
}

let stage: Stage;
let stranger: Person;
let operations: Operation[];
before(async () => {
  stage = await startWithAdmin(await STAGE_KINDS[0]!.prepare());
  stranger = await join(stage, "stranger");
  operations = await readOperations();
});
after(() => stage.close());

async function readOperations(): Promise<Operation[]> {
  const document = (await (await fetch(`${stage.url}/api/docs/openapi.json`)).json()) as {
    paths: Record<string, Record<string, Record<string, never>>>;
  };
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation["x-protocol"] === undefined)
      .map(([method, operation]) => {
        const content = operation["requestBody"] as
          | { required: boolean; content: Record<string, { schema: Schema }> }
          | undefined;
        const parameters = (operation["parameters"] ?? []) as {
          in: string;
          name: string;
          required?: boolean;
        }[];
        return {
          name: `${method.toUpperCase()} ${path}`,
          method: method.toUpperCase(),
          path,
          isGuarded: (operation["security"] as unknown as unknown[]).length > 0,
          body: content?.content["application/json"]?.schema,
          isBodyRequired: content?.required === true,
          success: readSuccess(operation["responses"] as never),
          query: parameters.filter((item) => item.in === "query").map(({ name }) => name),
          needsParameters: parameters.some(({ required }) => required === true),
        };
      }),
  );
}

function readSuccess(
  responses: Record<string, { content?: Record<string, { schema: { required?: string[] } }> }>,
): Operation["success"] {
  const [status = "", answer] =
    Object.entries(responses).find(([code]) => code.startsWith("2")) ?? [];
  const json = answer?.content?.["application/json"];
  return {
    status: Number(status),
    schema: json?.schema,
    required: json?.schema.required ?? [],
  };
}

async function send(operation: Operation, path: string, sent: Sent = {}, at = stage.url) {
  const response = await fetch(`${at}${path}`, {
    method: operation.method,
    redirect: "manual",
    headers: {
      ...(sent.body === undefined ? {} : { "Content-Type": sent.type ?? "application/json" }),
      ...(sent.token === undefined ? {} : { Authorization: `Bearer ${sent.token}` }),
    },
    ...(sent.body === undefined ? {} : { body: sent.body }),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

function fill(path: string, value = "00000000-0000-0000-0000-000000000000"): string {
  return path.replaceAll(/\{\w+\}/g, path.includes("/policies/") ? "role" : value);
}

// Requires a problem document without internal details.
function requireProblem(
  operation: Operation,
  what: string,
  answer: Awaited<ReturnType<typeof send>>,
  statuses: readonly number[],
): void {
  const said = `${operation.name}, ${what}: ${answer.status} ${answer.text.slice(0, 300)}`;
  assert.ok(statuses.includes(answer.status), said);
  assert.equal(answer.headers.get("content-type"), "application/problem+json", said);
  const problem = JSON.parse(answer.text) as Record<string, unknown>;
  assert.equal(problem["status"], answer.status, said);
  assert.ok(typeof problem["code"] === "string" && typeof problem["trace_id"] === "string", said);
  assert.doesNotMatch(answer.text, /node_modules|\.ts:|at \w+ \(|sqlite|select |insert /i, said);
  if (answer.status === 401) assert.ok(answer.headers.get("www-authenticate"), said);
  assert.equal(answer.headers.get("cache-control"), "no-store", said);
  assert.equal(answer.headers.get("x-content-type-options"), "nosniff", said);
}

describe("every operation of the API", () => {
  test("is classified as public, own-account or requiring a permission", () => {
    const guarded = operations.filter(({ isGuarded }) => isGuarded);
    assert.ok(guarded.length > 50 && operations.length > guarded.length);
    for (const name of [...OWN, ...Object.keys(SHAPES)]) {
      assert.ok(
        operations.some((item) => item.name === name),
        `${name} is not there`,
      );
    }
    for (const { name, isBodyRequired, isGuarded } of operations) {
      if (isGuarded && isBodyRequired && !OWN.has(name)) assert.ok(name in SHAPES, name);
    }
  });

  test("responds as documented, if it needs no parameters", async () => {
    const { token } = await signIn(stage, ADMIN);
    const lists = operations.filter(
      ({ name, success, needsParameters }) =>
        name.startsWith("GET /api/v1/") && !needsParameters && success.schema !== undefined,
    );
    assert.ok(lists.length > 12);
    for (const operation of lists) {
      const answer = await send(operation, operation.path, { token });
      const said = `${operation.name}: ${answer.status} ${answer.text.slice(0, 200)}`;
      assert.equal(answer.status, operation.success.status, said);
      const body = JSON.parse(answer.text) as Record<string, unknown>;
      const { schema, required } = operation.success;
      assert.notDeepEqual(schema, {}, `${operation.name} is not documented`);
      for (const member of required) assert.ok(member in body, `${member} of ${said}`);
    }
    for (const { name, method, success } of operations) {
      const isSilent = success.status === 204;
      assert.ok(!isSilent || method !== "GET", name);
    }
  });

  test("rejects requests without a valid token", async () => {
    for (const operation of operations.filter(({ isGuarded }) => isGuarded)) {
      if (operation.path === "/metrics") continue;
      const path = fill(operation.path);
      for (const token of [
        undefined,
        "x",
        `${stranger.token.slice(0, -4)}AAAA`,
        `${stranger.session.slice(0, -4)}AAAA`,
        `${Buffer.from('{"alg":"none","typ":"at+jwt"}').toString("base64url")}.${stranger.token.split(".")[1]}.`,
      ]) {
        requireProblem(operation, `token ${token}`, await send(operation, path, { token }), [401]);
      }
    }
  });

  test("rejects callers without the permission and reveals nothing", async () => {
    const root = await signIn(stage, ADMIN);
    for (const operation of operations) {
      if (!operation.isGuarded || OWN.has(operation.name) || operation.path === "/metrics")
        continue;
      const body = SHAPES[operation.name];
      const sent = {
        token: stranger.token,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      };
      const isSelf = operation.name.startsWith("GET /api/v1/rbac/users/");
      for (const value of isSelf ? [root.id] : [root.id, "nobody", "admin"]) {
        const answer = await send(operation, fill(operation.path, value), sent);
        requireProblem(operation, `of ${value}`, answer, [403]);
      }
    }
  });

  test("rejects bodies that are not JSON, not UTF-8, too large, too deep or not objects", async () => {
    const root = await signIn(stage, ADMIN);
    for (const operation of operations) {
      if (operation.body === undefined) continue;
      const path = fill(operation.path);
      // Others are refused before their body is read.
      const token = operation.isGuarded ? root.token : undefined;
      const check = async (what: string, sent: Sent, statuses: readonly number[]) => {
        requireProblem(operation, what, await send(operation, path, { token, ...sent }), statuses);
      };
      await check("half an object", { body: '{"a":' }, [400]);
      await check("no UTF-8", { body: new Uint8Array([0x7b, 0xff, 0x7d]) }, [400]);
      await check("two values", { body: "{}{}" }, [400]);
      await check("a form", { body: "a=b", type: "application/x-www-form-urlencoded" }, [415]);
      await check(
        "another charset",
        { body: "{}", type: "application/json; charset=utf-16" },
        [415],
      );
      await check("oversized", { body: `{"a":"${"x".repeat(OVERSIZED_BYTES)}"}` }, [413]);
      const deep = `{"a":${"[".repeat(30_000)}${"]".repeat(30_000)}}`;
      if (operation.body.additionalProperties === false) {
        await check("deep in a member", { body: deep }, [400]);
      } else {
        // Metadata of clients and WebAuthn extensions may contain anything.
        const sent = { body: deep, token };
        const answer = await send(operation, path, sent);
        assert.ok(answer.status < 500, `${operation.name}: ${answer.text}`);
      }
      await check("deep", { body: "[".repeat(30_000) + "]".repeat(30_000) }, [400]);
      for (const body of ["[]", "0", '"text"', "null", "true"]) await check(body, { body }, [400]);
      if (operation.isBodyRequired) await check("nothing", {}, [400]);
    }
  });

  test("rejects unknown members and members of a wrong type", async () => {
    const root = await signIn(stage, ADMIN);
    for (const operation of operations) {
      const { properties, additionalProperties } = operation.body ?? {};
      if (properties === undefined) continue;
      const path = fill(operation.path);
      const token = operation.isGuarded ? root.token : undefined;
      const check = async (body: string) => {
        const answer = await send(operation, path, { token, body });
        requireProblem(operation, body.slice(0, 80), answer, [400]);
      };
      if (additionalProperties === false) {
        await check('{"unknown_member":1}');
        await check('{"__proto__":{"isAdmin":true}}');
        await check('{"constructor":{"prototype":{}}}');
      }
      for (const [name, schema] of Object.entries(properties)) {
        const wrong = [
          { toString: "x" },
          [[1]],
          0.5,
          ...(schema.type === "string" ? [true] : ["x"]),
        ];
        for (const value of wrong) {
          if (schema.type === "array" && Array.isArray(value)) continue;
          if (schema.type === undefined && typeof value !== "object") continue;
          if (schema.type === "object" && !Array.isArray(value)) continue;
          await check(JSON.stringify({ [name]: value }));
        }
        if (schema.type !== "string") continue;
        const length = Math.max(TEXT_CHARACTERS, (schema.maxLength ?? 0) + 1);
        await check(JSON.stringify({ [name]: "x".repeat(length) }));
      }
    }
  });
});

for (const { kind, skip, prepare } of STAGE_KINDS) {
  test(`every operation bears any parameter and any text on ${kind}`, { skip }, async () => {
    const there = kind === "sqlite" ? stage : await startWithAdmin(await prepare());
    const { token } = await signIn(there, ADMIN);
    for (const operation of operations.filter(({ path }) => path.startsWith("/api/v1/"))) {
      const shape = SHAPES[operation.name];
      const credentials = { token: operation.isGuarded ? token : undefined };
      const sent = {
        ...credentials,
        ...(shape === undefined ? {} : { body: JSON.stringify(shape) }),
      };
      const ask = (path: string, more: Sent = {}) =>
        send(operation, path, { ...sent, ...more }, there.url);
      for (const value of operation.path.includes("{") ? STRANGE : []) {
        const answer = await ask(operation.path.replaceAll(/\{\w+\}/g, value));
        // Input never causes a 500; a list of something unknown may be empty.
        assert.ok(answer.status < 500, `${operation.name} ${value}: ${answer.text}`);
        const isEmpty = operation.method === "GET" || operation.name.includes("clients/{id}/roles");
        if (!isEmpty) requireProblem(operation, value, answer, [400, 404]);
      }
      for (const name of operation.query) {
        for (const value of ["%00", "-1", "x".repeat(5_000), `1&${name}=2`]) {
          const answer = await ask(`${fill(operation.path)}?${name}=${value}`);
          assert.ok(answer.status < 500, `${operation.name}?${name}=${value}: ${answer.text}`);
        }
      }
      for (const name of Object.keys(operation.body?.properties ?? {})) {
        for (const text of ["\0", "a\0b", "\ud800", "\u202e", "' or 1=1 --"]) {
          const body = JSON.stringify({ ...(shape as object | undefined), [name]: text });
          const answer = await ask(fill(operation.path), { body });
          assert.ok(answer.status < 500, `${operation.name} ${body}: ${answer.text}`);
        }
      }
    }
    const nul = { username: "a\0b", password: "a fine long password" };
    for (const path of ["/api/v1/auth/login", "/api/v1/auth/register"]) {
      await expectStatus(400, there, "POST", path, { body: nul });
    }
    for (const query of ["client_id=%00", "client_id=a%00b&client_secret=c", "client_id=%ff"]) {
      for (const path of ["token", "token/introspect", "par", "device/authorize"]) {
        const response = await fetch(`${there.url}/api/v1/auth/${path}`, {
          method: "POST",
          headers: { "Content-Type": "application/x-www-form-urlencoded" },
          body: `${query}&token=x&grant_type=client_credentials`,
        });
        const text = await response.text();
        assert.ok(response.status < 500, `${path} ${query}: ${text}`);
      }
      const authorize = await fetch(`${there.url}/api/v1/auth/authorize?${query}`);
      assert.ok(authorize.status < 500, `${query}: ${await authorize.text()}`);
    }
    if (there !== stage) await there.close();
  });
}

describe("the OAuth endpoints", () => {
  const endpoints: readonly (readonly [string, string])[] = [
    ["POST", "/api/v1/auth/token"],
    ["POST", "/api/v1/auth/token/introspect"],
    ["POST", "/api/v1/auth/token/revoke"],
    ["POST", "/api/v1/auth/par"],
    ["POST", "/api/v1/auth/device/authorize"],
    ["POST", "/api/v1/auth/oauth/register"],
    ["GET", "/api/v1/auth/oauth/register/nobody"],
    ["PUT", "/api/v1/auth/oauth/register/nobody"],
    ["DELETE", "/api/v1/auth/oauth/register/nobody"],
    ["GET", "/api/v1/auth/userinfo"],
    ["POST", "/api/v1/auth/userinfo"],
    ["GET", "/api/v1/auth/revocations"],
  ];
  const form = "application/x-www-form-urlencoded";
  const ask = async (method: string, path: string, sent: Sent) => {
    const response = await fetch(`${stage.url}${path}`, {
      method,
      redirect: "manual",
      headers: {
        ...(sent.body === undefined ? {} : { "Content-Type": sent.type ?? form }),
        ...(sent.token === undefined ? {} : { Authorization: sent.token }),
      },
      ...(sent.body === undefined || method === "GET" ? {} : { body: sent.body }),
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };

  test("answer malformed, oversized and unauthorised requests as specified", async () => {
    const basic = `Basic ${Buffer.from("nobody:wrong").toString("base64")}`;
    const cases: readonly Sent[] = [
      {},
      { body: "" },
      { body: "%%%=%ff&&&=" },
      { body: "grant_type=client_credentials&grant_type=client_credentials" },
      { body: "{}", type: "application/json" },
      { body: '{"redirect_uris":5}', type: "application/json" },
      { body: '{"__proto__":{"a":1}}', type: "application/json" },
      { body: "{", type: "application/json" },
      { body: `token=${"x".repeat(200_000)}` },
      { body: "token=x&client_id=nobody&client_secret=wrong" },
      { body: "token=x", token: basic },
      { body: "token=x", token: "Basic !!!" },
      { body: "token=x", token: "Bearer x" },
      { body: "token=x", token: `Bearer ${"x".repeat(10_000)}` },
      { body: "token=x", token: "DPoP x" },
      { body: new Uint8Array([0xff, 0xfe, 0x00]) },
    ];
    for (const [method, path] of endpoints) {
      for (const sent of cases) {
        const answer = await ask(method, path, sent);
        const said = `${method} ${path} ${JSON.stringify(sent).slice(0, 100)}: ${answer.status} ${answer.text.slice(0, 300)}`;
        assert.ok([400, 401, 403, 404, 413, 415].includes(answer.status), said);
        const { error } = JSON.parse(answer.text) as { error: unknown };
        assert.match(String(error), /^(invalid|unsupported|insufficient|access)_\w+$/, said);
        assert.doesNotMatch(answer.text, /node_modules|\.ts:|at \w+ \(/, said);
        assert.equal(answer.headers.get("x-content-type-options"), "nosniff", said);
      }
      const other = await ask("PATCH", path, {});
      assert.equal(other.status, 405, `PATCH ${path}`);
    }
  });

  test("the authorization endpoint shows a page for errors that cannot be returned to a client", async () => {
    for (const query of [
      "",
      "?client_id=nobody",
      `?client_id=${"x".repeat(5_000)}`,
      "?client_id=platform&redirect_uri=https%3A%2F%2Fevil.example",
      "?client_id=a&client_id=b",
      "?request_uri=urn:ietf:params:oauth:request_uri:x&client_id=nobody",
      "?%ff=%00",
    ]) {
      const answer = await ask("GET", `/api/v1/auth/authorize${query}`, {});
      const said = `${query.slice(0, 60)}: ${answer.status} ${answer.text.slice(0, 200)}`;
      assert.ok(answer.status === 400 || answer.status === 401, said);
      assert.equal(answer.headers.get("location"), null, said);
      assert.match(answer.headers.get("content-security-policy") ?? "", /default-src 'none'/, said);
      assert.doesNotMatch(answer.text, /<script|evil\.example|node_modules/, said);
    }
  });
});

test("repeated, late and foreign input cause the same rejection", async () => {
  const foreign = await signIn(stage, stranger);
  const link = { token: "A".repeat(64) };
  for (const [path, body] of [
    ["/api/v1/auth/recovery/finish", { ...link, new_password: "a fine long password" }],
    ["/api/v1/auth/email/verify/finish", link],
    ["/api/v1/auth/setup", { ...link, username: "x", password: "a fine long password" }],
  ] as const) {
    await expectStatus(403, stage, "POST", path, { body });
  }
  await expectStatus(401, stage, "POST", "/api/v1/auth/mfa/verify", {
    body: { mfa_token: link.token, code: "123456" },
  });
  await expectStatus(204, stage, "POST", "/api/v1/auth/logout", { token: foreign.session });
  await expectStatus(401, stage, "POST", "/api/v1/auth/logout", { token: foreign.session });
});
