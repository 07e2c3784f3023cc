// The versions of a service behind the gateway. Each set of rules has a port of its own, to which the gateway sends requests
// only after it has applied these rules: no request meets the code of one version by the rules of another.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import type { ServiceRules } from "@platform/service/host";
import type { GatewayAnswer, GatewayVersion, PlaceMessage } from "./messages.ts";

/** The platform, as a project's process reaches it. */
export interface GatewayPort {
  /** Asks whether rules are accepted or, with a version, to send requests to it. */
  ask(
    rules: ServiceRules | null,
    version?: GatewayVersion,
  ): Promise<Pick<GatewayAnswer, "hasGateway" | "refused">>;
}

/** Time for requests of the old rules that are on their way. */
const LINGER_MS = 300;
const QUEUE_TIMEOUT_MS = 5_000;
const LINGER_MS_MAX = 15_000;

/** Chooses the places of versions, and publishes them. */
export class GatewayLink {
  readonly #port: GatewayPort | undefined;
  /** The version to which the gateway sends requests. */
  #published: GatewayVersion | undefined;

  /** Without `port` there is no gateway. */
  constructor(port: GatewayPort | undefined) {
    this.#port = port;
  }

  /** The place of a version with these rules: that of the running one if it has the same. */
  async choose(rules: ServiceRules | null): Promise<PlaceMessage & { version?: GatewayVersion }> {
    if (this.#port === undefined) return { type: "place" };
    const { hasGateway, refused } = await this.#port.ask(rules);
    if (refused !== undefined) return { type: "place", refused };
    if (!hasGateway) return { type: "place" };
    const known = this.#published;
    const version =
      known !== undefined && JSON.stringify(known.rules) === JSON.stringify(rules)
        ? known
        : { rules, port: await findFreePort(), secret: randomBytes(16).toString("base64url") };
    const { port, secret } = version;
    return { type: "place", place: { port, secret }, version };
  }

  /** Directs requests to a version; resolves to the reason if that is refused. */
  async publish(version: GatewayVersion | undefined): Promise<string | undefined> {
    if (version === undefined || version === this.#published) return undefined;
    const { refused } = await this.#port!.ask(version.rules, version);
    if (refused === undefined) this.#published = version;
    return refused;
  }

  /** The version to which the gateway sends requests; undefined until there is one. */
  get published(): GatewayVersion | undefined {
    return this.#published;
  }

  /** True if requests are on their way to another version than this one. */
  isPublished(version: GatewayVersion | undefined): boolean {
    return version === undefined || version === this.#published;
  }

  /** The next version gets a place of its own, also with the same rules. */
  forget(): void {
    this.#published = undefined;
  }
}

/** The time in ms for which a version still serves requests that were admitted by its rules, after another one was published. */
export function findLinger(version: GatewayVersion | undefined): number {
  const { service, endpoints = [] } = version?.rules ?? {};
  const all = service?.rules ?? {};
  const waits = [all, ...endpoints.map(({ rules }) => ({ ...all, ...rules }))].flatMap((rules) =>
    (rules.max_queue_size ?? 0) > 0 ? [rules.queue_timeout_ms || QUEUE_TIMEOUT_MS] : [],
  );
  return Math.min(LINGER_MS_MAX, Math.max(LINGER_MS, ...waits));
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
