// Tells people by mail what was changed about how they sign in, so that they notice when it was not them.
import type { Notifier } from "../notify/notifier.ts";
import type { Account } from "../user/account.ts";

/** Messages under way; more are left out rather than kept waiting. */
const PENDING_MAX = 1_000;

/** What can be told. */
export type SecurityEvent = keyof typeof SENTENCES;

const SENTENCES = {
  "password.change": "Your password was changed.",
  "password.recover": "Your password was set anew by a recovery link.",
  "email.change": "The address of your account was changed.",
  "mfa.enrol": "A second factor was added.",
  "mfa.remove": "A second factor was removed.",
  "mfa.backup_codes": "New backup codes were made; the old ones are void.",
  "passkey.register": "A passkey was added.",
  "passkey.remove": "A passkey was removed.",
} as const;

/** Sends notices. */
export class SecurityNotices {
  readonly #notifier: Notifier;
  readonly #onError: (error: unknown) => void;
  #pending = 0;

  /** `onError` is told of what could not be sent: the change itself has happened. */
  constructor(notifier: Notifier, onError: (error: unknown) => void) {
    this.#notifier = notifier;
    this.#onError = onError;
  }

  /**
   * Tells the account's verified address in the background. Without one, or without a mail service, nobody is told; of a
   * changed address the one of before is.
   */
  tell(account: Account, event: SecurityEvent): void {
    const { email, email_verified: isVerified, username } = account;
    if (email === undefined || !isVerified) return;
    if (!this.#notifier.isAvailable || this.#pending >= PENDING_MAX) return;
    this.#pending += 1;
    void this.#notifier
      .sendEmail({
        to: email,
        subject: "Your account was changed",
        text: `${SENTENCES[event]}\n\nAccount: ${username}\n\nIf this was not you, set a new password and end all sessions.\n`,
      })
      .catch(this.#onError)
      .finally(() => {
        this.#pending -= 1;
      });
  }
}
