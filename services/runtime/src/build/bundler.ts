// The bundler, which small installations leave out.
import type * as Rolldown from "rolldown";

/** Thrown if the bundler is not installed; the message says how to install it. */
export class MissingBundlerError extends Error {
  constructor(options: ErrorOptions) {
    super(
      'rolldown is not installed, which "platform build", "platform deploy" and "npm run build:services" need: ' +
        "install it again by npm ci, without --omit=optional",
      options,
    );
  }
}

/** Loads it. Rejects with a {@link MissingBundlerError}, also if its binary for this machine is missing. */
export async function loadBundler(): Promise<typeof Rolldown> {
  try {
    return await import("rolldown");
  } catch (error) {
    throw new MissingBundlerError({ cause: error });
  }
}
