// The target of a subscription: validated when it is created, read back when an event is delivered.
import type { AddressPolicy } from "@platform/kernel/egress";
import { isIP } from "node:net";

/** URL of the broker of the platform, which the configuration names, in subscriptions. */
export const PLATFORM_BROKER = "stomp://platform";
/** Destinations at the platform's broker: the creator of a subscription may have no rights there. */
const PLATFORM_DESTINATION = /^\/(?:topic|queue)\/store\.[\w-]+(?:\.[\w-]+)*$/;

/** The platform's broker. */
export interface PlatformBroker {
  /** As in a `StompTarget`. */
  url: string;
  user?: string | undefined;
  password?: string | undefined;
  /** Certificates in PEM to trust; undefined for those of the system. */
  ca?: Buffer | undefined;
}

/** The addresses that events may be sent to. */
export interface EventPolicy extends AddressPolicy {
  /** The broker behind `stomp://platform`; undefined if there is none. */
  readonly platformBroker?: PlatformBroker | undefined;
}

/** An HTTP endpoint that is posted to. */
export interface WebhookTarget {
  kind: "webhook";
  /** http or https, without credentials. */
  url: string;
}

/** A destination at a STOMP 1.2 broker. */
export interface StompTarget {
  kind: "stomp";
  /**
   * `stomp://host:port` or, with TLS, `stomps://host:port`; the ports default to 61613 and 61614. A path names a virtual
   * host of the broker, `/` without one.
   */
  url: string;
  destination: string;
  user?: string;
  password?: string;
}

/** The form of event names: `objstore:ObjectCreated:Put`, or without the prefix as in the S3 form of a subscription. */
export type EventNameForm = "objstore" | "s3";

/** A subscription's target as the store keeps it. */
export type DeliveryTarget = (WebhookTarget | StompTarget) & { names: EventNameForm };

const URL_CHARS_MAX = 2_048;
const DESTINATION_CHARS_MAX = 512;
const CREDENTIAL_CHARS_MAX = 256;
/** A segment of characters that need no escape. */
const VIRTUAL_HOST = /^(?:\/[\w.~-]*)?$/;
// Control characters are not allowed in values that become headers of frames or requests.
// oxlint-disable-next-line no-control-regex -- control characters are the subject of the match
const CONTROL = /[\u0000-\u001f\u007f]/;

/** A target is invalid. The message is for the person who created the subscription. */
export class TargetError extends Error {
  override readonly name = "TargetError";
}

/** Validates the URL of a webhook. Throws a TargetError. Its name is resolved and checked again at each delivery. */
export function checkWebhook(url: string, policy: AddressPolicy): WebhookTarget {
  const parsed = parseUrl(url, ["http:", "https:"]);
  checkHost(parsed, policy);
  return { kind: "webhook", url: parsed.href };
}

/** Validates a STOMP target. Throws a TargetError. */
export function checkStomp(
  target: { url: string; destination: string; user?: string; password?: string },
  policy: EventPolicy,
): StompTarget {
  const parsed = normalizeHost(parseUrl(target.url, ["stomp:", "stomps:"]));
  const url = `${parsed.protocol}//${parsed.host}${parsed.pathname === "/" ? "" : parsed.pathname}`;
  // After normalization: no other spelling may send to destinations of the platform's broker with its credentials.
  if (url === PLATFORM_BROKER && parsed.search === "" && parsed.hash === "")
    return checkPlatformTarget(target, policy);
  checkHost(parsed, policy);
  if (parsed.search !== "" || parsed.hash !== "" || !VIRTUAL_HOST.test(parsed.pathname))
    throw new TargetError("The URL of the broker has more than a virtual host after the port.");
  checkText("destination", target.destination, DESTINATION_CHARS_MAX);
  if (target.destination === "") throw new TargetError("The destination is empty.");
  const { user, password } = target;
  if (user !== undefined) checkText("user", user, CREDENTIAL_CHARS_MAX);
  if (password !== undefined) checkText("password", password, CREDENTIAL_CHARS_MAX);
  return {
    kind: "stomp",
    url,
    destination: target.destination,
    ...(user === undefined ? {} : { user }),
    ...(password === undefined ? {} : { password }),
  };
}

function checkPlatformTarget(
  { destination, user, password }: { destination: string; user?: string; password?: string },
  { platformBroker }: EventPolicy,
): StompTarget {
  if (platformBroker === undefined)
    throw new TargetError(`${PLATFORM_BROKER} is not configured (event_broker_url).`);
  if (user !== undefined || password !== undefined)
    throw new TargetError(`${PLATFORM_BROKER} takes no credentials.`);
  checkText("destination", destination, DESTINATION_CHARS_MAX);
  if (!PLATFORM_DESTINATION.test(destination))
    throw new TargetError(
      `Destinations at ${PLATFORM_BROKER} begin with /topic/store. or /queue/store.`,
    );
  return { kind: "stomp", url: PLATFORM_BROKER, destination };
}

/** The target of a stored event; `undefined` if no version of this program wrote it. */
export function readTarget(stored: Readonly<Record<string, unknown>>): DeliveryTarget | undefined {
  const { kind, url, destination, user, password } = stored;
  const names: EventNameForm = stored["names"] === "s3" ? "s3" : "objstore";
  if (typeof url !== "string") return undefined;
  if (kind === "webhook") return { kind, url, names };
  if (kind !== "stomp" || typeof destination !== "string") return undefined;
  return {
    kind,
    url,
    destination,
    names,
    ...(typeof user === "string" ? { user } : {}),
    ...(typeof password === "string" ? { password } : {}),
  };
}

function parseUrl(text: string, protocols: readonly string[]): URL {
  const url = text.length > URL_CHARS_MAX || CONTROL.test(text) ? null : URL.parse(text);
  if (url === null || url.hostname === "" || !protocols.includes(url.protocol)) {
    const forms = protocols.map((protocol) => `${protocol}//`).join(" or ");
    throw new TargetError(`The URL does not begin with ${forms} and a host.`);
  }
  if (url.username !== "" || url.password !== "")
    throw new TargetError("The URL contains credentials.");
  return url;
}

/**
 * The URL with its host as in http: URLs. In other schemes the host is any text (https://url.spec.whatwg.org, "opaque
 * host"), so that `0x7f.1`, `2130706433` and `%6cocalhost` would not be seen as what they are resolved to. A final dot
 * names the same host.
 */
function normalizeHost(url: URL): URL {
  const web = URL.parse(`http://${url.host}/`);
  const host = web?.hostname.replace(/\.$/, "") ?? "";
  if (host === "") throw new TargetError("The host of the URL is invalid.");
  const port = url.port === "" ? "" : `:${url.port}`;
  return new URL(`${url.protocol}//${host}${port}${url.pathname}${url.search}${url.hash}`);
}

function checkHost(url: URL, policy: AddressPolicy): void {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (isIP(host) !== 0 && !policy.isAllowed(host))
    throw new TargetError("The address is in a network that events may not be sent to.");
}

function checkText(name: string, value: string, charsMax: number): void {
  if (value.length > charsMax || CONTROL.test(value))
    throw new TargetError(
      `The ${name} has control characters or more than ${charsMax} characters.`,
    );
}
