// Identity as this service uses it: its configuration, and tokens of the service itself.
import * as oidc from "openid-client";
import { declared } from "../service/declared.ts";
import { requireSettings } from "./required.ts";

const TIMEOUT_S = 15;
/** Tokens are replaced before they expire. */
const MARGIN_MS = 30_000;
const SCOPES_MAX = 100;

interface ClientToken {
  readonly text: string;
  readonly endsMs: number;
}

let configuration: Promise<oidc.Configuration> | undefined;
const tokens = new Map<string, Promise<ClientToken>>();

/** Discovers identity, once; a failed attempt is repeated by the next call. */
export function getIdentity(): Promise<oidc.Configuration> {
  const settings = requireSettings("auth", ["oidc_issuer", "oidc_client_id", "oidc_client_secret"]);
  configuration ??= discover(settings).catch((error: unknown) => {
    configuration = undefined;
    throw error;
  });
  return configuration;
}

function discover({
  oidc_issuer: issuer,
  oidc_client_id: id,
  oidc_client_secret: secret,
}: Record<"oidc_issuer" | "oidc_client_id" | "oidc_client_secret", string>) {
  // An issuer without TLS is the operator's choice: on this machine, or inside a network of its own.
  const execute = issuer.startsWith("http:") ? [oidc.allowInsecureRequests] : [];
  return oidc.discovery(new URL(issuer), id, undefined, oidc.ClientSecretBasic(secret), {
    execute,
    timeout: TIMEOUT_S,
  });
}

/**
 * Returns an access token of this service for `scope`, or for all scopes of its client. It is requested once for all
 * callers and kept until shortly before it expires; `isRefused` replaces it.
 */
export async function getClientToken(
  scope = "",
  { isRefused = false }: { isRefused?: boolean } = {},
): Promise<string> {
  const { clock } = declared.environment;
  const known = isRefused ? undefined : tokens.get(scope);
  if (known !== undefined) {
    const token = await known;
    if (clock.monotonicMs() < token.endsMs) return token.text;
  }
  // Another caller may have replaced it meanwhile.
  const current = tokens.get(scope);
  if (current !== undefined && current !== known && !isRefused) return (await current).text;
  const requested = request(scope);
  if (tokens.size >= SCOPES_MAX) tokens.clear();
  tokens.set(scope, requested);
  requested.catch(() => {
    if (tokens.get(scope) === requested) tokens.delete(scope);
  });
  return (await requested).text;
}

async function request(scope: string): Promise<ClientToken> {
  const { clock } = declared.environment;
  const identity = await getIdentity();
  const startedMs = clock.monotonicMs();
  const answer = await oidc.clientCredentialsGrant(identity, scope === "" ? {} : { scope });
  const livesMs = (answer.expires_in ?? 60) * 1_000;
  return {
    text: answer.access_token,
    endsMs: startedMs + Math.max(0, livesMs - Math.min(MARGIN_MS, livesMs / 2)),
  };
}
