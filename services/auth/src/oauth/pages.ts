// What the core asks the pages to show: signing out, entering a device's code, errors.
import type { IncomingMessage } from "node:http";

/** Where a form of the core is posted to, and its field `xsrf`. */
export interface CoreForm {
  readonly action: string;
  readonly xsrf: string;
}

/** The core's pages; each returns a whole HTML document in the language that the request prefers. */
export interface OAuthPages {
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
  /** An error that cannot be sent back to the client: OAuth's code, and what its makers should know. */
  error(request: IncomingMessage, code: string, detail: string): string;
}
