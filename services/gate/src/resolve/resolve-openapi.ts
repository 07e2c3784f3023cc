// Reads the OpenAPI document of a route and checks that all of it can be compiled.
import { parse } from "yaml";
import type { RouteConfig } from "../config/route.ts";
import { OpenApiDocument } from "../filter/openapi/openapi-document.ts";
import type { OpenApiSpec } from "../shared-state/index.ts";
import type { ReadFile } from "./confinement.ts";
import { describeCause, refuseField } from "./route-fault.ts";

const DOCUMENT_BYTES_MAX = 4 * 1024 * 1024;
/** An alias of YAML can multiply a document. */
const ALIASES_MAX = 100;

/** The document of a route; undefined if it has none. Throws `validation_failed` if it is not usable. */
export function resolveOpenApi(
  config: RouteConfig,
  label: string,
  read: ReadFile,
): OpenApiSpec | undefined {
  const { openapi, openapi_allow_unknown: allowsUnknown = false } = config;
  const reportsResponses = config.openapi_responses === "report";
  if (openapi === undefined) return undefined;
  const path = typeof openapi === "string" ? openapi : undefined;
  try {
    const document = typeof openapi === "string" ? readDocument(openapi, read) : openapi;
    new OpenApiDocument(document).check();
    return { document, allowsUnknown, reportsResponses };
  } catch (cause) {
    throw refuseField(label, "openapi", path, `is not usable: ${describeCause(cause)}`);
  }
}

function readDocument(path: string, read: ReadFile): Record<string, unknown> {
  const text = read(path, DOCUMENT_BYTES_MAX).toString("utf8");
  const document: unknown = parse(text, { maxAliasCount: ALIASES_MAX });
  if (typeof document === "object" && document !== null && !Array.isArray(document)) {
    return document as Record<string, unknown>;
  }
  throw new Error("expected an object");
}
