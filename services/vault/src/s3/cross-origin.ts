// Cross-origin requests: answers to preflights, and headers of other answers.
import { isSerializedOrigin } from "@platform/kernel/network";
import { matchesWildcard } from "../access/wildcard.ts";
import type { CorsRule } from "../model/bucket-settings.ts";
import type { Bucket } from "../model/bucket.ts";
import { S3Error } from "../model/s3-error.ts";
import type { Header, S3Answer } from "./answer.ts";
import type { S3Request } from "./request.ts";

const VARY: Header = [
  "Vary",
  "Origin, Access-Control-Request-Headers, Access-Control-Request-Method",
];

/** Answers OPTIONS. Throws AccessForbidden if no rule matches. */
export function answerPreflight(request: S3Request, bucket: Bucket | undefined): S3Answer {
  const { fields } = request;
  const origin = fields.get("origin");
  const method = fields.get("access-control-request-method");
  if (origin === undefined)
    throw new S3Error("BadRequest", "Insufficient information. Origin request header needed.");
  if (method === undefined)
    throw new S3Error("BadRequest", "Invalid Access-Control-Request-Method: null");
  const wanted = (fields.get("access-control-request-headers") ?? "")
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "");
  const rule = findRule(bucket, origin, method, wanted);
  if (rule === undefined) {
    throw new S3Error("AccessForbidden", {
      message:
        "CORSResponse: This CORS request is not allowed. This is usually because the evaluation of Origin, request method / Access-Control-Request-Method or Access-Control-Request-Headers are not whitelisted by the resource's CORS spec.",
      headers: [VARY],
      elements: [["Method", method]],
    });
  }
  const headers: Header[] = getRuleHeaders(rule, origin);
  if (wanted.length > 0) headers.push(["Access-Control-Allow-Headers", wanted.join(", ")]);
  if (rule.maxAgeSeconds !== null)
    headers.push(["Access-Control-Max-Age", String(rule.maxAgeSeconds)]);
  return { status: 200, headers };
}

/** Lets pages of all origins read answers of STS: the token in the body is the only credential. */
export const STS_CORS: Header = ["Access-Control-Allow-Origin", "*"];

/** Answers OPTIONS on the service, where pages exchange tokens. Throws AccessForbidden for other methods than POST. */
export function answerStsPreflight({ fields }: S3Request): S3Answer {
  if (fields.get("access-control-request-method") !== "POST") throw new S3Error("AccessForbidden");
  const wanted = fields.get("access-control-request-headers");
  const headers: Header[] = [STS_CORS, ["Access-Control-Allow-Methods", "POST"], VARY];
  if (wanted !== undefined) headers.push(["Access-Control-Allow-Headers", wanted]);
  return { status: 200, headers };
}

/** Headers that let a page of another origin read an answer; empty if no rule matches or the request has no origin. */
export function getCrossOriginHeaders(request: S3Request, bucket: Bucket | undefined): Header[] {
  if (bucket?.settings.cors === undefined || request.method === "OPTIONS") return [];
  const origin = request.fields.get("origin");
  if (origin === undefined) return [];
  // As in S3, the method that the client names counts even outside of a preflight.
  const method = request.fields.get("access-control-request-method") ?? request.method;
  const rule = findRule(bucket, origin, method, []);
  return rule === undefined ? [] : getRuleHeaders(rule, origin);
}

function getRuleHeaders(rule: CorsRule, origin: string): Header[] {
  const isAny = rule.origins.includes("*");
  const headers: Header[] = [["Access-Control-Allow-Origin", isAny ? "*" : origin]];
  if (!isAny) headers.push(["Access-Control-Allow-Credentials", "true"]);
  headers.push(["Access-Control-Allow-Methods", rule.methods.join(", ")]);
  if (rule.exposed.length > 0)
    headers.push(["Access-Control-Expose-Headers", rule.exposed.join(", ")]);
  headers.push(VARY);
  return headers;
}

function findRule(
  bucket: Bucket | undefined,
  origin: string,
  method: string,
  wanted: readonly string[],
): CorsRule | undefined {
  return bucket?.settings.cors?.rules.find(
    (rule) =>
      rule.methods.includes(method) &&
      rule.origins.some((pattern) => matchesOrigin(pattern, origin)) &&
      wanted.every((name) =>
        rule.headers.some((pattern) => matchesOne(pattern.toLowerCase(), name)),
      ),
  );
}

// The star of a pattern stands for a part of an origin, never for the rest of another URL.
function matchesOrigin(pattern: string, origin: string): boolean {
  if (pattern === "*" || pattern === origin) return true;
  return isSerializedOrigin(origin) && matchesOne(pattern, origin);
}

// Only `*` is a wildcard here.
function matchesOne(pattern: string, text: string): boolean {
  return pattern.includes("?") ? pattern === text : matchesWildcard(pattern, text);
}
