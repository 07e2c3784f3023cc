// The MQTT protocol.
export { MqttServer } from "./mqtt-server.ts";
