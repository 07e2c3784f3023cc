// The step of routes that require a certificate of the client.
import { isIP } from "node:net";
import { PlatformError } from "@platform/kernel/errors";
import type { AlternativeName } from "@platform/kernel/tls";
import type { Step } from "../../exchange/exchange.ts";
import type { RouteSpec } from "../../shared-state/index.ts";
import { ClientCertificates } from "./client-certificates.ts";

/** Refuses clients without a certificate that the route accepts. */
export function createClientCertificateStep({ steps }: RouteSpec): Step | undefined {
  const { clientCertificate: spec } = steps;
  if (spec === undefined) return undefined;
  const clientCertificates = new ClientCertificates();
  const patterns = spec.names.map(parsePattern);
  return {
    run: (exchange) => {
      const names = clientCertificates.listNames(exchange);
      if (names === undefined) {
        throw new PlatformError("forbidden", "This resource requires a client certificate.");
      }
      const isAllowed =
        patterns.length === 0 || patterns.some((fits) => names.some((name) => fits(name)));
      if (isAllowed) return true;
      throw new PlatformError("forbidden", "The client certificate is not allowed here.");
    },
  };
}

/** One `*` stands for any characters; the kind of the names follows from the pattern. */
function parsePattern(pattern: string): (name: AlternativeName) => boolean {
  const kind = findKind(pattern);
  const spell = (text: string): string => (kind === "DNS" ? text.toLowerCase() : text);
  const [start = "", end] = spell(pattern).split("*", 2);
  return (name) => {
    if (name.kind !== kind) return false;
    const value = spell(name.value);
    if (end === undefined) return value === start;
    return (
      value.length >= start.length + end.length && value.startsWith(start) && value.endsWith(end)
    );
  };
}

function findKind(pattern: string): AlternativeName["kind"] {
  if (pattern.includes("://")) return "URI";
  if (pattern.includes("@")) return "email";
  return isIP(pattern) === 0 ? "DNS" : "IP Address";
}
