// The contract of the services: the committed documents are those of the running services, and each GET answers as its
// document says.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { Ajv2020 } from "ajv/dist/2020.js";
import { CONTRACT_SERVICES, formatContract, type OpenApiDocument } from "../../tools/contract.ts";
import { ADMIN, BUCKET, type Platform } from "../identity/platform.ts";
import { joinContract } from "./contract-platform.ts";

type Service = (typeof CONTRACT_SERVICES)[number];

interface Operation {
  service: Service;
  path: string;
  responses: Record<string, { content?: Record<string, { schema?: object }> }>;
}

interface Example {
  /** Values of the path's parameters. */
  params?: Record<string, string | number>;
  query?: Record<string, string | number>;
}

/** A WebAssembly command that does nothing; all of its bytes are ASCII. */
const EMPTY_MODULE =
  "\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x05\x03\x01\0\x01" +
  "\x07\x13\x02\x06memory\x02\0\x06_start\0\0\x0a\x04\x01\x02\0\x0b";
const METHODS = ["get", "post", "put", "patch", "delete"];
const OBJECT = "a.txt";
const TOPIC = "contract";
const GROUP = "readers";
const MISSING = "nothing-such";
/** Operations that do not succeed here, with the status that they answer. */
const FAILING: Readonly<Record<string, number>> = {
  // No file, no provider of sign-in, no logo.
  "gate /": 404,
  "gate /_platform/oidc/login": 400,
  "gate /_platform/oidc/callback": 403,
  "auth /api/v1/auth/authorize": 400,
  "auth /api/v1/auth/clients/{id}/logo": 404,
  // The token of a registration, and those of links in mail.
  "auth /api/v1/auth/oauth/register/{client_id}": 401,
  "notify /open/{token}": 404,
  "notify /click/{token}": 404,
  "notify /unsubscribe/{token}": 404,
  // No receipt, no received mail, no captured request, no module.
  "notify /api/v1/sms/receipts": 404,
  "notify /api/v1/inbound/messages/{id}": 404,
  "notify /api/v1/inbound/messages/{id}/raw": 404,
  "tunnel /api/v1/tunnels/{id}/requests/{reqID}": 404,
  "pulse /api/v1/topics/{topic}/transform": 404,
  // No project.
  ...Object.fromEntries(
    [
      "",
      "/{database}/tables",
      "/{database}/tables/{table}/rows",
      "/{database}/tables/{table}/row",
      "/{database}/tables/{table}/export",
      "/{database}/history",
      "/{database}/queries",
    ].map((path) => [`runtime /api/v1/projects/{project}/databases${path}`, 404]),
  ),
  "runtime /api/v1/projects/{name}/operations": 404,
  "runtime /api/v1/projects/{name}/environment": 404,
  // A cookie, and a token of its own.
  ...Object.fromEntries(
    CONTRACT_SERVICES.flatMap((service) => [
      [`${service} /console/session`, 401],
      [`${service} /api/v1/admin/backup`, 401],
    ]),
  ),
};
/** Pages of browsers, whose refusals are pages as well. */
const PAGES = new Set(["gate /_platform/oidc/callback", "notify /unsubscribe/{token}"]);

let platform: Platform;
let documents: Record<Service, OpenApiDocument>;
const compilers = new Map<Service, Ajv2020>();
let examples: Record<string, Example>;

before(async () => {
  platform = await joinContract();
  documents = Object.fromEntries(
    await Promise.all(
      CONTRACT_SERVICES.map(async (service) => {
        const { body } = await get(service, "/api/docs/openapi.json");
        return [service, body];
      }),
    ),
  );
  examples = await createExamples();
});

function urlOf(service: Service): URL {
  return service === "vault" ? platform.vaultAdmin : platform[service];
}

async function get(service: Service, path: string) {
  const stop = new AbortController();
  const answer = await fetch(new URL(path, urlOf(service)), {
    headers: { authorization: `Bearer ${tokenOf(service)}` },
    redirect: "manual",
    signal: stop.signal,
  });
  const type = (answer.headers.get("content-type") ?? "").split(";")[0]!;
  const body: unknown = type.endsWith("json") ? await answer.json() : undefined;
  stop.abort();
  return { status: answer.status, type, body };
}

function tokenOf(service: Service): string {
  if (service === "gate") return platform.readCredential("PLATFORM_GATE_AUTH_TOKEN");
  if (service === "runtime") return platform.readCredential("PLATFORM_RUNTIME_TOKEN");
  return platform.admin;
}

async function post<Answer>(service: Service, path: string, body: object): Promise<Answer> {
  return (await platform.callService(urlOf(service), tokenOf(service), path, body)) as Answer;
}

async function createExamples(): Promise<Record<string, Example>> {
  return {
    ...(await createIdentityExamples()),
    ...(await createMailExamples()),
    ...(await createMessagingExamples()),
    ...(await createStorageExamples()),
    ...(await createOtherExamples()),
  };
}

async function createIdentityExamples(): Promise<Record<string, Example>> {
  const { users } = (await get("auth", `/api/v1/users?q=${ADMIN.username}`)).body as {
    users: { id: string }[];
  };
  const { group } = await post<{ group: { id: string } }>("auth", "/groups", { name: "staff" });
  const client = await post<{ client_id: string }>("auth", "/auth/clients", {
    client_name: "shop",
    redirect_uris: ["https://shop.example/callback"],
  });
  const user = { params: { id: users[0]!.id } };
  const ofGroup = { params: { id: group.id } };
  const ofClient = { params: { id: client.client_id } };
  return {
    "auth /api/v1/users/{id}": user,
    "auth /api/v1/users/{id}/factors": user,
    "auth /api/v1/users/{id}/permissions": user,
    "auth /api/v1/rbac/users/{id}/roles": user,
    "auth /api/v1/groups/{id}": ofGroup,
    "auth /api/v1/groups/{id}/members": ofGroup,
    "auth /api/v1/rbac/groups/{id}/roles": ofGroup,
    "auth /api/v1/auth/clients/{id}": ofClient,
    "auth /api/v1/rbac/clients/{id}/roles": ofClient,
    "auth /api/v1/rbac/roles/{role}": { params: { role: "admin" } },
  };
}

async function createMailExamples(): Promise<Record<string, Example>> {
  const send = { to: "ada@example.org", subject: "Hello", text: "Hello", html: "<p>Hello</p>" };
  const { message_id: id } = await post<{ message_id: string }>("notify", "/send", send);
  await post("notify", "/templates", { name: "welcome", subject: "Hi", text: "Hi {{ name }}" });
  await post("notify", "/suppression", { email: "bob@example.org" });
  await post("notify", "/domains", { domain: "example.org" });
  const rule = await post<{ rule_id: string }>("notify", "/inbound/rules", {
    name: "all",
    match: { to_pattern: "*@example.org" },
    forward_to: platform.gate.href,
  });
  const webhook = await post<{ id: string }>("notify", "/webhooks", {
    url: platform.gate.href,
  });
  const draft = await post<{ html_path: string }>("notify", "/templates/welcome/preview", {
    source: { subject: "Hi", html: "<p>Hi</p>" },
  });
  const ofMessage = { params: { id } };
  const ofTemplate = {
    params: { name: "welcome", version: 1, id: draft.html_path.split("/").at(-1)! },
  };
  return {
    ...Object.fromEntries(
      ["messages/{id}", "messages/{id}/checks", "messages/{id}/content", "messages/{id}/raw"].map(
        (path) => [`notify /api/v1/${path}`, ofMessage],
      ),
    ),
    "notify /api/v1/messages/{id}/html": ofMessage,
    "notify /api/v1/inbox/{id}": ofMessage,
    "notify /api/v1/inbox/{id}/raw": ofMessage,
    "notify /api/v1/inbox/{id}/html": ofMessage,
    "notify /api/v1/templates/{name}": ofTemplate,
    "notify /api/v1/templates/{name}/versions": ofTemplate,
    "notify /api/v1/templates/{name}/versions/{version}": ofTemplate,
    "notify /api/v1/templates/{name}/previews/{id}": ofTemplate,
    "notify /api/v1/suppression/{email}": { params: { email: "bob@example.org" } },
    "notify /api/v1/domains/{domain}": { params: { domain: "example.org" } },
    "notify /api/v1/inbound/rules/{id}": { params: { id: rule.rule_id } },
    "notify /api/v1/webhooks/{id}/calls": { params: { id: webhook.id } },
  };
}

async function createMessagingExamples(): Promise<Record<string, Example>> {
  await post("pulse", "/publish", { topic: TOPIC, payload: '{"n":1}', headers: { a: "b" } });
  await post("pulse", `/topics/${TOPIC}/schema`, { n: "number" });
  await post("pulse", "/offsets", { group: GROUP, topic: TOPIC, offset: 0 });
  await fetch(new URL("/api/v1/access/roles/reader", platform.pulse), {
    method: "PUT",
    headers: {
      authorization: `Bearer ${platform.admin}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ rules: [{ topics: "#", allow: ["subscribe"] }] }),
  });
  const ofTopic = { params: { topic: TOPIC, partition: 0, offset: 0 } };
  const ofGroup = { params: { group: GROUP } };
  const paths = ["", "/schema", "/dlq", "/dlq/summary", "/messages", "/anomalies", "/dlq/triage"];
  return {
    ...Object.fromEntries(paths.map((path) => [`pulse /api/v1/topics/{topic}${path}`, ofTopic])),
    "pulse /api/v1/topics/{topic}/transform": ofTopic,
    "pulse /api/v1/topics/{topic}/messages/{partition}/{offset}": ofTopic,
    "pulse /api/v1/subscribe/{topic}": ofTopic,
    "pulse /api/v1/tail": { query: { topic: TOPIC } },
    "pulse /api/v1/offsets": { query: { group: GROUP } },
    "pulse /api/v1/groups/{group}": ofGroup,
    "pulse /api/v1/groups/{group}/lag": ofGroup,
    "pulse /api/v1/access/roles/{role}": { params: { role: "reader" } },
  };
}

async function addRemoteAndKey(): Promise<void> {
  const remote = { name: "far", endpoint: "http://127.0.0.1:9", access_key: "a", secret_key: "s" };
  const json = { "content-type": "application/json" };
  await platform.storage("POST", "/admin/remotes", JSON.stringify(remote), json);
  await platform.storage("POST", "/admin/encryption-keys", JSON.stringify({ name: "one" }), json);
}

/** A second copy within the store, which requires versions, and a cold tier. */
async function addPlaces(put: (path: string, body: object) => Promise<unknown>): Promise<void> {
  await post("vault", "/buckets", { name: "copies" });
  for (const name of [BUCKET, "copies"])
    await put(`buckets/${name}/config/versioning`, { Status: "Enabled" });
  const rule = { ID: "all", Priority: 1, Status: "Enabled", Filter: { Prefix: "" } };
  const markers = { DeleteMarkerReplication: { Status: "Enabled" } };
  const Rules = [{ ...rule, ...markers, Destination: { Bucket: "arn:aws:s3:::copies" } }];
  await put(`buckets/${BUCKET}/config/replication`, { Rules });
  await put(`buckets/${BUCKET}/config/cold-tier`, { remote: "far", bucket: "cold" });
}

async function createStorageExamples(): Promise<Record<string, Example>> {
  await post("vault", "/buckets", { name: "locked", object_lock: true });
  await platform.storage("PUT", `/${BUCKET}/${OBJECT}`, "hello");
  await platform.storage("PUT", `/locked/${OBJECT}`, "hello");
  const put = (path: string, body: object) =>
    platform.storage("PUT", `/api/v1/${path}`, JSON.stringify(body), {
      "content-type": "application/json",
    });
  const statement = { Effect: "Allow", Action: "s3:GetObject", Resource: "*" };
  const policies = { main: { Version: "2012-10-17", Statement: [statement] } };
  await put("users/ada", { policies });
  await put("roles/reader", { policies });
  const config = `buckets/${BUCKET}/config`;
  await put(`buckets/${BUCKET}/quota`, { max_bytes: 1_000_000 });
  await put(`${config}/tags`, { TagSet: [{ Key: "a", Value: "b" }] });
  await put(`${config}/website`, { IndexDocument: { Suffix: "index.html" } });
  await put(`${config}/cors`, {
    CORSRules: [{ AllowedMethods: ["GET"], AllowedOrigins: ["https://shop.example"] }],
  });
  await put(`${config}/lifecycle`, {
    Rules: [{ ID: "old", Status: "Enabled", Filter: { Prefix: "" }, Expiration: { Days: 30 } }],
  });
  await put(`${config}/policy`, {
    Version: "2012-10-17",
    Statement: [{ ...statement, Principal: "*", Resource: `arn:aws:s3:::${BUCKET}/*` }],
  });
  const upload = await post<{ upload_id: string }>("vault", `/buckets/${BUCKET}/uploads`, {
    key: "b.txt",
  });
  await platform.storage("PUT", "/admin/modules/empty", EMPTY_MODULE, {
    "content-type": "application/wasm",
  });
  await addRemoteAndKey();
  await addPlaces(put);
  const ofJob = { params: { id: await startJob() } };
  await backUp();
  const ofBucket = { params: { bucket: BUCKET, key: OBJECT, upload: upload.upload_id } };
  const ofLocked = { params: { bucket: "locked" }, query: { key: OBJECT } };
  return {
    ...Object.fromEntries(
      Object.keys(documents.vault.paths)
        .filter((path) => path.startsWith("/api/v1/buckets/{bucket}"))
        .map((path) => [
          `vault ${path}`,
          path.includes("/object/") || path.endsWith("/lock") ? ofLocked : ofBucket,
        ]),
    ),
    "vault /api/v1/buckets/{bucket}/object": { ...ofBucket, query: { key: OBJECT, info: "true" } },
    "vault /admin/modules/{name}": { params: { name: "empty" } },
    "vault /admin/remotes/{name}": { params: { name: "far" } },
    "vault /admin/encryption-keys/{name}": { params: { name: "one" } },
    "vault /admin/batch/{id}": ofJob,
    "vault /admin/batch/{id}/failures": ofJob,
    "vault /admin/backup/snapshots": { query: { path: "contract" } },
    "vault /api/v1/users/{name}": { params: { name: "ada" } },
    "vault /api/v1/roles/{name}": { params: { name: "reader" } },
    "vault /api/v1/events/subscriptions": { query: { bucket: BUCKET } },
  };
}

async function startJob(): Promise<string> {
  const batch = JSON.stringify({ operation: "untag", bucket: BUCKET, keys: ["missing"] });
  const started = await platform.storage("POST", "/admin/batch", batch, {
    "content-type": "application/json",
  });
  return (JSON.parse(started) as { job_id: string }).job_id;
}

async function backUp(): Promise<void> {
  await platform.storage("POST", "/admin/backup", '{"repository":{"path":"contract"}}', {
    "content-type": "application/json",
  });
  await waitFor(async () => {
    const { body } = await get("vault", "/admin/backup/snapshots?path=contract");
    return (body as { items?: unknown[] }).items?.length === 1;
  }, "a snapshot in the repository");
}

async function createOtherExamples(): Promise<Record<string, Example>> {
  const key = await post<{ id: string }>("gate", "/admin/api-keys", { tenant: "shop" });
  await platform.addRoute({ prefix: "/contract", target: "http://127.0.0.1:9" });
  const tunnel = await post<{ id: string }>("tunnel", "/tunnels", { subdomain: "demo" });
  const ofTunnel = { params: { id: tunnel.id } };
  const ofTrace = { params: { trace_id: "f".repeat(32) } };
  return {
    ...Object.fromEntries(
      CONTRACT_SERVICES.map((service) => [`${service} /api/v1/admin/traces/{trace_id}`, ofTrace]),
    ),
    "gate /api/v1/admin/api-keys/{id}": { params: { id: key.id } },
    "gate /api/v1/admin/route-series": { query: { prefix: "/contract", from: 0 } },
    "runtime /api/v1/projects/{project}/databases/{database}/tables/{table}/row": {
      query: { key: "{}" },
    },
    "tunnel /api/v1/certificates/ask": { query: { domain: "demo.localhost" } },
    "tunnel /api/v1/tunnels/{id}": ofTunnel,
    "tunnel /api/v1/tunnels/{id}/requests": ofTunnel,
    "tunnel /api/v1/tunnels/{id}/shares": ofTunnel,
  };
}

function listGets(): Operation[] {
  return CONTRACT_SERVICES.flatMap((service) =>
    Object.entries(documents[service].paths).flatMap(([path, { get: operation }]) =>
      operation === undefined || operation.tags?.[0] === "Proxied"
        ? []
        : [{ service, path, responses: operation.responses }],
    ),
  );
}

function addressOf({ service, path }: Operation): string {
  const { params = {}, query = {} } = examples[`${service} ${path}`] ?? {};
  const filled = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) =>
    encodeURIComponent(params[name] ?? MISSING),
  );
  const search = new URLSearchParams(
    Object.entries(query).map(([name, value]) => [name, String(value)]),
  );
  return search.size === 0 ? filled : `${filled}?${search.toString()}`;
}

/** Compiler with the document of a service, whose schemas of answers allow no members that they do not declare. */
function compilerOf(service: Service): Ajv2020 {
  const known = compilers.get(service);
  if (known !== undefined) return known;
  const compiler = new Ajv2020({ strict: false, logger: false, allErrors: true });
  compiler.addSchema({ ...documents[service], $id: service });
  compilers.set(service, compiler);
  return compiler;
}

/** Faults of the answer; a success of an operation is in `answered`. */
async function judge(operation: Operation, answered: Map<string, number>): Promise<string[]> {
  const { service, path, responses } = operation;
  const name = `${service} ${path}`;
  const { status, type, body } = await get(service, addressOf(operation));
  answered.set(name, status);
  const declared = responses[status];
  const fail = (text: string): string[] => [`${name}: ${status} ${text}`];
  if (declared === undefined) {
    // All problems are documented by `default`; successes one by one.
    return status < 400 ? fail("is not documented") : [];
  }
  if (declared.content === undefined) return body === undefined ? [] : fail("has a body");
  const media = declared.content[type] ?? declared.content["*/*"];
  if (status >= 400 && PAGES.has(name) && type === "text/html") return [];
  if (media === undefined) return fail(`has the type ${type}`);
  if (media.schema === undefined || body === undefined) return [];
  const pointer = ["paths", path, "get", "responses", String(status), "content", type, "schema"];
  const reference = pointer.map((part) => part.replaceAll("~", "~0").replaceAll("/", "~1"));
  const validate = compilerOf(service).compile({
    $ref: `${service}#/${reference.map((part) => encodeURIComponent(part)).join("/")}`,
  });
  if (validate(body)) return [];
  return fail(compilerOf(service).errorsText(validate.errors).slice(0, 500));
}

test("the committed documents, and the console's types of answers, are those of the services", () => {
  for (const service of CONTRACT_SERVICES) {
    for (const { path, text } of formatContract(service, documents[service])) {
      assert.ok(
        readFileSync(path, "utf8") === text,
        `${path} is out of date: run node tools/write-contract.ts`,
      );
    }
  }
});

test("each JSON answer of each operation has a schema", () => {
  const without = CONTRACT_SERVICES.flatMap((service) =>
    Object.entries(documents[service].paths).flatMap(([path, item]) =>
      METHODS.flatMap((method) =>
        Object.entries(item[method]?.responses ?? {}).flatMap(([status, { content }]) => {
          const media = content?.["application/json"];
          const isDescribed = media === undefined || Object.keys(media.schema ?? {}).length > 0;
          return isDescribed ? [] : [`${service} ${method} ${path} ${status}`];
        }),
      ),
    ),
  );
  assert.deepEqual(without, []);
});

test("each GET answers with a status and a body that its document declares", async (t) => {
  const operations = listGets();
  const answered = new Map<string, number>();
  const faults: string[] = [];
  for (const operation of operations) faults.push(...(await judge(operation, answered)));
  t.diagnostic(`${operations.length} operations`);
  assert.deepEqual(faults, []);
  // Not available yet, or a WebSocket.
  const isBuilt = (status: number): boolean => status !== 501 && status !== 426;
  const failed = [...answered].filter(
    ([name, status]) => status >= 400 && isBuilt(status) && FAILING[name] !== status,
  );
  assert.deepEqual(failed, []);
});
