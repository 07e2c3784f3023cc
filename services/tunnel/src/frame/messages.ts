// The JSON messages of the handshake and of finished requests: docs/internals/tunnel-wire.md.
import { z } from "zod";
import { WireError } from "./format.ts";

/** Most tunnels of one connection. */
const TUNNELS_MAX = 100;

const text = (most: number) => z.string().max(most);

/** A tunnel that a client offers. */
const offer = z.strictObject({
  kind: z.enum(["http", "tcp"]),
  /** Requested label; the relay generates one if it is absent. */
  subdomain: text(63).optional(),
  /** Additional public name, proven by TXT. */
  custom_domain: text(253).optional(),
  /** TCP: requested port of the relay. */
  remote_port: z.int().min(1).max(65_535).optional(),
  /** The target as the client's user wrote it; shown, and compared with a reservation's. */
  target: text(1_024),
  /** Host for the target, such as `localhost:3000`, or "preserve" for that of the public request. */
  host_header: text(255).regex(/^[A-Za-z0-9._:[\]-]+$/),
  /** Public requests need a share token, Basic credentials or a bearer. */
  auth_required: z.boolean().default(false),
  /** `user:password` of Basic authentication. */
  share_auth: text(255).optional(),
});

const hello = z.strictObject({
  /** Program and version, such as `platform-tunnel/0.1.0`. */
  client: text(128),
  /** Secret of this client, base64url: takes over its own names after a lost connection. */
  key: z.string().regex(/^[A-Za-z0-9_-]{22,128}$/),
  /** Random id of the client's process: its next connection replaces this one. */
  instance: z.string().regex(/^[A-Za-z0-9_-]{8,64}$/),
  /** Connections of this process before. */
  reconnects: z.int().min(0).default(0),
  /** The client wants EVENT frames. */
  events: z.boolean().default(false),
  /** Most streams at the same time. */
  streams_max: z.int().min(1).max(65_536).default(1_024),
  tunnels: z.array(offer).min(1).max(TUNNELS_MAX),
});

const grant = z.union([
  z.object({
    /** The tunnel's number in OPEN. */
    number: z.int().min(0).max(65_535),
    id: z.string(),
    url: z.string(),
    /** Subdomain, or "" for TCP. */
    subdomain: z.string(),
  }),
  z.object({ error: z.object({ code: z.string(), detail: z.string() }) }),
]);

const welcome = z.object({
  relay: z.string(),
  session: z.string(),
  /** In the order of HELLO. */
  tunnels: z.array(grant),
});

const event = z.object({
  requests: z.array(
    z.object({
      tunnel: z.int(),
      /** Id of the captured request. */
      id: z.string(),
      /** ISO 8601 UTC. */
      time: z.string(),
      method: z.string(),
      path: z.string(),
      status: z.int(),
      latency_ms: z.number(),
    }),
  ),
  /** Requests without an entry, because there were too many. */
  dropped: z.int(),
});

export type Hello = z.output<typeof hello>;
/** A tunnel in HELLO. */
export type TunnelOffer = z.output<typeof offer>;
export type Welcome = z.output<typeof welcome>;
/** A tunnel in WELCOME, or why there is none. */
export type TunnelGrant = z.output<typeof grant>;
export type RequestEvents = z.output<typeof event>;
/** A finished request in EVENT. */
export type RequestEvent = RequestEvents["requests"][number];

/** Reads HELLO; throws a `WireError` that names the first invalid field. */
export function readHello(payload: Buffer): Hello {
  return readJson(payload, "HELLO", hello);
}

export function readWelcome(payload: Buffer): Welcome {
  return readJson(payload, "WELCOME", welcome);
}

export function readEvent(payload: Buffer): RequestEvents {
  return readJson(payload, "EVENT", event);
}

function readJson<T>(payload: Buffer, name: string, schema: z.ZodType<T>): T {
  let value: unknown;
  try {
    value = JSON.parse(payload.toString("utf8"));
  } catch {
    throw new WireError("bad_payload", `${name} is not JSON`);
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const path = issue?.path.join(".") ?? "";
  throw new WireError("bad_payload", `${name}.${path}: ${issue?.message ?? "invalid"}`);
}
