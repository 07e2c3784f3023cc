// The token with which Prometheus reads the metrics of all services.

/** Environment variable of the token. */
export const METRICS_TOKEN = "PLATFORM_METRICS_TOKEN";
