// Topic rules of roles over HTTP, for operators.
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, type ApiRoute, NO_BODY } from "@platform/kernel/http";
import { z } from "zod";
import { ROLE_FORM, RULES_MAX, type TopicRules } from "../access/topic-rules.ts";
import { TOPIC_NAME_BYTES_MAX } from "../topic/name.ts";
import { RIGHTS } from "../topic/rights.ts";
import { requireOperator } from "./admission.ts";

const roleParams = z.object({ role: z.string().regex(ROLE_FORM) });
const rulesBody = z.strictObject({
  rules: z
    .array(
      z.strictObject({
        topics: z
          .string()
          .min(1)
          .max(TOPIC_NAME_BYTES_MAX)
          .describe("A name, or a pattern: `*` is one level, `#` any number."),
        allow: z.array(z.enum(RIGHTS)).min(1).max(RIGHTS.length),
      }),
    )
    .min(1)
    .max(RULES_MAX),
});

const roleRules = z.object({ role: z.string(), ...rulesBody.shape });

/** Routes of topic rules. */
export function createAccessRoutes(rules: TopicRules): ApiRoute[] {
  const own = { tag: "Access", access: requireOperator } as const;
  return [
    defineRoute({
      ...own,
      method: "GET",
      path: "/api/v1/access/roles",
      summary: "Topic rules of all roles",
      answer: z.object({ roles: z.array(roleRules) }),
      handle: () => ({ roles: rules.list() }),
    }),
    defineRoute({
      ...own,
      method: "GET",
      path: "/api/v1/access/roles/{role}",
      summary: "Topic rules of a role",
      params: roleParams,
      answer: roleRules,
      handle: ({ params }) => rules.find(params.role) ?? refuseUnknown(params.role),
    }),
    defineRoute({
      ...own,
      method: "PUT",
      path: "/api/v1/access/roles/{role}",
      summary: "Replace the topic rules of a role",
      description:
        "Tokens with the role have these rights in their tenant, in addition to those of their scopes.",
      params: roleParams,
      body: rulesBody,
      answer: roleRules,
      handle: async ({ params, body }) => {
        await rules.set(params.role, body.rules);
        return rules.find(params.role) ?? refuseUnknown(params.role);
      },
    }),
    defineRoute({
      ...own,
      method: "DELETE",
      path: "/api/v1/access/roles/{role}",
      summary: "Delete the topic rules of a role",
      params: roleParams,
      answer: NO_BODY,
      handle: async ({ params }) => {
        if (!(await rules.delete(params.role))) refuseUnknown(params.role);
      },
    }),
  ];
}

function refuseUnknown(role: string): never {
  throw new PlatformError("not_found", `The role ${role} has no topic rules.`);
}
