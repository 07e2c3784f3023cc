// Refresh tokens rotate at each use; a client whose answer was lost may ask again for a short time.
import { createHmac } from "node:crypto";
import type { Clock } from "@platform/kernel/time";

const GRACE_MS = 30_000;

/** The use of a refresh token: its time in ms, and the thumbprint of the DPoP key. */
interface UsedToken {
  readonly consumedAt: number | undefined;
  readonly consumedJkt: string | undefined;
}

/** Decides about refresh tokens that were used before. */
export interface RefreshRotation {
  /** The token that follows a presented one: the same on every node and each time. */
  deriveSuccessor(presented: string): string;
  /** Whether a used token may be presented once more: shortly after, with the same DPoP key or none as before. */
  isWithinGrace(used: UsedToken, jkt: string | undefined): boolean;
}

/** Makes the rotation; `secret` is the server's, 32 bytes or more, and the same on every node. */
export function createRefreshRotation(secret: Uint8Array, clock: Clock): RefreshRotation {
  return {
    deriveSuccessor: (presented) =>
      createHmac("sha256", secret).update(`refresh token\0${presented}`).digest("base64url"),
    isWithinGrace: ({ consumedAt, consumedJkt }, jkt) =>
      consumedAt !== undefined && clock.now() - consumedAt <= GRACE_MS && consumedJkt === jkt,
  };
}
