// Signed links: public URLs whose last segment is a statement that only this service can have made.
//
//   <public url>/<purpose>/<base64url of a JSON array>.<HMAC-SHA-256, 128 bits>
//
// They do not expire: an unsubscribe link must work for as long as somebody keeps the mail (RFC 8058 section 3.1).
import { createHmac, timingSafeEqual } from "node:crypto";

/** Uses of links. A proof for one use is invalid for the others. */
export type LinkPurpose = "unsubscribe" | "open" | "click";

/** Values of a link. */
export type LinkValues = readonly (string | number)[];

/** Options of {@link SignedLinks}. */
export interface SignedLinksOptions {
  key: Buffer;
  /** Returns the public URL of the service without a slash at the end; undefined if it has none. */
  publicUrl: () => string | undefined;
}

const PROOF_BYTES = 16;
const TOKEN = /^([A-Za-z0-9_-]{2,8192})\.([A-Za-z0-9_-]{22})$/;

/** Creates and checks links. */
export class SignedLinks {
  readonly #options: SignedLinksOptions;

  constructor(options: SignedLinksOptions) {
    this.#options = options;
  }

  /** False if the service has no public URL, so that no links can be made. */
  get isAvailable(): boolean {
    return this.#options.publicUrl() !== undefined;
  }

  /** Returns the beginning of all links for a use. Throws if there is no public URL. */
  prefixOf(purpose: LinkPurpose): string {
    const base = this.#options.publicUrl();
    if (base === undefined) throw new Error("links require public_url");
    return `${base}/${purpose}/`;
  }

  /** Returns a link. The same values give the same link. Throws if there is no public URL. */
  format(purpose: LinkPurpose, values: LinkValues): string {
    const prefix = this.prefixOf(purpose);
    const payload = Buffer.from(JSON.stringify(values)).toString("base64url");
    return `${prefix}${payload}.${this.#prove(purpose, payload).toString("base64url")}`;
  }

  /** Returns the values of a token, the last segment of a link; undefined if it is forged or incomplete. */
  parse(purpose: LinkPurpose, token: string): LinkValues | undefined {
    const [, payload = "", proof = ""] = TOKEN.exec(token) ?? [];
    // The comparison takes the same time for any proof of this length.
    const given = Buffer.alloc(PROOF_BYTES);
    given.write(proof, "base64url");
    if (!timingSafeEqual(given, this.#prove(purpose, payload)) || payload === "") return undefined;
    return JSON.parse(Buffer.from(payload, "base64url").toString()) as LinkValues;
  }

  #prove(purpose: LinkPurpose, payload: string): Buffer {
    const hmac = createHmac("sha256", this.#options.key).update(`${purpose}\n${payload}`);
    return hmac.digest().subarray(0, PROOF_BYTES);
  }
}
