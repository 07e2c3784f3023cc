// The Kafka protocol.
export { createCredentials, KafkaServer, type KafkaServerOptions } from "./kafka-server.ts";
