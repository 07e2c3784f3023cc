// The relay's port: requests to the API, connections of clients, and public requests to tunnels.
import type { Service } from "@platform/chassis";
import {
  createEngine,
  createServer,
  type Engine,
  type Server,
  type ServerTls,
} from "@platform/http1";
import type { ListenAddress } from "@platform/kernel/config";
import { explainListenError } from "@platform/kernel/lifecycle";
import {
  type Certificates,
  CertificateWatch,
  collectExpiry,
  pickCertificateFiles,
} from "@platform/kernel/tls";
import type { RelayConfig } from "../config.ts";
import { GoAwayCode } from "../frame/format.ts";
import { acceptStream } from "../http/streams.ts";
import { createApiHandler } from "../http/serve-api.ts";
import { isDomain } from "../name/hosts.ts";
import { Access } from "../relay/access.ts";
import { CertificateRequests } from "../relay/certificate-requests.ts";
import { answerProblem, Connector } from "../relay/connect.ts";
import { Forwarder } from "../relay/forwarder.ts";
import type { Hub } from "../relay/hub.ts";
import { RequestHandler } from "../relay/request-handler.ts";
import { RequestState, type RelayExchange } from "../relay/request-state.ts";
import { ShareAccess } from "../relay/share-access.ts";
import type { RelayApi } from "./api.ts";
import type { Callers } from "./callers.ts";
import type { Clients } from "./clients.ts";
import { hasName, type Names } from "./names.ts";

/** Event streams and WebSockets are ended after this part of the drain. */
const STREAMS_DRAIN_MS = 2_000;

/** Opens the port; returns its number. */
export async function openTraffic(
  config: RelayConfig,
  service: Service,
  names: Names,
  clients: Clients,
  callers: Callers,
  { api, feeds, requests }: RelayApi,
): Promise<number> {
  const { clock, log } = service;
  const { domain } = config;
  const { store, domains, links, urls } = names;
  const { hub, capture } = clients;
  const { guard, throttles, trusted } = callers;
  const engine = createEngine();
  service.lifecycle.onDrain("connections", () => engine.close());
  const { metrics } = clients;
  const { spans } = service;
  const connector = createConnector(config, service, names, clients, callers, engine);
  const isSecure = (): boolean => urls.origin.protocol === "https:";
  const shares = new ShareAccess({ links, throttles, clock, isSecure });
  const onError = (error: unknown): void => {
    log.error("internal error while handling a request", { error });
  };
  const serveApi = createApiHandler<RequestState>({ api, answerProblem });
  const handler = new RequestHandler({
    domain,
    trusted,
    clock,
    store,
    domains,
    hub,
    access: new Access({ guard, throttles, shares }),
    forwarder: new Forwarder({ domain, metrics, spans, onFinished: createNote(hub) }),
    capture: config.max_ring_buffer === 0 ? undefined : capture,
    connect: (exchange) => connector.handle(exchange),
    serveApi: (exchange) => {
      if (!acceptStream({ feeds, requests }, exchange)) serveApi(exchange);
    },
    onError,
  });
  const handle = (exchange: RelayExchange): void => handler.handle(exchange);
  const { trusted: addresses } = callers;
  return listen(config, service, { engine, hub, names, trusted: addresses, handle, onError });
}

function createConnector(
  config: RelayConfig,
  { ids, log, tracer, followed, lifecycle }: Service,
  { subjects, store, domains, urls }: Names,
  { hub, budget, metrics }: Clients,
  { guard, throttles }: Callers,
  engine: Engine,
): Connector {
  return new Connector({
    config,
    guard,
    throttles,
    subjects,
    store,
    domains,
    hub,
    engine,
    budget,
    ids,
    log,
    tracer,
    streams: followed.streams,
    formatUrl: urls.format.bind(urls),
    onReconnected: () => metrics.reconnections.add(),
    isDraining: () => lifecycle.stopping.aborted,
  });
}

// Reports each request to the client whose tunnel it used.
function createNote(hub: Hub): ConstructorParameters<typeof Forwarder>[0]["onFinished"] {
  return (tunnel, state, end) => {
    hub.findClient(tunnel.row.id)?.note({
      tunnel: tunnel.number,
      id: state.tap?.id ?? "",
      time: new Date(state.startedAtEpochMs).toISOString(),
      method: state.method,
      path: state.path,
      status: end.status,
      latency_ms: Math.round(end.totalMs * 1_000) / 1_000,
    });
  };
}

interface PortParts extends Pick<Callers, "trusted"> {
  engine: Engine;
  hub: Hub;
  names: Names;
  handle: (exchange: RelayExchange) => void;
  onError: (error: unknown) => void;
}

async function listen(
  config: RelayConfig,
  service: Service,
  { engine, hub, names, trusted, handle, onError }: PortParts,
): Promise<number> {
  const { log, lifecycle } = service;
  const certificates = openCertificates(config, service);
  const noteUnknown = requestCertificates(config, service, hub, names, certificates);
  const describe = (of: Certificates): ServerTls => describeTls(of, noteUnknown);
  const create = (tls: ServerTls | undefined): Server<RequestState> =>
    createServer<RequestState>({
      engine,
      handler: handle,
      createUserData: () => new RequestState(),
      limits: {
        connectionsMax: config.connections_max,
        ...(config.connections_per_address_max === undefined
          ? {}
          : { connectionsPerAddressMax: config.connections_per_address_max }),
      },
      isProxyAddress: (address) => trusted.has(address),
      ...(tls === undefined ? {} : { tls }),
      onHandlerError: onError,
      onFault: (fault) => log.debug("public connection failed", { ...fault }),
    });
  const server = create(certificates && describe(certificates.current));
  const main = await listenAt(server, config.addr, "--addr or PLATFORM_TUNNEL_ADDR");
  certificates?.follow(lifecycle, (next) => server.setTls(describe(next)));
  const servers = [server];
  // Without TLS the main listener serves programs on this machine, too.
  if (certificates !== undefined && config.local_addr !== undefined) {
    const own = create(undefined);
    const setting = "--local-addr or PLATFORM_TUNNEL_LOCAL_ADDR";
    lifecycle.reportListener({
      name: "local",
      ...(await listenAt(own, config.local_addr, setting)),
    });
    servers.push(own);
  }
  lifecycle.onDrain(
    "relay",
    async (context) => {
      hub.goAway(GoAwayCode.Draining, "the relay is restarting");
      const drained = servers.map((one) => one.drain(context.remainingMs(), STREAMS_DRAIN_MS));
      await Promise.all(drained);
      await hub.drain(context.remainingMs());
    },
    "listeners",
  );
  lifecycle.reportListener({ name: certificates === undefined ? "http" : "https", ...main });
  return main.port;
}

async function listenAt(
  server: Server<RequestState>,
  address: ListenAddress,
  setting: string,
): Promise<{ host: string; port: number }> {
  const { host, port } = address;
  await server
    .listen(host === undefined ? { port } : { host, port })
    .catch(async (error: unknown) => {
      throw await explainListenError(error, address, setting);
    });
  const bound = server.address() as { host: string; port: number };
  return { host: host ?? bound.host, port: bound.port };
}

function openCertificates(
  config: RelayConfig,
  { certificates, metrics, log }: Service,
): CertificateWatch | undefined {
  const { tls_dir: folder } = config;
  if (folder === undefined) return certificates;
  const files = pickCertificateFiles(config);
  const pairs = files === undefined ? [] : [files];
  const watch = new CertificateWatch({ pairs, folder, isName: isDomain, log });
  collectExpiry(metrics, "domains", () => watch);
  return watch;
}

/** Has certificates obtained for tunnels without one; returns a receiver of the names of refused handshakes. */
function requestCertificates(
  { domain, tls_gateway: gateway }: RelayConfig,
  { clock }: Service,
  hub: Hub,
  names: Names,
  certificates: CertificateWatch | undefined,
): ((name: string) => void) | undefined {
  if (gateway === undefined || certificates === undefined) return undefined;
  const isServed = (name: string): boolean => {
    const { pairs, named } = certificates.current;
    return pairs.length > 0 || named.has(name) || named.has(name.replace(/^[^.]*/, "_"));
  };
  const exists = (name: string): boolean => hasName(domain, names, name);
  const requests = new CertificateRequests({ gateway, clock, exists, isServed });
  hub.onServed = ({ row }) => {
    if (row.kind === "http") requests.note(`${row.subdomain}.${domain}`);
  };
  return (name) => requests.note(name);
}

/** `_.example.org` is the name of the files for `*.example.org`. */
function describeTls(
  { pairs: [fallback], named }: Certificates,
  onUnknownName: ((name: string) => void) | undefined,
): ServerTls {
  const names = [...named].map(([name, pair]) => [name.replace(/^_\./, "*."), pair] as const);
  return {
    fallback: fallback ?? null,
    names: new Map(names),
    ...(onUnknownName === undefined ? {} : { onUnknownName }),
  };
}
