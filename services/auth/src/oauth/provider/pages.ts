// What the core asks the pages to show: signing out, entering a device's code, errors.
import type { IncomingMessage } from "node:http";

/** Where a form of the core is posted to, and its field `xsrf`. */
export interface CoreForm {
  readonly action: string;
  readonly xsrf: string;
}

/** What went wrong at the core. */
export interface CoreProblem {
  /** What was begun is over; what the application asks for cannot be done; or the fault is ours. */
  readonly kind: "expired" | "refused" | "failed";
  /** OAuth's, with what the application's makers should know. */
  readonly code: string;
  readonly detail: string;
}

/** The core's pages; each returns a whole HTML document in the language that the request prefers. */
export interface OAuthPages {
  /** BCP 47 tags of the languages there are; each page is in the one of `ui_locales`, or that the browser prefers. */
  readonly languages: readonly string[];
  /** Asks whether to sign out: the field `logout=yes` confirms, none stays signed in. */
  signOut(request: IncomingMessage, form: CoreForm): string;
  /** After signing out. */
  signedOut(request: IncomingMessage): string;
  /** Asks for a device's code, the field `user_code`; `isWrong` when one has been tried. */
  deviceCode(
    request: IncomingMessage,
    form: CoreForm,
    entered: { code: string | undefined; isWrong: boolean },
  ): string;
  /** Asks whether the device shows the code: `user_code` as `entered`, and `confirm=yes` or `abort=yes`. */
  confirmDevice(
    request: IncomingMessage,
    form: CoreForm,
    device: { client: string; code: string; entered: string },
  ): string;
  /** The device is signed in. */
  deviceDone(request: IncomingMessage, client: string): string;
  /** An error that cannot be sent back to the client. */
  error(request: IncomingMessage, problem: CoreProblem): string;
}
