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
  /** Returns the fields of a delivery that other recipients of the message do not have, with CRLF; "" without any. */
  fieldsOf: (delivery: Delivery) => string;
  /** Returns the sender of the envelope, to which bounces are sent. */
  senderOf: (delivery: Delivery) => string;
}

/**
 * Creates the function that signs a message and chooses its envelope. Deliveries without fields of their own share one
 * signature; others are signed with their fields.
 */
export function createPrepareMail(options: PrepareMailOptions): PrepareMail {
  const { fieldsOf, senderOf } = options;
  const shared = new WeakMap<object, Promise<Buffer>>();
  const sign = async ({ sender }: Delivery["message"], content: Buffer): Promise<Buffer> => {
    const domain = sender.slice(sender.lastIndexOf("@") + 1);
    return Buffer.from(await options.sign(content, domain), "latin1");
  };
  return async (delivery) => {
    const { message } = delivery;
    const envelope = { sender: senderOf(delivery), recipient: delivery.address };
    const fields = fieldsOf(delivery);
    if (fields !== "") {
      const content = Buffer.concat([Buffer.from(fields, "latin1"), message.content]);
      return { envelope, parts: join(await sign(message, content), content) };
    }
    let signature = shared.get(message);
    if (signature === undefined) {
      signature = sign(message, message.content);
      shared.set(message, signature);
    }
    return { envelope, parts: join(await signature, message.content) };
  };
}

function join(signature: Buffer, content: Buffer): Buffer[] {
  return signature.length === 0 ? [content] : [signature, content];
}
