// The Kafka face: `KafkaFace` is all that the rest of the broker makes of it.
export { KafkaFace, type KafkaFaceParts } from "./kafka-server.ts";
