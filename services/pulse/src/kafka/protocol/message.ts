// What a request of the protocol is: its number, its versions, both sides of it; and what several share.
import { int32, nullableString, string, struct, type Type } from "./schema.ts";

/** One request of the protocol with its response. */
export interface WireMessage<Q = unknown, QI = Q, R = unknown, RI = R> {
  /** As the protocol guide writes it. */
  name: string;
  /** The API key. */
  key: number;
  /** First and last version that can be read and written. */
  versions: readonly [first: number, last: number];
  /** The first version in the flexible encoding (KIP-482); Infinity if there is none. */
  flexibleFrom: number;
  request: Type<Q, QI>;
  response: Type<R, RI>;
}

/** Gives a message its types. */
export function defineMessage<Q, QI, R, RI>(
  message: WireMessage<Q, QI, R, RI>,
): WireMessage<Q, QI, R, RI> {
  return message;
}

/** The bit field of authorized operations when nobody asked, or the broker does not tell. */
export const AUTHORIZED_OPERATIONS_UNKNOWN = -2147483648;

/** The leader of a partition, in tagged fields (KIP-951). */
export const leaderIdAndEpoch = struct({ leaderId: int32, leaderEpoch: int32 });

/** Where a broker is, in tagged fields (KIP-951). */
export const nodeEndpoint = struct({
  nodeId: int32,
  host: string,
  port: int32,
  rack: nullableString,
});
