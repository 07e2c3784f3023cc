// The Kafka face: its routes over the broker, its listeners, its users.
export { nodeId, type KafkaBroker } from "./broker.ts";
export { createKafkaRoutes } from "./routes.ts";
export { createPasswordStore, type PasswordUser } from "./sasl/credentials.ts";
export type { CredentialStore } from "./sasl/mechanism.ts";
export type { ConnectionFault } from "./server/connection.ts";
export {
  kafkaLimitsDefault,
  KafkaServer,
  type KafkaLimits,
  type KafkaListener,
  type KafkaServerOptions,
} from "./server/listener.ts";
export type { Authentication, Principal } from "./server/session.ts";
