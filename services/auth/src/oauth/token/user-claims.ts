// Claims about users in ID tokens and userinfo.
import type { Account } from "../../user/account.ts";

/** Claims by scope (OpenID Connect Core section 5.4), as far as users have them. */
export const CLAIMS_OF_SCOPE: Readonly<Record<string, string[]>> = {
  openid: ["sub"],
  profile: ["name", "picture", "preferred_username"],
  email: ["email", "email_verified"],
};

/** All claims about a user; callers select the requested ones. */
export function describeAccount(account: Account): { sub: string; [claim: string]: unknown } {
  return {
    sub: account.id,
    name: account.name,
    picture: account.picture,
    preferred_username: account.username,
    email: account.email,
    email_verified: account.email === undefined ? undefined : account.email_verified,
  };
}
