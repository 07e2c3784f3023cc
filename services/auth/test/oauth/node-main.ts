// The process of a second node: reports its address to its parent and runs until it is terminated.
import { startHost } from "./host.ts";

const { NODE_URL: url = "", NODE_ISSUER: issuer = "" } = process.env;
const host = await startHost({ url, issuer });
process.send?.({ origin: host.origin });
process.once("SIGTERM", () => {
  void host.close().then(() => process.exit(0));
});
process.once("disconnect", () => process.exit(0));
