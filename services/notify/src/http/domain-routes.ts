// Sending domains: their DNS records and DKIM keys.
import { z } from "zod";
import {
  createValidationError,
  defineRoute,
  nextCursor,
  pageQuery,
  readPage,
  type ApiRoute,
  NO_BODY,
} from "@platform/kernel/http";
import { parseDomain } from "../address/domain.ts";
import { checkedRecord } from "../domain/dns-records.ts";
import type { DomainDetail, Domains } from "../domain/domains.ts";
import { requireManager } from "./access.ts";

const PAGE_MAX = 20;

const domainBody = z.strictObject({ domain: z.string().min(1).max(253) });

const domainAnswer = z
  .object({
    domain: z.string(),
    configured: z.boolean(),
    verified: z.boolean(),
    keys: z.array(
      z.object({
        selector: z.string(),
        state: z.enum(["pending", "active", "retired"]),
        created_at: z.string(),
      }),
    ),
    records: z.array(checkedRecord),
  })
  .meta({ id: "Domain" });

export function createDomainRoutes(domains: Domains): ApiRoute[] {
  const operation = { tag: "Domains", access: requireManager } as const;
  return [
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/domains",
      summary: "List sending domains with the DNS records to set and what DNS has",
      description: `Records are looked up within 3 s, for at most ${PAGE_MAX} domains per page.`,
      query: pageQuery,
      answer: z.object({ domains: z.array(domainAnswer), next_cursor: nextCursor }),
      handle: async ({ query }) => {
        const names = [...domains.names].toSorted();
        const page = await readPage(
          { ...query, limit: Math.min(query.limit, PAGE_MAX) },
          {
            key: z.string().max(253),
            read: async (limit, after) =>
              names.filter((name) => after === undefined || name > after).slice(0, limit),
            keyOf: (name) => name,
          },
        );
        const details = await Promise.all(page.items.map((name) => domains.check(name)));
        return { domains: details.map(toDomain), next_cursor: page.next_cursor };
      },
    }),
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/domains",
      summary: "Add a sending domain",
      body: domainBody,
      status: 201,
      answer: domainAnswer,
      handle: async ({ body }) => toDomain(await domains.add(readDomain(body.domain))),
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/domains/{domain}",
      summary: "Read a domain and check its DNS records",
      answer: domainAnswer,
      handle: async ({ params }) => toDomain(await domains.check(params["domain"]!.toLowerCase())),
    }),
    defineRoute({
      ...operation,
      method: "DELETE",
      path: "/api/v1/domains/{domain}",
      summary: "Delete a domain and its keys",
      answer: NO_BODY,
      handle: async ({ params }) => domains.remove(params["domain"]!.toLowerCase()),
    }),
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/domains/{domain}/keys",
      summary: "Create the next DKIM key",
      description:
        "The key signs once its record is published. The previous key stays published for seven more days.",
      status: 201,
      answer: domainAnswer,
      handle: async ({ params }) => toDomain(await domains.rotate(params["domain"]!.toLowerCase())),
    }),
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/domains/{domain}/keys/{selector}/activate",
      summary: "Sign with a pending key although its record was not seen in DNS",
      answer: domainAnswer,
      handle: async ({ params }) => {
        const domain = params["domain"]!.toLowerCase();
        await domains.activate(domain, params["selector"]!);
        return toDomain(await domains.check(domain));
      },
    }),
  ];
}

function readDomain(text: string): string {
  const result = parseDomain(text);
  if (result.ok) return result.domain;
  throw createValidationError([{ in: "body", path: "domain", message: result.reason }]);
}

function toDomain({ domain, isConfigured, keys, records }: DomainDetail) {
  return {
    domain,
    configured: isConfigured,
    verified: records.every(({ status }) => status === "ok"),
    keys: keys.map(({ selector, state, created_at }) => ({
      selector,
      state,
      created_at: new Date(created_at).toISOString(),
    })),
    records,
  };
}
