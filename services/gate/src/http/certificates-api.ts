// GET /api/v1/admin/certificates, and certificates that need attention.
import type { Condition } from "@platform/kernel/feeds";
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import type { Clock } from "@platform/kernel/time";
import { z } from "zod";
import type { Certificates, CertificateView } from "../control/certificates.ts";

const nullable = z.string().nullable();

const certificateSchema = z.object({
  id: z.string().meta({ description: "of this certificate in this file" }),
  use: z
    .enum(["listener", "client", "ca"])
    .meta({ description: "of the listener, for upstreams, or to verify upstreams" }),
  source: z
    .enum(["file", "acme", "secret"])
    .meta({ description: "files, an ACME directory, or the secret service" }),
  serves: z.array(z.string()).meta({
    description:
      "names that clients of the listener get it for, at most 100; `*`: all that no other certificate has",
  }),
  renew_at: nullable.meta({
    description: "time of the next renewal, ISO 8601; null if another program renews it",
  }),
  last_error: nullable.meta({
    description: "fault of the last renewal, or of the last version of the file",
  }),
  routes: z.array(z.string()).meta({ description: "routes that use it, at most 100" }),
  subject: z.string(),
  issuer: z.string(),
  names: z.array(z.string()).meta({ description: "DNS names and addresses, at most 100" }),
  serial: z.string(),
  fingerprint_sha256: z.string(),
  not_before: nullable.meta({ description: "ISO 8601; null if it cannot be parsed" }),
  not_after: nullable,
  days_left: z.int().nullable().meta({ description: "whole days; negative after its end" }),
  file: z.string().meta({ description: "path as configured" }),
  status: z
    .enum(["valid", "not_yet_valid", "expiring", "expired", "unreadable"])
    .meta({ description: "`expiring`: less than 14 days are left, also of its chain" }),
  detail: z.string().optional(),
});

export function createCertificateRoutes(certificates: Certificates, clock: Clock): ApiRoute[] {
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/admin/certificates",
      tag: "Operation",
      summary: "Certificates in use: of the listener, for upstreams, and authorities of routes",
      description:
        "At most 1 000. A replaced file of the listener is used within two seconds, one of a route after a reload of the configuration.",
      answer: z.object({ items: z.array(certificateSchema) }),
      handle: () => ({ items: certificates.list(clock.now()) }),
    }),
  ];
}

/** Lists certificates that expire soon, have expired, or cannot be used. */
export function listCertificateConditions(certificates: Certificates, clock: Clock): Condition[] {
  return certificates.list(clock.now()).flatMap((one) => {
    const title = describeStatus(one);
    if (title === undefined) return [];
    return {
      id: `certificate ${one.id}`,
      level: one.status === "expiring" ? "warning" : "critical",
      title,
      detail: `${one.detail === undefined ? "" : `${capitalize(one.detail)}. `}Replace ${one.file}${one.use === "listener" ? "" : " and reload the configuration"}.`,
      href: "/gateway/certificates",
    };
  });
}

const USES = { listener: "listener", client: "upstreams", ca: "verification of upstreams" };

function describeStatus({
  status,
  use,
  subject,
  days_left: days,
}: CertificateView): string | undefined {
  const name = `The certificate ${subject} (${USES[use]})`;
  switch (status) {
    case "valid":
      return undefined;
    case "expiring":
      return days === null || days >= 14
        ? `${name} expires soon`
        : `${name} expires in ${days === 1 ? "1 day" : `${days} days`}`;
    case "expired":
      return `${name} has expired`;
    case "not_yet_valid":
      return `${name} is not valid yet`;
    case "unreadable":
      return "A certificate cannot be read";
    default:
      return status satisfies never;
  }
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
