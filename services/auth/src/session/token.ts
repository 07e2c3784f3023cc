// Session tokens: a random id and its signature. Only a hash of the id is stored.
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";

const PREFIX = "ps_";
const ID_BYTES = 32;
const MAC_BYTES = 32;
const TOKEN_CHARS = PREFIX.length + Math.ceil(((ID_BYTES + MAC_BYTES) * 4) / 3);

/** A new token and the hash to store. */
export interface NewSessionToken {
  token: string;
  hash: string;
}

/** Creates and verifies tokens. */
export class SessionTokens {
  readonly #key: Buffer;

  constructor(secret: Buffer) {
    this.#key = createHmac("sha256", secret).update("session tokens").digest();
  }

  create(): NewSessionToken {
    const id = randomBytes(ID_BYTES);
    const token = PREFIX + Buffer.concat([id, this.#sign(id)]).toString("base64url");
    return { token, hash: hashId(id) };
  }

  /** The hash of a valid token; `undefined` for others. */
  read(token: string): string | undefined {
    if (token.length !== TOKEN_CHARS || !isSessionToken(token)) return undefined;
    const bytes = Buffer.from(token.slice(PREFIX.length), "base64url");
    if (bytes.length !== ID_BYTES + MAC_BYTES) return undefined;
    const id = bytes.subarray(0, ID_BYTES);
    return timingSafeEqual(bytes.subarray(ID_BYTES), this.#sign(id)) ? hashId(id) : undefined;
  }

  #sign(id: Buffer): Buffer {
    return createHmac("sha256", this.#key).update(id).digest();
  }
}

/** True for session tokens, false for access tokens. */
export function isSessionToken(token: string): boolean {
  return token.startsWith(PREFIX);
}

function hashId(id: Buffer): string {
  return createHash("sha256").update(id).digest("base64url");
}
