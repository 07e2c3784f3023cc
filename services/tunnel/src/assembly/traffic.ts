// The relay's port: requests to the API, connections of clients, and public requests to tunnels.
import type { Service } from "@platform/chassis";
import { createEngine, createServer, type Engine, type ServerTls } from "@platform/http1";
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
import { answerProblem, Connector } from "../relay/connect.ts";
import { Forwarder } from "../relay/forwarder.ts";
import type { Hub } from "../relay/hub.ts";
import { RequestHandler } from "../relay/request-handler.ts";
import { RequestState, type RelayExchange } from "../relay/request-state.ts";
import { ShareAccess } from "../relay/share-access.ts";
import type { RelayApi } from "./api.ts";
import type { Callers } from "./callers.ts";
import type { Clients } from "./clients.ts";
import type { Names } from "./names.ts";

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
  return listen(config, service, { engine, hub, trusted: callers.trusted, handle, onError });
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
  handle: (exchange: RelayExchange) => void;
  onError: (error: unknown) => void;
}

async function listen(
  config: RelayConfig,
  service: Service,
  { engine, hub, trusted, handle, onError }: PortParts,
): Promise<number> {
  const { log, lifecycle } = service;
  const certificates = openCertificates(config, service);
  const server = createServer<RequestState>({
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
    ...(certificates === undefined ? {} : { tls: describeTls(certificates.current) }),
    onHandlerError: onError,
    onFault: (fault) => log.debug("public connection failed", { ...fault }),
  });
  const { host: configured, port } = config.addr;
  const place = configured === undefined ? { port } : { host: configured, port };
  await server.listen(place).catch(async (error: unknown) => {
    throw await explainListenError(error, config.addr, "--addr or PLATFORM_TUNNEL_ADDR");
  });
  certificates?.follow(lifecycle, (next) => server.setTls(describeTls(next)));
  lifecycle.onDrain(
    "relay",
    async (context) => {
      hub.goAway(GoAwayCode.Draining, "the relay is restarting");
      await server.drain(context.remainingMs(), STREAMS_DRAIN_MS);
      await hub.drain(context.remainingMs());
    },
    "listeners",
  );
  const bound = server.address() as { host: string; port: number };
  const host = configured ?? bound.host;
  const name = certificates === undefined ? "http" : "https";
  lifecycle.reportListener({ name, host, port: bound.port });
  return bound.port;
}

function openCertificates(
  config: RelayConfig,
  { certificates, metrics, log }: Service,
): CertificateWatch | undefined {
  const { tls_dir: folder } = config;
  if (folder === undefined) return certificates;
  const files = pickCertificateFiles(config);
  if (files === undefined) throw new Error("tls_dir requires tls_cert and tls_key");
  const watch = new CertificateWatch({ pairs: [files], folder, isName: isDomain, log });
  collectExpiry(metrics, "domains", () => watch);
  return watch;
}

/** `_.example.org` is the name of the files for `*.example.org`. */
function describeTls({ pairs: [fallback], named }: Certificates): ServerTls {
  const names = [...named].map(([name, pair]) => [name.replace(/^_\./, "*."), pair] as const);
  return { fallback: fallback!, names: new Map(names) };
}
