// When an authorization request has to wait for the user.
import { errors, interactionPolicy, type KoaContextWithOIDC } from "oidc-provider";
import type { Clock } from "@platform/kernel/time";
import type { Sessions } from "../../session/sessions.ts";

/** Values of `acr` that sign-ins can reach: one factor, two factors. */
export const REACHABLE_ACR_VALUES: readonly string[] = ["1", "2"];

/** Whether a user must have shown a second factor for a client. */
export type NeedsSecondFactor = (userId: string, clientId: string) => Promise<boolean>;

/** What is kept of a request that waits: the core's own time of it is in whole seconds, too coarse to tell a new sign-in. */
export type StartDetails = {
  /** In ms. */
  startedAt: number;
};

/** Which `acr` a request waits for. */
export type AcrDetails = {
  /** Separated by spaces. */
  acrValues: string;
};

/**
 * Beside the core's own reasons to ask: `prompt=select_account`, a session that has ended, RFC 9470's `acr_values`, and
 * policies that ask for a second factor.
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
  // First of all: whose sign-in it is decides whether that is good enough.
  const noteStart = (): StartDetails => ({ startedAt: clock.now() });
  policy.add(new Prompt({ name: "select_account", requestable: true }, noteStart), 0);
  const login = policy.get("login");
  if (login === undefined) throw new Error("the core has no login prompt");
  const { details } = login;
  login.details = async (ctx) => ({ ...(await details(ctx)), ...noteStart() });
  // They know no order of values; ours does, for both ways to ask.
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
      "the client needs a second factor",
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

/** The values of `acr_values` that sign-ins can reach; the others are voluntary (OpenID Connect Core section 3.1.2.1). */
export function readReachable(wanted: unknown): string {
  if (typeof wanted !== "string") return "";
  return wanted
    .split(" ")
    .filter((value) => REACHABLE_ACR_VALUES.includes(value))
    .join(" ");
}

// What the parameter `claims` calls essential (OpenID Connect Core section 5.5.1.1), or else `acr_values`.
function readAcr({ claims, params }: KoaContextWithOIDC["oidc"]): string {
  const asked = claims.id_token?.["acr"];
  if (asked?.essential !== true) return readReachable(params?.["acr_values"]);
  const values: unknown = asked.values ?? (asked.value === undefined ? [] : [asked.value]);
  if (!Array.isArray(values) || !values.every((value) => typeof value === "string"))
    throw new errors.InvalidRequest("values of acr must be texts");
  // Whatever the user did, it would not be what is asked for.
  if (values.length > 0 && !values.some((value) => REACHABLE_ACR_VALUES.includes(value)))
    throw new errors.UnmetAuthenticationRequirements("no such acr can be reached here");
  return values.join(" ");
}

/** Whether a sign-in of this `acr` is one that `acr_values` asks for; two factors are one as well. */
export function reachesAcr(acrValues: string, acr: string): boolean {
  const wanted = acrValues.split(" ");
  return wanted.includes(acr) || (acr === "2" && wanted.includes("1"));
}
