// The sample upstream's entry.
import { formatAddress } from "@platform/kernel/config";
import { getAddress } from "./entry.ts";
import type { ServiceEntry } from "./entry.ts";

/** The sample in examples/hello. */
export const helloEntry: ServiceEntry = {
  name: "hello",
  label: "sample",
  main: new URL("../../../../examples/hello/main.ts", import.meta.url).href,
  listeners: [
    {
      name: "http",
      key: "hello_addr",
      env: "PLATFORM_HELLO_ADDR",
      default: "127.0.0.1:8070",
      description: "Where the sample upstream listens.",
    },
  ],
  credentials: [],
  routes: [{ prefix: "/hello", stripPrefix: false, open: true, listener: "http" }],
  configure: (context) => ({ args: [formatAddress(getAddress(context, "hello_addr"))], env: {} }),
  describe: () => "examples/hello · behind the gateway at /hello",
  trials: () => [],
};
