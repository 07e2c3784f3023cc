// Addresses of services for programs: the host of this page with the ports of the listeners, or public names.
import { t } from "../words/words.ts";
import { findListener, hints, type Listener } from "./listeners.ts";

/** An address for programs. */
export interface ProgramAddress {
  /** Protocol or product. */
  term: string;
  /** As programs write it. */
  text: string;
  /** True if the listener accepts programs of its own machine only, and this page is open on another. */
  isLocal: boolean;
}

interface Protocol {
  term: string;
  /** Listener as the runtime reports it, with TLS first. */
  listeners: readonly [id: string, scheme: string][];
  /** Public URL, which takes precedence. */
  url?: string | null | undefined;
}

/** All that run, in the order of the rail. */
export function listAddresses(): ProgramAddress[] {
  const found = listProtocols().flatMap((protocol) => describe(protocol) ?? []);
  const issuer = hints.value?.issuer;
  if (issuer === undefined || issuer === null) return found;
  // The page shows whatever the platform says it is.
  const isLocal = URL.canParse(issuer) && isOnlyLocal(new URL(issuer).hostname);
  return [...found, { term: t("Issuer"), text: issuer, isLocal }];
}

function listProtocols(): Protocol[] {
  return [
    {
      term: "HTTP",
      listeners: [
        ["gate/https", "https"],
        ["gate/http", "http"],
      ],
      url: hints.value?.gateway,
    },
    {
      term: "S3",
      listeners: [
        ["vault/https", "https"],
        ["vault/http", "http"],
      ],
      url: hints.value?.s3,
    },
    {
      term: "Kafka",
      listeners: [
        ["pulse/kafka-tls", ""],
        ["pulse/kafka", ""],
      ],
    },
    {
      term: "MQTT",
      listeners: [
        ["pulse/mqtt-tls", "mqtts"],
        ["pulse/mqtt", "mqtt"],
      ],
    },
    {
      term: "STOMP",
      listeners: [
        ["pulse/stomp-tls", "stomp+ssl"],
        ["pulse/stomp", "stomp"],
      ],
    },
    { term: "SMTP", listeners: [["notify/smtp", "smtp"]] },
  ];
}

function describe({ term, listeners, url }: Protocol): ProgramAddress | undefined {
  if (typeof url === "string") return { term, text: url, isLocal: false };
  for (const [id, scheme] of listeners) {
    const listener = findListener(id);
    if (listener === undefined) continue;
    const { host, isLocal } = reach(listener);
    const place = `${host}:${listener.port}`;
    return { term, text: scheme === "" ? place : `${scheme}://${place}`, isLocal };
  }
  return undefined;
}

/** The host at which this page's machine reaches a listener. */
function reach({ host }: Listener): { host: string; isLocal: boolean } {
  const here = location.hostname === "127.0.0.1" ? "localhost" : location.hostname;
  if (isLoopback(host))
    return { host: isLoopback(here) ? here : "localhost", isLocal: !isLoopback(here) };
  const isAny = host === "0.0.0.0" || host === "::" || host === "";
  if (isAny) return { host: here, isLocal: false };
  return { host: host.includes(":") ? `[${host}]` : host, isLocal: false };
}

function isOnlyLocal(host: string): boolean {
  return isLoopback(host) && !isLoopback(location.hostname);
}

function isLoopback(host: string): boolean {
  return (
    host === "localhost" ||
    host.endsWith(".localhost") ||
    host.startsWith("127.") ||
    host === "::1" ||
    host === "[::1]"
  );
}
