// WebAssembly middleware: /api/v1/admin/middleware.
import { PlatformError } from "@platform/kernel/errors";
import { type ApiRoute, bytes, defineRoute } from "@platform/kernel/http";
import { GUEST_MODULE_BYTES_MAX } from "@platform/wasm/http";
import { z } from "zod";
import { GUEST_NAME } from "../config/route-middleware.ts";
import type { MiddlewareStore, RegisteredMiddleware } from "../control/middleware-store.ts";
import { readChangeRequest } from "./request.ts";

const PATH = "/api/v1/admin/middleware";
const TYPES: ReadonlySet<string> = new Set(["", "application/wasm", "application/octet-stream"]);

const nameParams = z.object({
  name: z.string().regex(GUEST_NAME, {
    error: "expected a name of lower-case letters, digits, dots, hyphens and underscores",
  }),
});

const middlewareView = z.object({
  name: z.string(),
  sha256: z.string(),
  bytes: z.int(),
  versions: z
    .array(z.string())
    .describe("Digests of the versions that routes may name, the newest first"),
  imports: z.array(z.string()).describe("Functions of the host that the module uses"),
  source: z.enum(["api", "registry", "file"]),
  registered_at: z.string(),
  routes: z.array(z.string()).describe("Routes that name it"),
  calls: z.int(),
  failures: z.int(),
  fuel_p50: z
    .number()
    .nullable()
    .describe("Instructions that half of the calls do not exceed, rounded up to a power of 2"),
  fuel_p99: z.number().nullable(),
});

/** Creates the endpoints for middleware. */
export function createMiddlewareRoutes(store: MiddlewareStore): ApiRoute[] {
  const own = { tag: "Middleware" } as const;
  const byName = { ...own, path: `${PATH}/{name}`, params: nameParams };
  return [
    defineRoute({
      ...own,
      method: "GET",
      path: PATH,
      summary: "List WebAssembly middleware",
      answer: z.array(middlewareView),
      handle: () => store.listRegistered().map(show),
    }),
    defineRoute({
      ...byName,
      method: "POST",
      summary: "Register WebAssembly middleware, or replace it by a new version",
      description:
        "The body is a module of the http-wasm handler ABI. Requests that run end on the previous version; every later one passes the new version. The ETag is the module's SHA-256. The header `X-Middleware-Source` may say `registry` or `file`.",
      bodyKind: "bytes",
      bodyBytesMax: GUEST_MODULE_BYTES_MAX,
      problems: {
        400: "The name or the module is not usable; the message names the place in the module",
        409: "The state cannot be stored",
        415: "The type is neither application/wasm nor application/octet-stream",
        507: "There are too many modules, or the disk is full",
      },
      answer: bytes("text/plain"),
      handle: async (exchange) => {
        const { name } = exchange.params;
        checkType(exchange.headers.get("content-type"));
        const { caller } = readChangeRequest(exchange);
        const source = readSource(exchange.headers.get("x-middleware-source"));
        const module = await store.register(name, exchange.body, source, caller);
        exchange.answerHeaders.set("ETag", `"${module.sha256}"`);
        return `middleware ${name} compiled and registered: sha256 ${module.sha256}, ${module.bytes} bytes\n`;
      },
    }),
    defineRoute({
      ...byName,
      method: "DELETE",
      summary: "Remove WebAssembly middleware with all its versions",
      problems: {
        404: "The middleware is not registered",
        409: "Routes name it (`routes`), or the state cannot be stored",
      },
      answer: bytes("text/plain"),
      handle: async (exchange) => {
        const { name } = exchange.params;
        await store.remove(name, readChangeRequest(exchange).caller);
        return `middleware ${name} removed\n`;
      },
    }),
  ];
}

function show({
  module,
  registeredAt,
  fuelP50,
  fuelP99,
  ...shown
}: RegisteredMiddleware): z.infer<typeof middlewareView> {
  const { sha256, imports } = module;
  return {
    name: shown.name,
    sha256,
    bytes: module.bytes,
    versions: [...shown.versions],
    imports: [...imports],
    source: shown.source,
    registered_at: registeredAt,
    routes: [...shown.routes],
    calls: shown.calls,
    failures: shown.failures,
    fuel_p50: fuelP50,
    fuel_p99: fuelP99,
  };
}

function checkType(type: string | null | undefined): void {
  const [name = ""] = (type ?? "").split(";");
  if (TYPES.has(name.trim().toLowerCase())) return;
  throw new PlatformError(
    "unsupported_media_type",
    "The type must be application/wasm or application/octet-stream.",
  );
}

function readSource(source: string | null | undefined): "api" | "registry" | "file" {
  return source === "registry" || source === "file" ? source : "api";
}
