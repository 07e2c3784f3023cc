// Device marks: signed cookies of browsers that have signed in to an account before.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { foldUsername } from "../user/username.ts";

const ID_BYTES = 16;
const SIGNATURE_BYTES = 32;
const MARK_CHARACTERS_MAX = 128;

/** Creates and reads marks. A mark is valid for one account, and attempts with it are counted separately. */
export class DeviceMarks {
  readonly #key: Buffer;

  /** `secret` is the service's: 32 bytes or more, the same on every node. */
  constructor(secret: Buffer) {
    this.#key = createHmac("sha256", secret).update("device marks").digest();
  }

  /** Creates a mark for the browser that the account has just signed in on. */
  create(username: string): string {
    const id = randomBytes(ID_BYTES);
    return Buffer.concat([id, this.#sign(id, foldUsername(username))]).toString("base64url");
  }

  /** The device's id; `undefined` unless the mark was created for this account. */
  read(mark: string | undefined, username: string): string | undefined {
    if (mark === undefined || mark.length > MARK_CHARACTERS_MAX) return undefined;
    const bytes = Buffer.from(mark, "base64url");
    if (bytes.length !== ID_BYTES + SIGNATURE_BYTES) return undefined;
    const id = bytes.subarray(0, ID_BYTES);
    return timingSafeEqual(bytes.subarray(ID_BYTES), this.#sign(id, foldUsername(username)))
      ? id.toString("base64url")
      : undefined;
  }

  #sign(id: Buffer, name: string): Buffer {
    return createHmac("sha256", this.#key).update(id).update(name).digest();
  }
}
