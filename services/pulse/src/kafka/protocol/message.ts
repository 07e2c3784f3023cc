// The definition of a request: key, versions, request and response types; and types that several messages share.
import { int32, nullableString, string, struct, type Type } from "./schema.ts";

/** A request of the protocol with its response. */
export interface WireMessage<Q = unknown, QI = Q, R = unknown, RI = R> {
  /** The name in the protocol guide. */
  name: string;
  /** The API key. */
  key: number;
  /** First and last supported version. */
  versions: readonly [first: number, last: number];
  /** The first version in the flexible encoding (KIP-482); Infinity if there is none. */
  flexibleFrom: number;
  request: Type<Q, QI>;
  response: Type<R, RI>;
}

/** Infers the types of a message. */
export function defineMessage<Q, QI, R, RI>(
  message: WireMessage<Q, QI, R, RI>,
): WireMessage<Q, QI, R, RI> {
  return message;
}

/** The bit field of authorized operations if it was not requested or is not available. */
export const AUTHORIZED_OPERATIONS_UNKNOWN = -2147483648;

/** The leader of a partition, in tagged fields (KIP-951). */
export const leaderIdAndEpoch = struct({ leaderId: int32, leaderEpoch: int32 });

/** The address of a broker, in tagged fields (KIP-951). */
export const nodeEndpoint = struct({
  nodeId: int32,
  host: string,
  port: int32,
  rack: nullableString,
});
