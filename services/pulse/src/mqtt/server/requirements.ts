// The packets of clients with what each requires.
import type { Requirement } from "../../access/requirement.ts";
import type { ClientPacket } from "../packet/packets.ts";

/**
 * Requirements by packet type, the same in MQTT 3.1.1 and 5. The topic of a will requires `publish` when the client
 * connects.
 */
export const PACKET_REQUIREMENTS: Readonly<Record<ClientPacket["type"], Requirement>> = {
  connect: "public",
  publish: "publish",
  puback: "caller",
  pubrec: "caller",
  pubrel: "caller",
  pubcomp: "caller",
  subscribe: "subscribe",
  unsubscribe: "caller",
  pingreq: "caller",
  disconnect: "caller",
  auth: "caller",
};
