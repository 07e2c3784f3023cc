// "Try it": the operations of a project, and requests to it as nobody or as its application, never with the caller's session.
import { isUtf8 } from "node:buffer";
import { validateHeaderName, validateHeaderValue } from "node:http";
import { PlatformError } from "@platform/kernel/errors";
import { createValidationError, defineRoute, type ApiRoute } from "@platform/kernel/http";
import { FORWARDING_HEADERS } from "@platform/kernel/http-parts";
import { EVERY_SCOPE, requireScope } from "@platform/kernel/identity";
import { createIdSource } from "@platform/kernel/ids";
import { formatTraceparent } from "@platform/kernel/trace";
import { z } from "zod";
import { fetchApplicationToken } from "../client/application-token.ts";
import {
  requestGateway,
  type GatewayAnswer,
  type GatewayRequest,
} from "../client/gateway-request.ts";
import type { Target } from "../client/target.ts";
import type { DataService } from "../data/data-service.ts";
import { getCredentialsPath } from "../projects/entry.ts";
import type { Projects } from "../projects/projects.ts";
import { requireManage, requireRead } from "./access.ts";
import { recordEvent } from "./data-audit.ts";

const BODY_CHARACTERS_MAX = 262_144;
const ANSWER_BYTES_MAX = 262_144;
const DOCUMENT_BYTES_MAX = 4 * 1_048_576;
const TIMEOUT_MS = 30_000;
const HEADERS_MAX = 50;
const OPERATIONS_MAX = 500;
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;
/** Fields that belong to the connection, and the host, which chooses the project. */
const OWN_FIELDS =
  /^(?:host|connection|content-length|transfer-encoding|upgrade|keep-alive|te|trailer|expect|proxy-.*|traceparent|tracestate)$/i;
/** Says to the gateway, and to the project, that the request is none of a program on this machine. */
const VIA = "1.1 platform-console";
const DOCUMENT_PATH = "/api/docs/openapi.json";

/** Options of {@link createTryRoutes}. */
export interface TryRoutesOptions {
  projects: Pick<Projects, "list">;
  getTarget: () => Target;
  /** Keeps the audit log. */
  data: DataService;
}

const params = z.object({ name: z.string().min(1).max(64) });
const operationSchema = z.object({
  method: z.string(),
  path: z.string(),
  summary: z.string(),
  has_body: z.boolean(),
});
const bodySchema = z.strictObject({
  method: z.enum(METHODS),
  path: z
    .string()
    .max(8_192)
    .regex(/^\/[\x21-\x7e]*$/, "expected a path with visible ASCII characters"),
  headers: z.record(z.string().max(256), z.string().max(8_192)).default({}),
  body: z.string().max(BODY_CHARACTERS_MAX).default(""),
  as: z.enum(["nobody", "application"]).default("nobody").meta({
    description:
      "`application`: with a token of the project's application, which ends with the request",
  }),
  scopes: z.array(z.string().min(1).max(128)).max(50).default([]).meta({
    description: "of the token; empty: all that the application may have",
  }),
});

export function createTryRoutes(options: TryRoutesOptions): ApiRoute[] {
  return [createOperationsRoute(options), createTryRoute(options)];
}

function createOperationsRoute(options: TryRoutesOptions): ApiRoute {
  return defineRoute({
    tag: "Projects",
    access: requireRead,
    method: "GET",
    path: "/api/v1/projects/{name}/operations",
    summary: "Operations of a project, as its own documentation describes them",
    params,
    answer: z.object({
      docs: z.string().meta({ description: "address of the documentation" }),
      items: z.array(operationSchema).meta({ description: "at most 500" }),
    }),
    problems: { 404: "There is no such project", 503: "It does not answer" },
    handle: async ({ params: { name } }) => {
      const origin = findOrigin(options, name);
      const answer = await readDocument(options, name);
      return { docs: `${origin}/api/docs`, items: readOperations(answer) };
    },
  });
}

function createTryRoute(options: TryRoutesOptions): ApiRoute {
  return defineRoute({
    tag: "Projects",
    access: requireManage,
    method: "POST",
    path: "/api/v1/projects/{name}/try",
    summary: "Send a request to a project, and receive its answer",
    description:
      "It goes through the gateway, as requests of others do, without credentials of the caller. `application` requires the scope `*:*` and is an audit entry, as is each request.",
    params,
    body: bodySchema,
    bodyBytesMax: 2 * 1_048_576,
    answer: z.object({
      status: z.int(),
      headers: z.array(z.object({ name: z.string(), value: z.string() })),
      body: z.string().meta({ description: "at most 256 KiB; of bytes that are no UTF-8, base64" }),
      encoding: z.enum(["utf8", "base64"]),
      truncated: z.boolean(),
      duration_ms: z.number(),
      trace_id: z.string(),
    }),
    problems: {
      404: "There is no such project",
      409: "It has no application",
      422: "Identity refuses the scopes",
      503: "The project does not answer",
    },
    handle: async ({ params: { name }, body, caller }) => {
      const origin = findOrigin(options, name);
      const { method, path, as, scopes } = body;
      if (as === "application") requireScope(caller, EVERY_SCOPE);
      const detail = { method, path: path.split("?")[0], as, scopes };
      await recordEvent(options.data, caller, { action: "project.try", target: name, detail });
      const token = await openToken(options, name, body);
      try {
        const ids = createIdSource();
        const traceId = ids.traceId();
        const traceparent = formatTraceparent({ traceId, spanId: ids.spanId(), sampled: true });
        const headers = {
          ...readHeaders(body.headers),
          traceparent,
          via: VIA,
          ...(token === undefined ? {} : { authorization: `Bearer ${token.token}` }),
        };
        const startedMs = performance.now();
        const request = { method, path, headers, body: body.body };
        const answer = await sendTo(options, origin, request);
        const duration_ms = performance.now() - startedMs;
        return { ...describeAnswer(answer), duration_ms, trace_id: traceId };
      } finally {
        await token?.end();
      }
    },
  });
}

async function openToken(
  { getTarget }: TryRoutesOptions,
  name: string,
  { as, scopes }: z.output<typeof bodySchema>,
) {
  if (as === "nobody") return undefined;
  const target = getTarget();
  return fetchApplicationToken(target, getCredentialsPath(target, name), scopes);
}

function findOrigin({ projects }: TryRoutesOptions, name: string): string {
  const found = projects.list().find(({ record }) => record.name === name);
  if (found === undefined) throw new PlatformError("not_found", "There is no such project.");
  return found.origin;
}

type TriedRequest = Pick<GatewayRequest, "method" | "path" | "headers" | "body">;

/** Sends a request to the host of a project at the gateway, or to its own address without one. */
function sendTo(
  { getTarget }: TryRoutesOptions,
  origin: string,
  request: TriedRequest,
): Promise<GatewayAnswer> {
  const gateway = getTarget().state.services.find(({ name }) => name === "gate")?.url ?? "";
  const headers = { ...request.headers, host: new URL(origin).host };
  return ask(gateway === "" ? origin : gateway, { ...request, headers }, ANSWER_BYTES_MAX);
}

/** Reads the document of a project at its own address: others do not see it at the gateway. */
function readDocument({ getTarget }: TryRoutesOptions, project: string): Promise<GatewayAnswer> {
  const url = getTarget().state.services.find(({ name }) => name === project)?.url ?? "";
  if (url === "") throw new PlatformError("unavailable", "The project does not run.");
  const request = { method: "GET", path: DOCUMENT_PATH, headers: {}, body: "" };
  return ask(url, request, DOCUMENT_BYTES_MAX);
}

async function ask(url: string, request: TriedRequest, bytesMax: number): Promise<GatewayAnswer> {
  try {
    return await requestGateway(url, { ...request, timeoutMs: TIMEOUT_MS, bytesMax });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new PlatformError("unavailable", `The project does not answer: ${reason}.`, {
      cause: error,
    });
  }
}

function readHeaders(given: Readonly<Record<string, string>>): Record<string, string> {
  const names = Object.keys(given);
  if (names.length > HEADERS_MAX) throw refuseHeader("", `more than ${HEADERS_MAX} fields`);
  for (const name of names) {
    if (OWN_FIELDS.test(name) || isForwarding(name))
      throw refuseHeader(name, "is set by the platform");
    try {
      validateHeaderName(name);
      validateHeaderValue(name, given[name]!);
    } catch {
      throw refuseHeader(name, "is not a valid field");
    }
  }
  return { ...given };
}

// From outside, the gateway sets or removes them.
function isForwarding(name: string): boolean {
  const wanted = name.toLowerCase().replaceAll("_", "-");
  return FORWARDING_HEADERS.some((one) => one === wanted);
}

function refuseHeader(name: string, message: string): Error {
  return createValidationError([{ in: "body", path: `headers.${name}`, message }]);
}

function describeAnswer({ status, headers, body, isCut }: GatewayAnswer) {
  // A character may be cut at the end.
  const isText = isUtf8(body) || (isCut && isUtf8(body.subarray(0, Math.max(0, body.length - 4))));
  const encoding = isText ? ("utf8" as const) : ("base64" as const);
  return {
    status,
    headers: headers.map(([name, value]) => ({ name, value })),
    body: body.toString(encoding),
    encoding,
    truncated: isCut,
  };
}

const documentSchema = z.object({
  paths: z.record(z.string(), z.record(z.string(), z.unknown())),
});

/** The operations of a document, which is one of the project's code: what is not of the form is left out. */
function readOperations({ status, body }: GatewayAnswer): z.input<typeof operationSchema>[] {
  if (status !== 200) return [];
  let document: unknown;
  try {
    document = JSON.parse(body.toString());
  } catch {
    return [];
  }
  const { data } = documentSchema.safeParse(document);
  const all = Object.entries(data?.paths ?? {}).flatMap(([path, operations]) =>
    METHODS.flatMap((method) => {
      const operation = operations[method.toLowerCase()];
      if (typeof operation !== "object" || operation === null) return [];
      const { summary = "" } = operation as { summary?: unknown };
      const text = typeof summary === "string" ? summary.slice(0, 512) : "";
      return [{ method, path, summary: text, has_body: "requestBody" in operation }];
    }),
  );
  return all.slice(0, OPERATIONS_MAX);
}
