// Schemas of configuration values; their error messages name the allowed values.
import { isIP } from "node:net";
import {
  DAY_MS,
  fieldName,
  normalizePrefix,
  text,
  unset,
  wholeNumber,
  yesNo,
} from "@platform/kernel/route-rules";
import { isServiceTarget, parseServiceTarget } from "./service-target.ts";

export { BYTES_MAX, unsetOr } from "@platform/kernel/route-rules";
export { DAY_MS, fieldName, normalizePrefix, text, unset, wholeNumber, yesNo };

const PREFIX_CHARS_MAX = 2048;
/** Prefixes are matched up to this number of segments. */
const PREFIX_SEGMENTS_MAX = 120;
const HOST_CHARS_MAX = 253;
/** Error message for known fields that are not available yet. */
const NOT_AVAILABLE_YET = "not available yet";

/** The path of a local file. */
export function filePath() {
  return text().refine((value) => !value.includes("\0"), { error: "expected the path of a file" });
}

/** The URL of an upstream: http or https, with an optional path that is prepended to the forwarded path. */
export function upstreamUrl() {
  return text(PREFIX_CHARS_MAX).superRefine((value, context) => {
    const message = findUpstreamUrlFault(value);
    if (message === undefined) return;
    context.addIssue({ code: "custom", message, params: { code: "upstream_url" } });
  });
}

/** The URL of an upstream, or a service that discovery resolves. */
export function targetUrl() {
  return text(PREFIX_CHARS_MAX).superRefine((value, context) => {
    const message = isServiceTarget(value) ? findServiceFault(value) : findUpstreamUrlFault(value);
    if (message === undefined) return;
    context.addIssue({ code: "custom", message, params: { code: "upstream_url" } });
  });
}

/** An upstream's URL without a path. */
export function originUrl() {
  return upstreamUrl().refine((url) => !URL.canParse(url) || new URL(url).pathname === "/", {
    error: "expected no path: requests keep that of the upstream",
  });
}

/** The http or https URL of a service that the gateway calls itself. */
export function serviceUrl() {
  return text(PREFIX_CHARS_MAX).refine((value) => isHttpUrl(value), {
    error: "expected an http or https URL without user name and password",
  });
}

/** The URL of a Redis server: `redis://` or, with TLS, `rediss://`. */
export function redisUrl() {
  return text(PREFIX_CHARS_MAX).refine(
    (value) => /^rediss?:\/\/[^/]+(?:\/\d{0,4})?$/.test(value) && URL.canParse(value),
    { error: "expected a URL such as redis://user:password@host:6379/0, or rediss:// for TLS" },
  );
}

/** The path prefix of a route. */
export function pathPrefix() {
  return text(PREFIX_CHARS_MAX)
    .superRefine((value, context) => {
      const message = findPrefixFault(value);
      if (message === undefined) return;
      context.addIssue({ code: "custom", message, params: { code: "path_prefix" } });
    })
    .overwrite(normalizePrefix);
}

/** A host name without port, case-insensitive; IPv6 addresses are in brackets. */
export function hostName() {
  return text(HOST_CHARS_MAX)
    .overwrite((value) => value.toLowerCase().replace(/\.$/, ""))
    .refine((value) => isHostName(value), {
      params: { code: "host_name" },
      error: 'expected a host name without port and scheme, such as "api.example.com"',
    });
}

/** The name of a field that may be removed from requests; refuses fields that requests require. */
export function cuttableField() {
  return fieldName().refine((name) => !NEEDED_FIELDS.has(name.toLowerCase().replaceAll("_", "-")), {
    error: "expected a field that requests do not require",
  });
}

const NEEDED_FIELDS = new Set(["host", "connection", "content-length", "transfer-encoding"]);

function findUpstreamUrlFault(value: string): string | undefined {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(value)?.[1]?.toLowerCase();
  if (scheme === "service") return "only target and targets can name a service";
  if (scheme === "h2" || scheme === "h2c") {
    return `${scheme}:// targets are ${NOT_AVAILABLE_YET}; allowed are http:// and https://`;
  }
  if (!isHttpUrl(value)) {
    return 'expected an http or https URL without user name and password, such as "http://127.0.0.1:9000"';
  }
  const url = new URL(value);
  if (value.includes("?") || value.includes("#") || url.port === "0") {
    return "expected a URL with host, optional port (1 to 65535) and path; no query and no fragment";
  }
  if (hasUnsafePathBytes(value)) return "expected no spaces or control characters";
  return undefined;
}

function findServiceFault(value: string): string | undefined {
  return parseServiceTarget(value) === undefined
    ? 'expected a service such as "service://orders", "service://orders/v1" or "service://orders?scheme=https"'
    : undefined;
}

function isHttpUrl(value: string): boolean {
  if (!/^https?:\/\/[^/]/i.test(value) || !URL.canParse(value)) return false;
  const url = new URL(value);
  return url.username === "" && url.password === "" && url.hostname !== "";
}

function hasUnsafePathBytes(value: string): boolean {
  for (let index = 0; index < value.length; index++) {
    const code = value.charCodeAt(index);
    if (code <= 0x20 || code >= 0x7f) return true;
  }
  return false;
}

function findPrefixFault(value: string): string | undefined {
  if (!value.startsWith("/")) return 'expected a path that starts with "/"';
  if (hasUnsafePathBytes(value)) {
    return "expected printable ASCII without spaces; write other characters percent-encoded";
  }
  if (/[?#\\]/.test(value)) return "expected a path without query, fragment and backslash";
  if (value.includes(";")) return "expected no path parameters (;): they are ignored in matching";
  if (/%(?![0-9a-fA-F]{2})/.test(value)) return 'expected "%" only before two hexadecimal digits';
  if (/%(?:2f|5c|00)/i.test(value)) return "expected no encoded slash, backslash or NUL";
  const segments = value.replace(/%2e/gi, ".").split("/");
  if (segments.length > PREFIX_SEGMENTS_MAX)
    return `expected at most ${PREFIX_SEGMENTS_MAX} segments`;
  if (segments.includes(".") || segments.includes("..")) {
    return 'expected no segments "." or ".."';
  }
  if (value.includes("//")) return "expected no empty segments";
  return undefined;
}

function isHostName(value: string): boolean {
  if (value.startsWith("[")) return value.endsWith("]") && isIP(value.slice(1, -1)) === 6;
  if (isIP(value) === 4) return true;
  return value.split(".").every((label) => /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label));
}
