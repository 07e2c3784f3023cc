// Sockets, independent of protocols.
export { ByteBudget } from "./byte-budget.ts";
export { ConnectionBounds } from "./connection-bounds.ts";
export type { ConnectionBoundsOptions } from "./connection-bounds.ts";
export { DESCRIPTORS_MIN, isDescriptorShortage, readDescriptorLimit } from "./descriptors.ts";
export { createDirectWriter } from "./direct-writes.ts";
export type { DirectWriter } from "./direct-writes.ts";
export { OutgoingBudget, Outflow } from "./outgoing.ts";
export type { OutgoingBounds, OutgoingFault } from "./outgoing.ts";
export { Pace } from "./pace.ts";
export type { PaceBound } from "./pace.ts";
export { createReadShortener } from "./short-reads.ts";
export type { ReadShortener, ReadTaker } from "./short-reads.ts";
export { sliceWrites } from "./sliced-writes.ts";
