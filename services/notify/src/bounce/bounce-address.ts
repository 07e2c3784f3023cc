// Bounce addresses (VERP): the sender of the envelope names the delivery, with a proof that it comes from this service.
//
//   bounce+<message id in hex>-<position>-<day>.<hmac>@domain
import { createHmac, timingSafeEqual } from "node:crypto";
import type { SecretBox } from "@platform/kernel/secrets";
import type { NotifyConfig } from "../config.ts";
import type { NotifyDatabase } from "../database/schema.ts";
import { readKey } from "../database/secrets.ts";

/** A delivery that a bounce address names. */
export interface BouncedDelivery {
  messageId: string;
  position: number;
}

const DAY_MS = 86_400_000;
const VALID_DAYS = 14;
const PROOF_CHARACTERS = 16;
const LOCAL = /^bounce\+([0-9a-f]{32})-([0-9a-z]{1,2})-([0-9a-z]{1,4})\.([0-9a-f]{16})$/;

/** Creates and checks bounce addresses. */
export class BounceAddresses {
  readonly #key: Buffer;
  readonly #domain: string;

  constructor(key: Buffer, domain: string) {
    this.#key = key;
    this.#domain = domain;
  }

  /** Returns the bounce address of a delivery, at most 64 characters before the @. */
  format({ messageId, position }: BouncedDelivery, nowMs: number): string {
    const day = Math.floor(nowMs / DAY_MS);
    const id = `${messageId.replaceAll("-", "")}-${position.toString(36)}-${day.toString(36)}`;
    return `bounce+${id}.${this.#prove(id)}@${this.#domain}`;
  }

  /** Returns the delivery of an address; undefined if it is forged, expired, or no bounce address. */
  parse(address: string, nowMs: number): BouncedDelivery | undefined {
    const at = address.lastIndexOf("@");
    if (address.slice(at + 1).toLowerCase() !== this.#domain) return undefined;
    const found = LOCAL.exec(address.slice(0, at).toLowerCase());
    if (found === null) return undefined;
    const [, id = "", position = "", day = "", proof = ""] = found;
    const expected = this.#prove(`${id}-${position}-${day}`);
    if (!timingSafeEqual(Buffer.from(proof), Buffer.from(expected))) return undefined;
    const age = Math.floor(nowMs / DAY_MS) - Number.parseInt(day, 36);
    if (age < 0 || age > VALID_DAYS) return undefined;
    const messageId = id.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
    return { messageId, position: Number.parseInt(position, 36) };
  }

  #prove(id: string): string {
    return createHmac("sha256", this.#key).update(id).digest("hex").slice(0, PROOF_CHARACTERS);
  }
}

/** Creates the bounce addresses of the configuration; undefined if bounces are sent to the sender of a message. */
export async function createBounceAddresses(
  { bounce_domain, from_domain, inbound_port }: NotifyConfig,
  database: NotifyDatabase,
  box: SecretBox,
): Promise<BounceAddresses | undefined> {
  const domain = bounce_domain ?? (inbound_port === undefined ? undefined : from_domain);
  return domain === undefined
    ? undefined
    : new BounceAddresses(await readKey(database, box, "bounce_key"), domain);
}
