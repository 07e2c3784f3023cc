// Reason codes of MQTT 5 (section 2.4), and the return codes of MQTT 3.1.1 that stand for them.

/** Reason codes by name. */
export const REASON = {
  success: 0x00,
  disconnectWithWill: 0x04,
  noMatchingSubscribers: 0x10,
  noSubscriptionExisted: 0x11,
  unspecified: 0x80,
  malformed: 0x81,
  protocolError: 0x82,
  implementationSpecific: 0x83,
  unsupportedVersion: 0x84,
  invalidClientId: 0x85,
  badCredentials: 0x86,
  notAuthorized: 0x87,
  serverUnavailable: 0x88,
  serverBusy: 0x89,
  serverShuttingDown: 0x8b,
  badAuthenticationMethod: 0x8c,
  keepAliveTimeout: 0x8d,
  sessionTakenOver: 0x8e,
  invalidTopicFilter: 0x8f,
  invalidTopicName: 0x90,
  packetIdInUse: 0x91,
  packetIdNotFound: 0x92,
  receiveMaximumExceeded: 0x93,
  invalidTopicAlias: 0x94,
  packetTooLarge: 0x95,
  messageRateTooHigh: 0x96,
  quotaExceeded: 0x97,
  administrativeAction: 0x98,
  invalidPayloadFormat: 0x99,
  connectionRateExceeded: 0x9f,
  maximumConnectTime: 0xa0,
} as const;

/** A reason code. */
export type Reason = (typeof REASON)[keyof typeof REASON];

/** An error that is answered with a reason code. The message is the reason string: it holds no secrets. */
export class MqttError extends Error {
  readonly reason: Reason;

  constructor(reason: Reason, message: string) {
    super(message);
    this.name = "MqttError";
    this.reason = reason;
  }
}

/** The return code of a CONNACK of MQTT 3.1.1 (table 3.1) that stands for a reason. */
export function toReturnCode(reason: Reason): number {
  switch (reason) {
    case REASON.success:
      return 0;
    case REASON.unsupportedVersion:
      return 1;
    case REASON.invalidClientId:
      return 2;
    case REASON.badCredentials:
    case REASON.badAuthenticationMethod:
      return 4;
    case REASON.notAuthorized:
      return 5;
    default:
      return 3;
  }
}
