// The OpenAPI document of every service is complete: it lists every route, with parameters, bodies and responses, and
// nothing else.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { ROUTE_FIELDS } from "../../services/gate/src/config/guarded-fields.ts";
import { parseEnv, type Started } from "@platform/testing/platform-process";
import type { ContractService } from "../../tools/contract.ts";
import { fetchDocument, locateApi, type ServiceApi } from "../../tools/service-documents.ts";
import { BODY_FIELDS } from "./body-fields.ts";
import { joinContract } from "./contract-platform.ts";

interface Operation {
  operationId?: string;
  summary?: string;
  tags?: string[];
  security?: object[];
  parameters?: { name: string; in: string; schema?: object }[];
  requestBody?: { content: Record<string, { schema?: BodySchema }> };
  responses: Record<string, { description?: string; content?: object }>;
  "x-protocol"?: unknown;
}

interface BodySchema {
  /** `#/components/schemas/NAME`. */
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  properties?: Record<string, BodySchema>;
  additionalProperties?: BodySchema | boolean;
  items?: BodySchema;
  anyOf?: BodySchema[];
  oneOf?: BodySchema[];
  allOf?: BodySchema[];
}

/** Schemas by name. */
type Shared = Readonly<Record<string, BodySchema>>;

interface Described {
  id: string;
  method: string;
  path: string;
  operation: Operation;
}

const METHODS = ["get", "post", "put", "patch", "delete"];
/** Operations without a body, whose method usually has one. */
const BODILESS =
  /^POST .*\/(?:logout|first-steps\/(?:request|tunnel)|hold|resume|promote|rollback|reload|rotate|rotate-secret|secret|begin|backup-codes|recovery|renew|restart|stop|start|cancel|run|scrub|sweep|replay|forward|keys|activate|invitations|disconnect|disable|enable|verify|connect)$|^PUT .*\/members\/\{user_id\}$/;
/** Paths in the source that other services serve. */
const OF_OTHERS: Readonly<Record<string, readonly string[]>> = {
  auth: ["/api/v1/send"],
  gate: ["/console/"],
};
const root = fileURLToPath(new URL("../..", import.meta.url));

let started: Started;
let credentials: Record<string, string>;

before(async () => {
  const platform = await joinContract();
  started = platform.started;
  credentials = parseEnv(readFileSync(join(platform.dataDir, "credentials.env"), "utf8"));
});

function locate(name: string): ServiceApi {
  return locateApi(started, name as ContractService);
}

async function readApi(service: ServiceApi) {
  return (await fetchDocument(service, credentials)) as unknown as {
    paths: Record<string, Record<string, Operation>>;
    components?: { schemas?: Shared };
  };
}

async function readDocument(service: ServiceApi): Promise<Described[]> {
  const { paths } = await readApi(service);
  return Object.entries(paths).flatMap(([path, operations]) =>
    METHODS.flatMap((method) => {
      const operation = operations[method];
      // Routes of the gateway are described by their upstreams.
      if (operation === undefined || operation.tags?.[0] === "Proxied") return [];
      return { id: `${method.toUpperCase()} ${path}`, method, path, operation };
    }),
  );
}

/** Gaps in the description of an operation. */
function findGaps({ id, method, path, operation }: Described): string[] {
  const { operationId, summary, tags, parameters = [], requestBody, responses } = operation;
  const statuses = Object.keys(responses);
  const isNotYet = "501" in responses;
  // OAuth and OpenID Connect describe their bodies and errors.
  const isStandard = operation["x-protocol"] !== undefined;
  const names = Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => name);
  const described = parameters.filter((item) => item.in === "path").map(({ name }) => name);
  const isOpen = operation.security?.length === 0;
  const isWrite = ["post", "put", "patch"].includes(method);
  const hasBody = isWrite && !BODILESS.test(id) && !isNotYet && !isStandard;
  const hasJson = requestBody?.content["application/json"] !== undefined && !isStandard;
  const rules: [isMissing: boolean, gap: string][] = [
    [operationId === undefined || summary === undefined || summary === "", "no name or summary"],
    [tags?.length !== 1, "no tag"],
    [/:\w/.test(path), "a parameter that is not written as {name}"],
    [names.some((name) => !described.includes(name!)), "a path parameter is not described"],
    [parameters.some(({ schema }) => schema === undefined), "a parameter without a schema"],
    [hasBody && requestBody === undefined, "no request body"],
    [!isNotYet && !statuses.some((status) => /^[123]/.test(status)), "no success"],
    [!("default" in responses), "no error"],
    [!isOpen && !("401" in responses && "403" in responses), "no 401 or 403"],
    [hasJson && !("400" in responses), "no 400"],
  ];
  return rules.flatMap(([isMissing, gap]) => (isMissing ? [`${id}: ${gap}`] : []));
}

/** Texts of a body; `?` at the end: any JSON. Values of enumerations name nothing. */
function listTexts(schema: BodySchema, shared: Shared, path = ""): string[] {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1);
    // Within itself, a schema has no other texts.
    const { [name]: named, ...rest } = shared;
    return named === undefined ? [] : listTexts(named, rest, path);
  }
  if (schema.enum !== undefined || schema.const !== undefined) return [];
  const { type = [], properties, additionalProperties: more, items } = schema;
  const parts = [schema.anyOf, schema.oneOf, schema.allOf].flatMap((list) => list ?? []);
  const isBare = type.includes("object") && properties === undefined && more === undefined;
  const isOpenObject = isBare || more === true || (more !== undefined && isEmpty(more));
  const isUnknown = type.length === 0 && parts.length === 0 && !isOpenObject;
  const dot = path === "" ? "" : `${path}.`;
  return [
    ...(type.includes("string") ? [path] : []),
    ...(isOpenObject || isUnknown ? [`${path}?`] : []),
    ...Object.entries(properties ?? {}).flatMap(([name, inner]) =>
      listTexts(inner, shared, `${dot}${name}`),
    ),
    ...(items === undefined ? [] : listTexts(items, shared, `${path}[]`)),
    ...(typeof more === "object" && !isEmpty(more) ? listTexts(more, shared, `${dot}*`) : []),
    ...parts.flatMap((part) => listTexts(part, shared, path)),
  ];
}

function isEmpty(schema: BodySchema | boolean): boolean {
  return typeof schema === "object" && Object.keys(schema).length === 0;
}

/** Texts of the bodies of a service, sorted. */
function listBodyTexts(operations: readonly Described[], shared: Shared): string[] {
  const found = operations.flatMap(({ operation }) =>
    Object.values(operation.requestBody?.content ?? {}).flatMap(({ schema }) =>
      schema === undefined ? [] : listTexts(schema, shared),
    ),
  );
  return [...new Set(found)].sort();
}

/** Paths of operations in the source of a service. */
function listSourcePaths(name: string): string[] {
  // The command line of the runtime calls all others.
  const folder = name === "runtime" ? "runtime/src/api" : `${name}/src`;
  const found = globSync(`services/${folder}/**/*.ts`, { cwd: root }).flatMap((file) => {
    const text = readFileSync(join(root, file), "utf8");
    return Array.from(
      text.matchAll(/\bpath: "(\/[^"]*)"|"(\/(?:api|ws|console)\/[^"]*[^"/…])"/g),
      ([, path, literal]) => (path ?? literal)!,
    );
  });
  return [...new Set(found.filter((path) => /^\/(?:api\/v1|ws|console)\//.test(path)))];
}

/** Texts of the gateway's bodies outside of routes: none names anything. */
const OF_GATEWAY: readonly string[] = ["tenant_id"];

const toPattern = (path: string): string => path.replaceAll(/\{\w+\*?\}/g, "{}");

for (const name of ["gate", "auth", "vault", "pulse", "notify", "tunnel", "runtime"]) {
  test(`${name}: operations are described with parameters, bodies and responses`, async () => {
    const operations = await readDocument(locate(name));
    assert.ok(operations.length >= 15);
    assert.deepEqual(operations.flatMap(findGaps), []);
  });

  test(`${name}: each text of a body is declared, with its guard if it names something`, async () => {
    const { components } = await readApi(locate(name));
    const found = listBodyTexts(await readDocument(locate(name)), components?.schemas ?? {});
    if (name === "gate") {
      // The status is ignored, a document is no path, and sync takes whole routes.
      const texts = found.map((field) => field.replace(/^routes\[\]\./, ""));
      const isDeclared = (field: string): boolean =>
        field.endsWith("?") || field in ROUTE_FIELDS || OF_GATEWAY.includes(field);
      assert.deepEqual(
        texts.filter((field) => !isDeclared(field)),
        [],
      );
      assert.ok(texts.includes("files.root"));
      return;
    }
    const { named, others } = BODY_FIELDS[name]!;
    const declared = new Set([...Object.keys(named), ...others]);
    assert.deepEqual(
      found.filter((field) => !declared.has(field)),
      [],
    );
    assert.deepEqual(
      [...declared].filter((field) => !found.includes(field)),
      [],
    );
  });

  test(`${name}: each path of its source is documented`, async () => {
    const documented = new Set(
      (await readDocument(locate(name))).map(({ path }) => toPattern(path)),
    );
    const isDocumented = (path: string): boolean =>
      documented.has(toPattern(path)) || OF_OTHERS[name]?.includes(path) === true;
    const paths = listSourcePaths(name);
    assert.ok(paths.length > 0);
    assert.deepEqual(
      paths.filter((path) => !isDocumented(path)),
      [],
    );
  });

  test(`${name}: documented operations exist, and no other methods of their paths`, async () => {
    const service = locate(name);
    const operations = await readDocument(service);
    const token = credentials[service.token];
    const headers: Record<string, string> =
      token === undefined ? {} : { authorization: `Bearer ${token}` };
    const isSocket = ({ operation }: Described): boolean => "101" in operation.responses;
    // At the gateway, pages and other paths are for requests without a route.
    const isOwn = ({ path }: Described): boolean => name !== "gate" || path.startsWith("/api/v1/");
    const methods = Map.groupBy(
      operations.filter((one) => isOwn(one) && !isSocket(one)),
      ({ path }) => path,
    );
    // A path may also match one with parameters.
    const patterns = operations.map(({ path, method }) => ({
      method: method.toUpperCase(),
      pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, ".+")}$`),
    }));
    for (const [path, listed] of methods) {
      const place = `${service.url}${path.replaceAll(/\{\w+\}/g, "x")}`;
      const { status, headers: answered } = await fetch(place, { method: "OPTIONS", headers });
      assert.ok(status === 204 || status === 405, `OPTIONS ${path}: ${status}`);
      const allowed = (answered.get("allow") ?? "")
        .split(/, */)
        .filter((method) => method !== "HEAD" && method !== "OPTIONS");
      for (const { id, method } of listed) assert.ok(allowed.includes(method.toUpperCase()), id);
      for (const method of allowed) {
        const isDocumented = patterns.some(
          (one) => one.method === method && one.pattern.test(new URL(place).pathname),
        );
        assert.ok(isDocumented, `${method} ${path} is not documented`);
      }
    }
  });

  test(`${name}: documented WebSockets exist`, async () => {
    const service = locate(name);
    const sockets = (await readDocument(service)).filter(
      ({ operation }) => "101" in operation.responses,
    );
    assert.ok(sockets.length > 0);
    for (const { path } of sockets) {
      const answer = await fetch(`${service.url}${path.replaceAll(/\{\w+\}/g, "x")}`);
      await answer.body?.cancel();
      assert.ok([401, 426].includes(answer.status), `${path}: ${answer.status}`);
    }
  });
}
