// Fields of a route that decide who may use it.
import { z } from "zod";
import { policyLines } from "./policy.ts";
import { text, unset, yesNo } from "./value.ts";

const TENANTS_MAX = 10_000;

/** Fields of {@link GuardFields} with their schemas. */
export const guardFields = {
  require_api_key: yesNo().meta({
    description:
      "require an API key of a tenant in X-API-Key, which is not forwarded; takes the place of the global token and JWT settings, and is required in addition to `auth`",
  }),
  allowed_tenants: unset(z.array(text(256)).max(TENANTS_MAX)).meta({
    description:
      "tenants that may use the route, by their API key or the claim `tenant`; others get 403",
  }),
  policy: unset(policyLines()).meta({
    description:
      "policy lines `allow|deny METHOD PATH [if header.NAME == VALUE]`; the first that matches decides, after the global policy; `*` matches any characters, GET includes HEAD; `if cluster == NAME` and `if region == NAME` select lines by place",
  }),
};

/** Validated {@link guardFields}. */
export interface GuardFields {
  readonly require_api_key?: true;
  readonly allowed_tenants?: readonly string[];
  readonly policy?: string;
}
