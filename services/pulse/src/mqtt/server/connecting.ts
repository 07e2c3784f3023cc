// CONNECT: authentication, the session, and what the client is told.
import { randomBytes } from "node:crypto";
import { describeClient, type ConnectedClient } from "../../connection/listed-connection.ts";
import type { Transport } from "../../connection/transport.ts";
import { ownerOf, type Principal } from "../../user/principal.ts";
import type { ClientPacket, ConnectPacket, Will } from "../packet/packets.ts";
import type { Properties } from "../packet/properties.ts";
import { MqttError, REASON } from "../packet/reason-codes.ts";
import type { Session } from "../session/session.ts";
import { NEVER_SECONDS, type OpenRequest } from "../session/sessions.ts";
import { readDestination } from "../topic/filter.ts";
import type { ConnectionContext, MqttLimits } from "./connection-context.ts";

/** Longest client identifier in bytes. */
const CLIENT_ID_BYTES_MAX = 256;

/** An accepted CONNECT. */
export interface Accepted {
  principal: Principal;
  request: OpenRequest;
  keepAliveSeconds: number;
  properties: Properties;
}

/** Checks a CONNECT. Throws an `MqttError` with the reason of the CONNACK. */
export async function accept(
  context: ConnectionContext,
  transport: Transport,
  packet: ConnectPacket,
): Promise<Accepted> {
  const { authenticationMethod } = packet.properties;
  if (authenticationMethod !== undefined) {
    throw new MqttError(REASON.badAuthenticationMethod, "no authentication method is supported");
  }
  checkClientId(packet);
  const principal = await context.authenticate(transport, packet.user, packet.password);
  if (principal === undefined) {
    throw new MqttError(REASON.badCredentials, "the user name or the password is wrong");
  }
  const will = readWill(packet, principal);
  const isAssigned = packet.clientId === "";
  const clientId = isAssigned ? `auto-${randomBytes(12).toString("hex")}` : packet.clientId;
  const expirySeconds = chooseExpiry(packet, context.limits);
  const keepAliveSeconds = chooseKeepAlive(packet, context.limits);
  return {
    principal,
    keepAliveSeconds,
    request: {
      identity: { tenant: principal.tenant, owner: ownerOf(principal), clientId },
      cleanStart: packet.cleanStart,
      expirySeconds,
      will,
    },
    properties: describe(packet, context.limits, {
      ...(isAssigned ? { assignedClientId: clientId } : {}),
      ...(keepAliveSeconds === packet.keepAliveSeconds
        ? {}
        : { serverKeepAliveSeconds: keepAliveSeconds }),
      ...(expirySeconds === (packet.properties.sessionExpirySeconds ?? 0)
        ? {}
        : { sessionExpirySeconds: expirySeconds }),
      ...(packet.properties.requestResponseInformation === 1
        ? { responseInformation: `responses/${clientId}` }
        : {}),
    }),
  };
}

/** The way in which a client leaves. */
export interface Farewell {
  withWill: boolean;
  /** Undefined: as its CONNECT says. */
  expirySeconds: number | undefined;
}

/** Reads a DISCONNECT. `mayKeepSession`: whether the session was to outlive the connection (MQTT-3.14.2-2). */
export function readFarewell(
  { reason, properties }: ClientPacket & { type: "disconnect" },
  mayKeepSession: boolean,
  { sessionExpiryMaxSeconds }: MqttLimits,
): Farewell {
  const { sessionExpirySeconds: asked } = properties;
  if (asked !== undefined && asked > 0 && !mayKeepSession) {
    throw new MqttError(REASON.protocolError, "the session was to end with the connection");
  }
  const expirySeconds = asked === undefined ? undefined : Math.min(asked, sessionExpiryMaxSeconds);
  return { withWill: reason !== 0, expirySeconds };
}

/** The client of an accepted CONNECT. */
export function describeAccepted(
  { principal, request }: Accepted,
  { subscriptions }: Session,
): ConnectedClient {
  const { clientId } = request.identity;
  return describeClient(principal, clientId, subscriptions.keys(), subscriptions.size);
}

function checkClientId({ clientId, version, cleanStart }: ConnectPacket): void {
  if (clientId === "" && version === 4 && !cleanStart) {
    throw new MqttError(REASON.invalidClientId, "a session that is kept needs an identifier");
  }
  if (Buffer.byteLength(clientId) > CLIENT_ID_BYTES_MAX) {
    throw new MqttError(
      REASON.invalidClientId,
      `client identifiers have ${CLIENT_ID_BYTES_MAX} bytes at most`,
    );
  }
}

/** The will, unless it would be dropped when it is published. */
function readWill({ will, version }: ConnectPacket, { rights }: Principal): Will | undefined {
  if (will === undefined) return undefined;
  const destination = readDestination(will.topic, version);
  if (destination.kind === "dropped") return undefined;
  if (destination.kind === "refused") throw destination.error;
  if (rights.covers("publish", destination.name)) return will;
  throw new MqttError(REASON.notAuthorized, "publishing to the topic of the will is not allowed");
}

function chooseExpiry(packet: ConnectPacket, limits: MqttLimits): number {
  const { sessionExpirySeconds = 0 } = packet.properties;
  const asked = packet.version === 5 ? sessionExpirySeconds : packet.cleanStart ? 0 : NEVER_SECONDS;
  return Math.min(asked, limits.sessionExpiryMaxSeconds);
}

/** MQTT 3.1.1 has no server keep-alive. */
function chooseKeepAlive(packet: ConnectPacket, { keepAliveMaxSeconds }: MqttLimits): number {
  const { keepAliveSeconds, version } = packet;
  if (version === 4) return keepAliveSeconds;
  return keepAliveSeconds === 0
    ? keepAliveMaxSeconds
    : Math.min(keepAliveSeconds, keepAliveMaxSeconds);
}

function describe(packet: ConnectPacket, limits: MqttLimits, more: Properties): Properties {
  if (packet.version === 4) return {};
  return {
    receiveMaximum: limits.receiveMaximum,
    maximumPacketBytes: limits.packetBytesMax,
    topicAliasMaximum: limits.topicAliasMaximum,
    ...more,
  };
}
