// The schema of a route's `auth`: each type with the settings that it uses.
import { z } from "zod";
import {
  cuttableField,
  fieldName,
  filePath,
  serviceUrl,
  text,
  unset,
  wholeNumber,
  yesNo,
} from "./value.ts";

const FIELDS_MAX = 64;
const AUTH_TYPES = ["none", "bearer", "workload", "forward", "oidc"] as const;

const settings = {
  jwks_url: unset(serviceUrl()).meta({
    description:
      "`bearer`, `workload`: key set that verifies the tokens; default for `bearer`: the key jwks_url",
  }),
  required_scope: unset(text(256)).meta({
    description: "`bearer`: scope that a token must have",
  }),
  issuer: unset(text()).meta({
    description:
      "`bearer`: required value of `iss`, default: the key jwt_issuer; without both it is not checked. `oidc`: URL of the identity provider",
  }),
  audience: unset(text()).meta({
    description:
      "`bearer`, `workload`: value that `aud` must contain; default for `bearer`: the key jwt_audience; without both it is not checked",
  }),
  leeway_s: unset(wholeNumber(1, 600)).meta({
    description: "`bearer`, `workload`: accepted clock skew in seconds; default: 30",
  }),
  trust_domain: unset(
    text(255).regex(/^[a-z0-9._-]+$/, {
      error: 'expected a SPIFFE trust domain, such as "prod.example"',
    }),
  ).meta({ description: "`workload`: SPIFFE trust domain of the workloads" }),
  url: unset(serviceUrl()).meta({
    description:
      "`forward`: service that is asked about each request; a status of 2xx admits it, any other response goes to the client",
  }),
  request_headers: unset(z.array(fieldName()).max(FIELDS_MAX)).meta({
    description: "`forward`: request fields that the service gets; default: all",
  }),
  upstream_headers: unset(z.array(cuttableField()).max(FIELDS_MAX)).meta({
    description:
      "`forward`: fields of the service's response that the upstream gets; removed from client requests",
  }),
  timeout_ms: unset(wholeNumber(1, 60_000)).meta({
    description: "`forward`: timeout of the service in ms; default: 5000",
  }),
  client_id: unset(text(1_024)).meta({ description: "`oidc`: client ID of the gateway" }),
  client_secret_env: unset(text(256)).meta({
    description:
      "`oidc`: environment variable with the client secret; without a secret the client is public",
  }),
  client_secret_file: unset(filePath()).meta({
    description: "`oidc`: file with the client secret",
  }),
  scopes: unset(
    z.array(text(256).regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, { error: "expected a scope" })).max(32),
  ).meta({
    description:
      "`oidc`: requested scopes; default: openid, profile; offline_access keeps users signed in",
  }),
  session_ttl_s: unset(wholeNumber(60, 31_536_000)).meta({
    description: "`oidc`: time after which users sign in again, in seconds; default: 86400",
  }),
  claim_headers: unset(z.record(cuttableField(), text(256))).meta({
    description:
      "`oidc`: fields for the upstream with the claims that they get, beside X-User-Id, X-User-Roles and X-Tenant-Id",
  }),
  allow_insecure: yesNo().meta({
    description: "`oidc`: accept an identity provider at an http URL of another machine",
  }),
};

type Setting = keyof typeof settings;

const USED: Readonly<Record<(typeof AUTH_TYPES)[number], readonly Setting[]>> = {
  none: [],
  bearer: ["jwks_url", "required_scope", "issuer", "audience", "leeway_s"],
  workload: ["jwks_url", "audience", "trust_domain", "leeway_s"],
  forward: ["url", "request_headers", "upstream_headers", "timeout_ms"],
  oidc: [
    "issuer",
    "client_id",
    "client_secret_env",
    "client_secret_file",
    "scopes",
    "session_ttl_s",
    "claim_headers",
    "allow_insecure",
  ],
};

const REQUIRED: Readonly<Record<(typeof AUTH_TYPES)[number], readonly Setting[]>> = {
  none: [],
  bearer: [],
  workload: ["jwks_url", "audience", "trust_domain"],
  forward: ["url"],
  oidc: ["issuer", "client_id"],
};

/** Access control of one route. */
export const routeAuthSchema = z
  .strictObject({
    type: z.enum(AUTH_TYPES).meta({
      description:
        "`none` opens the route; `bearer` requires a JWT of the route's key set; `workload` a SPIFFE JWT-SVID; `forward` asks another service; `oidc` signs browser users in",
    }),
    ...settings,
  })
  .superRefine((auth, context) => {
    const complain = (key: Setting, message: string): void => {
      context.addIssue({ code: "custom", path: [key], message });
    };
    for (const key of Object.keys(settings) as Setting[]) {
      const isGiven = auth[key] !== undefined && auth[key] !== false;
      if (isGiven && !USED[auth.type].includes(key)) {
        complain(key, `type "${auth.type}" does not use it`);
      }
      if (!isGiven && REQUIRED[auth.type].includes(key)) {
        complain(key, `type "${auth.type}" requires it`);
      }
    }
    if (auth.client_secret_env !== undefined && auth.client_secret_file !== undefined) {
      complain("client_secret_file", "client_secret_env is set as well");
    }
  });

/** A validated `auth`. */
export type RouteAuthConfig = z.output<typeof routeAuthSchema>;
