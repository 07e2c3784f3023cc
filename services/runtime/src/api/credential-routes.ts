// Replacement of the platform's credentials.
import { defineRoute, type ApiRoute } from "@platform/kernel/http";
import { z } from "zod";
import type { CredentialControl } from "../control/credential-control.ts";
import { OVERLAP_S_MAX } from "../services/rotatable.ts";
import { requireOperator } from "./access.ts";

export function createCredentialRoutes(
  credentials: Pick<CredentialControl, "rotate">,
  onChange: (title: string, actor: string) => void,
): ApiRoute[] {
  return [
    defineRoute({
      method: "POST",
      path: "/api/v1/credentials/{name}/rotate",
      tag: "Credentials",
      summary: "Replace a credential; running programs of the platform follow",
      description:
        "The new value is in `credentials.env` of the data folder, never in the answer. The former value is accepted until its end.",
      access: requireOperator,
      requires: "token",
      params: z.object({ name: z.string().min(1).max(64) }),
      body: z.strictObject({
        overlap_seconds: z.int().min(0).max(OVERLAP_S_MAX).default(86_400).meta({
          description: "time for which the former value is accepted; 0 ends it when all follow",
        }),
      }),
      answer: z.object({
        name: z.string(),
        former_ends_at: z.string().meta({ description: "RFC 3339" }),
        followed: z.array(z.string()).meta({ description: "programs that use the new value" }),
        pending: z
          .array(z.string())
          .meta({ description: "programs to restart before the former value ends" }),
      }),
      problems: {
        404: "There is no such credential",
        409: "It is not replaced in this way, or a former value is still accepted",
        503: "A service does not accept the next value; nothing has changed",
      },
      handle: async ({ params: { name }, body: { overlap_seconds: seconds } }) => {
        const report = await credentials.rotate(name, seconds * 1_000, "operator");
        onChange(`credential ${name} rotated`, "operator");
        const { formerEndsAtMs, followed, pending } = report;
        return {
          name,
          former_ends_at: new Date(formerEndsAtMs).toISOString(),
          followed: [...followed],
          pending: [...pending],
        };
      },
    }),
  ];
}
