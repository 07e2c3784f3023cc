// The mark of refresh tokens whose access tokens are bound to a DPoP key.

/** Member of the stored token. */
export const BOUND_MEMBER = "dpopBound";

/** A refresh token of the core. */
export interface MarkedToken {
  [BOUND_MEMBER]?: boolean;
}

/** True if the token's access tokens are bound: a refresh requires a proof. */
export function isBoundToken(token: object | undefined): boolean {
  const marked: MarkedToken | undefined = token;
  return marked?.[BOUND_MEMBER] === true;
}
