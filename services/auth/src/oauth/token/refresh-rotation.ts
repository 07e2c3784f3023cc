// Rotation of refresh tokens at each use, with a grace period for clients that lost the response.
import { createHmac } from "node:crypto";
import type { Clock } from "@platform/kernel/time";

const GRACE_MS = 30_000;

/** The use of a refresh token: time in ms and thumbprint of the DPoP key. */
interface UsedToken {
  readonly consumedAt: number | undefined;
  readonly consumedJkt: string | undefined;
}

/** Decides about repeated uses of refresh tokens. */
export interface RefreshRotation {
  /** The successor of a token, the same on every node and each time. */
  deriveSuccessor(presented: string): string;
  /** True if a used token may be used again: shortly after, with the same DPoP key or again without one. */
  isWithinGrace(used: UsedToken, jkt: string | undefined): boolean;
}

/** Creates the rotation; `secret` is the server's, 32 bytes or more, the same on every node. */
export function createRefreshRotation(secret: Uint8Array, clock: Clock): RefreshRotation {
  return {
    deriveSuccessor: (presented) =>
      createHmac("sha256", secret).update(`refresh token\0${presented}`).digest("base64url"),
    isWithinGrace: ({ consumedAt, consumedJkt }, jkt) =>
      consumedAt !== undefined && clock.now() - consumedAt <= GRACE_MS && consumedJkt === jkt,
  };
}
