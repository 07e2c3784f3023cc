// The authenticated user of a Kafka connection.

/** The authenticated user of a connection and its tenant. */
export interface Principal {
  /** For logs and `DescribeGroups`; not a secret. */
  name: string;
  tenant: string;
  /** When a token that the client showed ends, in epoch milliseconds; absent for what does not end. */
  expiresAtMs?: number;
}
