// GET /api/v1/admin/sources: where configuration, addresses and secrets come from.
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import type { Clock } from "@platform/kernel/time";
import { z } from "zod";
import type { SourceView } from "../source/source-view.ts";

const sourceSchema = z.object({
  kind: z.enum(["secret_service", "bucket", "discovery", "git"]),
  address: z.string().meta({ description: "without credentials" }),
  version: z.string().meta({ description: "version in use, in the words of the source" }),
  read_at: z.string().nullable().meta({ description: "last successful read, ISO 8601" }),
  age_s: z.int().nullable().meta({ description: "seconds since the last successful read" }),
  error: z.string().nullable().meta({ description: "fault of the last attempt" }),
});

export function createSourceRoutes(list: () => readonly SourceView[], clock: Clock): ApiRoute[] {
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/admin/sources",
      tag: "Operation",
      summary: "Sources of configuration, addresses and secrets outside of the gateway",
      answer: z.object({ items: z.array(sourceSchema) }),
      handle: () => ({ items: list().map((one) => show(one, clock.now())) }),
    }),
  ];
}

function show(source: SourceView, now: number): z.output<typeof sourceSchema> {
  const { kind, address, version, readAtMs, error } = source;
  return {
    kind,
    address,
    version,
    read_at: readAtMs === undefined ? null : new Date(readAtMs).toISOString(),
    age_s: readAtMs === undefined ? null : Math.max(0, Math.round((now - readAtMs) / 1_000)),
    error: error ?? null,
  };
}
