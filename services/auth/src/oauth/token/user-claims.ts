// What is said about users, in ID tokens and by userinfo.
import type { Account } from "../../user/account.ts";

/** Claims by the scope that asks for them (OpenID Connect Core section 5.4), of those that are known about users. */
export const CLAIMS_OF_SCOPE: Readonly<Record<string, string[]>> = {
  openid: ["sub"],
  profile: ["name", "picture", "preferred_username"],
  email: ["email", "email_verified"],
};

/** The claims about a user; who answers with them picks those that were asked for. */
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
