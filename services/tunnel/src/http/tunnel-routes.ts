// Operations on tunnels.
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, NO_BODY, type ApiRoute } from "@platform/kernel/http";
import type { Caller } from "@platform/kernel/identity";
import { z } from "zod";
import type { TunnelRow } from "../database/schema.ts";
import { isOperator, subjectOf } from "../identity.ts";
import type { CustomDomains } from "../name/custom-domains.ts";
import type { Subjects } from "../name/subjects.ts";
import type { TunnelStore } from "../name/tunnel-store.ts";

/** Options of {@link createTunnelRoutes}. */
export interface TunnelRoutesOptions {
  store: TunnelStore;
  domains: CustomDomains;
  subjects: Subjects;
  /** Throws if a caller may not reserve tunnels. */
  requireOpening: (caller: Caller) => void;
  formatUrl: (tunnel: { subdomain: string | null; port: number | null }) => string;
  /** True if a client serves the tunnel. */
  isConnected: (id: string) => boolean;
  /** Stops serving a tunnel that was deleted. */
  onRemoved: (row: TunnelRow) => void;
}

const tunnelSchema = z.object({
  id: z.string(),
  url: z.string(),
  status: z.enum(["active", "inactive"]).meta({
    description: "inactive if the operator has cut off the tunnel's subject.",
  }),
  connected: z.boolean().meta({ description: "A client serves the tunnel." }),
  kind: z.enum(["http", "tcp"]),
  subdomain: z.string().nullable(),
  port: z.int().nullable(),
  target: z.string(),
  auth_required: z.boolean(),
  custom_domains: z.array(z.string()),
  subject: z.string(),
  created_at: z.string(),
  last_seen_at: z.string(),
});

const createSchema = z.strictObject({
  subdomain: z.string().min(1).max(63).optional().meta({
    description: "Label below the relay's domain; generated if absent.",
  }),
  target: z.string().max(1_024).default("").meta({
    description: "host:port that clients must name to serve the tunnel; empty for any.",
  }),
  auth_required: z.boolean().default(false),
});

const idParams = z.object({ id: z.string().max(64) });

/** Creates the operations on tunnels. Callers see their own; operators see all. */
export function createTunnelRoutes(options: TunnelRoutesOptions): ApiRoute[] {
  const { store, domains, subjects, isConnected, onRemoved } = options;
  const own = { tag: "Tunnels" } as const;
  const show = (row: TunnelRow) => describeTunnel(row, options);
  return [
    defineRoute({
      requires: "caller",
      ...own,
      method: "POST",
      path: "/api/v1/tunnels",
      summary: "Reserve a tunnel",
      description: "Clients of the same subject serve it if they name the same target themselves.",
      body: createSchema,
      status: 201,
      answer: tunnelSchema,
      problems: { 403: "Too many names", 409: "The name is taken" },
      handle: async ({ body, caller }) => {
        options.requireOpening(caller);
        const subject = expectSubject(caller, subjects);
        const { subdomain, target, auth_required: authRequired } = body;
        const claim = { subject, kind: "http", subdomain, target, authRequired } as const;
        return show(await store.claim(claim, (row) => isConnected(row.id)));
      },
    }),
    defineRoute({
      requires: "caller",
      ...own,
      method: "GET",
      path: "/api/v1/tunnels",
      summary: "List tunnels",
      answer: z.object({ tunnels: z.array(tunnelSchema) }),
      handle: ({ caller }) => {
        const subject = isOperator(caller) ? undefined : subjectOf(caller);
        return { tunnels: store.list(subject).map(show) };
      },
    }),
    defineRoute({
      requires: "caller",
      ...own,
      method: "GET",
      path: "/api/v1/tunnels/{id}",
      summary: "Get a tunnel",
      params: idParams,
      answer: tunnelSchema,
      problems: { 404: "No such tunnel" },
      handle: ({ params, caller }) => show(findTunnel(store, params.id, caller)),
    }),
    defineRoute({
      requires: "caller",
      ...own,
      method: "DELETE",
      path: "/api/v1/tunnels/{id}",
      summary: "Delete a tunnel and disconnect its client",
      params: idParams,
      answer: NO_BODY,
      problems: { 404: "No such tunnel" },
      handle: async ({ params, caller }) => {
        const row = findTunnel(store, params.id, caller);
        await store.remove(row);
        domains.forget(row.id);
        onRemoved(row);
      },
    }),
  ];
}

/** The tunnel, if the caller owns it or is an operator; otherwise 404, so that ids of others cannot be probed. */
export function findTunnel(store: TunnelStore, id: string, caller: Caller): TunnelRow {
  const row = store.find(id);
  if (row === undefined || !(isOperator(caller) || row.subject === subjectOf(caller))) {
    throw new PlatformError("not_found", "There is no such tunnel.");
  }
  return row;
}

function expectSubject(caller: Caller, subjects: Subjects): string {
  const subject = subjectOf(caller);
  if (subject === "") throw new PlatformError("forbidden", "The token has no subject (sub).");
  subjects.expectAllowed(subject);
  return subject;
}

function describeTunnel(
  row: TunnelRow,
  { formatUrl, isConnected, domains, subjects }: TunnelRoutesOptions,
): z.input<typeof tunnelSchema> {
  return {
    id: row.id,
    url: formatUrl(row),
    status: subjects.isCutOff(row.subject) ? "inactive" : "active",
    connected: isConnected(row.id),
    kind: row.kind,
    subdomain: row.subdomain,
    port: row.port,
    target: row.target,
    auth_required: row.auth_required === 1,
    custom_domains: domains.list(row.id),
    subject: row.subject,
    created_at: new Date(row.created_at).toISOString(),
    last_seen_at: new Date(row.last_seen_at).toISOString(),
  };
}
