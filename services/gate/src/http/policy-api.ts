// Policies and revocation of users: /api/v1/admin/policy/reload and /revoke.
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { policyReloadSchema } from "@platform/kernel/route-rules";
import { z } from "zod";
import type { AccessControl } from "../access/access-control.ts";
import { readJsonBody } from "./json-body.ts";
import { readChangeRequest } from "./request.ts";

const BODY_BYTES_MAX = 1_048_576;

const revokeSchema = z.strictObject({
  username: z
    .string()
    .min(1)
    .max(1_024)
    .meta({ description: "value of the claim `username` or `sub` of the user's tokens" }),
});

const answer = z.object({ status: z.string(), message: z.string() });

/** Creates the endpoints for policies and revocation. */
export function createPolicyRoutes(access: AccessControl): ApiRoute[] {
  const own = {
    method: "POST",
    tag: "Access",
    bodyKind: "bytes",
    answer,
  } as const;
  return [
    defineRoute({
      ...own,
      path: "/api/v1/admin/policy/reload",
      summary: "Raise the policy version, and replace the global policy if the body contains one",
      description:
        "Responses to tokens of an older version carry `X-Token-Refresh: true`. A version that is lower than the active one requires `allow_lower_version`: it then replaces that of all gateways. Global rules come before those of routes; the first that matches decides.",
      bodyBytesMax: BODY_BYTES_MAX,
      problems: {
        400: "The policy is invalid",
        409: "The version is lower than the active one",
        507: "The disk is full",
      },
      handle: async (exchange) => {
        const { caller } = readChangeRequest(exchange);
        const reload =
          exchange.body.length === 0
            ? {}
            : readJsonBody(exchange.body, exchange.headers, policyReloadSchema);
        const { version, rules } = await access.reloadPolicy(reload, caller);
        const count = rules.length === 1 ? "1 rule" : `${rules.length} rules`;
        return {
          status: "reloaded",
          message: `policy version ${version} is active, with ${count}`,
        };
      },
    }),
    defineRoute({
      ...own,
      path: "/api/v1/admin/policy/revoke",
      summary: "Invalidate all tokens that a user holds now",
      description: "Their streams and WebSockets end. Tokens issued later are valid.",
      bodyBytesMax: 65_536,
      problems: { 400: "The user name is missing", 507: "The disk is full" },
      handle: async (exchange) => {
        const { caller } = readChangeRequest(exchange);
        const { username } = readJsonBody(exchange.body, exchange.headers, revokeSchema);
        await access.revokeUser(username, caller);
        return { status: "revoked", message: `the sessions of ${username} are invalid` };
      },
    }),
  ];
}
