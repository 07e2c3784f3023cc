// The sender of a request for work that is done later: without its keys.

/** A principal. Its rights are those of the moment of the work. */
export type StoredPrincipal =
  | { readonly kind: "root" }
  | { readonly kind: "user"; readonly name: string }
  | {
      readonly kind: "role";
      readonly role: string;
      readonly session: {
        readonly sessionName: string;
        readonly sub: string;
        readonly username?: string;
        readonly tenant?: string;
        readonly issuer: string;
        readonly scopes: readonly string[];
        readonly issuedMs: number;
      };
    };

/** The sender: the first of its principals that may do something does it. */
export interface StoredRequester {
  readonly principals: readonly StoredPrincipal[];
  /** Its address, for policies. */
  readonly address: string;
  readonly secure: boolean;
}
