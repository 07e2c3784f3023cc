// The mark of requests that the platform sends to itself.

/**
 * Header of requests of the web console, and of those that services repeat at other services. They are logged and measured like
 * others, but are not in the figures of users' requests. It grants nothing, so that nobody gains by sending it.
 */
export const OWN_REQUEST_HEADER = "x-platform-own";

/** The header with its value. */
export const OWN_REQUEST: Readonly<Record<string, string>> = { [OWN_REQUEST_HEADER]: "1" };
