// Consumer groups of the classic protocol.
export { GroupCoordinator, type CoordinatorOptions } from "./coordinator.ts";
export * from "./types.ts";
