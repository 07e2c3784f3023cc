// The built-in client, and how long tokens and what they hang on live.

const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;

/** Lives of tokens and what stands behind them, in seconds. */
export const ttlSeconds = {
  accessToken: 15 * minute,
  idToken: hour,
  code: minute,
  deviceCode: 10 * minute,
  refreshIdle: 30 * day,
  refreshAbsolute: 90 * day,
  session: 14 * day,
  // A grant is reused by later authorizations of one session and must outlive the last of their refresh tokens.
  grant: (90 + 14 + 1) * day,
  interaction: hour,
} as const;

/** The public client that the service's own login issues tokens for. */
export const platformClientId = "platform";
