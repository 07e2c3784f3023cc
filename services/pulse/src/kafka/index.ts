// The Kafka face: `KafkaFace` is all that the rest of the broker makes of it.
export { KafkaServer, type KafkaServerOptions } from "./kafka-server.ts";
