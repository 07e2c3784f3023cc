// The parts that every daemon has, and the order in which they start and stop.
export {
  openService,
  type Service,
  type ServiceLifecycle,
  type ServiceOptions,
} from "./service.ts";
export type { Operation, OperationOptions } from "./operation.ts";
