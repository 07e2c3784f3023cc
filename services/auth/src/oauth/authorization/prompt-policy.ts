// Conditions under which an authorization request has to wait for the user.
import type { Clock } from "@platform/kernel/time";
import { errors, interactionPolicy, type KoaContextWithOIDC } from "oidc-provider";
import type { Sessions } from "../../session/sessions.ts";

/** Values of `acr` that sign-ins can reach: one factor, two factors. */
export const REACHABLE_ACR_VALUES: readonly string[] = ["1", "2"];

/** True if the client requires a second factor of the user. */
export type NeedsSecondFactor = (userId: string, clientId: string) => Promise<boolean>;

/**
 * Stored with a waiting request: the core's own timestamp has a resolution of one second, too coarse to recognise a
 * new sign-in.
 */
export interface StartDetails extends Record<string, unknown> {
  /** In ms. */
  startedAt: number;
}

/** The `acr` that a request waits for. */
export interface AcrDetails extends Record<string, unknown> {
  /** Space-separated. */
  acrValues: string;
}

/**
 * Extends the core's policy by `prompt=select_account`, ended sessions, `acr_values` of RFC 9470, and policies that
 * require a second factor.
 */
export function buildPromptPolicy({
  sessions,
  needsSecondFactor,
  clock,
}: {
  sessions: Sessions;
  needsSecondFactor: NeedsSecondFactor;
  clock: Clock;
}): interactionPolicy.DefaultPolicy {
  const { Check, Prompt } = interactionPolicy;
  const policy = interactionPolicy.base();
  // The account is chosen first, because the other checks depend on it.
  const noteStart = (): StartDetails => ({ startedAt: clock.now() });
  policy.add(new Prompt({ name: "select_account", requestable: true }, noteStart), 0);
  const login = policy.get("login");
  if (login === undefined) throw new Error("the core has no login prompt");
  const { details } = login;
  login.details = async (ctx) => ({ ...(await details(ctx)), ...noteStart() });
  // The core's checks do not order `acr` values; ours do, for both request parameters.
  login.checks.remove("essential_acr");
  login.checks.remove("essential_acrs");
  login.checks.add(
    new Check("session_ended", "the session has ended", async ({ oidc }) => {
      const { accountId, uid } = oidc.session ?? {};
      if (accountId === undefined || uid === undefined) return Check.NO_NEED_TO_PROMPT;
      const session = oidc.account === undefined ? undefined : await sessions.find(uid);
      const isSignedIn = session?.userId === accountId;
      return isSignedIn ? Check.NO_NEED_TO_PROMPT : Check.REQUEST_PROMPT;
    }),
  );
  login.checks.add(
    new Check(
      "acr_values",
      "the requested authentication could not be reached",
      "unmet_authentication_requirements",
      ({ oidc }) => {
        const wanted = readAcr(oidc);
        if (wanted === "") return Check.NO_NEED_TO_PROMPT;
        if (oidc.session?.accountId === undefined) return Check.NO_NEED_TO_PROMPT;
        const isReached = reachesAcr(wanted, oidc.acr ?? "");
        return isReached ? Check.NO_NEED_TO_PROMPT : Check.REQUEST_PROMPT;
      },
      ({ oidc }): AcrDetails => ({ acrValues: readAcr(oidc) }),
    ),
  );
  login.checks.add(
    new Check(
      "second_factor",
      "the client requires a second factor",
      "unmet_authentication_requirements",
      async ({ oidc }) => {
        const { accountId } = oidc.session ?? {};
        if (accountId === undefined || oidc.acr === "2" || oidc.client === undefined) {
          return Check.NO_NEED_TO_PROMPT;
        }
        const isNeeded = await needsSecondFactor(accountId, oidc.client.clientId);
        return isNeeded ? Check.REQUEST_PROMPT : Check.NO_NEED_TO_PROMPT;
      },
    ),
  );
  return policy;
}

/** The values of `acr_values` that sign-ins can reach; others are voluntary (OpenID Connect Core section 3.1.2.1). */
export function readReachable(wanted: unknown): string {
  if (typeof wanted !== "string") return "";
  return wanted
    .split(" ")
    .filter((value) => REACHABLE_ACR_VALUES.includes(value))
    .join(" ");
}

// Essential values of the parameter `claims` (OpenID Connect Core section 5.5.1.1), or else `acr_values`.
function readAcr({ claims, params }: KoaContextWithOIDC["oidc"]): string {
  const asked = claims.id_token?.["acr"];
  if (asked?.essential !== true) return readReachable(params?.["acr_values"]);
  const values: unknown = asked.values ?? (asked.value === undefined ? [] : [asked.value]);
  if (!Array.isArray(values) || !values.every((value) => typeof value === "string"))
    throw new errors.InvalidRequest("values of acr must be strings");
  // No sign-in could satisfy the request.
  if (values.length > 0 && !values.some((value) => REACHABLE_ACR_VALUES.includes(value)))
    throw new errors.UnmetAuthenticationRequirements("the requested acr is not supported");
  return values.join(" ");
}

/** True if a sign-in of this `acr` satisfies `acr_values`; two factors satisfy one as well. */
export function reachesAcr(acrValues: string, acr: string): boolean {
  const wanted = acrValues.split(" ");
  return wanted.includes(acr) || (acr === "2" && wanted.includes("1"));
}
