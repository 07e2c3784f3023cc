// Notices by email about changes of credentials, so that users notice changes they did not make.
import type { Notifier } from "../notify/notifier.ts";
import type { Account } from "../user/account.ts";

/** Messages in flight; further ones are dropped. */
const PENDING_MAX = 1_000;

/** Changes that users are notified of. */
export type SecurityEvent = keyof typeof SENTENCES;

const SENTENCES = {
  "password.change": "Your password was changed.",
  "password.recover": "Your password was reset with a recovery link.",
  "email.change": "The address of your account was changed.",
  "mfa.enrol": "A second factor was added.",
  "mfa.remove": "A second factor was removed.",
  "mfa.backup_codes": "New backup codes were created; the previous ones are invalid.",
  "passkey.register": "A passkey was added.",
  "passkey.remove": "A passkey was removed.",
} as const;

export class SecurityNotices {
  readonly #notifier: Notifier;
  readonly #onError: (error: unknown) => void;
  #pending = 0;

  /** `onError` receives messages that could not be sent; the change itself has been made. */
  constructor(notifier: Notifier, onError: (error: unknown) => void) {
    this.#notifier = notifier;
    this.#onError = onError;
  }

  /**
   * Notifies the account's verified address in the background; does nothing without one or without a mail service.
   * `account` is the account before the change, so that a changed address is reported to the previous one.
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
