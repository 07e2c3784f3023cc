// The proof that the gateway has applied the access rules of a route to a request.

/** Field of requests in which the gateway sends the proof, in place of the client's. */
export const PROOF_FIELD = "Platform-Rules";

/** The proof for an endpoint by its position, or with -1 for all other routes. The secret is that of a version of a service. */
export function formatProof(secret: string, index: number): string {
  return `${secret}.${index}`;
}
