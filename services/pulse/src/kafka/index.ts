// The Kafka protocol.
export { KafkaServer, type KafkaServerOptions } from "./kafka-server.ts";
