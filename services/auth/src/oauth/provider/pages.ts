// Pages that the core needs: logout, device code entry, errors.
import type { IncomingMessage } from "node:http";

/** Target of a form of the core and the value of its field `xsrf`. */
export interface CoreForm {
  readonly action: string;
  readonly xsrf: string;
}

/** An error of the core. */
export interface CoreProblem {
  /** `expired`: the flow has ended. `refused`: the request cannot be fulfilled. `failed`: internal error. */
  readonly kind: "expired" | "refused" | "failed";
  /** The OAuth error code, with details for the application's developers. */
  readonly code: string;
  readonly detail: string;
}

/** Pages of the core, each a complete HTML document in the language of the request. */
export interface OAuthPages {
  /** BCP 47 tags of the available languages. Pages use `ui_locales`, or else the browser's preference. */
  readonly languages: readonly string[];
  /**
   * Asks for confirmation of a logout: the field `logout=yes` confirms it, without the field the user stays signed
   * in.
   */
  signOut(request: IncomingMessage, form: CoreForm): string;
  /** Shown after the logout. */
  signedOut(request: IncomingMessage): string;
  /** Asks for a device's code (field `user_code`); `isWrong` after an invalid code. */
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
  /** Shown when the device is signed in. */
  deviceDone(request: IncomingMessage, client: string): string;
  /** Shows an error that cannot be returned to the client. */
  error(request: IncomingMessage, problem: CoreProblem): string;
}
