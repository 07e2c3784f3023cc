// The response to a sign-in: tokens, cookies and the user, or the 403 that requires a second factor.
import { PlatformError } from "@platform/kernel/errors";
import { formatTime } from "../session/sessions.ts";
import type { SignedIn, SignInOutcome } from "../sign-in/sign-in.ts";
import type { Account } from "../user/account.ts";
import { DEVICE_MARK_MS, type Cookies } from "../web/cookies.ts";
import type { Identification } from "./principal.ts";

/** A user as the API shows it. */
export function showUser(account: Account) {
  return {
    id: account.id,
    username: account.username,
    ...(account.email === undefined
      ? {}
      : { email: account.email, email_verified: account.email_verified }),
    ...(account.name === undefined ? {} : { name: account.name }),
    ...(account.picture === undefined ? {} : { picture: account.picture }),
    ...(account.tenant === undefined ? {} : { tenant: account.tenant }),
    ...(account.disabled ? { disabled: true } : {}),
    created_at: formatTime(account.created_at),
  };
}

/** Builds the response to one step of a sign-in. Throws 403 `mfa_required` if a further step is needed. */
export function answerOutcome(
  outcome: SignInOutcome,
  headers: Headers,
  identification: Identification,
  cookies: Cookies,
) {
  return answerSignedIn(requireSignedIn(outcome), headers, identification, cookies);
}

/** The result of a completed sign-in. Throws 403 `mfa_required` if a further step is needed. */
export function requireSignedIn(outcome: SignInOutcome): SignedIn {
  switch (outcome.kind) {
    case "signed-in":
      return outcome.signedIn;
    case "passkey":
      throw new PlatformError("mfa_required", "A passkey is required to sign in.", {
        fields: { factors: [], passkey_required: true },
      });
    case "factor": {
      const { challenge } = outcome;
      const detail =
        challenge.enrolment_required === true
          ? "A second factor must be set up to sign in."
          : "A second factor is required to sign in.";
      throw new PlatformError("mfa_required", detail, { fields: { ...challenge } });
    }
    default:
      return outcome satisfies never;
  }
}

/** Builds the response of a completed sign-in; sets the cookies in `headers`. */
export function answerSignedIn(
  signedIn: SignedIn,
  headers: Headers,
  identification: Identification,
  cookies: Cookies,
) {
  identification.setSessionCookie(headers, signedIn.sessionToken);
  headers.append(
    "Set-Cookie",
    cookies.format("platform_device", signedIn.deviceMark, DEVICE_MARK_MS),
  );
  const { tokens } = signedIn;
  return {
    ...(tokens === undefined ? {} : { ...tokens, token: tokens.access_token }),
    session_token: signedIn.sessionToken,
    user: showUser(signedIn.account),
  };
}
