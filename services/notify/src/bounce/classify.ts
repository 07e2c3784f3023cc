// Classification of permanent replies and reports: which of them concern the address.

/** A permanent reply. */
export interface PermanentReply {
  code?: number | undefined;
  /** Enhanced status code (RFC 3463). */
  enhanced?: string | undefined;
  text: string;
}

// RFC 3463 section 3.2 and 3.3, and the IANA registry: bad mailbox, bad syntax, moved, null MX, disabled mailbox.
const ADDRESS_LEVEL = new Set(["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"]);
const NAMES_ADDRESS =
  /user unknown|unknown (?:user|recipient|mailbox|address|local)|no such (?:user|recipient|mailbox|address|person)|(?:user|recipient|mailbox|address|account)\b.{0,60}?(?:does ?n[o']t exist|not (?:found|known|exist)|unknown|disabled|invalid)|invalid (?:user|recipient|mailbox|address)/i;
const NAMES_POLICY =
  /spam|block|policy|black ?list|deny|denied|reputation|dnsbl|rbl|relay|authenticat|spf|dkim|dmarc|too (?:many|large|big)|quota|full/i;

/**
 * True if the reply says that the address does not exist. Policy rejections, full mailboxes and bare codes such as 5.0.0
 * do not: suppressing their addresses would lose wanted mail.
 */
export function concernsAddress({ code, enhanced, text }: PermanentReply): boolean {
  if (enhanced !== undefined && !/^5\.0\.0$/.test(enhanced)) return ADDRESS_LEVEL.has(enhanced);
  if (enhanced === undefined && code !== 550 && code !== 551 && code !== 553) return false;
  return NAMES_ADDRESS.test(text) && !NAMES_POLICY.test(text);
}
