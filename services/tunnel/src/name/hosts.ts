// Classification of requests by Host: the API, a subdomain, a possible custom domain, or nothing.
import { isIP } from "node:net";

/** Destination of a host. */
export type HostKind =
  | { readonly kind: "api" }
  | { readonly kind: "label"; readonly label: string }
  | { readonly kind: "custom"; readonly domain: string }
  | { readonly kind: "unknown" };

const API: HostKind = { kind: "api" };
const UNKNOWN: HostKind = { kind: "unknown" };

/**
 * Classifies a host name without its port, in lower case. The bare domain, `localhost` and IP literals are the API, one
 * label below the domain is a tunnel; deeper names below the domain are nothing, so that no wildcard swallows them.
 */
export function classifyHost(name: string, domain: string): HostKind {
  if (name === domain || name === "localhost") return API;
  if (name.startsWith("[") || isIP(name) !== 0) return API;
  if (name.endsWith(`.${domain}`)) {
    const label = name.slice(0, -domain.length - 1);
    return label.includes(".") || label === "" ? UNKNOWN : { kind: "label", label };
  }
  return isDomain(name) ? { kind: "custom", domain: name } : UNKNOWN;
}

/** True for a full domain name that can be a custom domain. */
export function isDomain(name: string): boolean {
  return (
    name.length <= 253 &&
    /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(name)
  );
}
