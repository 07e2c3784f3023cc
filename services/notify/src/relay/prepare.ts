// The final form of a mail: its envelope, and its bytes with the signature.
import type { Delivery } from "../delivery.ts";
import type { Envelope } from "./smtp/connection.ts";

/** A mail that is ready to be sent. */
interface PreparedMail {
  envelope: Envelope;
  /** Fields in front of the content, and the content. */
  parts: readonly Buffer[];
}

/** Prepares a delivery. */
export type PrepareMail = (delivery: Delivery) => Promise<PreparedMail>;

/** Options of {@link createPrepareMail}. */
export interface PrepareMailOptions {
  /** Returns the DKIM-Signature field with CRLF, or "" if the domain has no key. */
  sign: (content: Buffer, domain: string) => Promise<string>;
  /** Returns the sender of the envelope, to which bounces are sent. */
  senderOf: (delivery: Delivery) => string;
}

/** Creates the function that signs each message once and chooses the envelope of each delivery. */
export function createPrepareMail({ sign, senderOf }: PrepareMailOptions): PrepareMail {
  const signatures = new WeakMap<object, Promise<Buffer>>();
  return async (delivery) => {
    const { message } = delivery;
    let signature = signatures.get(message);
    if (signature === undefined) {
      const domain = message.sender.slice(message.sender.lastIndexOf("@") + 1);
      signature = sign(message.content, domain).then((field) => Buffer.from(field, "latin1"));
      signatures.set(message, signature);
    }
    const field = await signature;
    return {
      envelope: { sender: senderOf(delivery), recipient: delivery.address },
      parts: field.length === 0 ? [message.content] : [field, message.content],
    };
  };
}
