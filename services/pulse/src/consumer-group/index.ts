// Consumer groups of the classic protocol.
export { GroupCoordinator } from "./coordinator.ts";
export * from "./types.ts";
