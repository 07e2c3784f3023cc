// Recipients of a message.
import { toAddressKey, type Mailbox } from "../address/mailbox.ts";
import type { DeliveryRow } from "../database/message.ts";
import type { Draft } from "./draft.ts";

/** A recipient and the field that names it. */
export interface Recipient {
  kind: DeliveryRow["kind"];
  mailbox: Mailbox;
}

/** Returns the recipients of a draft. An address in several fields receives the message once. */
export function listRecipients({ to, cc, bcc }: Draft): Recipient[] {
  const seen = new Set<string>();
  const all = [
    ...to.map((mailbox) => ({ kind: "to" as const, mailbox })),
    ...cc.map((mailbox) => ({ kind: "cc" as const, mailbox })),
    ...bcc.map((mailbox) => ({ kind: "bcc" as const, mailbox })),
  ];
  return all.filter(({ mailbox }) => {
    const key = toAddressKey(mailbox.address);
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}
