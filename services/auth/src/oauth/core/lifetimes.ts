// The built-in clients, and lifetimes of tokens and grants.

const MINUTE_S = 60;
const HOUR_S = 60 * MINUTE_S;
const DAY_S = 24 * HOUR_S;

/** Lifetimes in seconds. */
export const TTL_SECONDS = {
  accessToken: 15 * MINUTE_S,
  idToken: HOUR_S,
  code: MINUTE_S,
  deviceCode: 10 * MINUTE_S,
  refreshIdle: 30 * DAY_S,
  refreshAbsolute: 90 * DAY_S,
  session: 14 * DAY_S,
  // Later authorizations of a session reuse its grant, which must outlive the last of their refresh tokens.
  grant: (90 + 14 + 1) * DAY_S,
  interaction: HOUR_S,
} as const;

/** The public client of the service's own sign-in. */
export const PLATFORM_CLIENT_ID = "platform";

/** The confidential client of the web console, created from the bootstrap file. */
export const CONSOLE_CLIENT_ID = "platform-console";

/** The confidential client of the `platform` command, created from the bootstrap file. */
export const CLI_CLIENT_ID = "platform-cli";

/** True for the clients of the platform itself, which act with all roles of their user. */
export function isPlatformClient(clientId: string): boolean {
  return [PLATFORM_CLIENT_ID, CONSOLE_CLIENT_ID, CLI_CLIENT_ID].includes(clientId);
}
