// Classification of final answers: which of them say that the address does not exist.
import { readAnswer, simplifyAnswer, type RemoteAnswer } from "./answer.ts";
import type { BounceType } from "../database/message.ts";
import { ABSENT, PROVIDER_DIALECTS, VETO } from "./dialects.ts";

// RFC 3463 section 3.2 and 3.3, and the IANA registry: bad mailbox, bad syntax, moved, null MX, disabled mailbox.
const ADDRESS_LEVEL = new Set(["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.1.351", "5.2.1"]);
// A full mailbox, the size of a message, the sender, the route, the content (RFC 3463 sections 3.2 to 3.7).
const NEVER_ADDRESS = /^5\.(?:1\.[78]|2\.[23]|3\.\d+|4\.[67]|6\.\d+)$/;
// 556 and 521 mean a domain that accepts no mail (RFC 7504).
const NO_MAIL_CODES = new Set([521, 556]);
/** Codes whose sentence may say that an address does not exist. 552 is a full mailbox. */
const SENTENCE_CODES = new Set([550, 551, 553, 554]);
const REFUSAL = /reject|refus|declin|disallow/i;

/**
 * True if a final answer says that the address does not exist. The codes in the text, the server's own, outrank those of the
 * reply or report that contains it; and words of policy, reputation, rate or fullness outrank every code. Suppressing an
 * address for such a reason would lose wanted mail.
 */
export function concernsAddress(reply: RemoteAnswer): boolean {
  const own = readAnswer(reply.text);
  const code = own.code ?? reply.code;
  const enhanced = own.enhanced ?? (own.code === undefined ? reply.enhanced : undefined);
  if (code !== undefined && code < 500) return false;
  if (enhanced !== undefined && (!enhanced.startsWith("5.") || NEVER_ADDRESS.test(enhanced))) {
    return false;
  }
  const sentence = simplifyAnswer([enhanced, reply.text].filter(Boolean).join(" "));
  const dialect = PROVIDER_DIALECTS.find(({ pattern }) => pattern.test(sentence));
  const rest = dialect === undefined ? sentence : sentence.replace(dialect.pattern, " ");
  if (VETO.some((pattern) => pattern.test(rest))) return false;
  if (dialect !== undefined) return dialect.meaning === "absent";
  if (enhanced !== undefined && ADDRESS_LEVEL.has(enhanced)) return true;
  if (code !== undefined && NO_MAIL_CODES.has(code)) return true;
  if (code !== undefined && !SENTENCE_CODES.has(code)) return false;
  if (ABSENT.some(({ pattern }) => pattern.test(sentence))) return true;
  // A sentence that is not understood leaves the meaning to the Status that the reporting server chose.
  const isRefusal = REFUSAL.test(sentence);
  return enhanced === undefined && !isRefusal && ADDRESS_LEVEL.has(reply.enhanced ?? "");
}

/** Returns the type of a bounce with this answer. */
export function findBounceType(reply: RemoteAnswer): BounceType {
  return concernsAddress(reply) ? "hard" : "soft";
}
