// The listener and the credential of the API of `platform up` itself.

/** Configuration key of the address. */
export const RUNTIME_KEY = "runtime_addr";
/** Environment variable of the operator's token. */
export const RUNTIME_TOKEN = "PLATFORM_RUNTIME_TOKEN";

export const RUNTIME_LISTENER = {
  name: "http",
  key: RUNTIME_KEY,
  env: "PLATFORM_RUNTIME_ADDR",
  default: "127.0.0.1:8071",
  description: "Listening address of the API of `platform up`: services, schedules and logs.",
};
