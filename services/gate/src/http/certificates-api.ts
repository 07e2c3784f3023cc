// /api/v1/admin/certificates: list, renewal, revocation, and certificates that need attention.
import type { Condition } from "@platform/kernel/feeds";
import { PlatformError } from "@platform/kernel/errors";
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import type { Clock } from "@platform/kernel/time";
import { z } from "zod";
import { type CertificateManager, REVOCATION_REASONS } from "../acme/certificate-manager.ts";
import type { Certificates, CertificateView } from "../control/certificates.ts";
import { readJsonBody } from "./json-body.ts";

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

const automaticSchema = z.object({
  name: z.string(),
  not_after: nullable.meta({ description: "null without a certificate" }),
  fingerprint_sha256: nullable,
  renew_at: nullable,
  last_error: nullable.meta({ description: "fault of the last order" }),
  is_ordering: z.boolean(),
});

const revocationSchema = z.strictObject({
  reason: z
    .enum(Object.keys(REVOCATION_REASONS) as (keyof typeof REVOCATION_REASONS)[])
    .default("unspecified"),
});

/** Options of {@link createCertificateRoutes}. */
interface CertificateRoutesOptions {
  certificates: Certificates;
  /** Undefined without automatic certificates. */
  automatic: CertificateManager | undefined;
  clock: Clock;
}

export function createCertificateRoutes(options: CertificateRoutesOptions): ApiRoute[] {
  const { certificates, automatic, clock } = options;
  return [
    ...createRenewalRoutes(automatic),
    defineRoute({
      method: "GET",
      path: "/api/v1/admin/certificates",
      tag: "Operation",
      summary: "Certificates in use: of the listener, for upstreams, and authorities of routes",
      description:
        "At most 1 000. A replaced file of the listener is used within two seconds, one of a route after a reload of the configuration.",
      answer: z.object({
        items: z.array(certificateSchema),
        automatic: z.array(automaticSchema).meta({
          description: "names with automatic certificates, also those that have none yet",
        }),
      }),
      handle: () => ({
        items: certificates.list(clock.now()),
        automatic: automatic?.listNames() ?? [],
      }),
    }),
  ];
}

function createRenewalRoutes(automatic: CertificateManager | undefined): ApiRoute[] {
  const requireAutomatic = (): CertificateManager => {
    if (automatic !== undefined) return automatic;
    throw new PlatformError("not_found", "there are no automatic certificates: auto_tls is off");
  };
  const params = z.object({ name: z.string().max(260) });
  const problems = { 404: "The name has no automatic certificate" };
  return [
    defineRoute({
      method: "POST",
      path: "/api/v1/admin/certificates/{name}/renew",
      tag: "Operation",
      summary: "Obtain a new automatic certificate of a name now",
      description: "The order runs in the background; `automatic` of the list shows its outcome.",
      params,
      status: 202,
      answer: z.object({ name: z.string() }),
      problems,
      handle: ({ params: { name } }) => {
        requireAutomatic().renew(name);
        return { name };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/api/v1/admin/certificates/{name}/revoke",
      tag: "Operation",
      summary: "Revoke the automatic certificate of a name, and obtain a new one",
      description: "The revoked one stays in use until the new one is there.",
      params,
      bodyKind: "bytes",
      bodyBytesMax: 4_096,
      answer: z.object({ name: z.string() }),
      problems: { ...problems, 400: "The reason is unknown", 502: "The authority refuses" },
      handle: async (exchange) => {
        const { name } = exchange.params;
        const { reason } = readJsonBody(exchange.body, exchange.headers, revocationSchema);
        await requireAutomatic().revoke(name, reason);
        return { name };
      },
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
