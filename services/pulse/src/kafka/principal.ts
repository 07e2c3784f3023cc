// The authenticated user of a Kafka connection.

/** The authenticated user of a connection and its tenant. */
export interface Principal {
  /** For logs and `DescribeGroups`; not a secret. */
  name: string;
  tenant: string;
  /** Expiry of the client's token in epoch milliseconds; absent if it does not expire. */
  expiresAtMs?: number;
}
