// Device marks: signed cookies of browsers that have signed in to an account before.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { foldUsername } from "../user/username.ts";

const idBytes = 16;
const signatureBytes = 32;
const markCharactersMax = 128;

/** Makes and reads the marks. One is good for the account that it was made for, and counts attempts of its own. */
export class DeviceMarks {
  readonly #key: Buffer;

  /** `secret` is the service's: 32 bytes or more, the same on every node. */
  constructor(secret: Buffer) {
    this.#key = createHmac("sha256", secret).update("device marks").digest();
  }

  /** A new mark for the browser that the account has just signed in on. */
  create(username: string): string {
    const id = randomBytes(idBytes);
    return Buffer.concat([id, this.#sign(id, foldUsername(username))]).toString("base64url");
  }

  /** The device's id; undefined unless the mark was made for this account. */
  read(mark: string | undefined, username: string): string | undefined {
    if (mark === undefined || mark.length > markCharactersMax) return undefined;
    const bytes = Buffer.from(mark, "base64url");
    if (bytes.length !== idBytes + signatureBytes) return undefined;
    const id = bytes.subarray(0, idBytes);
    return timingSafeEqual(bytes.subarray(idBytes), this.#sign(id, foldUsername(username)))
      ? id.toString("base64url")
      : undefined;
  }

  #sign(id: Buffer, name: string): Buffer {
    return createHmac("sha256", this.#key).update(id).update(name).digest();
  }
}
