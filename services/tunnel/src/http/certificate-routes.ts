// Names that may have certificates: a gateway asks before it obtains one (its `auto_tls_ask_url`).
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, type ApiRoute } from "@platform/kernel/http";
import { z } from "zod";
import { needScope } from "@platform/kernel/identity";
import { ADMIN_SCOPE } from "../identity.ts";

const answerSchema = z.object({ domain: z.string(), allowed: z.literal(true) });

/**
 * Creates the operation. It is for programs on this machine, and for operators: from elsewhere the names of tunnels could be
 * guessed with it.
 */
export function createCertificateRoutes(exists: (name: string) => boolean): ApiRoute[] {
  return [
    defineRoute({
      access: { local: true, otherwise: needScope(ADMIN_SCOPE) },
      method: "GET",
      path: "/api/v1/certificates/ask",
      tag: "Tunnels",
      summary: "Ask whether a name may have a certificate",
      description:
        "For the gateway's auto_tls_ask_url. Names that exist are the relay's domain, reserved and open tunnels, and proven custom domains.",
      query: z.object({ domain: z.string().min(1).max(253) }),
      answer: answerSchema,
      isRoutine: true,
      problems: { 404: "There is no such name" },
      handle: ({ query: { domain } }) => {
        const name = domain.toLowerCase();
        if (exists(name)) return { domain: name, allowed: true as const };
        throw new PlatformError("not_found", "There is no tunnel with this name.");
      },
    }),
  ];
}
