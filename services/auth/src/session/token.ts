// Session tokens: a random id and a signature over it. Only the id's hash is kept.
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";

const prefix = "ps_";
const idBytes = 32;
const macBytes = 32;
const tokenChars = prefix.length + Math.ceil(((idBytes + macBytes) * 4) / 3);

/** A new token, and what is kept of it. */
export interface NewSessionToken {
  token: string;
  hash: string;
}

/** Makes and checks tokens. */
export class SessionTokens {
  readonly #key: Buffer;

  constructor(secret: Buffer) {
    this.#key = createHmac("sha256", secret).update("session tokens").digest();
  }

  create(): NewSessionToken {
    const id = randomBytes(idBytes);
    const token = prefix + Buffer.concat([id, this.#sign(id)]).toString("base64url");
    return { token, hash: hashId(id) };
  }

  /** The hash to look for; undefined when we did not sign the token. */
  read(token: string): string | undefined {
    if (token.length !== tokenChars || !isSessionToken(token)) return undefined;
    const bytes = Buffer.from(token.slice(prefix.length), "base64url");
    if (bytes.length !== idBytes + macBytes) return undefined;
    const id = bytes.subarray(0, idBytes);
    return timingSafeEqual(bytes.subarray(idBytes), this.#sign(id)) ? hashId(id) : undefined;
  }

  #sign(id: Buffer): Buffer {
    return createHmac("sha256", this.#key).update(id).digest();
  }
}

/** Whether a bearer token is one of these rather than an access token. */
export function isSessionToken(token: string): boolean {
  return token.startsWith(prefix);
}

function hashId(id: Buffer): string {
  return createHash("sha256").update(id).digest("base64url");
}
