// Reads the credential of a route for its upstream.
import type { UpstreamAuthConfig } from "../config/upstream-auth.ts";
import type { RouteConfig } from "../config/route.ts";
import type { HeaderRules } from "../shared-state/index.ts";
import type { ReadFile } from "./confinement.ts";
import { describeCause, refuseField } from "./route-fault.ts";

const SECRET_BYTES_MAX = 65_536;
const AUTHORIZATION = "Authorization";
const BEARER = "Bearer ";
/** Fields in which clients send credentials of their own. */
const CLIENT_FIELDS: readonly string[] = [AUTHORIZATION, "X-API-Key", "API-Key"];

/** The field of the credential. */
function findAuthField({ header }: UpstreamAuthConfig): string {
  return header ?? AUTHORIZATION;
}

/** Place of a credential in the configuration. */
export interface AuthPlace {
  /** Label of the route. */
  readonly label: string;
  /** Name of the field, with those around it. */
  readonly field: string;
}

/** All fields with credentials of the gateway for upstreams of a route. */
export function listAuthFields({
  upstream_auth: auth,
  llm_routing: routing,
}: RouteConfig): string[] {
  const all = [auth, routing?.primary.auth, routing?.fallback.auth];
  return all.flatMap((one) => (one === undefined ? [] : [findAuthField(one)]));
}

/** Rules with the credential instead of the client's. Throws `validation_failed` if it cannot be read. */
export function addUpstreamAuth(
  rules: HeaderRules | undefined,
  auth: UpstreamAuthConfig,
  place: AuthPlace,
  read: ReadFile,
): HeaderRules {
  const field = findAuthField(auth);
  const isAuthorization = field.toLowerCase() === AUTHORIZATION.toLowerCase();
  const prefix = auth.prefix ?? (isAuthorization ? BEARER : "");
  const replaced = new Set([...CLIENT_FIELDS, field].map((name) => name.toLowerCase()));
  const added = (rules?.addRequest ?? []).filter(([name]) => !replaced.has(name.toLowerCase()));
  return {
    removeRequest: [...(rules?.removeRequest ?? []), ...CLIENT_FIELDS, field],
    addRequest: [...added, [field, prefix + readCredential(auth, place, read)]],
    removeResponse: rules?.removeResponse ?? [],
    addResponse: rules?.addResponse ?? [],
  };
}

function readCredential(auth: UpstreamAuthConfig, place: AuthPlace, read: ReadFile): string {
  const { env, file } = auth;
  const { label, field } = place;
  if (env !== undefined) {
    const value = process.env[env]?.trim() ?? "";
    if (value === "")
      throw refuseField(label, `${field}.env`, env, "is not set in the environment");
    if (!isFieldValue(value))
      throw refuseField(label, `${field}.env`, env, "has characters that a field cannot have");
    return value;
  }
  try {
    const value = read(file!, SECRET_BYTES_MAX).toString("utf8").trim();
    if (value === "") throw new Error("it is empty");
    if (!isFieldValue(value)) throw new Error("it has characters that a field cannot have");
    return value;
  } catch (cause) {
    const fault = `cannot be used: ${describeCause(cause)}`;
    throw refuseField(label, `${field}.file`, file, fault);
  }
}

function isFieldValue(value: string): boolean {
  return /^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/.test(value);
}
